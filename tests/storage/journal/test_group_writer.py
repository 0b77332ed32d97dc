"""Group writer: it writes what the flusher would, in order; a failure closes the journal."""

import asyncio
import os
import random
import select
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from storage.api import LogSettings, SyncFailed, TopicPartition
from storage.disk import RealDisk, RealFile
from storage.journal.flush import StoredPositions
from storage.journal.group_writer import GroupWriter, group_writer
from storage.journal.journal import Journal
from storage.journal.journal_limits import JournalLimits
from storage.journal.write_ahead_pair import FILE_NAMES
from storage.log.log_store import LogStore
from tests.build import IS_COMPILED
from tests.storage.rig import NOW_MS, OFFSETS, TOPIC_ID, keys_in, records

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

TIMEOUT_S = 60

Open = Callable[[str | Path], int]


@pytest.fixture
def report() -> Iterator[int]:
    descriptor = os.eventfd(0)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens files for the group writer; they are closed after the test."""
    with ExitStack() as files:

        def open_file(path: str | Path) -> int:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
            files.callback(os.close, descriptor)
            return descriptor

        yield open_file


def new_writer(report: int) -> GroupWriter:
    writer = group_writer(report)
    assert writer is not None
    return writer


class Resting:
    """A thread in `wait`, again and again until it is woken."""

    def __init__(self, writer: GroupWriter) -> None:
        self.writer = writer
        self.thread = threading.Thread(target=writer.wait, args=(-1.0,), daemon=True)
        self.thread.start()

    def claim(self) -> None:
        pause = threading.Event()
        while not self.writer.claim():
            pause.wait(0.001)

    def ends(self) -> bool:
        self.thread.join(TIMEOUT_S)
        return not self.thread.is_alive()


# --- the thread in C -------------------------------------------------------------------------


def test_what_is_posted_is_written_and_reported_while_the_thread_rests_on(
    report: int, opened: Open, tmp_path: Path
) -> None:
    writer = new_writer(report)
    flusher = Resting(writer)
    files = [opened(tmp_path / name) for name in ("wal", "a", "b")]

    for turn in range(3):
        flusher.claim()
        at = 4 * turn
        writer.post(
            [(files[0], b"%04d" % turn, at), (files[1], b"aaaa", at), (files[2], b"b", turn)], True
        )
        assert os.eventfd_read(report) == 1
        collected = writer.collect()
        assert collected is not None
        assert collected[0] > 0
        assert collected[1] == 0
        assert writer.collect() is None

    writer.wake()
    assert flusher.ends()
    assert (tmp_path / "wal").read_bytes() == b"000000010002"
    assert (tmp_path / "a").read_bytes() == b"a" * 12
    assert (tmp_path / "b").read_bytes() == b"bbb"


@pytest.mark.parametrize(
    ("failing", "error", "failed_at"), [("wal", 28, 0), ("sync", 22, -1), ("segment", 28, 2)]
)
def test_a_failure_says_which_write_it_was_and_ends_the_flush(
    failing: str, error: int, failed_at: int, report: int, opened: Open, tmp_path: Path
) -> None:
    writer = new_writer(report)
    flusher = Resting(writer)
    full, unsyncable = opened("/dev/full"), opened("/dev/null")
    file, last = opened(tmp_path / "file"), opened(tmp_path / "last")
    group = {"wal": full, "sync": unsyncable}.get(failing, file)
    flusher.claim()

    writer.post(
        [
            (group, b"group", 0),
            (file, b"first", 8),
            (full if failing == "segment" else file, b"second", 16),
            (last, b"third", 0),
        ],
        True,
    )

    os.eventfd_read(report)
    collected = writer.collect()
    assert collected is not None
    assert collected[1:] == (error, failed_at)
    assert (tmp_path / "last").read_bytes() == b""
    writer.wake()
    assert flusher.ends()


def test_a_claim_keeps_the_thread_where_it_is(report: int) -> None:
    writer = new_writer(report)
    flusher = Resting(writer)
    flusher.claim()
    assert not writer.claim()

    writer.wake()
    flusher.thread.join(0.02)
    assert flusher.thread.is_alive()
    assert not writer.claim()

    writer.release()
    assert flusher.ends()
    assert not writer.claim()  # nobody rests


def test_a_rest_ends_in_time_or_when_it_is_woken(report: int) -> None:
    writer = new_writer(report)
    assert not writer.wait(0.001)
    writer.wake()
    assert writer.wait(TIMEOUT_S)
    writer.wake()
    writer.forget_wake()
    assert not writer.wait(0.001)


@pytest.mark.parametrize(
    "writes", [[], [(1, "text", 0)], [(1, b"x")], [("1", b"x", 0)], [(1, b"x", 1 << 70)]]
)
def test_odd_writes_are_refused_and_leave_the_claim(writes: list[object], report: int) -> None:
    writer = new_writer(report)
    flusher = Resting(writer)
    flusher.claim()

    with pytest.raises((TypeError, ValueError, OverflowError)):
        writer.post(writes, True)  # type: ignore[arg-type]

    writer.release()
    with pytest.raises(RuntimeError):
        writer.post([(1, b"x", 0)], True)
    writer.wake()
    assert flusher.ends()


# --- the journal -----------------------------------------------------------------------------


def key(partition: int) -> TopicPartition:
    return TopicPartition(OFFSETS, partition)


class Node:
    """A journal beside an event loop, as the daemon has it."""

    def __init__(self, path: Path, limits: JournalLimits | None = None) -> None:
        disk = RealDisk()
        path.mkdir(exist_ok=True)
        self.store = LogStore(disk, str(path))
        self.store.open()
        self.loop = asyncio.get_running_loop()
        self.stored: dict[TopicPartition, int] = {}
        self.posted = 0
        self.in_python = 0
        self.failures: list[Exception] = []
        self.changed = asyncio.Event()
        self.journal = Journal(
            disk, self.store, on_stored=self._in_flusher, on_failed=self._failed, limits=limits
        )
        self.journal.recover()
        self.report = os.eventfd(0, os.EFD_NONBLOCK)
        self.loop.add_reader(self.report, self._reported)

    def start(self, partitions: int = 1) -> None:
        for partition in range(partitions):
            self.store.create(key(partition), TOPIC_ID, LogSettings(segment_bytes=1 << 16))
        self.logs = [self.journal.log(key(partition)) for partition in range(partitions)]
        self.journal.start(self.loop.call_soon, self.report)

    def _in_flusher(self, positions: StoredPositions, _seconds: float) -> None:
        self.in_python += 1
        self.loop.call_soon_threadsafe(self._deliver, positions)

    def _failed(self, failure: Exception) -> None:
        self.failures.append(failure)
        self.loop.call_soon_threadsafe(self.changed.set)

    def _reported(self) -> None:
        os.eventfd_read(self.report)
        self.journal.collect(self._collected)

    def _collected(self, positions: StoredPositions, _seconds: float) -> None:
        self.posted += 1
        self._deliver(positions)

    def _deliver(self, positions: StoredPositions) -> None:
        for topic_partition, position in positions:
            self.stored[topic_partition] = max(position, self.stored.get(topic_partition, 0))
        self.journal.flush_delivered()
        self.changed.set()

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not fact():
                self.changed.clear()
                await self.changed.wait()

    async def append(self, partition: int, key_text: str) -> None:
        """And wait until it is stored."""
        end = self.logs[partition].append(records(key_text), NOW_MS)
        await self.until(lambda: self.stored.get(key(partition), 0) >= end)

    async def until_the_flusher_rests(self) -> None:
        """So that the next flush is posted."""
        writer = self.journal._posted.writer
        assert writer is not None
        while not writer.claim():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0)
        writer.release()

    async def close(self) -> bool:
        closed = await asyncio.to_thread(self.journal.close)
        self.loop.remove_reader(self.report)
        os.close(self.report)
        return closed


def stored_keys(path: Path, partition: int) -> list[str]:
    """After a crash at this moment."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(path, copy, dirs_exist_ok=True)
        return recovered_keys(copy, partition)


