"""Elections and loads: in which order logs are read, who is served, what a fault costs."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

import pytest

from broker.health import Health
from broker.loop.clock import SystemClock
from broker.observe.events import (
    LoadProgressed,
    PartFailed,
    PartitionRead,
    PartitionsElected,
    PartitionsLoaded,
    ShellEvent,
    SnapshotIgnored,
)
from broker.partitions import ownership
from broker.partitions.load_progress import LoadReport
from broker.partitions.loading import SLICE_RECORDS, LoadSize
from broker.partitions.ownership import RELOAD_WINDOW_MS, RELOADS_PER_WINDOW, Ownership
from coordinator.image import MEANING, LoadStart
from seams.now import Now
from storage.api import (
    BatchProducer,
    Corrupt,
    EndMarker,
    Log,
    LogSettings,
    Position,
    Record,
    RecordPair,
    StoredRecord,
    TopicLog,
    TopicPartition,
)
from storage.batch.control_batch import logged_records
from storage.batch.record_batch import encode_batch
from storage.disk import read_file
from storage.snapshot import (
    SkippedSnapshot,
    Snapshot,
    SnapshotHeader,
    pack,
    snapshot_path,
    write_snapshot,
)
from tests.broker.shell import WAIT_S
from tests.simulator.disk import SimulatedDisk


class MemoryLog:
    """One partition, both ends: what a shard appends to and what a load reads."""

    def __init__(self, partition: int, records: int = 0) -> None:
        self.topic_partition = TopicPartition("__consumer_offsets", partition)
        self.topic_id = UUID(int=1)
        self.leader_epoch = 0
        self.log_start_offset = 0
        self.settings = LogSettings()
        self.end_position = self.stored_position = records
        self.room = True
        self.damage: Exception | None = None

    @property
    def log_end_offset(self) -> int:
        return self.end_position

    @property
    def high_watermark(self) -> int:
        return self.stored_position

    @property
    def size_bytes(self) -> int:
        return self.end_position

    def has_room(self) -> bool:
        return self.room

    def append(
        self,
        records: Sequence[RecordPair],
        timestamp_ms: int,
        producer: BatchProducer | None = None,
    ) -> Position:
        self.end_position += len(records)
        return self.end_position

    def append_marker(self, _marker: EndMarker, _timestamp_ms: int) -> Position:
        raise AssertionError("there are no transactions here")

    def batches(self, from_offset: int) -> Iterator[bytes]:
        for offset in range(from_offset, self.stored_position):
            if self.damage is not None and offset == 1:
                raise self.damage
            yield encode_batch([Record(b"key-%d" % offset, b"value")], offset, 1, 0)


class MemoryLogs:
    def __init__(self, records: Sequence[int]) -> None:
        self.logs = [MemoryLog(partition, count) for partition, count in enumerate(records)]
        self.refused: dict[int, Exception] = {}
        self.opened: list[int] = []
        self.snapshots_read: list[int] = []
        self.snapshots: dict[int, Snapshot] = {}
        self.ignored: dict[int, list[SkippedSnapshot]] = {}
        self.cleaned: set[str] = set()  # paths of snapshots that were read and then forgotten

    def elect(self, partition: int) -> int:
        if partition in self.refused:
            raise self.refused[partition]
        self.logs[partition].leader_epoch += 1
        return self.logs[partition].leader_epoch

    def open(self, partition: int) -> tuple[Log, TopicLog]:
        self.opened.append(partition)
        log = self.logs[partition]
        return log, log  # type: ignore[return-value]  # as much of a TopicLog as a load needs

    def load_sizes(self, partitions: Iterable[int]) -> dict[int, LoadSize]:
        return {at: LoadSize(self.logs[at].stored_position, 0) for at in partitions}

    def snapshot(self, partition: int) -> tuple[Snapshot | None, list[SkippedSnapshot]]:
        self.snapshots_read.append(partition)
        return self.snapshots.get(partition), self.ignored.pop(partition, [])

    def stands(self, snapshot: Snapshot) -> bool:
        return snapshot.path not in self.cleaned


class SeenCoordinator:
    """Records its calls, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.records: dict[int, list[StoredRecord]] = {}
        self.slices: list[int] = []
        self.refuse: dict[int, Exception] = {}
        self.on_slice: asyncio.Event | None = None
        self.beginnings: list[tuple[int, int]] = []
        self.left: dict[int, int] = {}  # slices of groups until all are ready

    def begin_load(self, partition: int, log: Log) -> None:
        self.calls.append(("begin", partition))
        self.records[partition] = []

    def load_from(self, partition: int, load_start: LoadStart) -> None:
        self.beginnings.append((partition, load_start.position))
        self.records[partition] = []

    def restore_slice(self, partition: int, now: Now, budget: int) -> bool:
        self.calls.append(("restore_slice", partition))
        self.left[partition] = max(self.left.get(partition, 0) - 1, 0)
        return self.left[partition] > 0

    def load_left(self, partition: int) -> tuple[int, int]:
        left = self.left.get(partition, 0)
        return left, left * 100

    records_of = staticmethod(logged_records)
    quick_records_of = None

    def load(self, partition: int, records: Sequence[StoredRecord], next_offset: int) -> None:
        if partition in self.refuse:
            raise self.refuse[partition]
        self.slices.append(len(records))
        self.records[partition] += records
        assert next_offset > records[-1].offset
        if self.on_slice is not None:
            self.on_slice.set()

    def finish_load(self, partition: int, now: Now) -> None:
        self.calls.append(("finish", partition))

    def fail_load(self, partition: int, reason: str) -> None:
        self.calls.append(("fail", partition))

    def resign(self, partition: int, now: Now) -> None:
        self.calls.append(("resign", partition))

    def on_log_failed(self, partition: int, now: Now) -> None:
        self.calls.append(("log failed", partition))

    def finished(self) -> list[int]:
        return [partition for what, partition in self.calls if what == "finish"]


