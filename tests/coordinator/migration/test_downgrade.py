"""Downgrade: the ways in which the last member of the consumer protocol goes."""

from collections.abc import Callable

import pytest

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import RebalanceBegun
from coordinator.consumer.events import ConsumerMemberRemoved
from coordinator.events import ConversionRefused, GroupConverted
from coordinator.group import GroupType
from coordinator.records import record_type
from coordinator.settings import MigrationPolicy
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import ErrorCode, GroupId, GroupInstanceId, GroupState, TopicName
from tests.classic_client import ClassicClient, owned_of
from tests.consumer_client import ConsumerClient
from tests.coordinator.migration.conftest import subscribed
from tests.world import REBALANCE_TIMEOUT_MS, World, kafka_settings

CONSUMER_SESSION_MS = 45_000


def configured(world: World, **settings: object) -> None:
    world.settings = kafka_settings(group_consumer_assignment_interval_ms=0, **settings)
    world.start(world.logs)


def mixed(
    world: World, classic: int = 2, *, instance_id: str | None = None
) -> tuple[ConsumerClient, list[ClassicClient]]:
    """A reconciled group of one consumer and some classic members."""
    consumer = ConsumerClient(world, "c", instance_id=instance_id)
    consumer.join()
    members = [ClassicClient(world, f"a{n}") for n in range(classic)]
    for member in members:
        member.join()
    for _ in range(3 + classic):
        world.advance(500)
        consumer.beat()
        for member in members:
            member.step()
    assert world.consumer_group().state is GroupState.STABLE
    return consumer, members


@pytest.fixture(autouse=True)
def _at_once(world: World) -> None:
    configured(world)


def leave(world: World, consumer: ConsumerClient, _: list[ClassicClient]) -> None:
    consumer.leave()


def be_removed(world: World, consumer: ConsumerClient, _: list[ClassicClient]) -> None:
    world.leave("g", consumer.member_id)


def fall_silent(world: World, _: ConsumerClient, members: list[ClassicClient]) -> None:
    for _second in range(0, CONSUMER_SESSION_MS, 1_000):
        world.advance(1_000)
        for member in members:
            if group_type(world) is GroupType.CONSUMER:
                member.step()


def keep_a_partition(world: World, consumer: ConsumerClient, _: list[ClassicClient]) -> None:
    """It is told to give partitions back to a newcomer, and does not confirm that."""
    newcomer = ClassicClient(world, "late")
    newcomer.join()
    consumer.beat()
    for _second in range(0, REBALANCE_TIMEOUT_MS, 1_000):
        if group_type(world) is GroupType.CLASSIC:
            return
        for member in (*_, newcomer):
            member.step()
        consumer.beat(reports=False)
        world.advance(1_000)


def group_type(world: World) -> GroupType:
    group = world.coordinator.group(GroupId("g"))
    assert group is not None
    return group.group_type


@pytest.mark.parametrize("go", [leave, be_removed, fall_silent, keep_a_partition])
def test_the_group_is_classic_when_the_last_consumer_is_gone(
    world: World, go: Callable[[World, ConsumerClient, list[ClassicClient]], None]
) -> None:
    consumer, members = mixed(world)
    world.commit("g", members[0].member_id, members[0].generation_id, offsets={0: 7})
    go(world, consumer, members)

    group = world.group()
    assert group.state is GroupState.PREPARING_REBALANCE
    assert {member.member_id for member in members} <= group.members.keys()
    assert group.offsets[TopicName("t")][0].committed_offset == 7
    for member in members:
        beat = world.beat("g", member.member_id, group.generation_id)
        assert beat.error is ErrorCode.REBALANCE_IN_PROGRESS
    [begun] = world.events_of(RebalanceBegun)
    reason = "Downgrade group g from consumer to classic for member leaving."
    assert (begun.reason, begun.trigger_ids) == (reason, ("c",))


def test_the_generation_is_the_group_epoch_with_the_target_assignments(world: World) -> None:
    consumer, members = mixed(world)
    before = world.consumer_group()
    epoch, targets = before.epoch, dict(before.targets)
    consumer.leave()

    group = world.group()
    assert (group.generation_id, group.newest_generation_id) == (epoch, epoch)
    assert (group.protocol_type, group.protocol_name) == (PROTOCOL_TYPE, "range")
    assert group.leader_id in group.members
    topic_id = world.topics.id_of("t")
    for member in members:
        assignment = owned_of(group.members[member.member_id].assignment)
        assert assignment == {"t": targets[member.member_id][topic_id]}  # type: ignore[index]


def test_tombstones_and_the_group_record_are_one_batch(world: World) -> None:
    consumer, _ = mixed(world)
    consumer.leave()

    batch = [(record_type(record.key), record.value is None) for record in world.log.batches[-1]]
    ended = [(8, True)] * 3 + [(7, True)] * 3 + [(6, True)] + [(5, True)] * 3
    assert batch == [*ended, (4, True), (3, True), (2, False)]


