"""The journal: offsets at once, answers after one sync for all, and silence after a failure."""

import random
import threading
from collections.abc import Callable
from time import monotonic

import pytest
from msgspec.structs import replace

from storage.api import LogClosed, LogSettings, TopicPartition
from storage.batch.record_batch import read_header
from storage.disk import Disk, RealDisk
from storage.journal.journal import Journal
from storage.journal.journal_limits import JournalLimits
from storage.journal.recovery import Recovered
from storage.journal.write_ahead_pair import FILE_NAMES
from storage.log.log_store import LogStore
from tests.broker.faulty_disk import FaultyDisk
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import (
    DATA,
    NOW_MS,
    OFFSETS,
    SMALL_LIMITS,
    SMALL_SEGMENTS,
    TOPIC_ID,
    Rig,
    keys_in,
    new_disk,
    records,
)

WAL = f"{DATA}/{FILE_NAMES[0]}"


def key(partition: int) -> TopicPartition:
    return TopicPartition(OFFSETS, partition)


def test_an_append_has_its_offsets_at_once_and_is_stored_after_a_flush() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    assert log.append(records("a", "b"), NOW_MS) == 2
    assert log.append(records("c"), NOW_MS) == 3
    assert (log.end_position, log.stored_position) == (3, 0)
    assert rig.keys() == []

    assert rig.journal.pump()

    assert rig.stored == [(key(0), 3)]
    assert log.stored_position == 3
    assert rig.keys() == ["a", "b", "c"]
    assert not rig.journal.pump()


def test_one_sync_serves_all_that_was_queued() -> None:
    disk = new_disk()
    rig = Rig(disk)
    logs = [rig.log(partition) for partition in range(6)]
    for log in logs:
        log.append(records("first"), NOW_MS)
    rig.journal.pump()
    rig.stored.clear()
    before = disk.operations
    for log in logs * 2:
        log.append(records("x"), NOW_MS)
    rig.journal.pump()
    assert sorted(rig.stored) == [(key(partition), 3) for partition in range(6)]
    # One write and one sync of the journal, one write to each segment.
    assert disk.operations - before == 2 + 6


def test_unsynced_the_journal_is_written_but_not_synced() -> None:
    disk = new_disk()
    rig = Rig(disk, is_synced=False)
    log = rig.log()
    log.append(records("a"), NOW_MS)
    rig.journal.pump()
    before = disk.operations
    log.append(records("b"), NOW_MS)
    rig.journal.pump()
    assert disk.operations - before == 2
    assert rig.restarted_on(disk.after_kill()).keys() == ["a", "b"]


def test_batches_carry_the_leader_epoch_and_one_timestamp() -> None:
    rig = Rig(new_disk())
    rig.log()
    partition_log = rig.store.partition_log(key(0))
    assert partition_log is not None
    assert partition_log.begin_leader_epoch() == 1
    rig.log().append(records("a", "b"), NOW_MS + 5)
    rig.journal.pump()
    header = read_header(next(rig.store.partitions()[key(0)].batches(0)))
    assert header.partition_leader_epoch == 1
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS + 5, NOW_MS + 5)


def test_the_queue_is_bounded_by_entries_and_bytes() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    for _ in range(SMALL_LIMITS.queue_entries):
        assert log.has_room()
        log.append(records("x"), NOW_MS)
    assert not log.has_room()
    while rig.journal.pump():
        pass
    assert log.has_room()
    for _ in range(3):
        assert log.has_room()
        log.append(records("y" * 1800), NOW_MS)
    assert not log.has_room()
    assert rig.journal.queued_bytes > SMALL_LIMITS.queue_bytes


def test_a_flush_takes_no_more_than_a_group_holds() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    for _ in range(4):
        log.append(records("y" * 700), NOW_MS)
    rig.journal.pump()
    assert log.stored_position == 2
    rig.journal.pump()
    assert log.stored_position == 4


