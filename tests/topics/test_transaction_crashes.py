"""Transactions over crashes: what is restored is what the log says, for producers and readers.

A real log store on the simulated disk, and a model that keeps a list of what was appended. After
each kill -9 or power failure the log has lost its end or nothing; the producer states, the last
stable offset and the aborted transactions must be those of the model up to there. What was durable
by promise (markers, with rollcall.flush=commit) is never lost.
"""

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from protocol.names import ErrorCode, ProducerId
from seams.transactions import TransactionMarker
from storage.api import TopicPartition
from storage.atomic_file import StoredFile
from storage.batch.record_batch import iter_batches, read_header
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, new_disk
from tests.topics.plane import Plane
from tests.topics.transactions import TV1, TV2, VERIFIES, Transactions

KEY: Final = TopicPartition("a", 0)
PRODUCERS: Final = (1, 2, 3)


class Appended(NamedTuple):
    """What the model knows of a batch."""

    producer: int  # 0: a plain batch
    epoch: int
    records: int
    marker: bool | None = None  # commit; None: data
    coordinator_epoch: int = -1


class Known(NamedTuple):
    """What must be known of a producer."""

    epoch: int
    coordinator_epoch: int
    last_sequence: int
    first_offset: int | None


class Model:
    """The log as a list, and what follows from it by reading it from the beginning."""

    def __init__(self) -> None:
        self.log: list[tuple[int, Appended]] = []
        self.end = 0

    def append(self, appended: Appended) -> None:
        self.log.append((self.end, appended))
        self.end += appended.records

    def offsets(self) -> Iterator[tuple[int, Appended]]:
        return iter(self.log)

    def lose(self, left: set[int], end: int, durable_end: int) -> None:
        """A crash left these batches, the first ones: all that was durable."""
        assert [
            offset for offset, _ in self.log if offset < durable_end and offset not in left
        ] == []
        self.log = [(offset, each) for offset, each in self.log if offset in left]
        self.end = end

    def producers(self) -> dict[int, Known]:
        known: dict[int, Known] = {}
        for offset, each in self.offsets():
            if not each.producer:
                continue
            before = known.get(each.producer, Known(each.epoch, -1, -1, None))
            sequence = before.last_sequence if before.epoch == each.epoch else -1
            if each.marker is None:
                first = offset if before.first_offset is None else before.first_offset
                after = Known(each.epoch, before.coordinator_epoch, sequence + each.records, first)
            else:
                after = Known(each.epoch, each.coordinator_epoch, sequence, None)
            known[each.producer] = after
        return known

    def stable(self) -> int:
        begun = [known.first_offset for known in self.producers().values()]
        return min([first for first in begun if first is not None], default=self.end)

    def aborted(self) -> list[tuple[int, int, int]]:
        begun: dict[int, int] = {}
        found = []
        for offset, each in self.offsets():
            if each.marker is None and each.producer:
                begun.setdefault(each.producer, offset)
            elif each.marker is not None:
                first = begun.pop(each.producer, None)
                if first is not None and not each.marker:
                    found.append((each.producer, first, offset))
        return found


