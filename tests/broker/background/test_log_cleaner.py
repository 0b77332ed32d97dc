"""Daemon's side of the log cleaner: a disk in memory, the pass in the test's process.

Under real clients and kills: tests/interop/test_compacted_topics.py.
"""

import asyncio
from collections.abc import Callable, Mapping
from uuid import UUID

from msgspec.structs import replace

from broker.background.jobs import Arguments, run_worker_job
from broker.background.log_cleaner import ATTEMPTS_MAX, LogCleaner
from broker.background.worker import JobFailed, WorkerProcess
from broker.loop.clock import SystemClock
from broker.observe.cleaner_events import (
    CleanerEvent,
    CleaningAborted,
    CleaningBegun,
    CleanOffsetReset,
    LogCleaned,
    LogUncleanable,
)
from broker.observe.events import PartFailed
from config.limits import CleanerSettings
from storage.api import LogSettings, Record, TopicPartition
from storage.batch.record_batch import encode_batch, stored_records
from storage.cleaner.cleaner import read_clean_offsets, write_clean_offsets
from storage.disk import Disk
from storage.log.checkpoints import CLEAN_OFFSETS
from storage.log.partition_log import PartitionLog
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, OFFSETS, Rig, new_disk

COMPACTED = LogSettings(
    index_interval_bytes=256,
    cleanup_delete=False,
    cleanup_compact=True,
    min_cleanable_dirty_ratio=0.1,
    file_delete_delay_ms=5_000,
)
ONE, TWO = TopicPartition("one", 0), TopicPartition("two", 0)


class Time:
    def __init__(self) -> None:
        self.mono_ns = self.wall_ns = 1_800_000_000_000 * 1_000_000