def test_a_flush_takes_no_more_entries_than_are_quickly_made_one() -> None:
    rig = Rig(new_disk(), limits=replace(SMALL_LIMITS, group_entries=3))
    log = rig.log()
    for name in "abcdefg":
        log.append(records(name), NOW_MS)
    while rig.journal.pump():
        pass
    assert [position for _, position in rig.stored] == [3, 6, 7]


def test_limits_that_leave_no_room_for_one_group_are_refused() -> None:
    with pytest.raises(ValueError, match="one flush may take"):
        JournalLimits(file_bytes=1 << 20)


def test_a_full_journal_is_restarted_after_a_checkpoint() -> None:
    disk = new_disk()
    rig = Rig(disk)
    logs = [rig.log(partition) for partition in range(3)]
    for number in range(120):
        for log in logs:
            log.append(records(f"{number}", "x" * 100), NOW_MS + number)
        rig.journal.pump()
    assert disk.open(WAL).size() == SMALL_LIMITS.file_bytes
    points = [rig.store.partition_log(key(partition)) for partition in range(3)]
    assert all(log is not None and 0 < log.recovery_point <= 240 for log in points)

    again = rig.restarted_on(disk.after_crash(random.Random(5)))
    assert again.recovered.batches < 120 * 3
    for partition in range(3):
        assert again.keys(partition)[::2] == [f"{number}" for number in range(120)]


def test_a_stop_leaves_nothing_to_recover() -> None:
    disk = new_disk()
    rig = Rig(disk)
    log = rig.log()
    log.append(records("queued"), NOW_MS)
    rig.stop()
    assert rig.stored == [(key(0), 1)]
    with pytest.raises(LogClosed, match="shut down"):
        log.append(records("late"), NOW_MS)
    assert not log.has_room()

    again = rig.restarted_on(disk.after_crash(random.Random(1)))
    assert again.opened.was_clean
    assert again.recovered == Recovered(groups=0, batches=0, reapplied=0, tail=None)
    assert again.keys() == ["queued"]
    assert again.log().append(records("next"), NOW_MS) == 2


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["sync", "room", "segment"])
def test_after_a_failure_nothing_is_acknowledged_or_taken(fault: str) -> None:
    disk = new_disk()
    rig = Rig(disk)
    log = rig.log()
    log.append(records("acknowledged"), NOW_MS)
    rig.journal.pump()
    rig.stored.clear()
    match fault:
        case "sync":
            disk.fail_sync(FILE_NAMES[0])
        case "room":
            disk.room = 0  # the journal is preallocated: the segment has no room
        case "segment":
            segment = f"{DATA}/{OFFSETS}-0/{0:020d}.log"
            disk.remove(segment)
            partition_log = rig.store.partition_log(key(0))
            assert partition_log is not None
            partition_log.abandon("gone")
    log.append(records("lost"), NOW_MS)
    log.append(records("lost too"), NOW_MS)

    assert not rig.journal.pump()

    assert rig.stored == []
    assert len(rig.failures) == 1
    assert not log.has_room()
    assert log.stored_position == 1
    with pytest.raises(LogClosed):
        log.append(records("late"), NOW_MS)
    assert not rig.journal.pump()
    assert not rig.journal.close()
    assert len(rig.failures) == 1


def test_what_was_acknowledged_is_still_read_after_a_failure() -> None:
    disk = new_disk()
    rig = Rig(disk)
    log = rig.log()
    log.append(records("acknowledged"), NOW_MS)
    rig.journal.pump()
    disk.fail_sync(FILE_NAMES[0])
    log.append(records("lost"), NOW_MS)
    rig.journal.pump()
    assert rig.keys() == ["acknowledged"]
    rig.store.abandon("the journal has failed")
    again = rig.restarted_on(disk.after_kill())
    assert again.keys()[:1] == ["acknowledged"]
    assert again.log().has_room()


def test_a_failed_checkpoint_closes_the_journal_too() -> None:
    disk = new_disk()
    rig = Rig(disk)
    log = rig.log()
    log.append(records("a"), NOW_MS)
    rig.journal.pump()
    disk.fail_sync(f"{0:020d}.log")
    assert not rig.journal.close()
    assert isinstance(rig.failures[0], OSError)
    again = rig.restarted_on(disk.after_crash(random.Random(3)))
    assert again.keys() == ["a"]
    assert not again.opened.was_clean