class Run:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = Model()
        self.durable_end = 0
        self.disk = new_disk()
        self.plane = Plane()
        self._use(self.disk)
        self.plane.given("a")
        self.disk.sync_dir(DATA)

    def _use(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        store = LogStore(disk, DATA)
        store.open()
        self.store = store
        self.plane.store = store  # type: ignore[assignment]
        self.plane.producer_snapshot = StoredFile(disk, f"{DATA}/producers")  # type: ignore[assignment]
        self.plane.restart()
        self.transactions = Transactions(self.plane)

    @property
    def log(self) -> PartitionLog:
        log = self.store.partition_log(KEY)
        assert log is not None
        return log

    # Steps

    def write(self) -> None:
        producer = self.chance.choice(PRODUCERS)
        known = self.model.producers().get(producer, Known(0, -1, -1, None))
        values = [b"v"] * self.chance.randint(1, 3)
        answer = self.transactions.send(
            *values,
            producer=producer,
            epoch=known.epoch,
            sequence=known.last_sequence + 1,
            version=VERIFIES,
        )
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, self.model.end)
        self.model.append(Appended(producer, known.epoch, len(values)))

    def plain(self) -> None:
        self.transactions.plain(b"plain")
        self.model.append(Appended(0, -1, 1))

    def end(self) -> None:
        producer = self.chance.choice(PRODUCERS)
        known = self.model.producers().get(producer, Known(0, -1, -1, None))
        version = self.chance.choice((TV1, TV2))
        marker = TransactionMarker(
            ProducerId(producer),
            known.epoch + (version == TV2),
            self.chance.random() < 0.4,
            max(known.coordinator_epoch, 0) + self.chance.randint(0, 1),
            version,
        )
        found: list[ErrorCode] = []
        self.plane.data.markers.write_markers(
            marker, [KEY], self.plane.now, lambda errors: found.append(errors[KEY])
        )
        assert found == [ErrorCode.NONE]
        self.model.append(
            Appended(producer, marker.producer_epoch, 1, marker.is_commit, marker.coordinator_epoch)
        )
        self.durable_end = self.model.end

    def roll(self) -> None:
        """The sealed segment is synced at once; otherwise a power failure might leave a gap."""
        if self.log.segments and self.log.segments[-1].size:
            self.log.roll()
            self.log.sync_sealed()
            self.durable_end = self.model.end

    def save(self) -> None:
        self.plane.advance(self.plane.settings.producer_snapshot_interval_ms + 1)

    def forget_states(self) -> None:
        """The file of the producer states is lost: Kafka's snapshots and the log have them."""
        self.kill()
        self.disk.remove(f"{DATA}/producers") if self.disk.exists(f"{DATA}/producers") else None
        self.kill()

    def checkpoint(self) -> None:
        self.log.flush()
        self.store.write_checkpoints()
        self.durable_end = self.model.end

    def stop(self) -> None:
        self.plane.stop()
        assert self.store.close() == []
        self._use(self.disk.after_kill())
        self.check()

    def kill(self) -> None:
        end = self.model.end
        self._use(self.disk.after_kill())
        assert self.log.log_end_offset == end
        self.check()

    def lose_power(self) -> None:
        self._use(self.disk.after_crash(self.chance))
        left = {read_header(batch).base_offset for batch in self.log.batches(0)}
        self.model.lose(left, self.log.log_end_offset, self.durable_end)
        self.durable_end = self.model.end
        self.check()

    # Checks

    def check(self) -> None:
        data = self.transactions.read()
        assert data.error_code is ErrorCode.NONE
        assert (data.last_stable_offset, data.high_watermark) == (
            self.model.stable(),
            self.model.end,
        )
        partition = self.plane.data.registry.partition(*KEY)
        assert partition is not None
        assert partition.producers is not None
        assert {
            producer: Known(
                entry.epoch,
                entry.coordinator_epoch,
                entry.last_sequence,
                entry.transaction_first_offset,
            )
            for producer, entry in partition.producers.entries.items()
        } == self.model.producers()
        aborted = self.model.aborted()
        for start, _ in self.model.offsets():
            records = self.log.read(start, 1 << 20, up_to=self.model.end, at_least_one=True)
            up_to = max(header.next_offset for _, header in iter_batches(records))
            assert [each[:3] for each in self.log.aborted_among(records)] == [
                each for each in aborted if each[2] >= start and each[1] < up_to
            ], (start, up_to)


@pytest.mark.parametrize("seed", range(20))
def test_transactions_are_restored_as_the_log_has_them(seed: int) -> None:
    run = Run(seed)
    steps = [
        *[run.write] * 8, *[run.plain] * 2, *[run.end] * 5, run.roll, run.save,
        run.checkpoint, run.stop, run.kill, run.lose_power, run.forget_states,
    ]  # fmt: skip
    for _ in range(60):
        run.chance.choice(steps)()
    run.check()
    run.lose_power()