def test_the_same_group_is_there_after_a_crash(world: World) -> None:
    consumer, members = mixed(world)
    world.commit("g", members[0].member_id, members[0].generation_id, offsets={0: 7})
    consumer.leave()
    before = world.group()
    world.crash()
    after = world.group()

    assert after.state is GroupState.STABLE  # the rebalance is lost, as every one is
    assert after.generation_id == before.generation_id
    assert after.offsets == before.offsets
    for member_id, member in before.members.items():
        assert after.members[member_id].assignment == member.assignment
        assert after.members[member_id].session_timeout_ms == member.session_timeout_ms


def test_classic_members_go_on_in_the_next_generation(world: World) -> None:
    consumer, members = mixed(world)
    consumer.leave()
    generation_id = world.group().generation_id
    for _ in range(3):
        for member in members:
            member.step()

    assert world.group().state is GroupState.STABLE
    assert world.group().generation_id == generation_id + 1
    assert sorted(p for member in members for p in member.owned["t"]) == [0, 1, 2, 3]


def test_members_that_do_not_join_again_are_removed_as_in_any_classic_group(world: World) -> None:
    consumer, members = mixed(world)
    consumer.leave()
    for _ in range(0, REBALANCE_TIMEOUT_MS, 1_000):
        world.advance(1_000)
        members[0].step()

    assert world.group().members.keys() == {members[0].member_id}


# ---------------------------------------------------------------- not downgraded


def test_a_group_with_another_consumer_stays(world: World) -> None:
    consumer, _ = mixed(world)
    ConsumerClient(world, "d").join()
    consumer.leave()

    assert group_type(world) is GroupType.CONSUMER
    assert not world.events_of(GroupConverted)


def test_a_group_without_members_stays(world: World) -> None:
    consumer, members = mixed(world)
    world.leave("g", consumer.member_id, *(member.member_id for member in members))

    assert group_type(world) is GroupType.CONSUMER
    assert world.consumer_group().state is GroupState.EMPTY


def test_a_static_consumer_that_leaves_for_a_while_is_still_a_member(world: World) -> None:
    consumer, _ = mixed(world, instance_id="i")
    consumer.leave(for_a_while=True)

    assert group_type(world) is GroupType.CONSUMER


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"group_consumer_migration_policy": MigrationPolicy.UPGRADE},
            "the online downgrade is disabled",
        ),
        ({"group_max_size": 1}, "its group size is greater than classic group max size"),
        ({"max_batch_bytes": 200}, "its members do not fit into the record of a classic group"),
    ],
)
def test_the_policy_and_the_size_have_to_allow_it(
    world: World, settings: dict[str, object], reason: str
) -> None:
    configured(world, **settings)
    consumer, members = mixed(world)
    consumer.leave()

    [refused] = world.events_of(ConversionRefused)
    assert (refused.to_type, refused.reason) == (GroupType.CLASSIC, reason)
    group = world.consumer_group()
    assert group.members.keys() == {member.member_id for member in members}
    for _ in range(4):
        world.advance(500)
        for member in members:
            member.step()
    assert sorted(p for member in members for p in member.owned["t"]) == [0, 1, 2, 3]


def test_classic_members_that_are_left_get_new_partitions(world: World) -> None:
    configured(world, group_consumer_migration_policy=MigrationPolicy.UPGRADE)
    consumer, members = mixed(world)
    consumer.leave()
    world.topics.counts[TopicName("t")] = 5
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    for _ in range(6):
        world.advance(500)
        for member in members:
            member.step()

    assert sorted(p for member in members for p in member.owned["t"]) == [0, 1, 2, 3, 4]
    assert world.consumer_group().state is GroupState.STABLE


def test_the_next_member_that_leaves_asks_again(world: World) -> None:
    configured(world, group_max_size=1)
    consumer, members = mixed(world)
    consumer.leave()
    members[0].leave()

    assert group_type(world) is GroupType.CLASSIC
    assert world.group().members.keys() == {members[1].member_id}


@pytest.mark.parametrize("ids", ["ad", "da"])
def test_an_upgrade_changes_who_leads_after_the_next_downgrade(world: World, ids: str) -> None:
    """Both ids share a place in Kafka's map of members, whose order then depends on the past."""
    consumer = ConsumerClient(world, "c")
    for member_id in (*ids, "c"):
        ConsumerClient(world, member_id).join()
    for member_id in ids:
        world.join(member_id=member_id, protocols=(("range", subscribed("t")),))
    consumer.leave()
    assert world.group().leader_id == ids[1]
    consumer.join()
    consumer.leave()

    assert world.group().leader_id == "a"


# ---------------------------------------------------------------- a static member is replaced


def given_replaced(world: World, **options: object) -> str:
    answer = world.join(
        instance_id="i", **{"protocols": (("range", subscribed("t")),), **options}
    ).joined  # type: ignore[arg-type]
    assert answer.error_code is ErrorCode.NONE
    return answer.member_id