def test_a_callback_that_fails_acknowledges_nothing_more() -> None:
    rig = Rig(new_disk())
    log = rig.log()

    def refuse(*_: object) -> None:
        raise RuntimeError("the event loop is closed")

    rig.journal._on_stored = refuse
    log.append(records("a"), NOW_MS)
    assert not rig.journal.pump()
    assert isinstance(rig.failures[0], RuntimeError)
    assert not log.has_room()


def test_an_unknown_partition_has_no_log() -> None:
    rig = Rig(new_disk())
    with pytest.raises(KeyError):
        rig.journal.log(key(9))


# --- the flusher's thread --------------------------------------------------------------------


class Threaded:
    """A journal on a real disk, flushed by its own thread."""

    def __init__(
        self, path: str, limits: JournalLimits | None = None, disk: Disk | None = None
    ) -> None:
        disk = disk or RealDisk()
        self.store = LogStore(disk, path)
        self.store.open()
        self.stored: dict[TopicPartition, int] = {}
        self.changed = threading.Condition()
        self.threads: set[str] = set()
        self.failures: list[Exception] = []
        self.reopened = threading.Event()
        self.journal = Journal(
            disk,
            self.store,
            on_reopened=self.reopened.set,
            on_stored=self._stored,
            on_failed=self.failures.append,
            limits=limits,
        )
        self.journal.recover()

    def _stored(self, positions: list[tuple[TopicPartition, int]], _seconds: float) -> None:
        with self.changed:
            self.threads.add(threading.current_thread().name)
            self.stored.update(positions)
            self.changed.notify_all()

    def wait_for(self, topic_partition: TopicPartition, position: int) -> None:
        with self.changed:
            reached = self.changed.wait_for(
                lambda: self.stored.get(topic_partition, 0) >= position, timeout=60
            )
        assert reached


def test_the_thread_stores_what_is_appended_and_stops_on_request(tmp_path: object) -> None:
    node = Threaded(str(tmp_path))
    logs = []
    for partition in range(5):
        node.store.create(key(partition), TOPIC_ID, LogSettings())
        logs.append(node.journal.log(key(partition)))
    node.journal.start()
    for number in range(200):
        for log in logs:
            log.append(records(f"{number}"), NOW_MS)
        if number % 50 == 0:
            node.wait_for(key(4), logs[4].end_position)  # let the flusher fall asleep, and wake it
    for log in logs:
        node.wait_for(log.topic_partition, 200)
    logs[0].append(records("last"), NOW_MS)
    assert node.journal.close()
    assert node.store.close() == []
    assert node.stored[key(0)] == 201
    assert node.threads == {"journal-flusher"}
    assert node.failures == []

    again = Threaded(str(tmp_path))
    for partition in range(5):
        keys = keys_in(list(again.store.partitions()[key(partition)].batches(0)))
        assert keys[:200] == [f"{number}" for number in range(200)]


def test_readers_may_read_while_the_thread_appends(tmp_path: object) -> None:
    limits = JournalLimits(file_bytes=20 << 20)
    node = Threaded(str(tmp_path), limits)
    settings = LogSettings(segment_bytes=20_000, index_interval_bytes=200)
    node.store.create(key(0), TOPIC_ID, settings)
    log = node.journal.log(key(0))
    view = node.store.partitions()[key(0)]
    node.journal.start()
    read: list[str] = []
    for number in range(3000):
        log.append(records(f"{number}"), NOW_MS + number)
        if number % 7 == 0:
            content = view.read(len(read), 1 << 16, up_to=1 << 40, at_least_one=True)
            position = 0
            while position < len(content):
                header = read_header(content, position)
                read += keys_in([content[position : position + header.size]])
                position += header.size
            assert len(read) <= log.end_position
    node.wait_for(key(0), 3000)
    assert read == [f"{number}" for number in range(len(read))]
    assert keys_in(list(view.batches(0))) == [f"{number}" for number in range(3000)]
    assert view.offset_for_timestamp(NOW_MS + 2000) == (NOW_MS + 2000, 2000)
    assert node.journal.close()