class Node:
    def __init__(self, records: Sequence[int]) -> None:
        self.logs = MemoryLogs(records)
        self.coordinator = SeenCoordinator()
        self.events: list[ShellEvent] = []
        self.attached: list[TopicLog] = []
        self.turns = 0
        self.clock = SystemClock()
        self.ownership = Ownership(
            self.logs,
            self.clock,
            self.events.append,
            attach=self.attached.append,
            turned=self._turned,
        )
        self.ownership.coordinator = self.coordinator

    def _turned(self) -> None:
        self.turns += 1

    def reports(self) -> list[LoadReport]:
        return [event.report for event in self.events if isinstance(event, LoadProgressed)]

    async def elect(self) -> None:
        await asyncio.wait_for(self.ownership.elect(range(len(self.logs.logs))), WAIT_S)


async def test_all_partitions_are_elected_before_the_first_is_loaded() -> None:
    node = Node([0, 3, 0])
    await node.elect()
    assert node.coordinator.calls[:3] == [("begin", 0), ("begin", 1), ("begin", 2)]
    assert node.coordinator.finished() == [0, 1, 2]
    assert [record.key for record in node.coordinator.records[1]] == [b"key-0", b"key-1", b"key-2"]
    assert len(node.attached) == 3
    assert node.turns >= 3
    assert (node.ownership.owned, node.ownership.loading, node.ownership.failed) == (3, 0, {})
    assert PartitionsElected(3, 1, 1) in node.events
    loaded = [event for event in node.events if isinstance(event, PartitionsLoaded)]
    assert [(event.partitions, event.failed, event.records) for event in loaded] == [(3, 0, 3)]


async def test_a_large_partition_is_taken_in_slices_and_the_loop_goes_on() -> None:
    node = Node([SLICE_RECORDS * 3 + 1])
    node.coordinator.on_slice = asyncio.Event()
    electing = asyncio.ensure_future(node.elect())
    await asyncio.wait_for(node.coordinator.on_slice.wait(), WAIT_S)
    assert node.ownership.loading == 1  # somebody else had a turn between two slices
    await electing
    assert max(node.coordinator.slices) <= SLICE_RECORDS
    assert sum(node.coordinator.slices) == SLICE_RECORDS * 3 + 1


async def test_what_is_asked_for_is_loaded_next() -> None:
    node = Node([SLICE_RECORDS * 9, 1, 1, 1, 1])
    node.coordinator.on_slice = asyncio.Event()
    electing = asyncio.ensure_future(node.elect())
    await asyncio.wait_for(node.coordinator.on_slice.wait(), WAIT_S)
    node.ownership.prioritize(3)
    node.ownership.prioritize(3)
    node.ownership.prioritize(99)  # not ours: nothing to do
    await electing
    assert node.coordinator.finished() == [0, 3, 1, 2, 4]