class HereWorker(WorkerProcess):
    """Does the job where it is asked for, or what the test says instead."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk
        self.before: Callable[[], object] = lambda: None

    async def run(self, job: str, arguments: Arguments) -> Arguments:
        self.before()
        try:
            return run_worker_job(self.disk, job, arguments)
        except Exception as error:
            raise JobFailed(job, type(error).__name__, str(error)) from None


class Desk:
    """A store with two compacted logs, and their cleaning."""

    def __init__(self, disk: SimulatedDisk | None = None) -> None:
        self.disk = disk or new_disk()
        self.rig = Rig(self.disk, settings=COMPACTED)
        self.store = self.rig.store
        self.time = Time()
        self.clock = SystemClock(lambda: self.time.mono_ns, lambda: self.time.wall_ns)
        self.events: list[CleanerEvent | PartFailed] = []
        self.worker = HereWorker(self.disk)
        self.cleaned: list[tuple[TopicPartition, int]] = []
        self.cleaner = LogCleaner(
            self.disk,
            self.store,
            self.rig.journal,
            self.worker,
            self.clock,
            self.events.append,
            CleanerSettings(),
            producers=lambda _: {},
            cleaned=lambda key, up_to: self.cleaned.append((key, up_to)),
        )
        self.logs = {key: self.open(key) for key in (ONE, TWO)}

    def open(self, key: TopicPartition) -> PartitionLog:
        found = self.store.partition_log(key)
        return found or self.store.create(key, UUID(int=key.partition + 1), COMPACTED)

    def write(self, key: TopicPartition, *values: int, roll: bool = True) -> None:
        log = self.logs[key]
        for value in values:
            end = log.log_end_offset
            record = Record(b"key", str(value).encode())
            now_ms = self.time.wall_ns // 1_000_000
            log.append_placed([(encode_batch([record], end, now_ms), end, now_ms)], now_ms)
        if roll:
            log.roll()

    def wait(self, ms: int) -> None:
        """In steps, or the clock takes it for a stall."""
        while ms > 0:
            step = min(ms, 1_000)
            self.time.mono_ns += step * 1_000_000
            self.time.wall_ns += step * 1_000_000
            self.clock.now()
            ms -= step

    async def run_once(self) -> bool:
        was_busy = await self.cleaner.run_once()
        await asyncio.sleep(0)  # what threads have told comes in
        return was_busy

    def values(self, key: TopicPartition) -> list[str]:
        batches = self.logs[key].batches(0)
        return [
            (record.value or b"").decode() for batch in batches for record in stored_records(batch)
        ]

    def events_of(self, kind: type[CleanerEvent]) -> list[CleanerEvent]:
        return [event for event in self.events if isinstance(event, kind)]


async def test_what_an_earlier_pass_has_cleaned_is_reported() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    assert await desk.run_once()
    assert desk.cleaned == [(ONE, 0)]  # readers may still have what this pass has replaced
    desk.write(ONE, 3, 4)
    desk.wait(60_000)
    assert await desk.run_once()
    assert desk.cleaned == [(ONE, 0), (ONE, 2)]


async def test_logs_are_cleaned_in_order_of_their_dirty_ratio() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    assert await desk.run_once()
    desk.write(ONE, 3)
    desk.write(TWO, 1, 2, 3)
    assert await desk.run_once()
    assert await desk.run_once()
    assert not await desk.run_once()
    cleaned = [event.log for event in desk.events_of(LogCleaned)]
    assert cleaned == [ONE, TWO, ONE]
    assert desk.values(ONE) == desk.values(TWO) == ["3"]
    assert read_clean_offsets(desk.disk, DATA) == {ONE: 3, TWO: 3}
    numbers = desk.cleaner.stats
    assert numbers.runs == 3
    assert numbers.bytes_written < numbers.bytes_read
    assert numbers.max_dirty_ratio == 0


async def test_sealed_segments_are_synced_before_a_pass_relies_on_them() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    assert desk.store.durable_to(desk.logs[ONE]) == 0
    assert await desk.run_once()
    assert desk.store.durable_to(desk.logs[ONE]) == 2
    again = Desk(desk.disk.after_kill())
    assert again.values(ONE) == ["2"]


async def test_what_was_replaced_leaves_after_its_delay() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    await desk.run_once()

    def waiting() -> list[str]:
        return [name for name in desk.disk.listdir(f"{DATA}/one-0") if ".deleted" in name]

    assert waiting()
    desk.wait(4_999)
    await desk.run_once()
    assert waiting()
    desk.wait(1)
    await desk.run_once()
    assert not waiting()


async def test_a_clean_stop_leaves_nothing_of_it_to_sweep_away() -> None:
    """Neither what waits for its delay, nor what a pass was writing."""
    desk = Desk()
    desk.write(ONE, 1, 2)
    assert await desk.run_once()
    desk.write(TWO, 1, 2)
    started = asyncio.Event()

    async def for_ever(job: str, arguments: Arguments) -> Arguments:
        desk.disk.open(f"{DATA}/two-0/{0:020d}.log.cleaned", create=True).close()
        started.set()
        await asyncio.Event().wait()
        return {}

    desk.worker.run = for_ever  # type: ignore[method-assign]  # a pass that takes its time
    desk.cleaner.start()
    await started.wait()
    await desk.cleaner.stop()

    def left() -> list[str]:
        names = [name for key in ("one-0", "two-0") for name in desk.disk.listdir(f"{DATA}/{key}")]
        return [name for name in names if name.endswith((".deleted", ".cleaned"))]

    assert {name.rpartition(".")[2] for name in left()} == {"deleted", "cleaned"}
    await desk.cleaner.remove_leftovers()
    assert left() == []
    assert desk.values(ONE) == ["2"]


async def test_changed_settings_apply_from_the_next_run_on() -> None:
    desk = Desk()
    desk.logs[ONE].settings = replace(COMPACTED, cleanup_compact=False)
    desk.write(ONE, 1, 2)
    assert not await desk.run_once()
    desk.logs[ONE].settings = replace(COMPACTED, min_compaction_lag_ms=60_000)
    assert not await desk.run_once()
    desk.logs[ONE].settings = COMPACTED
    assert await desk.run_once()


async def test_a_damaged_batch_marks_the_log_at_once_and_the_other_goes_on() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2, 3)
    desk.write(TWO, 1, 2)
    file = desk.disk.open(desk.logs[ONE].segments[0].path)
    file.pwrite(b"\xff", 70)
    assert not await desk.run_once()
    (marked,) = desk.events_of(LogUncleanable)
    assert isinstance(marked, LogUncleanable)
    assert marked.log == ONE
    assert "at byte 0: stored crc" in marked.reason
    assert await desk.run_once()
    assert desk.values(TWO) == ["2"]
    assert not await desk.run_once()
    assert desk.cleaner.uncleanable.keys() == {desk.logs[ONE]}
    assert desk.cleaner.stats.uncleanable_bytes > 0
    assert not [name for name in desk.disk.listdir(f"{DATA}/one-0") if "cleaned" in name]


async def test_what_may_pass_by_is_tried_again_and_then_no_more() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)

    def no_room() -> None:
        raise JobFailed("clean-log", "OSError", "no space left on device")

    desk.worker.before = no_room
    for _ in range(ATTEMPTS_MAX - 1):
        assert not await desk.run_once()
    assert len(desk.events_of(CleaningAborted)) == ATTEMPTS_MAX - 1
    assert not desk.cleaner.uncleanable
    desk.worker.before = lambda: None
    assert await desk.run_once()
    desk.write(ONE, 3)
    desk.worker.before = no_room
    for _ in range(ATTEMPTS_MAX):
        await desk.run_once()
    assert desk.cleaner.uncleanable.keys() == {desk.logs[ONE]}


async def test_a_failed_rename_marks_the_log_for_what_is_half_done_is_a_starts_business() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    original = desk.disk.sync_dir

    def failing(path: str) -> None:
        if path.endswith("one-0"):
            raise OSError(5, "input/output error", path)
        original(path)

    await desk.cleaner._in_thread(desk.cleaner._sync_sealed, [(ONE, desk.logs[ONE])])
    desk.disk.sync_dir = failing  # type: ignore[method-assign]  # the test's own fault
    assert not await desk.run_once()
    assert desk.cleaner.uncleanable
    assert desk.values(ONE) in (["1", "2"], ["2"])
    again = Desk(desk.disk.after_kill())
    assert again.values(ONE) in (["1", "2"], ["2"])
    assert await again.run_once() or again.values(ONE) == ["2"]


async def test_a_log_that_is_deleted_in_its_pass() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    desk.worker.before = lambda: desk.store.delete(ONE)
    assert not await desk.run_once()
    (aborted,) = desk.events_of(CleaningAborted)
    assert isinstance(aborted, CleaningAborted)
    assert aborted.log == ONE
    assert not desk.cleaner.uncleanable
    assert not desk.disk.exists(f"{DATA}/one-0")


async def test_a_log_whose_start_moves_in_its_pass() -> None:
    desk = Desk()
    desk.logs[ONE].settings = replace(COMPACTED, cleanup_delete=True, retention_bytes=0)
    desk.write(ONE, 1, 2)
    desk.worker.before = lambda: desk.logs[ONE].enforce_retention(0)
    assert not await desk.run_once()
    # The pass finds a file gone, or the swap a segment.
    assert desk.events_of(CleaningAborted)
    assert not desk.cleaner.uncleanable
    desk.worker.before = lambda: None
    desk.write(ONE, 3, 4)
    assert await desk.run_once()
    assert desk.values(ONE) == ["4"]


async def test_whoever_deletes_a_topic_ends_its_pass() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    started = asyncio.Event()

    async def for_ever(job: str, arguments: Arguments) -> Arguments:
        started.set()
        await asyncio.Event().wait()
        return {}

    desk.worker.run = for_ever  # type: ignore[method-assign]  # a pass that takes its time
    running = asyncio.create_task(desk.cleaner.run_once())
    await started.wait()
    desk.cleaner.topic_deleted("two")
    await asyncio.sleep(0)
    assert not running.done()
    desk.cleaner.topic_deleted("one")
    assert not await running
    assert desk.events_of(CleaningAborted)


async def test_an_impossible_checkpoint_is_logged_and_corrected() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    write_clean_offsets(desk.disk, DATA, {ONE: 99, TopicPartition("gone", 3): 5})
    assert await desk.run_once()
    (reset,) = desk.events_of(CleanOffsetReset)
    assert isinstance(reset, CleanOffsetReset)
    assert "above the log end 2" in reset.reason
    assert read_clean_offsets(desk.disk, DATA) == {ONE: 2}


async def test_a_checkpoint_file_that_cannot_be_read_costs_time_and_nothing_else() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    file = desk.disk.open(f"{DATA}/{CLEAN_OFFSETS}", create=True)
    file.pwrite(b"nonsense", 0)
    assert await desk.run_once()
    assert any(isinstance(event, PartFailed) for event in desk.events)
    assert desk.values(ONE) == ["2"]


async def test_nothing_is_cleaned_while_the_journal_is_closed() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    desk.rig.journal.closed_because = "disk full"
    assert not await desk.run_once()
    assert desk.events_of(CleaningBegun) == []


async def test_a_log_that_is_blocked_is_not_read_again_and_again() -> None:
    desk = Desk()
    asked = 0

    async def no_progress(job: str, arguments: Arguments) -> Arguments:
        nonlocal asked
        asked += 1
        message = arguments["pass"]
        assert isinstance(message, Mapping)
        from storage.cleaner.messages import PassResult

        return PassResult(int(message["first_dirty"])).to_message()

    desk.worker.run = no_progress  # type: ignore[method-assign]  # an open transaction
    desk.write(ONE, 1)
    assert not await desk.run_once()
    assert not await desk.run_once()
    assert asked == 1
    desk.write(ONE, 2)
    await desk.run_once()
    assert asked == 2


async def test_a_journaled_log_is_cleaned_up_to_its_checkpoint_and_rolled_when_it_is_old() -> None:
    desk = Desk()
    log = desk.rig.log()
    now_ms = desk.time.wall_ns // 1_000_000
    for number in range(5):
        log.append([Record(b"key", b"%d" % number)], now_ms)
        desk.rig.journal.pump()
    log.partition_log.settings = replace(COMPACTED, segment_ms=1_000)
    assert not await desk.run_once()
    desk.wait(2_000)
    await desk.run_once()
    _run_tasks(desk)
    assert [segment.base_offset for segment in log.partition_log.segments] == [0, 5]
    assert not await desk.run_once(), "the journal may write it again"
    desk.rig.stop()

    again = Desk(desk.disk.after_kill())
    again.rig.log().partition_log.settings = COMPACTED
    assert await again.run_once()
    assert again.rig.keys() == ["key"]
    assert read_clean_offsets(again.disk, DATA) == {TopicPartition(OFFSETS, 0): 5}


def _run_tasks(desk: Desk) -> None:
    tasks = desk.rig.journal._tasks
    while tasks:
        tasks.popleft()()


async def test_a_bug_ends_one_run_and_not_the_cleaner() -> None:
    desk = Desk()
    desk.write(ONE, 1, 2)
    runs = asyncio.Event()
    original = desk.cleaner.run_once
    calls = 0

    async def failing() -> bool:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise AssertionError("a bug")
        runs.set()
        return await original()

    desk.cleaner.run_once = failing  # type: ignore[method-assign]  # the bug
    desk.cleaner._settings = CleanerSettings(backoff_ms=1)
    desk.cleaner.start()
    await asyncio.wait_for(runs.wait(), 60)
    await desk.cleaner.stop()
    assert any(isinstance(event, PartFailed) for event in desk.events)


async def test_a_shorter_backoff_ends_the_pause_at_once() -> None:
    desk = Desk()
    runs = asyncio.Queue[None]()
    original = desk.cleaner.run_once

    async def counted() -> bool:
        runs.put_nowait(None)
        return await original()

    desk.cleaner.run_once = counted  # type: ignore[method-assign]
    desk.cleaner.use(CleanerSettings(backoff_ms=3_600_000))
    desk.cleaner.start()
    await asyncio.wait_for(runs.get(), 60)
    desk.cleaner.use(CleanerSettings(backoff_ms=1))
    for _ in range(2):
        await asyncio.wait_for(runs.get(), 60)
    await desk.cleaner.stop()


async def test_without_log_cleaner_enable_nothing_starts() -> None:
    desk = Desk()
    desk.cleaner._settings = CleanerSettings(is_enabled=False)
    desk.cleaner.start()
    await desk.cleaner.stop()
    assert desk.events == []


async def test_retention_moves_the_start_of_a_log_that_is_cleaned_too() -> None:
    desk = Desk()
    both = replace(COMPACTED, cleanup_delete=True, retention_bytes=0)
    desk.write(ONE, 1, 2)
    desk.write(ONE, 3)
    await desk.run_once()
    desk.logs[ONE].settings = both
    assert desk.logs[ONE].enforce_retention(0)
    desk.write(ONE, 4, 5)
    assert await desk.run_once()
    assert desk.values(ONE) == ["5"]
    assert desk.events_of(CleanOffsetReset) == [], "retention does that all the time"
