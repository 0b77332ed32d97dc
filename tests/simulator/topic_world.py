"""Topic world: the registry, the log store and the journal on a disk that may stop at any moment.

A walk drawn from a seed: topics are created, deleted, recreated and grown, records are appended,
flushed, retained and compacted, folders come from elsewhere and go there, checkpoint files are
lost. Before any operation of the disk the process may be killed or the power may fail, also during
the start that follows. After each start `Kept` says of every partition whether it serves what it
has to. Everything is told again from the seed; `story` is what happened.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from protocol.names import OFFSETS_TOPIC, TopicId, TopicName
from storage.api import Corrupt, LogSettings, Record, TopicLog, TopicPartition
from storage.batch.record_batch import encode_batch
from storage.cleaner.cleaner import inspect_log, plan_pass, read_clean_offsets, swap_in_pass
from storage.cleaner.cleaner_pass import run_pass
from storage.disk import read_file
from storage.log.checkpoints import NO_TOPIC_ID
from storage.log.log_store import CLEAN_SHUTDOWN, LogStore
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import remove_deleted
from storage.open import JournalCallbacks, StorageSettings, open_storage, topics_file
from tests.simulator.disk import PowerCut
from tests.simulator.kept_records import (
    Kept,
    Written,
    latest_start_by_age,
    latest_start_by_size,
)
from tests.storage.rig import DATA, NOW_MS, SMALL_LIMITS, new_disk
from topics.admin_queue import run_now
from topics.catalog import expected_partitions
from topics.registry import TopicRegistry
from topics.settings import TopicSettings
from topics.topic import NewTopic, Topic

CATALOG: Final = "rollcall-topics.json"
LOSABLE: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    CLEAN_SHUTDOWN,
    CATALOG,
)
NAMES: Final = ("a", "b", "c")
KEYS: Final = tuple(f"key-{number}".encode() for number in range(8))
OFFSETS_PARTITIONS: Final = 2
SMALL: Final = {"internal.segment.bytes": "1500", "index.interval.bytes": "256"}
CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"retention.bytes": "4000"},
    {"retention.ms": "600000"},
    {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.0",
        "delete.retention.ms": "60000",
    },
)
OFFSETS_SETTINGS: Final = LogSettings(
    segment_bytes=1500,
    index_interval_bytes=256,
    cleanup_delete=False,
    cleanup_compact=True,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=60_000,
)
FOREIGN_PRODUCER_IDS: Final = 5_000
"""The distance between those of one foreign broker and the next."""

Crash = Literal["kill", "power"]


class Expected(Struct):
    """A topic that was acknowledged; of a partition that was never here there is nothing."""

    topic_id: TopicId
    partitions: list[Kept | None]


class Folder(Struct, frozen=True):
    """A partition's files, away from any data directory."""

    topic: str
    index: int
    topic_id: TopicId
    files: dict[str, bytes]
    kept: Kept
    producer_ids_to: int = 0