async def test_a_partition_that_cannot_be_read_fails_alone() -> None:
    node = Node([1, 3, 1])
    node.logs.logs[1].damage = Corrupt("a.log", 61, "the checksum does not match")
    node.logs.refused[2] = OSError(28, "No space left on device")
    await node.elect()
    assert node.coordinator.finished() == [0]
    assert ("fail", 1) in node.coordinator.calls
    assert set(node.ownership.failed) == {1, 2}
    assert "the checksum does not match" in node.ownership.failed[1]
    assert node.ownership.loading == 0


async def test_a_record_that_the_coordinator_cannot_take_fails_its_partition() -> None:
    node = Node([2, 2])
    node.coordinator.refuse[0] = ZeroDivisionError("a bug of ours")
    await node.elect()
    assert node.coordinator.finished() == [1]
    assert "ZeroDivisionError" in node.ownership.failed[0]
    assert any(isinstance(event, PartFailed) for event in node.events)


async def test_a_partition_given_up_while_it_loads_is_not_served() -> None:
    node = Node([SLICE_RECORDS * 3, 1])
    node.coordinator.on_slice = asyncio.Event()
    electing = asyncio.ensure_future(node.elect())
    await asyncio.wait_for(node.coordinator.on_slice.wait(), WAIT_S)
    await node.ownership.resign(0)
    await electing
    assert node.coordinator.finished() == [1]
    assert ("resign", 0) in node.coordinator.calls
    assert node.ownership.owned == 1


async def test_a_shard_that_failed_is_loaded_again_once_its_log_is_whole() -> None:
    node = Node([1])
    await node.elect()
    log = node.logs.logs[0]
    log.append([Record(b"k", b"v")], 1)  # not stored yet when the shard fails

    node.ownership.shard_failed(0, ZeroDivisionError())
    for _ in range(20):
        await asyncio.sleep(0)
    assert node.coordinator.finished() == [0]

    log.stored_position = log.end_position
    node.ownership.on_flush()
    await _until_finished(node, 2)
    assert len(node.coordinator.records[0]) == 2
    assert node.logs.opened == [0]  # the same end of the log: its offsets go on


class ClockOfATest:
    """Stands still, but for who sleeps on it."""

    def __init__(self) -> None:
        self.mono_ms = 1_000_000
        self.slept_ms: list[int] = []

    def now(self) -> Now:
        return Now(self.mono_ms, self.mono_ms)

    async def sleep(self, seconds: float) -> None:
        self.slept_ms.append(round(seconds * 1000))
        self.mono_ms += self.slept_ms[-1]
        await asyncio.sleep(0)


async def test_a_shard_that_fails_again_and_again_is_loaded_again_at_a_limited_rate() -> None:
    node, clock = Node([1]), ClockOfATest()
    node.ownership._clock = clock  # type: ignore[assignment]
    node.ownership._sleep = clock.sleep  # type: ignore[assignment]
    await node.elect()
    began_ms = clock.mono_ms
    failures = 4 * RELOADS_PER_WINDOW
    for number in range(failures):
        node.ownership.shard_failed(0, ZeroDivisionError("again"))
        assert "again" in node.ownership.failed[0]
        assert node.ownership.served == []
        await _until_finished(node, number + 2)
        assert (node.ownership.failed, node.ownership.served) == ({}, [0])
    assert (clock.mono_ms - began_ms) // RELOAD_WINDOW_MS == failures // RELOADS_PER_WINDOW - 1

    # A quiet time later it is as new.
    clock.mono_ms += RELOAD_WINDOW_MS
    node.ownership.shard_failed(0, ZeroDivisionError("once more"))
    await _until_finished(node, failures + 2)
    assert clock.slept_ms[-1] == 0


