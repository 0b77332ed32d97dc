"""Journaled log: atomic appends to two logs, and retention."""

import random
import threading
from collections.abc import Callable

import pytest

from storage.api import Corrupt, LogSettings, TopicPartition
from storage.batch.record_batch import iter_batches, read_header
from storage.journal.journaled_log import Entry, JournaledLog
from storage.log.partition_log import PartitionLog
from tests.simulator.disk import PowerCut
from tests.storage.rig import NOW_MS, OFFSETS, SMALL_LIMITS, TOPIC_ID, Rig, new_disk, records

KEY = TopicPartition(OFFSETS, 0)
DELETING = LogSettings(
    segment_bytes=1 << 10, index_interval_bytes=256, retention_ms=10_000, retention_bytes=3 << 10
)


def test_what_is_held_is_stored_in_one_flush_however_large() -> None:
    rig = Rig(new_disk())
    first, second = rig.log(0), rig.log(1)
    large = records(*(f"a record with a long name, {n}" for n in range(40)))
    for _ in range(3):
        rig.journal.begin_atomic()
        first.append(large, NOW_MS)  # alone as much as a group takes
        second.append(records("told"), NOW_MS)
        rig.journal.end_atomic()
        rig.journal.pump()
        assert first.stored_position == first.end_position
        assert second.stored_position == second.end_position
    assert not rig.journal.pump()


def test_nothing_of_it_is_stored_before_the_release() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    rig.journal.begin_atomic()
    log.append(records("a"), NOW_MS)
    assert not rig.journal.pump()
    rig.journal.end_atomic()
    assert rig.journal.pump()
    assert rig.keys() == ["a"]


def test_an_empty_atomic_batch_costs_no_flush_and_batches_do_not_nest() -> None:
    rig = Rig(new_disk())
    rig.journal.begin_atomic()
    with pytest.raises(AssertionError, match="do not nest"):
        rig.journal.begin_atomic()
    rig.journal.end_atomic()
    assert not rig.journal.pump()


def test_after_a_crash_all_that_was_held_is_there_or_nothing_is() -> None:
    """The power goes before each operation of the flush; what was not synced may be lost."""
    seen = set()
    for at in range(50):
        disk = new_disk()
        rig = Rig(disk)
        first, second = rig.log(0), rig.log(1)
        rig.journal.begin_atomic()
        first.append(records(*"abcdef"), NOW_MS)
        second.append(records("told"), NOW_MS)
        rig.journal.end_atomic()
        disk.cut_power_at = disk.operations + at
        survived = _pump(rig)
        after = Rig(disk.after_crash(random.Random(at)))
        counts = (_count(after, 0), _count(after, 1))
        assert counts in {(0, 0), (6, 1)}, f"parted at operation {at}: {counts}"
        seen.add(counts)
        if survived:
            break
    assert seen == {(0, 0), (6, 1)}


def _count(rig: Rig, partition: int) -> int:
    log = rig.store.partition_log(TopicPartition(OFFSETS, partition))
    return 0 if log is None else log.log_end_offset


def _pump(rig: Rig) -> bool:
    try:
        return rig.journal.pump()
    except PowerCut:
        return False


class Threaded:
    """A rig whose flusher has its thread, and a way to wait for it."""

    def __init__(self) -> None:
        self.rig = Rig(new_disk(), settings=DELETING, limits=SMALL_LIMITS)
        self.log = self.rig.log()
        self.view = self.rig.store.partitions()[KEY]
        self.rig.journal.start()

    def wait_for_flusher(self) -> None:
        """Until the flusher has done all that was asked of it before."""
        done = threading.Event()
        self.rig.journal.run_on_flusher(done.set)
        assert done.wait(60)

    def fill(self, count: int, at_ms: int) -> None:
        for n in range(count):
            while not self.log.has_room():
                self.wait_for_flusher()
            self.log.append(records(f"record {n} at {at_ms} " + "x" * 100), at_ms)
        self.until(lambda: self.log.stored_position == self.log.end_position)

    def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(1000):
            if holds():
                return
            self.wait_for_flusher()
        raise AssertionError("it never came")


