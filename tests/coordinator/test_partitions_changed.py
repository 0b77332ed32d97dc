"""Changed partitions (rollcall.rebalance.on.partition.change): subscribed groups rebalance."""

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.decide.partitions_changed import decide_partitions_changed
from coordinator.classic.events import RebalanceBegun, TopicsChanged
from coordinator.classic.group_view import ClassicGroupView
from coordinator.outcome import Outcome
from protocol.names import ErrorCode, GroupId, GroupState, TopicName
from tests.world import World, kafka_settings, subscription

DELAY_MS = 1_000
T = TopicName("t")


READS_T = (("range", subscription("t")),)


@pytest.fixture
def world() -> World:
    return World(
        kafka_settings(rebalance_on_partition_change=True, partition_change_delay_ms=DELAY_MS)
    )


def changed(world: World, *names: str) -> None:
    world.coordinator.partitions_changed({TopicName(name) for name in names}, world.now)
    world.step()


def test_new_partitions_of_a_topic_that_is_read_begin_a_rebalance_after_the_delay(
    world: World,
) -> None:
    group = world.given_stable_group(members=2, protocols=READS_T)
    changed(world, "t")
    world.advance(DELAY_MS - 1)
    assert group.state is GroupState.STABLE
    world.advance(1)
    assert group.state is GroupState.PREPARING_REBALANCE
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.PARTITIONS_CHANGED
    assert begun.reason == "partitions of subscribed topics changed: t"
    assert world.heartbeat(group, group.leader_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_many_changes_are_combined_into_one_rebalance(world: World) -> None:
    group = world.given_stable_group(members=1, protocols=(("range", subscription("t", "u")),))
    changed(world, "t")
    world.advance(DELAY_MS // 2)
    changed(world, "u", "v")
    world.advance(DELAY_MS // 2)
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.reason.endswith(": t, u")
    again = world.join("g", group.leader_id, protocols=(("range", subscription("t", "u")),))
    world.sync_all("g", [again.joined])
    world.advance(DELAY_MS * 5)
    assert group.state is GroupState.STABLE
    assert group.generation_id == 2


def test_groups_that_do_not_read_the_topic_are_left_alone(world: World) -> None:
    world.given_stable_group("other", members=1, protocols=(("range", subscription("u")),))
    world.given_stable_group("opaque", members=1, protocol_type="connect", protocols=READS_T)
    world.given_stable_group("broken", members=1, protocols=(("range", b"?"),))
    changed(world, "t")
    assert not world.events_of(TopicsChanged)
    world.advance(DELAY_MS)
    for group_id in ("other", "opaque", "broken"):
        assert world.group(group_id).state is GroupState.STABLE


@pytest.mark.parametrize("given", ["given_joined", "preparing"])
def test_a_change_during_a_rebalance_waits_until_the_group_is_stable(
    world: World, given: str
) -> None:
    if given == "given_joined":
        answers = world.given_joined(members=1, protocols=READS_T)
    else:
        group = world.given_stable_group(members=1, protocols=READS_T)
        world.join("g")  # an id that is out keeps the rebalance waiting
        asked = world.join("g", group.leader_id, protocols=READS_T)
    changed(world, "t")
    world.advance(DELAY_MS)
    if given != "given_joined":
        world.advance(9_000)
        answers = [asked.joined]
    group = world.group()
    assert group.state is GroupState.COMPLETING_REBALANCE
    generation_id = group.generation_id
    world.sync_all("g", answers)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert group.generation_id == generation_id
    begun = world.events_of(RebalanceBegun)[-1]
    assert begun.cause is RebalanceCause.PARTITIONS_CHANGED


def test_a_change_is_forgotten_when_nobody_is_left_to_read_it(world: World) -> None:
    group = world.given_stable_group(members=1, protocols=READS_T)
    changed(world, "t")
    world.leave("g", group.leader_id)
    world.advance(DELAY_MS)
    assert group.state is GroupState.EMPTY
    assert not group.changed_topics
    assert world.coordinator.delayed_operations == 0


def test_a_deleted_topic_is_a_change_too(world: World) -> None:
    group = world.given_stable_group(members=1, protocols=READS_T)
    topic_id = world.topics.topic_id(T)
    assert topic_id is not None
    world.coordinator.topics_deleted([(T, topic_id)], world.now)
    world.advance(DELAY_MS)
    assert group.state is GroupState.PREPARING_REBALANCE


def test_subscriptions_are_known_again_after_a_restart(world: World) -> None:
    world.given_stable_group(members=1, protocols=READS_T)
    world.crash()
    changed(world, "t")
    world.advance(DELAY_MS)
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_switched_off_nothing_happens() -> None:
    world = World(kafka_settings(rebalance_on_partition_change=False))
    group = world.given_stable_group(members=1, protocols=READS_T)
    changed(world, "t")
    world.advance(9_000)
    assert group.state is GroupState.STABLE
    assert not group.changed_topics


def test_a_change_while_the_log_is_read_is_not_forgotten(world: World) -> None:
    world.given_stable_group(members=1, protocols=READS_T)
    log = world.log
    world.coordinator.resign(0, world.now)
    world.coordinator.begin_load(0, log)
    world.coordinator.partitions_changed({T}, world.now)
    world.coordinator.load(0, log.records, log.end_position)
    world.coordinator.finish_load(0, world.now)
    while world.coordinator.restore_slice(0, world.now, 1_000):
        pass
    assert world.group().state is GroupState.STABLE
    world.advance(DELAY_MS)
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_bug_in_one_partition_keeps_no_other_from_hearing_of_the_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(
        kafka_settings(
            offsets_topic_num_partitions=2,
            rebalance_on_partition_change=True,
            partition_change_delay_ms=DELAY_MS,
        )
    )
    failed: list[int] = []
    world.coordinator._shard_failed = lambda partition, _: failed.append(partition)
    names = {world.coordinator.partition_for(GroupId(name)): name for name in "abcdef"}
    for name in names.values():
        world.given_stable_group(name, members=1, protocols=READS_T)

    def planted(group: ClassicGroupView, *rest: object) -> Outcome:
        if group.group_id == names[0]:
            raise ZeroDivisionError("planted")
        return decide_partitions_changed(group, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("coordinator.shard.decide_partitions_changed", planted)
    changed(world, "t")
    assert failed == [0]
    world.advance(DELAY_MS)
    assert world.group(names[1]).state is GroupState.PREPARING_REBALANCE