async def test_a_node_is_not_ready_while_a_shard_is_down() -> None:
    node, clock = Node([0, 0]), ClockOfATest()
    node.ownership._clock = clock  # type: ignore[assignment]
    awake = asyncio.Event()

    async def sleep(_: float) -> None:
        await awake.wait()

    node.ownership._sleep = sleep  # type: ignore[assignment]
    await node.elect()
    health = Health(node.ownership, partitions=2)
    assert health.ready
    node.ownership.shard_failed(1, ZeroDivisionError("a bug"))
    await asyncio.sleep(0)
    assert (health.ready, health.reason) == (False, "not served: partition 1")
    partitions = health.report()["partitions"]
    assert isinstance(partitions, dict)
    assert partitions["failed"] == {"1": "ZeroDivisionError('a bug')"}
    awake.set()
    await _until_finished(node, 3)
    assert health.ready


async def test_a_shard_that_waits_for_its_reload_is_loaded_once_when_the_journal_fails() -> None:
    node = Node([1])
    awake = asyncio.Event()

    async def sleep(_: float) -> None:
        await awake.wait()

    node.ownership._sleep = sleep  # type: ignore[assignment]
    await node.elect()
    node.ownership.shard_failed(0, ZeroDivisionError("a bug"))
    node.ownership.journal_failed()
    await _until_finished(node, 2)
    awake.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert node.coordinator.finished() == [0, 0]
    assert node.ownership.failed == {}


async def test_when_the_journal_fails_what_is_on_the_disk_is_served() -> None:
    node = Node([2, 0])
    await node.elect()
    node.logs.logs[0].append([Record(b"k", b"v")], 1)
    node.ownership.journal_failed()
    await _until_finished(node, 4)
    assert [call for call in node.coordinator.calls if call[0] == "log failed"] == [
        ("log failed", 0),
        ("log failed", 1),
    ]
    assert len(node.coordinator.records[0]) == 2  # the one that was not stored is not there
    assert node.logs.opened == [0, 1, 0, 1]
    assert node.ownership.failed == {}


async def test_a_stop_waits_for_what_was_appended() -> None:
    node = Node([0])
    await node.elect()
    log = node.logs.logs[0]
    log.append([Record(b"k", b"v")], 1)
    flushing = asyncio.ensure_future(node.ownership.flush(WAIT_S))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not flushing.done()
    log.stored_position = log.end_position
    node.ownership.on_flush()
    assert await flushing

    log.append([Record(b"k", b"v")], 1)
    assert not await node.ownership.flush(0.01)
    node.ownership.resign_all()
    assert node.ownership.owned == 0


def a_snapshot(position: int) -> Snapshot:
    disk = SimulatedDisk()
    about = SnapshotHeader(position, UUID(int=1), 0, 1, MEANING, ((), ()))
    write_snapshot(disk, "", about, [("g", pack([]))])
    path = snapshot_path("", position)
    return Snapshot(path, read_file(disk, path))


async def test_a_load_begins_with_a_snapshot_and_reads_the_log_from_there() -> None:
    node = Node([5, 5])
    node.logs.snapshots[1] = a_snapshot(3)
    await node.elect()
    assert node.coordinator.beginnings == [(0, 0), (1, 3)]
    assert len(node.coordinator.records[0]) == 5
    assert [record.offset for record in node.coordinator.records[1]] == [3, 4]


async def test_a_snapshot_that_is_up_to_date_leaves_nothing_to_read() -> None:
    node = Node([5])
    node.logs.snapshots[0] = a_snapshot(5)
    await node.elect()
    assert node.coordinator.records[0] == []
    assert node.coordinator.finished() == [0]


async def test_a_log_that_was_cleaned_since_is_read_again_without_that_snapshot() -> None:
    node = Node([5])
    stale = node.logs.snapshots[0] = a_snapshot(3)

    def cleaned(snapshot: Snapshot) -> bool:
        node.logs.snapshots.clear()
        return snapshot.path != stale.path

    node.logs.stands = cleaned  # type: ignore[method-assign]
    await node.elect()
    assert node.coordinator.beginnings == [(0, 3), (0, 0)]
    assert len(node.coordinator.records[0]) == 5
    assert node.coordinator.finished() == [0]


async def test_an_ignored_snapshot_is_logged() -> None:
    node = Node([1])
    node.logs.ignored[0] = [SkippedSnapshot("x.groups", "the checksum does not match")]
    await node.elect()
    assert SnapshotIgnored(0, "x.groups", "the checksum does not match") in node.events