def test_a_classic_member_takes_the_place_of_the_last_consumer(world: World) -> None:
    consumer, members = mixed(world, instance_id="i")
    epoch, target = world.consumer_group().epoch, consumer.owned["t"]
    consumer.leave(for_a_while=True)
    member_id = given_replaced(world)

    group = world.group()
    assert group.state is GroupState.STABLE  # nobody has to join again
    assert group.static_members[GroupInstanceId("i")] == member_id
    synced = world.sync("g", member_id, epoch, instance_id="i").synced
    assert owned_of(synced.assignment) == {"t": target}
    for member in members:
        assert world.beat("g", member.member_id, epoch).error is ErrorCode.NONE


def test_the_only_member_may_be_replaced(world: World) -> None:
    consumer = ConsumerClient(world, "c", instance_id="i")
    consumer.join()
    member_id = given_replaced(world)

    assert world.group().members.keys() == {member_id}
    assert world.group().state is GroupState.STABLE


@pytest.mark.parametrize("member_id", ["b", "c", "d", "e"])
def test_a_member_that_takes_a_place_leads_only_if_it_is_alone(
    world: World, member_id: str
) -> None:
    """Kafka adds it behind the others, wherever its id is in the map of members."""
    consumer, members = mixed(world, classic=1, instance_id="i")
    consumer.leave(for_a_while=True)
    consumer = ConsumerClient(world, member_id, instance_id="i")
    consumer.join()
    given_replaced(world, member_id=member_id)

    assert world.group().members.keys() == {members[0].member_id, member_id}
    assert world.group().leader_id == members[0].member_id


def test_other_topics_make_the_target_stale_and_begin_a_rebalance(world: World) -> None:
    world.given_topics(t=4, u=1)
    consumer, _ = mixed(world, instance_id="i")
    consumer.leave(for_a_while=True)
    given_replaced(world, protocols=(("range", subscribed("t", "u")),))

    assert world.group().state is GroupState.PREPARING_REBALANCE
    [begun] = world.events_of(RebalanceBegun)
    assert begun.reason == "Downgrade group g from consumer to classic with stale assignment."
    assert begun.cause is RebalanceCause.STATIC_MEMBER_CHANGED


def test_a_member_that_is_still_reconciling_begins_a_rebalance(world: World) -> None:
    """Its partition is the target of another one: that one must not read it yet."""
    consumer, members = mixed(world, classic=1, instance_id="i")
    world.topics.counts[TopicName("t")] = 5
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    consumer.beat()  # a new target
    behind = members[0]
    assert behind.generation_id < world.consumer_group().assignment_epoch
    consumer.leave(for_a_while=True)
    given_replaced(world)

    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_the_records_of_the_replacement_end_with_the_group_record(world: World) -> None:
    consumer = ConsumerClient(world, "c", instance_id="i")
    consumer.join()
    member_id = given_replaced(world)

    batch = world.log.batches[-1]
    assert record_type(batch[-1].key) == 2
    assert batch[-1].value is not None
    ended = {record.key for record in batch if record.value is None}
    written = [record for record in batch[:-1] if record.value is not None]
    assert all(record.key in ended for record in written)
    assert any(member_id.encode() in record.key for record in written if record.key is not None)
    world.crash()
    assert world.group().members.keys() == {member_id}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"group_consumer_migration_policy": MigrationPolicy.UPGRADE},
            "the online downgrade is disabled",
        ),
        ({"max_batch_bytes": 100}, "its members do not fit into the record of a classic group"),
    ],
)
def test_both_have_to_allow_it_for_a_replacement_too(
    world: World, settings: dict[str, object], reason: str
) -> None:
    configured(world, **settings)
    consumer = ConsumerClient(world, "c", instance_id="i")
    consumer.join()
    member_id = given_replaced(world)

    [refused] = world.events_of(ConversionRefused)
    assert refused.reason == reason
    group = world.consumer_group()
    assert group.members.keys() == {member_id}
    assert group.members[member_id].metadata.classic is not None  # type: ignore[index]


# ---------------------------------------------------------------- an empty group


def test_an_empty_consumer_group_converts_and_keeps_its_offsets(world: World) -> None:
    consumer = ConsumerClient(world, "c")
    consumer.join()
    world.commit("g", "c", consumer.epoch, offsets={0: 7})
    consumer.leave()
    asked = world.join()

    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    assert world.group().offsets[TopicName("t")][0].committed_offset == 7
    batch = [(record_type(record.key), record.value is None) for record in world.log.batches[-1]]
    assert batch == [(6, True), (4, True), (3, True), (2, False)]


def test_a_member_id_does_not_convert_an_empty_group(world: World) -> None:
    consumer = ConsumerClient(world, "c")
    consumer.join()
    consumer.leave()
    asked = world.join(member_id="c")

    assert (asked.error, asked.joined.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "c")
    assert group_type(world) is GroupType.CONSUMER


def test_other_requests_find_nobody_in_an_empty_consumer_group(world: World) -> None:
    consumer = ConsumerClient(world, "c")
    consumer.join()
    consumer.leave()

    assert world.sync("g", "c", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("g", "c", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("g", "c").left.members[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(world.events_of(ConsumerMemberRemoved)) == 1
