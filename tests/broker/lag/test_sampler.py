"""The sampler's rounds: in slices, fair about record times, silent about groups that are idle."""

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from msgspec.structs import replace

from broker.lag import sampler as lag_sampler
from broker.lag.reader import LagReader
from broker.lag.sampler import LagSampler
from broker.lag.topic import LagTopic
from broker.loop.clock import SystemClock
from broker.observe.events import PartFailed, ShellEvent, Warned
from coordinator.classic.group import ClassicGroup
from coordinator.coordinator import GroupCoordinator
from coordinator.group import CommittedOffset
from history.lag.model import LagStatus
from history.lag.records import Sample, decode_sample, encode_sample
from history.lag.store import LagLimits, LagStore
from history.lag.window import SampledCommit
from protocol.names import GroupId, GroupState, MemberId, TopicName
from storage.api import LogClosed, TopicLog
from tests.history.history_world import assignment
from topics.partition import Partition
from topics.registry import TopicRegistry

TOPIC = TopicName("t")


class Log:
    """A log of whose records nobody can read the time."""

    log_start_offset = 0

    def __init__(self, end: int) -> None:
        self.high_watermark = end
        self.reads = 0

    def read(self, *_: object, **__: object) -> bytes:
        self.reads += 1
        raise OSError("not now")


class Kept:
    def __init__(self, tail: Sequence[Sample] = ()) -> None:
        self.samples: list[Sample] = []
        self._tail = list(tail)

    def append(self, samples: Sequence[Sample], now_ms: int) -> None:
        self.samples += samples

    async def read_back(self) -> AsyncIterator[list[Sample]]:
        yield self._tail


class World:
    def __init__(self, groups: int, partitions: int = 4, *, tail: Sequence[Sample] = ()) -> None:
        self.logs = [Log(100) for _ in range(partitions)]
        self.groups = [ClassicGroup(GroupId(f"g{n}"), 0) for n in range(groups)]
        self.now_ms = 1_700_000_000_000
        self.said: list[ShellEvent] = []
        self.topic_id: UUID | None = UUID(int=1)
        self.kept = Kept(tail)
        coordinator = SimpleNamespace(
            groups_of=lambda _: tuple(self.groups),
            group=lambda wanted: next((g for g in self.groups if g.group_id == wanted), None),
        )
        places = [SimpleNamespace(log=log) for log in self.logs]
        registry = SimpleNamespace(
            partition_count=lambda _: 1,
            topic_id=lambda _: self.topic_id,
            partition=lambda _, index: places[index],
        )
        self.sampler = LagSampler(
            LagReader(cast("GroupCoordinator", coordinator), cast("TopicRegistry", registry)),
            LagStore(LagLimits(interval_ms=1_000, window_commits=5, partitions_max=1_000)),
            self.kept,
            SystemClock(wall_ns=lambda: self.now_ms * 1_000_000),
            self.said.append,
            lookups_max=10,
            keepalive_ms=60_000,
        )
        self.commit(10)

    def commit(self, offset: int) -> None:
        for group in self.groups:
            group.offsets = {
                TOPIC: {
                    index: CommittedOffset(offset, committed_at_ms=self.now_ms)
                    for index in range(len(self.logs))
                }
            }

    def commit_as_recreated(self, offset: int) -> None:
        """For the topic that is there now."""
        self.commit(offset)
        assert self.topic_id is not None
        for group in self.groups:
            for index, committed in group.offsets[TOPIC].items():
                group.offsets[TOPIC][index] = replace(committed, topic_id=self.topic_id)

    @property
    def statuses(self) -> set[LagStatus]:
        return {windows.status for windows in self.sampler.book.groups.values()}

    async def round(self, *, after_ms: int = 1_000) -> list[Sample]:
        """What the round has written."""
        self.now_ms += after_ms
        self.kept.samples = []
        await self.sampler.round()
        return self.kept.samples


