"""Odd offsets, and faults of one group: the others are sampled, judged and shown all the same.

A client may commit any number of 64 bits, as in Kafka. On the whole daemon, with a start in
between; faults of our own are planted in a sampler without a daemon.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from broker.lag.reader import LagReader
from broker.lag.skipped_groups import LAG, LOGGED_GROUPS_MAX, METRICS, VERDICTS, SkippedGroups
from broker.lag.verdict_watch import VerdictWatch
from broker.metrics.labelled import Labelled
from broker.metrics.lag import SampledLag, ShownLag
from broker.metrics.rebalance_costs import RebalanceCosts
from broker.metrics.scrape import Metrics, exposition
from broker.observe.events import GroupSkipped
from coordinator.classic.group_view import ClassicGroupView
from coordinator.coordinator import GroupCoordinator
from history.lag.model import LagNote
from history.lag.records import Sample, UnreadableSample, decode_sample, encode_sample
from history.lag.window import SampledCommit
from history.verdicts import detect as verdicts
from history.verdicts.model import VerdictLimits
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.names import ErrorCode, GroupId, TopicName
from seams.now import Now
from tests.broker.lag.test_sampler import World
from tests.broker.node import Node
from tests.broker.shell import Client
from tests.world import Topics

TOPIC = TopicName("t")
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
ODD = {"lowest": INT64_MIN, "low": INT64_MIN + 1, "minus": -1, "none": -2, "highest": INT64_MAX}


async def commit(client: Client, group_id: str, offset: int) -> None:
    partitions = (OffsetCommitRequestPartition(0, offset),)
    topics = (OffsetCommitRequestTopic(TOPIC, partitions=partitions),)
    answer = await client.call(OffsetCommitRequest(GroupId(group_id), topics=topics), 9)
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


async def check(node: Node) -> None:
    """A round, a scrape and a question about each: nobody is passed over."""
    sampler = node.daemon.lag
    await sampler.round()
    assert set(sampler.book.groups) == {*ODD, "good"}
    notes = {}
    for group_id, offset in ODD.items():
        lag = await sampler.group_lag(GroupId(group_id))
        assert lag is not None
        (partition,) = lag.partitions
        assert partition.committed_offset == offset
        notes[group_id] = (partition.note, partition.lag)
    assert notes.pop("highest") == (LagNote.BEYOND_END, 0)
    assert set(notes.values()) == {(LagNote.NEGATIVE, None)}
    scraped = "".join(
        filter(
            None,
            exposition(Metrics(node.daemon, RebalanceCosts(), 0.0).portions(), openmetrics=True),
        )
    )
    assert 'group_coordinator_lag_records{group="good"' in scraped
    assert set(sampler.skipped.counts.values()) == {0}


async def test_any_offset_of_64_bits_is_sampled_and_survives_a_start(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await client.call(CreateTopicsRequest((CreatableTopic(TOPIC, 1, 1),)))
        await commit(client, "good", 0)
        for group_id, offset in ODD.items():
            await commit(client, group_id, offset)
        await check(node)
        await commit(client, "good", 1)
        await commit(client, "lowest", 5)  # from odd to ordinary and back
        await node.daemon.lag.round()
        await commit(client, "lowest", INT64_MIN)
        await check(node)
        client.close()
    async with Node(tmp_path) as node:
        await check(node)


# ------------------------------------------------------------ faults of one group


async def test_a_group_that_cannot_be_sampled_is_counted_reported_once_and_skipped() -> None:
    world = World(3)
    world.groups[1].offsets = {TOPIC: {99: world.groups[1].offsets[TOPIC][0]}}  # no such log
    for _ in range(3):
        await world.round()
    assert world.sampler.skipped.counts == {LAG: 3, VERDICTS: 0, METRICS: 0}
    (event,) = world.said
    assert isinstance(event, GroupSkipped)
    assert event.group_id == "g1"
    assert world.sampler.rounds == 3
    assert all(world.sampler.book.groups[name].windows for name in ("g0", "g2"))


async def test_a_group_that_cannot_be_judged_is_passed_over_alone() -> None:
    world = World(3)
    inspected = []

    async def inspect(group: ClassicGroupView, *_: object) -> None:
        inspected.append(group.group_id)
        if group.group_id == "g1":
            raise IndexError("array index out of range")

    async def end_round(*_: object) -> None:
        return

    world.sampler.watcher = SimpleNamespace(inspect=inspect, end_round=end_round)  # type: ignore[assignment]
    await world.round()
    assert inspected == ["g0", "g1", "g2"]
    assert world.sampler.skipped.counts[VERDICTS] == 1
    assert world.sampler.rounds == 1


async def test_a_detector_that_fails_does_not_silence_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> Iterator[object]:
        raise ValueError("no")
        yield

    called = []
    monkeypatch.setattr(verdicts, "DETECTORS", (broken, lambda *_: called.append(1) or iter(())))
    skipped = SkippedGroups(lambda _: None)
    watch = VerdictWatch(Topics(), VerdictLimits(), 10, lambda _: None, skipped=skipped)
    world = World(1)
    watch._activity("g0").changed_at_ms = world.now_ms

    async def no_pause() -> None:
        return

    await watch.inspect(world.groups[0], None, Now(0, world.now_ms), no_pause)
    assert called == [1]
    assert skipped.counts[VERDICTS] == 1


def test_a_scrape_shows_the_groups_that_can_be_read() -> None:
    world = World(3)
    skipped = SkippedGroups(lambda _: None)
    reader = cast("LagReader", world.sampler._reader)

    class Faulty(SampledLag):
        def of(self, group: ClassicGroupView) -> Iterator[ShownLag]:
            if group.group_id == "g1":
                raise OverflowError("int too big to convert")
            return super().of(group)

    labelled = Labelled(
        cast("GroupCoordinator", SimpleNamespace(group_counts=SimpleNamespace(groups=3))),
        Faulty(reader, world.sampler.book),
        groups_max=10,
        partitions_max=100,
        with_owners=False,
        skipped=skipped,
    )
    for _ in labelled.read():
        pass
    assert [shown.group_id for shown in labelled.groups] == ["g0", "g2"]
    assert skipped.counts[METRICS] == 1


def test_the_log_names_a_bounded_number_of_groups() -> None:
    said: list[object] = []
    skipped = SkippedGroups(said.append)
    for number in range(2 * LOGGED_GROUPS_MAX):
        for _ in range(3):
            skipped(LAG, f"g{number}", ValueError("no"))
    assert len(said) == LOGGED_GROUPS_MAX
    assert skipped.counts[LAG] == 6 * LOGGED_GROUPS_MAX


def test_a_sample_of_numbers_beyond_64_bits_is_none() -> None:
    sample = Sample("g", "t", 1, whole=False, partitions={0: [SampledCommit(1, 2, INT64_MAX)]})
    assert decode_sample(*encode_sample(sample)) == sample
    wide = sample._replace(partitions={0: [SampledCommit(1, 2, INT64_MAX + 1)]})
    with pytest.raises(UnreadableSample):
        decode_sample(*encode_sample(wide))
