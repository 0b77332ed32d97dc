"""Consumer groups beside the coordinator: owners of partitions, and verdicts on real turns."""

from collections.abc import Coroutine, Generator
from itertools import chain
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.lag.reader import LagReader
from broker.lag.verdict_watch import VerdictWatch
from broker.metrics.owners import NO_OWNER, LabelsOfOwners, OwnerLabels
from broker.observe.events import ShellEvent, VerdictCleared, VerdictFound
from coordinator.group import CommittedOffset
from history.verdicts.detect import DETECTORS
from history.verdicts.model import Verdict, VerdictKind, VerdictLimits
from protocol.names import GroupId, GroupState, TopicName
from tests.consumer_client import ConsumerClient, until_stable
from tests.history.history_world import HistoryWorld
from topics.registry import TopicRegistry

T = TopicName("t")


@pytest.fixture
def world() -> HistoryWorld:
    world = HistoryWorld()
    world.given_topics(t=4)
    return world


def given_consumers(world: HistoryWorld, *names: str) -> list[ConsumerClient]:
    clients = [ConsumerClient(world, name) for name in names]
    for client in clients:
        client.join()
        until_stable(*clients[: clients.index(client) + 1])
    return clients


# ------------------------------------------------------------ lag


def reader_of(world: HistoryWorld) -> LagReader:
    log = SimpleNamespace(log_start_offset=0, high_watermark=100)
    registry = SimpleNamespace(
        partition_count=lambda _: 1,
        topic_id=world.topics.topic_id,
        topic_name=world.topics.topic_name,
        partition=lambda name, _: SimpleNamespace(log=log) if name in world.topics.counts else None,
    )
    return LagReader(world.coordinator, cast("TopicRegistry", registry))


def test_owners_are_read_from_current_assignments(world: HistoryWorld) -> None:
    a, b = given_consumers(world, "a", "b")
    reader = reader_of(world)
    group = reader.group(GroupId("g"))
    assert group is not None
    owners = reader.owners(group)
    for client in (a, b):
        for index in client.owned["t"]:
            (owner,) = owners["t", index]
            assert (owner.member_id, owner.client_id) == (client.member_id, client.member_id)
    assert [group for some in reader.groups() for group in some] == [group]


def test_a_partition_that_is_to_be_given_back_has_its_owner_yet(world: HistoryWorld) -> None:
    (a,) = given_consumers(world, "a")
    ConsumerClient(world, "b").join()
    a.beat()
    assert world.consumer_group().state is GroupState.RECONCILING
    owners = reader_of(world).owners(world.consumer_group())
    assert {owner.member_id for (owner,) in owners.values()} == {"a"}
    assert len(owners) == 4


def test_owned_partitions_without_a_commit_are_waited_for(world: HistoryWorld) -> None:
    given_consumers(world, "a")
    group = world.consumer_group()
    group.offsets = {T: {0: CommittedOffset(40, committed_at_ms=world.now.wall_ms)}}
    reader = reader_of(world)
    assert sorted(chain.from_iterable(reader.waiting(group))) == [("t", 1), ("t", 2), ("t", 3)]
    lags = {
        reading.partition: reading.lag for reading in reader.read_group(group, reader.owners(group))
    }
    assert lags[0] == 60
    # The topic is deleted: nobody owns its partitions any more.
    world.given_topics()
    assert reader.owners(group) == {}