class TopicWorld:
    def __init__(self, seed: int, *, is_fragile: bool = False) -> None:
        """A fragile one meets a power failure in most of its steps, and nothing else ends it."""
        self.is_fragile = is_fragile
        self.dice = random.Random(seed)
        self.disk = new_disk()
        self.now_ms = NOW_MS
        self.story: list[str] = []
        self.happened: Counter[str] = Counter()
        self.topics: dict[str, Expected] = {}
        self.offsets = [Kept() for _ in range(OFFSETS_PARTITIONS)]
        self.shelf: list[Folder] = []
        self.producer_ids_to = 0  # all below were given out, here or elsewhere
        self.written = 0
        # A change that a crash interrupted: the topic is as before or as after it.
        self._maybe: tuple[str, Expected | None] | None = None
        self._moved_in: list[Folder] = []
        self._missing_allowed = False

    def _first_start(self) -> None:
        """On an empty data directory."""
        self._start()

    # --- the walk ------------------------------------------------------------------------------

    def walk(self, steps: int) -> None:
        self._first_start()
        for _ in range(steps):
            self.now_ms += self.dice.choice((1_000, 60_000, 700_000))
            action = self.dice.choices(*zip(*self._actions(), strict=True))[0]
            if self.dice.random() < (0.8 if self.is_fragile else 0.25):
                self.disk.cut_power_at = self.disk.operations + self.dice.randrange(25)
            try:
                action()
            except PowerCut:
                self._log_event("... crashed")
                self._restart("power" if self.is_fragile else self._some_crash())
            self.disk.cut_power_at = None
            self._maybe = None
        self._stop_and_start()

    def _actions(self) -> tuple[tuple[Callable[[], None], float], ...]:
        return (
            (self._produce, 30),
            (self._commit, 8),
            (self._create, 5),
            (self._delete, 3),
            (self._recreate, 2),
            (self._grow, 2),
            (self._flush, 4),
            (self._retain, 4),
            (self._delete_before, 2),
            (self._clean, 6),
            (self._checkpoint, 4),
            (self._give_producer_ids, 2),
            (self._stop_and_start, 2),
            (self._die, 3),
        )

    def _log_event(self, words: str) -> None:
        self.story.append(words)
        kind = words.split(maxsplit=1)[0]
        self.happened[kind] += 1

    # --- topics --------------------------------------------------------------------------------

    def _create(self) -> None:
        free = [name for name in NAMES if name not in self.topics]
        if free:
            self._create_as(self.dice.choice(free))

    def _create_as(self, name: str) -> None:
        count = self.dice.randint(1, 3)
        topic = NewTopic(
            TopicName(name),
            self.registry.new_topic_id(),
            count,
            {**SMALL, **self.dice.choice(CONFIGS)},
        )
        self._log_event(f"create {name} with {count}")
        made = Expected(topic.topic_id, [Kept() for _ in range(count)])
        self._maybe = (name, made)
        run_now(self.registry.create([topic]))
        self.topics[name] = made

    def _delete(self) -> None:
        if not self.topics:
            return
        name = self.dice.choice(sorted(self.topics))
        self._log_event(f"delete {name}")
        self._maybe = (name, None)
        gone = self.topics[name].topic_id
        # A folder on the shelf is deleted with its topic.
        self.shelf = [folder for folder in self.shelf if folder.topic_id != gone]
        run_now(self.registry.delete(self._topic(name)))
        del self.topics[name]
        self._maybe = None

    def _recreate(self) -> None:
        before = set(self.topics)
        self._delete()
        for name in before - set(self.topics):
            self._log_event(f"recreated {name}")
            self._create_as(name)

    def _grow(self) -> None:
        if not self.topics:
            return
        name = self.dice.choice(sorted(self.topics))
        expected = self.topics[name]
        more: list[Kept | None] = [Kept() for _ in range(self.dice.randint(1, 2))]
        self._log_event(f"grow {name} by {len(more)}")
        grown = Expected(expected.topic_id, [*expected.partitions, *more])
        self._maybe = (name, grown)
        run_now(self.registry.add_partitions(self._topic(name), len(grown.partitions)))
        self.topics[name] = grown

    def _topic(self, name: str) -> Topic:
        topic = self.registry.by_name(TopicName(name))
        assert topic is not None
        return topic

    def _give_producer_ids(self) -> None:
        self._log_event("give producer ids")
        first = run_now(self.registry.reserve_producer_ids(1_000))
        assert first >= self.producer_ids_to, f"{first} was given out, {self.producer_ids_to}"
        self.producer_ids_to = first + 1_000

    # --- records -------------------------------------------------------------------------------

    def _some_log(self) -> tuple[TopicPartition, PartitionLog, Kept] | None:
        """A partition of a user topic that is served."""
        found = []
        for name, expected in sorted(self.topics.items()):
            for index, kept in enumerate(expected.partitions):
                log = self.store.partition_log(TopicPartition(name, index))
                if log is not None and kept is not None and not kept.is_elsewhere:
                    found.append((log.topic_partition, log, kept))
        return self.dice.choice(found) if found else None

    def _batch(self, base: int) -> list[Written]:
        batch = []
        for key in self.dice.sample(KEYS, self.dice.randint(1, 3)):
            self.written += 1
            value = f"{self.written}-{'x' * self.dice.choice((10, 100, 300))}".encode()
            gone = self.dice.random() < 0.15
            batch.append(Written(base + len(batch), key, None if gone else value, self.now_ms))
        return batch

    def _produce(self) -> None:
        if (found := self._some_log()) is None:
            return self._create()
        key, log, kept = found
        for _ in range(self.dice.randint(1, 6)):
            batch = self._batch(log.log_end_offset)
            producer_id = -1
            if self.producer_ids_to and self.dice.random() < 0.3:
                producer_id = self.dice.randrange(self.producer_ids_to)
            self._log_event(f"produce {key.topic}-{key.partition} {batch[0].offset}+{len(batch)}")
            kept.doubted = [batch]
            first = log.append(encoded(batch, producer_id), self.now_ms)
            assert first == batch[0].offset
            kept.doubted = []
            kept.appended(batch)
        return None

    def _commit(self) -> None:
        """To a partition of the offsets topic, by way of the journal."""
        partition = self.dice.randrange(OFFSETS_PARTITIONS)
        kept, log = self.offsets[partition], self.journaled[partition]
        for _ in range(self.dice.randint(1, 4)):
            batch = self._batch(log.end_position)
            self._log_event(f"commit {partition} {batch[0].offset}+{len(batch)}")
            kept.doubted.append(batch)
            log.append([Record(record.key, record.value) for record in batch], self.now_ms)
        assert self.journal.pump()

    def _stored(self, stored: list[tuple[TopicPartition, int]], _seconds: float) -> None:
        for key, position in stored:
            kept = self.offsets[key.partition]
            while kept.doubted and kept.doubted[0][-1].offset < position:
                kept.appended(kept.doubted.pop(0))
            kept.durable_to = kept.end

    def _flush(self) -> None:
        if (found := self._some_log()) is not None:
            key, log, kept = found
            self._log_event(f"flush {key.topic}-{key.partition} to {kept.end}")
            log.flush()
            kept.durable_to = kept.end

    # --- policies ------------------------------------------------------------------------------

    def _retain(self) -> None:
        if (found := self._some_log()) is None:
            return
        key, log, kept = found
        settings = log.settings
        before = kept.start
        if settings.cleanup_delete and settings.retention_ms >= 0:
            horizon_ms = self.now_ms - settings.retention_ms
            young = latest_start_by_age(kept.from_start(), kept.end, horizon_ms)
            kept.start = max(kept.start, young)
        if settings.cleanup_delete and settings.retention_bytes >= 0:
            by_size = latest_start_by_size(log, settings.retention_bytes)
            kept.start = max(kept.start, by_size)
        self._log_event(f"retain {key.topic}-{key.partition} up to {kept.start}")
        log.enforce_retention(self.now_ms)
        taken = [offset for offset in kept.records if kept.start <= offset < log.log_start_offset]
        assert not taken, f"retention took {taken}, it may go up to {kept.start}"
        kept.start = max(before, log.log_start_offset)

    def _delete_before(self) -> None:
        if (found := self._some_log()) is None:
            return
        key, log, kept = found
        if not kept.end:
            return
        offset = self.dice.randint(0, kept.end)
        self._log_event(f"delete-before {key.topic}-{key.partition} {offset}")
        kept.start = max(kept.start, offset)
        assert log.delete_before(offset) >= offset

    def _clean(self) -> None:
        compacted = [
            (key, log, kept)
            for key, log, kept in self._all_logs()
            if log.settings.cleanup_compact and log.segments
        ]
        if not compacted:
            return
        key, log, kept = self.dice.choice(compacted)
        if self.dice.random() < 0.5 and log.segments[-1].size and key.topic != OFFSETS_TOPIC:
            log.roll()
        self._log_event(f"clean {key.topic}-{key.partition}")
        log.sync_sealed()
        # A tombstone in there may go with what it deleted: no power failure brings that back.
        kept.durable_to = max(kept.durable_to, log.segments[-1].base_offset)
        self.store.write_checkpoints()
        kept.is_cleaned = True
        offsets = read_clean_offsets(self.disk, DATA)
        stable_to = self.store.durable_to(log)
        found = inspect_log(
            log, checkpoint=offsets.get(key), stable_to=stable_to, now_ms=self.now_ms
        ).found
        if found.first_dirty >= found.first_uncleanable:
            return
        job = plan_pass(log, found, stable_to=stable_to, now_ms=self.now_ms, producers={})
        result = run_pass(self.disk, job)
        replaced = swap_in_pass(self.disk, log, result)
        self.store.set_clean_offsets({log: result.end_offset})
        remove_deleted(self.disk, log, replaced)

    def _checkpoint(self) -> None:
        self._log_event("checkpoint")
        for _, log, _ in self._all_logs():
            log.sync_sealed()
        self.journal.checkpointer.run()
        self.store.write_checkpoints()

    def _all_logs(self) -> list[tuple[TopicPartition, PartitionLog, Kept]]:
        found = []
        known = {name: expected.partitions for name, expected in self.topics.items()}
        for name, partitions in {**known, OFFSETS_TOPIC: self.offsets}.items():
            for index, kept in enumerate(partitions):
                log = self.store.partition_log(TopicPartition(name, index))
                if log is not None and kept is not None:
                    found.append((log.topic_partition, log, kept))
        return found

    # --- ends and starts -----------------------------------------------------------------------

    def _stop_and_start(self) -> None:
        self._log_event("stop")
        assert self.journal.close()
        assert self.store.close() == []
        for _, _, kept in self._all_logs():
            kept.durable_to = kept.end
        self._between_starts()
        self._begin(power_lost=False)

    def _die(self) -> None:
        self._restart(self._some_crash())

    def _some_crash(self) -> Crash:
        return self.dice.choice(("kill", "power"))

    def _restart(self, crash: Crash) -> None:
        self._log_event(crash)
        self._crash(crash)
        if crash == "kill":
            self._between_starts()
        self._begin(power_lost=crash == "power")

    def _crash(self, crash: Crash) -> None:
        self.disk = self.disk.after_kill() if crash == "kill" else self.disk.after_crash(self.dice)

    def _begin(self, *, power_lost: bool) -> None:
        """Start, up to twice cut short like the process before."""
        for _ in range(self.dice.choice((0, 0, 1, 2))):
            self.disk.cut_power_at = self.disk.operations + self.dice.randrange(40)
            try:
                self._start()
            except PowerCut:
                crash = self._some_crash()
                self._log_event(f"{crash} in the start")
                power_lost = power_lost or crash == "power"
                self._crash(crash)
        self.disk.cut_power_at = None
        self._start()
        self._check(power_lost=power_lost)

    def _start(self) -> None:
        try:
            self._open(repair=False)
        except Corrupt as damage:
            if not self._missing_allowed:
                raise
            self._log_event(f"refused {damage}")
            self._open(repair=True)

    def _open(self, *, repair: bool) -> None:
        catalog = topics_file(self.disk, DATA)
        opened = open_storage(
            self.disk,
            DATA,
            StorageSettings(SMALL_LIMITS, required=(OFFSETS_TOPIC,)),
            self._observed,
            expects=expected_partitions(catalog, repair=repair),
            callbacks=JournalCallbacks(stored=self._stored, failed=self._failed),
            repair=repair,
        )
        self.store, self.journal = opened.store, opened.journal
        self.registry = TopicRegistry(
            self.store,
            catalog,
            TopicSettings(
                offsets_topic_num_partitions=OFFSETS_PARTITIONS,
                broker_properties={"log.retention.ms": "-1"},
            ),
            self._observed,
            repair=repair or self.store.is_repairing,
        )
        topic_id = self.registry.topic_id(OFFSETS_TOPIC)
        assert topic_id is not None
        self.journaled = []
        for partition in range(OFFSETS_PARTITIONS):
            key = TopicPartition(OFFSETS_TOPIC, partition)
            log = self.store.partition_log(key)
            if log is None:
                self.store.create(key, topic_id, OFFSETS_SETTINGS)
            else:
                # A crash may have taken the id with the folder's small files, but not changed it.
                assert log.topic_id in (topic_id, NO_TOPIC_ID), "the offsets topic has another id"
                log.settings = OFFSETS_SETTINGS
                log.begin_leader_epoch()
            self.journaled.append(self.journal.log(key))

    def _observed(self, _event: object) -> None:
        """The shell's log; what it says is not looked at here."""

    def _failed(self, failure: Exception) -> None:
        raise AssertionError(f"the journal has failed: {failure}")

    # --- what an operator does between two starts ----------------------------------------------

    def _between_starts(self) -> None:
        self._missing_allowed = False
        self.disk.cut_power_at = None
        if self.dice.random() < 0.2:
            self._lose_a_file()
        elif self.dice.random() < 0.15:  # with the catalog nothing would report what is missing
            self._move_out()
        if self.dice.random() < 0.25:
            self._move_in()

    def _lose_a_file(self) -> None:
        name = self.dice.choice(LOSABLE)
        if name == CATALOG and not self._folders_have_all():
            return
        if self.disk.exists(f"{DATA}/{name}"):
            self._log_event(f"lose {name}")
            if name == CATALOG:
                self.happened["lose-catalog"] += 1
                # A new topic's id is durable there alone, until its first flush.
                self.disk.write_back()
            self.disk.remove(f"{DATA}/{name}")
            self.disk.sync_dir(DATA)

    def _folders_have_all(self) -> bool:
        """Could the topics be made of the folders? Not one that is half made, or half away."""
        partitions = [kept for topic in self.topics.values() for kept in topic.partitions]
        if self.happened["lose-catalog"]:
            return False  # what the first loss left out of the producer ids, a second one forgets
        return self._maybe is None and not any(
            kept is None or kept.is_elsewhere for kept in partitions
        )

    def _move_out(self) -> None:
        if not self.topics:
            return
        name = self.dice.choice(sorted(self.topics))
        expected = self.topics[name]
        index = self.dice.randrange(len(expected.partitions))
        kept = expected.partitions[index]
        path = f"{DATA}/{name}-{index}"
        if kept is None or not self.disk.exists(path) or self._is_in_doubt(name):
            return
        self._log_event(f"move-out {name}-{index}")
        files = {name: read_file(self.disk, f"{path}/{name}") for name in self.disk.listdir(path)}
        # Of two folders of one partition, one that began while the other was away, only the newer
        # may come back: the older one ends below the recovery point, and is offline, as it should.
        self.shelf = [
            folder
            for folder in self.shelf
            if (folder.topic_id, folder.index) != (expected.topic_id, index)
        ]
        self.shelf.append(Folder(name, index, expected.topic_id, files, kept))
        for file in files:
            self.disk.remove(f"{path}/{file}")
        self.disk.remove_dir(path)
        self.disk.sync_dir(DATA)
        expected.partitions[index] = Kept(is_elsewhere=True)
        self._missing_allowed = True

    def _move_in(self) -> None:
        """Another broker's topic, or a partition that was moved out and is not here any more."""
        away = [folder for folder in self.shelf if self._has_place_for(folder)]
        if away and self.dice.random() < 0.5:
            folder = self.dice.choice(away)
            self.shelf.remove(folder)
        elif "moved" not in self.topics:
            folder = self._foreign()
        else:
            return
        if self._has_place_for(folder):
            self._put_in(folder)

    def _has_place_for(self, folder: Folder) -> bool:
        """Not in a topic of another id, and not beside what replaced it."""
        if self.disk.exists(f"{DATA}/{folder.topic}-{folder.index}"):
            return False
        expected = self.topics.get(folder.topic)
        if self._is_in_doubt(folder.topic):
            return False
        return expected is None or expected.topic_id == folder.topic_id

    def _put_in(self, folder: Folder) -> None:
        path = f"{DATA}/{folder.topic}-{folder.index}"
        self.producer_ids_to = max(self.producer_ids_to, folder.producer_ids_to)
        self._log_event(f"move-in {folder.topic}-{folder.index} up to {folder.kept.end}")
        self.disk.make_dir(path)
        for name, content in folder.files.items():
            self._write_file(f"{path}/{name}", content)
        self.disk.sync_dir(path)
        self.disk.sync_dir(DATA)
        folder.kept.durable_to = folder.kept.end
        expected = self.topics.setdefault(folder.topic, Expected(folder.topic_id, []))
        partitions = expected.partitions
        partitions += [None] * (folder.index + 1 - len(partitions))
        partitions[folder.index] = folder.kept

    def _write_file(self, path: str, content: bytes) -> None:
        file = self.disk.open(path, create=True)
        file.pwrite(content, 0)
        file.sync()

    def _is_in_doubt(self, name: str) -> bool:
        return self._maybe is not None and self._maybe[0] == name

    def _foreign(self) -> Folder:
        """A partition of another Rollcall, stopped cleanly, with producers of that one's."""
        disk = new_disk()
        key = TopicPartition("moved", self.dice.choice((0, 0, 2)))
        store = LogStore(disk, DATA)
        store.open()
        settings = LogSettings(segment_bytes=1500, index_interval_bytes=256)
        topic_id = self.registry.new_topic_id()
        log = store.create(key, topic_id, settings)
        kept = Kept()
        producer_ids_to = self.producer_ids_to + FOREIGN_PRODUCER_IDS
        for _ in range(self.dice.randint(1, 12)):
            batch = self._batch(log.log_end_offset)
            log.append(encoded(batch, producer_ids_to - 1), self.now_ms)
            kept.appended(batch)
        assert store.close() == []
        path = f"{DATA}/{key.topic}-{key.partition}"
        files = {name: read_file(disk, f"{path}/{name}") for name in disk.listdir(path)}
        return Folder(key.topic, key.partition, topic_id, files, kept, producer_ids_to)

    # --- the one rule --------------------------------------------------------------------------

    def _check(self, *, power_lost: bool) -> None:
        self._resolve_doubt()
        for name, expected in self.topics.items():
            topic = self.registry.by_name(TopicName(name))
            assert topic is not None, f"{name} is gone"
            assert topic.topic_id == expected.topic_id, f"{name} has another id"
            count = len(topic.partitions)
            assert count == len(expected.partitions), f"{name} has {count} partitions"
            for index, kept in enumerate(expected.partitions):
                if kept is not None:
                    key = TopicPartition(name, index)
                    self._check_partition(key, kept, power_lost=power_lost)
        for name in self.registry.names():
            assert name in self.topics or name == OFFSETS_TOPIC, f"{name} came back"
        for index, kept in enumerate(self.offsets):
            log = self.store.partitions()[TopicPartition(OFFSETS_TOPIC, index)]
            self._checked(log, kept, power_lost=power_lost)

    def _resolve_doubt(self) -> None:
        """Which of the two it was: the change is there as a whole or not at all."""
        if self._maybe is None:
            return
        name, after = self._maybe
        self._maybe = None
        topic = self.registry.by_name(TopicName(name))
        before = self.topics.get(name)
        if after is None:
            if topic is None:
                del self.topics[name]
        elif topic is not None and (
            before is None or len(topic.partitions) == len(after.partitions)
        ):
            self.topics[name] = after

    def _check_partition(self, key: TopicPartition, kept: Kept, *, power_lost: bool) -> None:
        partition = self.registry.partition(*key)
        assert partition is not None
        if kept.is_elsewhere and partition.log is None:
            return  # and stays so until its folder is back
        damage = self.store.damaged.get(key)
        assert not partition.offline, f"{key.topic}-{key.partition} is offline: {damage}"
        assert partition.log is not None, f"{key.topic}-{key.partition} has no log"
        self._checked(partition.log, kept, power_lost=power_lost)

    def _checked(self, log: TopicLog, kept: Kept, *, power_lost: bool) -> None:
        name = f"{log.topic_partition.topic}-{log.topic_partition.partition}"
        try:
            kept.check(log, power_lost=power_lost)
        except AssertionError as wrong:
            raise AssertionError(f"{name}: {wrong}") from None


def encoded(batch: list[Written], producer_id: int) -> bytes:
    records = [Record(record.key, record.value) for record in batch]
    return encode_batch(records, 0, batch[0].at_ms, 0, producer_id, 0, 0)


def simulate_topics(seed: int, steps: int = 80, *, is_fragile: bool = False) -> TopicWorld:
    """One world's life. A broken promise is told with the last of its story."""
    world = TopicWorld(seed, is_fragile=is_fragile)
    live(world, seed, steps)
    return world


def live(world: TopicWorld, seed: int, steps: int) -> None:
    try:
        world.walk(steps)
    except Exception as wrong:
        wrong.add_note(f"seed {seed}, {steps} steps; the end of its story:")
        for line in world.story[-25:]:
            wrong.add_note(f"  {line}")
        raise


if __name__ == "__main__":
    for line in simulate_topics(int(sys.argv[1])).story:
        print(line)
