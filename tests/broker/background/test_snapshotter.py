"""Snapshotter: when snapshots are taken, what a failure costs, and what a start uses.

The first half drives the scheduler with logs that only have sizes; the second half the real daemon:
it is killed and started again, with its snapshots, with damaged ones, and without any.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest

from broker.background import snapshotter as snapshots
from broker.background.snapshotter import WORTH_IT_AT_STOP, Snapshotter
from broker.background.worker import JobFailed
from broker.loop.clock import SystemClock
from broker.observe.events import PartFailed, SnapshotFailed, SnapshotTaken
from broker.partitions.loading import LoadSize
from logtools.findings import LintCounts
from logtools.layout import place_at
from logtools.lint import findings
from protocol.names import ErrorCode
from tests.broker.daemon import Daemon
from tests.broker.members import Member, make_topic
from tests.broker.node import Node
from tests.broker.shell import WAIT_S, Client

pytestmark = pytest.mark.timeout(900)
WORKER_WAIT_S = 240.0  # its priority is low: a busy machine gives it little

AFTER_BYTES = 1_600
StartDaemon = Callable[..., Daemon]


class Rig:
    """Partitions that are nothing but sizes, and a worker that folds them."""

    def __init__(self, *log_bytes: int) -> None:
        self.topic_id = UUID(int=1)
        self.sizes = [LoadSize(size, 0) for size in log_bytes]
        self.writes_are_refused = False
        self.jobs: list[int] = []
        self.urgent: list[object] = []
        self.ended: list[object] = []  # what the jobs got of the ones before them
        self.events: list[SnapshotTaken | SnapshotFailed | PartFailed] = []
        self.failure: JobFailed | None = None
        self.falls_short = 0
        self.holding: asyncio.Event | None = None
        self.snapshotter = Snapshotter(
            self,  # type: ignore[arg-type]  # as much of the logs as it asks
            self,  # type: ignore[arg-type]  # and of the ownership
            self.run,
            SystemClock(),
            self.events.append,
            after_bytes=AFTER_BYTES,
        )

    @property
    def served(self) -> list[int]:
        return list(range(len(self.sizes)))

    def load_sizes(self, partitions: Iterable[int]) -> dict[int, LoadSize]:
        return {partition: self.sizes[partition] for partition in partitions}

    def log(self, partition: int) -> object:
        return SimpleNamespace(path=str(partition))

    def stored_position(self, partition: int) -> int:
        return 100 + partition

    async def run(self, job: str, arguments: dict[str, object]) -> dict[str, object]:
        assert job == "fold"
        assert arguments["topic_id"] == str(self.topic_id)
        partition = int(str(arguments["folder"]))
        self.jobs.append(partition)
        self.ended.append(arguments["ended"])
        self.urgent.append(arguments["urgent"])
        if self.holding is not None:
            await self.holding.wait()
        if self.failure is not None:
            raise self.failure
        self.sizes[partition] = LoadSize(0, 10)
        position = int(str(arguments["up_to"])) - self.falls_short
        if self.falls_short:
            self.sizes[partition] = LoadSize(AFTER_BYTES, 10)
        end = [position, [0, 1_000 * len(self.jobs)]]
        return {"position": position, "bytes": 10, "groups": 2, "records": 3, "end": end}

    async def wait_until(self, until: Callable[[], bool]) -> None:
        """Let it check its logs until this holds."""

        async def wait() -> None:
            while not until():  # noqa: ASYNC110 - a list tells nobody
                await asyncio.sleep(0.001)

        await asyncio.wait_for(wait(), WAIT_S)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "CHECK_INTERVAL_S", 0.001)
    monkeypatch.setattr(snapshots, "FIRST_CHECK_S", 0.0)


async def test_what_has_grown_enough_gets_one_the_largest_growth_first() -> None:
    rig = Rig(AFTER_BYTES - 1, AFTER_BYTES, 9_000, 2_000)
    rig.snapshotter.start()
    await rig.wait_until(lambda: len(rig.events) == 3)
    assert rig.jobs == [2, 3, 1]
    taken = rig.events[0]
    assert isinstance(taken, SnapshotTaken)
    assert (taken.partition, taken.position, taken.groups, taken.records) == (2, 102, 2, 3)
    await rig.snapshotter.stop(rig.served)


async def test_many_small_growths_count_once_they_are_much_together() -> None:
    small = AFTER_BYTES // snapshots.SMALL_GROWTH
    allowed = snapshots.ALL_PARTITIONS * AFTER_BYTES
    sizes = [small, 2 * small] + [small] * (allowed // small)
    rig = Rig(*sizes)
    rig.snapshotter.start()
    await rig.wait_until(lambda: sum(size.log_bytes for size in rig.sizes) <= allowed)
    assert rig.jobs[0] == 1, "the largest first"
    assert not any(rig.urgent)
    await rig.snapshotter.stop([])
    assert len(rig.jobs) < 5, "and no more than that takes"


async def test_a_snapshot_that_falls_behind_is_urgent() -> None:
    rig = Rig(AFTER_BYTES * snapshots.ALL_PARTITIONS * snapshots.URGENT + 1)
    rig.snapshotter.start()
    await rig.wait_until(lambda: len(rig.events) == 1)
    assert rig.urgent == [True]
    await rig.snapshotter.stop([])


async def test_a_job_gets_the_position_where_the_last_one_ended() -> None:
    """Unless that one failed: who knows what it has seen."""
    rig = Rig(AFTER_BYTES)
    rig.snapshotter.start()
    await rig.wait_until(lambda: len(rig.events) == 1)
    rig.sizes[0] = LoadSize(AFTER_BYTES, 10)
    await rig.wait_until(lambda: len(rig.events) == 2)
    rig.failure = JobFailed("fold", "SnapshotAbandoned", "segments were replaced")
    rig.sizes[0] = LoadSize(AFTER_BYTES, 10)
    await rig.wait_until(lambda: len(rig.jobs) == 3)
    rig.failure = None
    rig.sizes[0] = LoadSize(2 * AFTER_BYTES, 10)
    await rig.wait_until(lambda: len(rig.events) == 3)
    await rig.snapshotter.stop(rig.served)
    assert rig.ended == [None, [100, [0, 1_000]], [100, [0, 2_000]], None]


async def test_a_large_snapshot_is_not_replaced_for_a_few_records() -> None:
    rig = Rig(0, 0)
    rig.sizes = [LoadSize(4_999, 10_000), LoadSize(5_000, 10_000)]
    rig.snapshotter.start()
    await rig.wait_until(lambda: bool(rig.events))
    await rig.snapshotter.stop(rig.served)
    assert rig.jobs == [1]


async def test_a_failure_is_logged_once_and_retried_when_the_log_has_grown() -> None:
    rig = Rig(AFTER_BYTES)
    rig.failure = JobFailed("fold", "OSError", "No space left on device")
    rig.snapshotter.start()
    await rig.wait_until(lambda: bool(rig.events))
    (failed,) = rig.events
    assert isinstance(failed, SnapshotFailed)
    assert "No space left" in failed.reason
    rig.sizes[0] = LoadSize(2 * AFTER_BYTES - 1, 0)
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert rig.jobs == [0]

    rig.failure = None
    rig.sizes[0] = LoadSize(2 * AFTER_BYTES, 0)
    await rig.wait_until(lambda: len(rig.events) == 2)
    assert isinstance(rig.events[1], SnapshotTaken)
    await rig.snapshotter.stop(rig.served)


async def test_a_job_that_the_cleaner_interrupts_is_not_logged_as_a_failure() -> None:
    rig = Rig(AFTER_BYTES)
    rig.failure = JobFailed("fold", "SnapshotAbandoned", "segments were replaced")
    rig.snapshotter.start()
    await rig.wait_until(lambda: bool(rig.jobs))
    await rig.snapshotter.stop(rig.served)
    assert rig.events == []


async def test_a_snapshot_that_falls_short_is_logged_and_not_retried_at_once() -> None:
    rig = Rig(AFTER_BYTES)
    rig.falls_short = 1
    rig.snapshotter.start()
    await rig.wait_until(lambda: len(rig.events) == 2)
    assert isinstance(rig.events[0], SnapshotFailed)
    await rig.snapshotter.stop(rig.served)
    assert rig.jobs == [0]


async def test_a_disk_that_refuses_writes_is_left_in_peace() -> None:
    rig = Rig(AFTER_BYTES)
    rig.writes_are_refused = True
    rig.snapshotter.start()
    for _ in range(50):
        await asyncio.sleep(0.001)
    await rig.snapshotter.stop(rig.served)
    assert rig.jobs == []


async def test_a_mistake_of_ours_does_not_end_it() -> None:
    rig = Rig(AFTER_BYTES)

    async def broken(_job: str, _arguments: dict[str, object]) -> dict[str, object]:
        raise ZeroDivisionError

    run, rig.snapshotter._run = rig.snapshotter._run, broken
    rig.snapshotter.start()
    await rig.wait_until(lambda: bool(rig.events))
    assert isinstance(rig.events[0], PartFailed)
    rig.snapshotter._run = run
    await rig.wait_until(lambda: isinstance(rig.events[-1], SnapshotTaken))
    await rig.snapshotter.stop(rig.served)


async def test_a_stop_takes_what_is_worth_it() -> None:
    worth_it = AFTER_BYTES // WORTH_IT_AT_STOP
    rig = Rig(worth_it - 1, worth_it, worth_it + 1)
    await rig.snapshotter.stop(rig.served)
    assert rig.jobs == [2, 1]


async def test_a_stop_lets_the_one_that_runs_finish() -> None:
    rig = Rig(AFTER_BYTES)
    rig.holding = asyncio.Event()
    rig.snapshotter.start()
    await rig.wait_until(lambda: bool(rig.jobs))
    stopping = asyncio.ensure_future(rig.snapshotter.stop(rig.served))
    await asyncio.sleep(0.01)
    assert not stopping.done()
    rig.holding.set()
    await stopping
    assert rig.jobs == [0]
    assert len(rig.events) == 1


async def test_a_stop_does_not_wait_for_ever() -> None:
    rig = Rig(AFTER_BYTES, AFTER_BYTES)
    rig.holding = asyncio.Event()
    rig.snapshotter.start()
    await rig.wait_until(lambda: bool(rig.jobs))
    await rig.snapshotter.stop(rig.served, 0.01)
    assert len(rig.jobs) == 1


# ---------------------------------------------------------------- the daemon

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "rollcall.snapshot.bytes": "4096",
    "rollcall.log.level": "debug",
}


async def filled(daemon: Daemon) -> Member:
    return await fill(await Client.connect(daemon.port), daemon.log)


async def fill(client: Client, log: Callable[[], str]) -> Member:
    """Commits, until there is a snapshot that has some of them and not the last."""
    await make_topic(client)
    member = Member(client)
    await member.enter()
    offset = 0
    async with asyncio.timeout(WORKER_WAIT_S):
        while "Took a snapshot" not in log():
            offset += 1
            await member.commit(offset)
    for _ in range(3):
        offset += 1
        await member.commit(offset)
    member.last = offset  # type: ignore[attr-defined]
    return member


def stored(data_dir: Path) -> list[Path]:
    return sorted(data_dir.glob("__consumer_offsets-*/*.groups"))


async def again(daemon: Daemon, member: Member) -> None:
    """Killed and started: the member goes on where it was, and its last commit is there."""
    daemon.kill()
    await restarted(daemon, member)


async def restarted(daemon: Daemon, member: Member) -> None:
    daemon.start()
    member.client = await Client.connect(daemon.port)
    assert await member.committed() == member.last  # type: ignore[attr-defined]
    assert (await member.beat()).value == 0


async def test_a_killed_daemon_starts_from_its_snapshot(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    member = await filled(daemon)
    assert "Took a snapshot" in daemon.log()
    await again(daemon, member)
    assert "cannot be used" not in daemon.log()


async def test_deleting_all_snapshots_is_harmless(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    member = await filled(daemon)
    daemon.kill()
    for path in stored(daemon.data_dir):
        path.unlink()
    await restarted(daemon, member)


async def test_a_damaged_snapshot_is_named_and_the_log_is_read(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    member = await filled(daemon)
    daemon.kill()
    path = stored(daemon.data_dir)[-1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    await restarted(daemon, member)
    assert "A snapshot cannot be used" in daemon.log()
    assert path.name in daemon.log()


async def test_a_snapshot_beyond_the_log_is_forgotten(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    member = await filled(daemon)
    daemon.kill()
    path = stored(daemon.data_dir)[-1]
    ahead = path.with_name(f"{10**9:020d}.groups")
    path.rename(ahead)
    await restarted(daemon, member)
    assert not ahead.exists()


async def test_a_clean_stop_leaves_a_snapshot_of_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this process, where a stop can be given the time that a busy machine takes.
    monkeypatch.setattr(Snapshotter, "stop", partialmethod(Snapshotter.stop, limit_s=WORKER_WAIT_S))
    settings = {"rollcall_snapshot_bytes": 4_096}
    async with Node(tmp_path, settings) as node:
        member = await fill(await node.client(), node.log.getvalue)
        for _ in range(10):
            member.last += 1  # type: ignore[attr-defined]
            await member.commit(member.last)  # type: ignore[attr-defined]
        partition = node.daemon.coordinator.partition_for(member.group_id)
        end = node.daemon.ownership.stored_position(partition)
        taken = node.log.getvalue().count("Took a snapshot")

    # But for two commits, which are not worth one; and it is taken once, behind one that ran.
    (newest,) = stored(tmp_path / "data")
    assert end - 2 <= int(newest.stem) <= end
    assert node.log.getvalue().count("Took a snapshot") <= taken + 2
    async with Node(tmp_path, settings) as node:
        member.client = await node.client()
        assert await member.committed() == member.last  # type: ignore[attr-defined]
        assert await member.beat() is ErrorCode.NONE


async def test_what_was_cut_off_in_writing_goes_and_is_nothing_wrong(
    start_daemon: StartDaemon,
) -> None:
    daemon = start_daemon(SETTINGS)
    await filled(daemon)
    begun = stored(daemon.data_dir)[-1].with_name(f"{10**6:020d}.groups.tmp")
    begun.write_bytes(b"RollSnp1")
    assert daemon.stop() == 0
    assert not begun.exists(), "a clean stop leaves none"

    begun.write_bytes(b"RollSnp1")
    found = list(findings(place_at(daemon.data_dir, topic="__consumer_offsets"), LintCounts()))
    assert [(finding.check, finding.is_note) for finding in found] == [("leftover", True)]
    daemon.start()
    assert not begun.exists(), "nor does a start"