async def test_groups_get_ready_after_all_partitions_are_served() -> None:
    node = Node([1, 1])
    node.coordinator.left = {0: 3, 1: 2}
    await node.elect()
    calls = node.coordinator.calls
    served = max(calls.index(("finish", 0)), calls.index(("finish", 1)))
    assert calls.index(("restore_slice", 0)) > served
    assert (calls.count(("restore_slice", 0)), calls.count(("restore_slice", 1))) == (3, 2)
    assert node.ownership.loading == 0
    (loaded,) = (event for event in node.events if isinstance(event, PartitionsLoaded))
    assert 0 <= loaded.served_ms <= loaded.load_ms


async def test_the_loop_goes_on_while_groups_get_ready() -> None:
    node = Node([0])
    node.coordinator.left = {0: 1 << 40}
    electing = asyncio.ensure_future(node.elect())
    await _until(lambda: node.coordinator.calls.count(("restore_slice", 0)) > 0)
    report = node.ownership.progress
    assert report is not None
    assert (report.partitions, report.partitions_read) == (1, 1)
    assert (report.groups_found, node.ownership.loading) == (1 << 40, 1)
    assert 0 < report.groups_ready < report.groups_found
    node.coordinator.left = {0: 1}
    await electing
    assert node.ownership.progress is None


async def test_readyz_says_how_far_the_load_is() -> None:
    node = Node([0])
    health = Health(node.ownership, partitions=1)
    assert (health.ready, health.report()["loading"]) == (False, None)  # nothing is owned yet
    node.coordinator.left = {0: 1 << 40}
    electing = asyncio.ensure_future(node.elect())
    await _until(lambda: node.coordinator.calls.count(("restore_slice", 0)) > 0)
    report = health.report()
    assert (report["ready"], report["reason"]) == (False, "loading")
    assert isinstance(report["loading"], dict)
    assert report["loading"]["partitions_read"] == report["loading"]["partitions"] == 1
    assert 0 < report["loading"]["groups_ready"] < report["loading"]["groups_found"]
    assert json.dumps(report)
    node.coordinator.left = {0: 1}
    await electing
    assert (health.ready, health.report()["loading"]) == (True, None)


async def test_a_partition_given_up_while_its_groups_get_ready_is_left_alone() -> None:
    node = Node([0])
    node.coordinator.left = {0: 1 << 40}
    electing = asyncio.ensure_future(node.elect())
    await _until(lambda: node.coordinator.calls.count(("restore_slice", 0)) > 0)
    await node.ownership.resign(0)
    count = node.coordinator.calls.count(("restore_slice", 0))
    await electing
    assert node.coordinator.calls.count(("restore_slice", 0)) == count


async def test_a_long_load_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "PROGRESS_INTERVAL_S", 0.001)
    node = Node([0])
    node.coordinator.left = {0: 1 << 40}
    electing = asyncio.ensure_future(node.elect())
    await _until(lambda: any(report.groups_ready for report in node.reports()))
    node.coordinator.left = {0: 1}
    await electing
    report = node.reports()[-1]
    assert report.partitions == report.partitions_read == 1
    assert 0 < report.groups_ready < report.groups_found
    count = len(node.events)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(node.events) == count  # and is silent once it is over


async def test_a_shard_that_failed_twice_is_read_from_the_log_alone() -> None:
    node = Node([2])
    node.logs.snapshots[0] = a_snapshot(1)
    await node.elect()
    node.ownership.shard_failed(0, ZeroDivisionError())
    await _until_finished(node, 2)
    node.ownership.shard_failed(0, ZeroDivisionError())
    await _until_finished(node, 3)
    assert node.coordinator.beginnings == [(0, 1), (0, 1), (0, 0)]


async def test_each_load_says_how_much_it_read() -> None:
    node = Node([3])
    await node.elect()
    (read,) = [event for event in node.events if isinstance(event, PartitionRead)]
    assert (read.partition, read.epoch, read.records, read.size_bytes) == (0, 1, 3, 3)


async def _until_finished(node: Node, times: int) -> None:
    async def wait() -> None:
        while len(node.coordinator.finished()) < times:  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), WAIT_S)


async def _until(holds: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not holds():  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), WAIT_S)