async def test_only_what_is_new_is_written_and_an_idle_group_is_not() -> None:
    world = World(2)
    first = await world.round()
    assert [(sample.group_id, sample.whole) for sample in first] == [("g0", False), ("g1", False)]
    assert first[0].partitions == {
        n: (SampledCommit(world.now_ms - 1_000, 10, 90),) for n in range(4)
    }
    assert await world.round() == []
    # All of it once in a keepalive; and then again only while there is lag.
    await world.round(after_ms=60_000)
    written = await world.round(after_ms=60_000)
    assert {(sample.group_id, sample.whole) for sample in written} == {("g0", True), ("g1", True)}
    world.commit(100)
    await world.round()
    assert {sample.whole for sample in await world.round(after_ms=60_000)} == {True}
    assert await world.round(after_ms=60_000) == []
    assert await world.round(after_ms=60_000) == []


async def test_a_round_takes_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000_000))
    monkeypatch.setattr(lag_sampler, "perf_counter", lambda: next(clock) * 0.0004)
    world = World(50)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(lag_sampler.asyncio, "sleep", sleep)
    await world.round()
    assert len(pauses) > 20
    assert set(pauses) == {lag_sampler.SLICE_PAUSE_S}
    assert world.sampler.slice_seconds_max < 2 * lag_sampler.SLICE_S


async def test_record_times_are_queried_for_each_group_in_turn() -> None:
    """Ten look-ups a round; what nobody can read is asked for again, but not at others' cost."""
    world = World(1, partitions=30)
    for _ in range(3):
        await world.round()
    assert [log.reads for log in world.logs] == [1] * 30


async def test_large_samples_are_cut() -> None:
    world = World(1, partitions=60)
    written = await world.round()
    assert [len(sample.partitions) for sample in written] == [25, 25, 10]


async def test_what_was_kept_is_in_the_windows_before_the_first_round() -> None:
    before = [SampledCommit(1_699_999_990_000 + n, 5 + n, 95) for n in range(3)]
    world = World(1, tail=[Sample("g0", "t", 0, whole=False, partitions={2: before})])
    await world.sampler._restore()
    await world.round()
    window = world.sampler.book.groups["g0"].windows["t", 2]
    assert [commit.committed_offset for commit in window.commits()] == [5, 6, 7, 10]


async def fallen_behind(world: World) -> list[Sample]:
    """Some rounds with commits; what was written of them."""
    written = []
    for offset in (50, 60, 70):
        world.commit_as_recreated(offset)
        written += await world.round()
    return written


async def test_a_recreated_topic_is_no_rewind() -> None:
    world = World(1)
    written = await fallen_behind(world)
    world.topic_id = UUID(int=2)
    for log in world.logs:
        log.high_watermark = 20
    world.commit_as_recreated(5)
    await world.round()
    assert world.statuses == {LagStatus.OK}
    # Nor is it one after a restart, which reads back what was written of both.
    again = World(1, tail=[*written, *world.kept.samples])
    again.topic_id = UUID(int=2)
    await again.sampler._restore()
    again.now_ms = world.now_ms
    again.commit_as_recreated(6)
    await again.round()
    window = again.sampler.book.groups["g0"].windows["t", 0]
    assert [commit.committed_offset for commit in window.commits()] == [5, 6]
    assert again.statuses == {LagStatus.OK}


async def test_a_recreated_group_is_no_rewind() -> None:
    world = World(1)
    written = await fallen_behind(world)
    world.sampler.group_deleted("g0")
    world.commit_as_recreated(5)
    written += await world.round()
    assert world.statuses == {LagStatus.OK}
    again = World(1, tail=written)
    await again.sampler._restore()
    again.now_ms = world.now_ms
    again.commit_as_recreated(6)
    await again.round()
    window = again.sampler.book.groups["g0"].windows["t", 0]
    assert [commit.committed_offset for commit in window.commits()] == [5, 6]


async def test_a_deletion_is_written_though_nothing_else_is() -> None:
    world = World(1)
    await fallen_behind(world)
    world.groups.clear()
    world.sampler.group_deleted("g0")
    (written,) = await world.round()
    assert written.ends_the_group
    assert await world.round() == []


async def test_a_group_that_goes_back_is_a_rewind_all_the_same() -> None:
    world = World(1)
    await fallen_behind(world)
    world.commit_as_recreated(5)
    await world.round()
    assert world.statuses == {LagStatus.ERR}


async def test_a_failed_round_is_reported_and_the_next_one_runs() -> None:
    world = World(1)

    async def fail() -> None:
        raise RuntimeError("no")

    await world.sampler._guarded(fail)
    assert [type(said) for said in world.said] == [PartFailed]