def test_what_one_pass_of_the_loop_brings_asks_for_one_call() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    asked: list[object] = []
    rig.journal.start(asked.append)
    for _ in range(10):
        log.append(records("x"), NOW_MS)
    assert len(asked) == 1
    assert rig.journal.close()
    assert rig.stored[-1] == (key(0), 10)


def test_word_of_what_was_stored_asks_for_no_call_without_need() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    asked: list[object] = []
    rig.journal.start(asked.append)
    rig.journal.flush_delivered()
    assert not asked, "nothing is queued"
    log.append(records("x"), NOW_MS)
    asked.clear()
    rig.journal.flush_delivered()
    assert not asked, "a call is on its way"
    assert rig.journal.close()


def test_the_disk_is_left_alone_while_nothing_is_appended() -> None:
    disk: SimulatedDisk = new_disk()
    rig = Rig(disk)
    rig.log()
    rig.journal.pump()  # begins the first passes
    before = disk.operations
    for _ in range(5):
        assert not rig.journal.pump()
    assert disk.operations == before


def _until(fact: Callable[[], bool]) -> None:
    pause = threading.Event()
    deadline = monotonic() + 60
    while not fact():
        assert monotonic() < deadline
        pause.wait(0.001)


def test_commits_go_on_while_a_checkpoint_syncs_the_segments(tmp_path: object) -> None:
    disk = FaultyDisk()
    limits = JournalLimits(pass_bytes=4 << 10, idle_ms=3_600_000)
    node = Threaded(str(tmp_path), limits, disk)
    node.store.create(key(0), TOPIC_ID, LogSettings())
    log = node.journal.log(key(0))
    node.journal.start()
    disk.slow_syncs_of = ".log"
    disk.may_sync.clear()
    # When the first file has enough and its checkpoint hangs on the disk.
    while not node.journal.checkpointer.is_running:
        node.wait_for(key(0), log.append(records("x" * 900), NOW_MS))
    # Then commits are stored as before, into the other file, far beyond what is enough.
    for _ in range(20):
        node.wait_for(key(0), log.append(records("x" * 900), NOW_MS))
    assert node.journal.checkpointer.checkpoints == 0
    disk.may_sync.set()
    _until(lambda: node.journal.checkpointer.checkpoints > 0)
    assert node.journal.checkpointer.wait_seconds == 0.0
    partition_log = node.store.partition_log(key(0))
    assert partition_log is not None
    assert partition_log.recovery_point > 0
    assert node.journal.close()


def test_a_journal_at_rest_makes_a_checkpoint_and_then_leaves_the_disk_alone(
    tmp_path: object,
) -> None:
    node = Threaded(str(tmp_path), JournalLimits(idle_ms=5))
    node.store.create(key(0), TOPIC_ID, LogSettings())
    log = node.journal.log(key(0))
    node.journal.start()
    for expected in (1, 2):
        node.wait_for(key(0), log.append(records("x"), NOW_MS))
        _until(lambda expected=expected: node.journal.checkpointer.checkpoints == expected)  # type: ignore[misc]
    again = Threaded(str(tmp_path))  # as if the first were killed now: nothing is left to do
    assert again.journal.stored_bytes == 0
    assert node.journal.closed_because is None
    assert node.journal.close()
    assert node.journal.checkpointer.checkpoints == 2


def test_tasks_do_not_postpone_the_checkpoint_of_an_idle_journal(tmp_path: object) -> None:
    node = Threaded(str(tmp_path), JournalLimits(idle_ms=50))
    node.store.create(key(0), TOPIC_ID, LogSettings())
    log = node.journal.log(key(0))
    node.journal.start()
    node.wait_for(key(0), log.append(records("x"), NOW_MS))

    def is_checkpointed() -> bool:
        node.journal.run_on_flusher(lambda: None)  # as the log cleaner does at each look
        return node.journal.checkpointer.checkpoints > 0

    _until(is_checkpointed)
    assert node.journal.close()


