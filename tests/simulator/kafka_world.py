"""Kafka world: the topic world's life, on the folders that a real Kafka left.

In half of the worlds the data directory of the first start consists of these folders, with and
without the checkpoint files of that Kafka; in all of them folders that are not there yet are put in
between two starts. From then on they are topics like any other. The rule is the same, with what a
consumer read from that Kafka as what was acknowledged. Besides: no producer id that its files hold
is given out again, and every offset and every time is found through the indexes, whichever broker
made them.
"""

import sys
from typing import Final

from protocol.names import TopicId
from storage.api import LogSettings, TopicLog
from storage.batch.record_batch import read_header
from tests.simulator.disk import PowerCut
from tests.simulator.kafka_folders import IMAGES, Image, checkpoints, folders, written_to_ms
from tests.simulator.kept_records import Kept, served_by
from tests.simulator.topic_world import Crash, Folder, TopicWorld, live
from tests.storage.rig import DATA

_HOUR_MS: Final = 3_600_000
_SMALL: Final = {"segment_bytes": 1_500, "index_interval_bytes": 256}
_POLICIES: Final[tuple[LogSettings, ...]] = (
    LogSettings(**_SMALL, retention_ms=-1),
    LogSettings(**_SMALL, retention_ms=-1, retention_bytes=4_000),
    LogSettings(**_SMALL, retention_ms=2 * _HOUR_MS),
    LogSettings(
        **_SMALL,
        cleanup_delete=False,
        cleanup_compact=True,
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=60_000,
    ),
)
"""What such a topic goes by here: a folder has no configs, so these are the broker's."""


class KafkaWorld(TopicWorld):
    def _first_start(self) -> None:
        self._arrive(self.dice.choice(IMAGES))
        if self.dice.random() < 0.5:
            names = dict.fromkeys(folder.topic for folder in self.shelf)
            self._furnish({name for name in names if self.dice.random() < 0.8})
        is_torn = self.image == "killed" and self.dice.random() < 0.5
        if is_torn:
            self._tear()
        self._begin(power_lost=is_torn)

    def _arrive(self, image: Image) -> None:
        self.now_ms = written_to_ms() + _HOUR_MS
        self.image = image
        found = folders(image)
        self.policies: dict[TopicId, LogSettings] = {
            topic_id: self.dice.choice(_POLICIES)
            for topic_id in dict.fromkeys(partition.topic_id for partition in found)
        }
        self.shelf = [
            Folder(
                partition.topic,
                partition.index,
                partition.topic_id,
                partition.files,
                partition.kept(),
                partition.greatest_producer_id + 1,
            )
            for partition in found
        ]

    def start_cut_short(self, image: Image, operation: int, crash: Crash) -> bool:
        """The first start on the folders ends before this operation; is there such a one?"""
        self._arrive(image)
        self._furnish({folder.topic for folder in self.shelf})
        self.dice.seed(operation)
        self.disk.cut_power_at = self.disk.operations + operation
        try:
            self._start()
        except PowerCut:
            self._crash(crash)
            self._start()
            self._check(power_lost=crash == "power")
            return True
        self._check(power_lost=False)
        return False

    def _furnish(self, topics: set[str]) -> None:
        """Whole topics: a line of a checkpoint for a folder that is not there would be news."""
        for folder in tuple(self.shelf):
            if folder.topic in topics:
                self.shelf.remove(folder)
                self._put_in(folder)
        for name, content in checkpoints(self.image).items():
            if self.dice.random() < 0.7:
                self._log_event(f"with {name}")
                self._write_file(f"{DATA}/{name}", content)
        self.disk.sync_dir(DATA)
        # This start finds no catalog; losing it later would be the second time.
        self.happened["lose-catalog"] += 1

    def _tear(self) -> None:
        """As if that Kafka's power had failed: of its active segments it had synced nothing."""
        for name, expected in self.topics.items():
            for index, kept in enumerate(expected.partitions):
                assert kept is not None
                folder = f"{DATA}/{name}-{index}"
                active = max(name for name in self.disk.listdir(folder) if name.endswith(".log"))
                base = active.removesuffix(".log")
                kept.durable_to = int(base)
                self._log_event(f"torn {name}-{index} from {kept.durable_to}")
                self._lose_end(f"{folder}/{active}")
                for suffix in (".index", ".timeindex"):
                    self._lose_end(f"{folder}/{base}{suffix}")

    def _lose_end(self, path: str) -> None:
        """From some byte on the file ends, or holds zeros."""
        file = self.disk.open(path)
        size = file.size()
        file.truncate(self.dice.randint(0, size))
        if self.dice.random() < 0.5:
            file.truncate(size)
        file.sync()

    def _open(self, *, repair: bool) -> None:
        super()._open(repair=repair)
        for key, log in self.store.partitions().items():
            if log.topic_id in self.policies:
                log.settings = self.policies[log.topic_id]
                self.happened[f"served {key.topic}"] += 1

    def _checked(self, log: TopicLog, kept: Kept, *, power_lost: bool) -> None:
        super()._checked(log, kept, power_lost=power_lost)
        if log.topic_id in self.policies:
            _check_lookups(log)


def _check_lookups(log: TopicLog) -> None:
    """Every offset and every time is found where a reader of the whole log would find it."""
    key, served = log.topic_partition, list(served_by(log).values())
    for record in served:
        read = log.read(record.offset, 1, up_to=log.log_end_offset, at_least_one=True)
        header = read_header(read)
        assert header.base_offset <= record.offset < header.next_offset, (key, record.offset)
    for at_ms in sorted({record.at_ms for record in served if record.at_ms >= 0}):
        wanted = next((record.at_ms, record.offset) for record in served if record.at_ms >= at_ms)
        assert log.offset_for_timestamp(at_ms) == wanted, (key, at_ms)


def simulate_kafka_folders(seed: int, steps: int = 60, *, is_fragile: bool = False) -> KafkaWorld:
    """One world's life. A broken promise is told with the last of its story."""
    world = KafkaWorld(seed, is_fragile=is_fragile)
    live(world, seed, steps)
    return world


if __name__ == "__main__":
    for line in simulate_kafka_folders(int(sys.argv[1])).story:
        print(line)