async def test_too_many_partitions_are_reported_once() -> None:
    world = World(300)
    for _ in range(3):
        await world.round()
    (warning,) = [said for said in world.said if isinstance(said, Warned)]
    assert warning.fields == {"limit": 1_000, "left_out": 200}
    assert world.sampler.book.left_out == 200
    # Their lag is told all the same.
    lag = await world.sampler.group_lag(GroupId("g299"))
    assert lag is not None
    assert lag.total.lag == 360


# ------------------------------------------------------------ the topic


class Batches:
    """A TopicLog as far as the lag topic needs one."""

    log_start_offset = 0

    def __init__(self) -> None:
        self.stored: list[bytes] = []
        self.times: list[int] = []
        self.fails = False

    @property
    def high_watermark(self) -> int:
        return len(self.stored)

    def append(self, batch: bytes, now_ms: int) -> int:
        if self.fails:
            raise LogClosed("closed")
        self.stored.append(batch)
        self.times.append(now_ms)
        return len(self.stored) - 1

    def enforce_retention(self, now_ms: int) -> int:
        return 0

    def max_timestamp(self) -> tuple[int, int] | None:
        return (self.times[-1], 0) if self.times else None

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        found = [at for at, time_ms in enumerate(self.times) if time_ms >= timestamp_ms]
        return (timestamp_ms, found[0]) if found else None

    def batches(self, from_offset: int):
        yield from self.stored[from_offset:]


def lag_topic(batches: Batches, said: list[ShellEvent], *, bytes_max: int = 1 << 20) -> LagTopic:
    from broker.lag.topic import PARTITION

    return LagTopic(
        Partition(PARTITION, cast("TopicLog", batches)),
        SystemClock(),
        said.append,
        readable=lambda _partition, _now: None,
        tail_ms=5_000,
        tail_bytes_max=bytes_max,
    )


def sample(n: int) -> Sample:
    return Sample(f"g{n}", "t", n, whole=False, partitions={0: [SampledCommit(n, n, n)]})


async def read_back(topic: LagTopic) -> list[str]:
    return [sample.group_id async for samples in topic.read_back() for sample in samples]


async def test_no_more_is_read_back_than_the_time_and_the_bytes_allow() -> None:
    batches = Batches()
    topic = lag_topic(batches, [])
    assert await read_back(topic) == []
    for n in range(20):
        topic.append([sample(n)], 1_000 * n)
    assert await read_back(topic) == [f"g{n}" for n in range(14, 20)]
    two = 2 * len(batches.stored[-1])
    assert await read_back(lag_topic(batches, [], bytes_max=two)) == ["g18", "g19"]


async def test_bytes_that_are_no_samples_are_passed_over() -> None:
    batches = Batches()
    topic = lag_topic(batches, [])
    topic.append([sample(1)], 1_000)
    batches.append(batches.stored[0].replace(b"\xa1v\x01", b"\xa1v\x09"), 1_000)
    batches.append(batches.stored[0][:-3] + b"\xff\xff\xff", 1_000)
    assert await read_back(topic) == ["g1"]


def test_a_log_that_refuses_samples_is_reported_once_and_sampling_continues() -> None:
    batches, said = Batches(), []
    topic = lag_topic(batches, said)
    batches.fails = True
    topic.append([sample(1)], 1_000)
    topic.append([sample(2)], 2_000)
    assert len(said) == 1
    batches.fails = False
    topic.append([sample(3)], 3_000)
    assert batches.stored == []


# ------------------------------------------------------------ records that arrive later


def produce(world: World, end: int) -> None:
    for log in world.logs:
        log.high_watermark = end


async def test_what_is_produced_after_a_round_is_in_the_next_round() -> None:
    """Samples and answers read the log's end at their own moment, not at the first or the last."""
    world = World(1, partitions=1)
    for number, end in enumerate((100, 140, 260, 260, 300)):
        produce(world, end)
        asked = await world.sampler.group_lag(GroupId("g0"))
        assert asked is not None
        assert (asked.total.lag, asked.partitions[0].log_end_offset) == (end - 10, end)
        await world.round()
        windows = world.sampler.book.groups["g0"]
        assert (windows.lag, windows.lag_max) == (end - 10, end - 10)
        assert [window.lag for window in world.sampler.book.windows_of("g0")] == [end - 10]
        ends = world.sampler.book.ends["t", 0]
        assert ends.newest == (world.now_ms, end)
        assert len(ends) == number + 1