def test_retention_drops_the_oldest_segments_by_size_and_reports_it_later() -> None:
    threaded = Threaded()
    threaded.fill(60, NOW_MS)
    assert threaded.view.size_bytes > 8 << 10
    assert threaded.view.enforce_retention(NOW_MS) == 0  # asked; done by the flusher
    threaded.wait_for_flusher()
    assert 3 << 10 <= threaded.view.size_bytes < 5 << 10
    assert threaded.view.log_start_offset > 0
    assert threaded.view.enforce_retention(NOW_MS) > 0  # how many went since
    content = b"".join(threaded.view.batches(threaded.view.log_start_offset))
    offsets = [header.base_offset for _, header in iter_batches(content)]
    assert offsets == list(range(threaded.view.log_start_offset, 60))
    with pytest.raises(IndexError):
        threaded.view.read(0, 1000, up_to=1 << 40, at_least_one=True)
    assert threaded.rig.journal.close()


def test_retention_by_age_closes_the_last_segment_and_the_offsets_go_on() -> None:
    threaded = Threaded()
    threaded.fill(5, NOW_MS)
    threaded.view.enforce_retention(NOW_MS + 20_000)
    threaded.wait_for_flusher()
    assert threaded.view.log_start_offset == threaded.view.log_end_offset == 5
    threaded.fill(2, NOW_MS + 20_000)
    assert threaded.view.high_watermark == 7
    assert threaded.rig.journal.close()


def test_what_retention_dropped_no_start_asks_for_again() -> None:
    threaded = Threaded()
    threaded.fill(60, NOW_MS)
    threaded.view.enforce_retention(NOW_MS)
    threaded.wait_for_flusher()
    start, end = threaded.view.log_start_offset, threaded.view.log_end_offset
    after = Rig(threaded.rig.disk, settings=DELETING)  # killed, with what the page cache has
    log = after.store.partition_log(KEY)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (start, end)


def test_a_failure_in_the_flushers_thread_is_raised_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threaded = Threaded()
    threaded.fill(5, NOW_MS)
    fault = Corrupt("a-0", 1, "a test")

    def fail(_now_ms: int) -> int:
        raise fault

    monkeypatch.setattr(
        type(threaded.log.partition_log), "enforce_retention", lambda _, ms: fail(ms)
    )
    threaded.view.enforce_retention(NOW_MS)
    threaded.wait_for_flusher()
    with pytest.raises(Corrupt, match="a test"):
        threaded.view.enforce_retention(NOW_MS)
    assert threaded.rig.journal.close()


@pytest.mark.parametrize(("topic", "sequence"), [(OFFSETS, 0), ("__transaction_state", -1)])
def test_batches_have_the_base_sequence_that_kafkas_coordinators_write(
    topic: str, sequence: int
) -> None:
    rig = Rig(new_disk())
    key = TopicPartition(topic, 0)
    rig.store.create(key, TOPIC_ID, rig.settings)
    rig.journal.log(key).append(records("a"), NOW_MS)
    assert rig.journal.pump()
    (batch,) = rig.store.partitions()[key].batches(0)
    assert read_header(batch).base_sequence == sequence


class FreedFault(OSError):
    """Lets others run while it is freed."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__("the first")
        self.meddle = meddle

    def __del__(self) -> None:
        self.meddle()


class FailingQueue:
    term = 0

    def __init__(self, faults: list[OSError]) -> None:
        self.faults = faults

    def has_room(self) -> bool:
        return True

    def enqueue(self, entry: Entry, term: int) -> None: ...

    def run_on_flusher(self, task: Callable[[], None]) -> None:
        task()

    def retain(self, partition_log: PartitionLog, now_ms: int) -> int:
        raise self.faults.pop(0)


def test_nobody_finds_a_fault_that_is_being_freed() -> None:
    found: list[str] = []
    faults = [FreedFault(lambda: found.append(str(log._faults[-1]))), OSError("the second")]
    log = JournaledLog(FailingQueue(faults), Rig(new_disk()).log().partition_log)
    log._retain(NOW_MS)
    log._retain(NOW_MS)
    assert found == ["the second"]