def test_the_thread_checks_for_room_by_itself(tmp_path: object) -> None:
    disk = FaultyDisk()
    node = Threaded(str(tmp_path), JournalLimits(retry_ms=2), disk)
    node.store.create(key(0), TOPIC_ID, LogSettings())
    log = node.journal.log(key(0))
    node.journal.start()
    node.wait_for(key(0), log.append(records("before"), NOW_MS))
    disk.full_for = "/"
    log.append(records("in doubt"), NOW_MS)
    _until(lambda: bool(node.failures))
    assert node.journal.is_full
    disk.full_for = ""
    assert not node.reopened.wait(0.05)  # not before all have released the old logs
    node.journal.failure_delivered()
    assert node.reopened.wait(60)
    with pytest.raises(LogClosed):
        log.append(records("of the earlier term"), NOW_MS)
    log = node.journal.log(key(0))
    node.wait_for(key(0), log.append(records("after"), NOW_MS))
    assert node.journal.close()
    assert len(node.failures) == 1


def test_an_append_beyond_the_limit_is_our_mistake_and_stores_nothing() -> None:
    rig = Rig(new_disk())
    log = rig.log()
    with pytest.raises(ValueError, match="exceed batch_bytes"):
        log.append(records("x" * SMALL_LIMITS.batch_bytes), NOW_MS)
    assert log.end_position == 0
    assert not rig.journal.pump()


def test_the_reserve_refuses_before_anything_is_written() -> None:
    disk = new_disk()
    rig = Rig(disk, limits=replace(SMALL_LIMITS, reserve_bytes=1_000))
    log = rig.log()
    rig.journal.pump()  # begins the first passes
    disk.room = 999
    log.append(records("refused"), NOW_MS)
    before = disk.operations
    assert not rig.journal.pump()
    assert disk.operations == before
    assert rig.journal.is_full
    assert "999 bytes are free, the reserve is 1000" in str(rig.journal.closed_because)
    rig.journal.failure_delivered()
    assert not rig.journal.try_reopen()
    disk.room = None
    assert rig.journal.try_reopen()
    assert rig.keys() == []


def test_a_journal_that_a_full_disk_closed_at_the_start_opens_without_what_is_damaged() -> None:
    """A damaged history is dispensable at the start, and when there is room later."""
    history, offsets = TopicPartition("__group_history", 0), TopicPartition(OFFSETS, 0)
    disk = new_disk()
    store, journal = _with_dispensable(disk, history.topic)
    for key in (history, offsets):
        store.create(key, TOPIC_ID, SMALL_SEGMENTS)
    logs = [journal.log(key) for key in (history, offsets)]
    for number in range(4):
        for log in logs:
            log.append(records(f"k{number}"), NOW_MS)
        journal.pump()
        if number == 2:
            for log in logs:
                log.partition_log.flush()
            store.write_checkpoints()

    disk = disk.after_kill()
    disk.open(f"{DATA}/__group_history-0/{0:020d}.log").pwrite(b"?????", 65)
    disk.room = 0
    store, journal = _with_dispensable(disk, history.topic)
    assert not journal.pump()
    assert journal.is_full
    disk.room = None
    journal.failure_delivered()
    assert journal.try_reopen()
    assert keys_in(list(store.partitions()[offsets].batches(0))) == ["k0", "k1", "k2", "k3"]


def _with_dispensable(disk: SimulatedDisk, topic: str) -> tuple[LogStore, Journal]:
    store = LogStore(disk, DATA, lambda _: SMALL_SEGMENTS)
    store.open()
    journal = Journal(
        disk,
        store,
        on_stored=lambda *_: None,
        on_failed=lambda _: None,
        limits=SMALL_LIMITS,
        dispensable=(topic,),
    )
    journal.recover()
    return store, journal