async def test_commits_in_the_window_have_the_lag_of_their_own_moment() -> None:
    world = World(1, partitions=1)
    lags = []
    for offset, end in ((20, 100), (50, 180), (90, 300)):
        produce(world, end)
        world.commit(offset)
        await world.round()
        lags.append(end - offset)
    window = world.sampler.book.groups["g0"].windows["t", 0]
    assert [commit.lag for commit in window.commits()][-3:] == lags


async def test_the_rate_of_production_follows_the_log() -> None:
    world = World(1, partitions=1)
    for end in (100, 120, 140, 160):
        produce(world, end)
        world.commit(end - 10)
        await world.round()
    produce(world, 190)  # between the last sample and the question
    world.now_ms += 500
    asked = await world.sampler.group_lag(GroupId("g0"))
    assert asked is not None
    (lag,) = asked.partitions
    assert lag.lag == 40
    assert lag.rates.produced == pytest.approx((190 - 100) / 3.5)
    assert lag.rates.consumed == pytest.approx(20)


# ------------------------------------------------------------ neither behind nor well


def owning(world: World, *partitions: int) -> ClassicGroup:
    """The group is one of consumers now, whose one member has these partitions."""
    group = world.groups[0]
    group.protocol_type = "consumer"
    group.state = GroupState.STABLE
    member = SimpleNamespace(
        member_id="m", group_instance_id=None, client_id="ann", client_host="/h",
        assignment=assignment(t=list(partitions)),
    )  # fmt: skip
    group.members = {MemberId("m"): member}  # type: ignore[dict-item]
    return group


async def status_of(world: World, partition: int) -> LagStatus:
    asked = await world.sampler.group_lag(GroupId("g0"))
    assert asked is not None
    return next(found.status for found in asked.partitions if found.partition == partition)


async def test_who_owns_and_never_commits_while_records_wait_is_not_ok_for_long() -> None:
    world = World(1)
    world.commit(100)
    group = owning(world, 0, 3)
    del group.offsets[TOPIC][3]
    for _ in range(4):  # the window is of five commits
        await world.round()
        assert world.statuses == {LagStatus.OK}
        assert await status_of(world, 3) is LagStatus.OK
    await world.round()
    assert world.statuses == {LagStatus.WARN}
    assert await status_of(world, 3) is LagStatus.WARN
    assert await status_of(world, 0) is LagStatus.OK
    # The first commit ends it.
    group.offsets[TOPIC][3] = CommittedOffset(100, committed_at_ms=world.now_ms)
    await world.round()
    assert world.statuses == {LagStatus.OK}


async def test_a_group_that_never_committed_at_all_is_seen_too() -> None:
    world = World(1)
    group = owning(world, 0, 1, 2, 3)
    group.offsets = {}
    for _ in range(5):
        await world.round()
    assert world.statuses == {LagStatus.WARN}
    for log in world.logs:
        log.high_watermark = 0  # there is nothing to read
    await world.round()
    assert world.statuses == {LagStatus.OK}


async def test_who_committed_beyond_the_end_is_not_ok() -> None:
    world = World(1)
    world.commit(101)
    await world.round()
    assert world.statuses == {LagStatus.WARN}
    assert await status_of(world, 0) is LagStatus.WARN
    world.commit(100)
    await world.round()
    assert world.statuses == {LagStatus.OK}


async def test_a_commit_beyond_the_end_is_written_with_the_end() -> None:
    """Its lag is 0, which would otherwise say that the log ends where the commit is."""
    world = World(1)
    await world.round()
    world.now_ms += 1_000
    world.commit(156)

    (written,) = await world.round()

    (commit,) = written.partitions[0]
    assert (commit.committed_offset, commit.lag) == (156, 0)
    assert written.ends == dict.fromkeys(range(4), 100)
    assert decode_sample(*encode_sample(written)).ends == written.ends
    world.now_ms += 1_000
    world.commit(100)
    (ordinary,) = await world.round()
    assert ordinary.ends == {}