def recovered_keys(path: str, partition: int) -> list[str]:
    store = LogStore(RealDisk(), path)
    store.open()
    journal = Journal(RealDisk(), store, on_stored=lambda *_: None, on_failed=lambda failure: None)
    journal.recover()
    return keys_in(list(store.partitions()[key(partition)].batches(0)))


async def test_the_usual_flush_is_posted_and_the_first_of_a_pass_is_not(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.start()
    written: list[str] = []
    while node.posted <= 40:  # on a busy machine the flusher is awake more often, and does more
        assert len(written) < 5_000
        written.append(f"{len(written)}")
        await node.append(0, written[-1])

    assert node.in_python >= 1
    assert node.posted + node.in_python == len(written)
    assert stored_keys(tmp_path, 0) == written
    assert node.journal.flush_seconds > 0
    assert node.journal.queued_bytes == 0
    assert node.journal.flush_age_s == 0.0
    assert await node.close()
    assert node.failures == []


async def test_posted_or_not_the_same_bytes_reach_the_files(tmp_path: Path) -> None:
    contents: list[list[bytes]] = []
    for name in ("posted", "pumped"):
        node = Node(tmp_path / name)
        if name == "posted":
            node.start(2)
        else:
            for partition in range(2):
                node.store.create(key(partition), TOPIC_ID, LogSettings(segment_bytes=1 << 16))
            node.logs = [node.journal.log(key(partition)) for partition in range(2)]
        for number in range(20):
            if name == "posted":
                await node.append(number % 2, f"{number}")
            else:
                node.logs[number % 2].append(records(f"{number}"), NOW_MS)
                assert node.journal.pump()
        assert (node.posted > 0) == (name == "posted")
        files = [tmp_path / name / wal for wal in FILE_NAMES]
        files += sorted((tmp_path / name).glob(f"{OFFSETS}-*/*.log"))
        assert len(files) == 4
        contents.append([file.read_bytes() for file in files])
        await node.close()
    assert contents[0] == contents[1]


async def test_all_is_stored_in_order_whatever_else_the_flusher_has_to_do(tmp_path: Path) -> None:
    """Switches of the files, rolls, tasks and groups come in between."""
    chance = random.Random(19)
    node = Node(tmp_path, JournalLimits(pass_bytes=16 << 10, idle_ms=2))
    node.start(3)
    written: list[list[str]] = [[], [], []]
    tasks = 0

    def task() -> None:
        nonlocal tasks
        tasks += 1

    for number in range(1_500):
        partition = chance.randrange(3)
        text = f"{number}" + "x" * chance.randrange(300)
        written[partition].append(text)
        end = node.logs[partition].append(records(text), NOW_MS)
        match chance.randrange(8):
            case 0:
                node.journal.run_on_flusher(task)
            case 1:
                node.journal.begin_atomic()
                for each in range(3):
                    written[each].append(f"all {number}")
                    node.logs[each].append(records(f"all {number}"), NOW_MS)
                node.journal.end_atomic()
            case 2 | 3:
                await asyncio.sleep(0)
            case 4:
                await node.until(
                    lambda partition=partition, end=end: node.stored.get(key(partition), 0) >= end  # type: ignore[misc]
                )
            case 5:
                await asyncio.sleep(chance.random() * 0.004)  # long enough for a checkpoint at rest

    assert await node.close()
    assert node.posted > 10  # how many depends on how busy the machine is
    assert node.in_python > 10
    assert tasks > 50
    assert node.journal.checkpointer.checkpoints > 3
    for partition in range(3):
        assert stored_keys(tmp_path, partition) == written[partition]
        assert node.logs[partition].stored_position == len(written[partition])


@pytest.mark.parametrize(
    ("instead", "of_the_group", "raised", "words"),
    [
        ("/dev/full", True, OSError, "disk full: [Errno 28] No space left on device (writing "),
        (
            "/dev/null",
            True,
            SyncFailed,
            "storage failed: [Errno 22] fsync failed: Invalid argument",
        ),
        (
            "/dev/full",
            False,
            OSError,
            "disk full: [Errno 28] No space left on device (writing ",
        ),
    ],
)
async def test_a_failed_write_closes_the_journal_and_acknowledges_nothing(
    instead: str,
    of_the_group: bool,
    raised: type[Exception],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(tmp_path)
    node.start()
    await node.append(0, "before")
    await node.append(0, "too")  # has read when the segment began
    segment = node.store.partition_log(key(0)).segments[-1]  # type: ignore[union-attr]
    owner = node.journal._write_ahead.active if of_the_group else segment
    file, owner._file = owner._file, RealFile(os.open(instead, os.O_RDWR), "the file")
    await node.until_the_flusher_rests()

    node.logs[0].append(records("in doubt"), NOW_MS)
    await node.until(lambda: bool(node.failures))

    assert type(node.failures[0]) is raised
    assert node.journal.closed_because is not None
    assert node.journal.closed_because.startswith(words)
    assert node.journal.is_full == (raised is OSError)
    assert node.stored[key(0)] == node.logs[0].stored_position == 2
    assert not node.logs[0].has_room()
    owner._file = file
    assert not await node.close()
    assert stored_keys(tmp_path, 0)[:2] == ["before", "too"]


async def test_what_cannot_be_prepared_closes_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(tmp_path)
    node.start()
    await node.append(0, "before")
    await node.until_the_flusher_rests()
    writer = node.journal._posted.writer

    class Refusing:
        def __getattr__(self, name: str) -> object:
            return getattr(writer, name)

        def post(self, *_: object) -> None:
            raise MemoryError

    node.journal._posted.writer = Refusing()  # type: ignore[assignment]
    node.logs[0].append(records("lost"), NOW_MS)
    await node.until(lambda: bool(node.failures))

    assert isinstance(node.failures[0], MemoryError)
    node.journal._posted.writer = writer
    assert not await node.close()
    assert stored_keys(tmp_path, 0) == ["before"]


async def test_a_posted_flush_is_reported_before_the_flusher_can_report_a_later_one(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path, JournalLimits(reserve_bytes=0))
    node.start()
    await node.append(0, "first")
    await node.until_the_flusher_rests()
    node.loop.remove_reader(node.report)
    node.logs[0].append(records("posted"), NOW_MS)
    await asyncio.to_thread(select.select, [node.report], [], [], TIMEOUT_S)
    order: list[str] = []

    def report_posted() -> None:
        node.journal._report_posted()  # as the flusher does before it writes anything
        order.append("the flusher looked")

    flusher = threading.Thread(target=report_posted)

    def report(_positions: StoredPositions, _seconds: float) -> None:
        flusher.start()
        flusher.join(0.02)
        order.append("reported")

    node.journal.collect(report)
    await asyncio.to_thread(flusher.join)

    assert order == ["reported", "the flusher looked"]
    assert await node.close()


async def test_a_journal_closes_while_a_flush_is_posted(tmp_path: Path) -> None:
    for attempt in range(8):
        node = Node(tmp_path / f"{attempt}")
        node.start()
        await node.append(0, "first")
        for number in range(attempt):
            node.logs[0].append(records(f"{number}"), NOW_MS)
            await asyncio.sleep(0)
        assert await node.close()
        assert node.logs[0].stored_position == attempt + 1
        assert len(stored_keys(tmp_path / f"{attempt}", 0)) == attempt + 1


async def test_a_fixed_linger_is_left_to_the_flusher(tmp_path: Path) -> None:
    node = Node(tmp_path, JournalLimits(linger_ms=1))
    node.start()
    for number in range(5):
        await node.append(0, f"{number}")
    assert (node.posted, node.in_python) == (0, 5)
    assert await node.close()