def test_members_may_come_and_go_between_the_parts_that_are_read(
    world: HistoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.lag.reader.MEMBERS_AT_ONCE", 1)
    a, b = given_consumers(world, "a", "b")
    parts = reader_of(world).waiting(world.consumer_group())
    first = next(parts)
    assert {index for _, index in first} in (set(a.owned["t"]), set(b.owned["t"]))
    ConsumerClient(world, "c").join()
    b.leave()
    rest = [key for part in parts for key in part]
    assert sorted([*first, *rest]) == [("t", index) for index in range(4)]


def result_of(steps: Generator[None, None, LabelsOfOwners]) -> LabelsOfOwners:
    """What a reader with pauses ends with."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            labels: LabelsOfOwners = end.value
            return labels


def test_the_labels_of_an_owner_follow_the_current_assignment(world: HistoryWorld) -> None:
    (a,) = given_consumers(world, "a")
    owners = OwnerLabels(world.topics.topic_id)
    labels = result_of(owners.of(world.consumer_group()))
    assert 'consumer_id="a"' in labels.get(("t", 0), NO_OWNER)
    assert labels.get(("u", 0), NO_OWNER) == NO_OWNER
    a.leave()
    labels = result_of(owners.of(world.consumer_group()))
    assert labels.get(("t", 0), NO_OWNER) == NO_OWNER


# ------------------------------------------------------------ verdicts


async def no_pause() -> None:
    return


def at_once(step: Coroutine[Any, Any, None]) -> None:
    """Nothing in it waits, so it is over at once."""
    with pytest.raises(StopIteration):
        step.send(None)


class Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


async def pause() -> None:
    await Pause()


class Watched:
    def __init__(self, world: HistoryWorld) -> None:
        self.said: list[ShellEvent] = []
        self.watch = VerdictWatch(world.topics, VerdictLimits(), 100, self.said.append)
        self.watch.group_of = lambda group_id: world.coordinator.group(GroupId(group_id))
        self._world = world
        self._heard = 0

    def inspection(self) -> Generator[None, None, None]:
        """Of the group, with each of its pauses."""
        return self.watch.inspect(
            self._world.consumer_group(), None, self._world.now, pause
        ).__await__()

    @property
    def found(self) -> list[VerdictKind]:
        return [said.verdict.kind for said in self.said if isinstance(said, VerdictFound)]

    def inspect(self) -> list[Verdict]:
        """A round; the verdicts that hold then."""
        world = self._world
        for entry in world.history[self._heard :]:
            self.watch.on_entry(entry)
        self._heard = len(world.history)
        for group in world.coordinator.groups():
            at_once(self.watch.inspect(group, None, world.now, no_pause))
        at_once(self.watch.end_round({"g"}, world.now, no_pause))
        return [active.verdict for active in self.watch.active("g")]


def test_consumers_that_do_all_right_have_no_verdict(world: HistoryWorld) -> None:
    watched = Watched(world)
    clients = given_consumers(world, "a", "b", "c")
    for _ in range(30):
        world.advance(5_000)
        for client in clients:
            client.beat()
        assert watched.inspect() == []


def two_of_which_one_keeps_its_partitions(
    world: HistoryWorld,
) -> tuple[ConsumerClient, ConsumerClient]:
    """For 15 s the first has not given back what the second is to get."""
    (a,) = given_consumers(world, "a")
    b = ConsumerClient(world, "b")
    b.join()
    a.beat()
    for _ in range(3):
        world.advance(5_000)
        a.beat(reports=False)
        b.beat()
    return a, b


def test_a_member_that_keeps_its_partitions_is_named(world: HistoryWorld) -> None:
    watched = Watched(world)
    a, _ = two_of_which_one_keeps_its_partitions(world)
    (verdict,) = watched.inspect()
    assert (verdict.kind, verdict.subject) == (VerdictKind.UNREVOKED_PARTITIONS, "a")
    assert "has not given back t-2, t-3 for 15 s" in verdict.summary
    assert "b at" in verdict.summary
    assert "onPartitionsRevoked" in verdict.remedy
    assert verdict.evidence["partitions"] == ["t-2", "t-3"]
    # It gives them back: the verdict does not hold any more, not even before the next round.
    a.beat()
    assert [active.verdict for active in watched.watch.active("g")] == []
    assert watched.inspect() == []
    assert [type(said) for said in watched.said] == [VerdictFound, VerdictCleared]


def test_a_group_that_changes_between_two_detectors_is_judged_in_the_next_round(
    world: HistoryWorld,
) -> None:
    two_of_which_one_keeps_its_partitions(world)
    undisturbed, disturbed = Watched(world), Watched(world)
    pauses = sum(1 for _ in undisturbed.inspection())
    assert undisturbed.found == [VerdictKind.UNREVOKED_PARTITIONS]
    for number, _ in enumerate(disturbed.inspection(), start=1):
        if number == pauses:
            ConsumerClient(world, "c").join()
    assert pauses > len(DETECTORS)
    assert disturbed.found == []


def test_a_reconciliation_that_does_not_end_names_who_is_missing(world: HistoryWorld) -> None:
    watched = Watched(world)
    a, b = given_consumers(world, "a", "b")
    world.advance(5_000)
    a.beat()
    b.beat()
    ConsumerClient(world, "c").join()
    for _ in range(4):
        world.advance(5_000)
        a.beat()
    verdicts = {verdict.kind: verdict for verdict in watched.inspect()}
    stuck = verdicts[VerdictKind.STUCK_GROUP]
    assert "2 of 3 members have not reached group epoch 4" in stuck.summary
    assert stuck.evidence["waiting_total"] == 2
    assert "b" in stuck.summary
    assert "group.consumer.heartbeat.interval.ms" in stuck.remedy
