"""Upgrade: a consumer group heartbeat at a classic group, in each of its states."""

from collections.abc import Mapping, Sequence

import pytest

from coordinator.consumer.assignors.assignor import Assignment, AssignorFailed, AssignorInput
from coordinator.consumer.member import ClassicMetadata, ConsumerMemberState
from coordinator.events import ConversionRefused, GroupConverted
from coordinator.group import GroupType
from coordinator.records import record_type
from coordinator.settings import MigrationPolicy
from protocol.names import ErrorCode, GroupId, GroupState, MemberId, TopicName
from tests.coordinator.consumer.test_target_assignment import LaterRunner
from tests.coordinator.migration.conftest import assigned, given_classic_group, subscribed
from tests.world import SESSION_TIMEOUT_MS, Asked, World, kafka_settings

TOMBSTONE = "-"
OF_CLASSIC_GROUP = "2"


def restarted(world: World, **settings: object) -> World:
    world.settings = kafka_settings(**settings)
    world.start(world.logs)
    return world


def kinds(world: World, batch: int = -1) -> Sequence[str]:
    """The record types of a batch, with a "-" for tombstones."""
    return [
        f"{record_type(record.key)}{TOMBSTONE if record.value is None else ''}"
        for record in world.log.batches[batch]
    ]


def join(world: World, **options: object) -> Asked:
    return world.heartbeat_consumer(member_id="new", **options)  # type: ignore[arg-type]


def group_type(world: World) -> GroupType:
    group = world.coordinator.group(GroupId("g"))
    assert group is not None
    return group.group_type


# ---------------------------------------------------------------- a group without members


def test_an_empty_group_converts_and_keeps_its_offsets(world: World) -> None:
    world.commit("g", offsets={0: 7})
    answer = join(world).beaten

    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
    assert world.consumer_group().offsets[TopicName("t")][0].committed_offset == 7
    assert kinds(world) == ["2-", "5", "3", "7", "6", "8"]
    [converted] = world.events_of(GroupConverted)
    assert (converted.from_type, converted.to_type) == (GroupType.CLASSIC, GroupType.CONSUMER)


def test_an_empty_group_converts_whatever_the_policy_is(world: World) -> None:
    restarted(world, group_consumer_migration_policy=MigrationPolicy.DISABLED)
    world.commit("g", offsets={0: 7})

    assert join(world).error is ErrorCode.NONE
    assert group_type(world) is GroupType.CONSUMER


def test_a_group_whose_members_have_left_converts(world: World) -> None:
    [only] = given_classic_group(world, assigned(partitions=[0]))
    world.leave("g", only.member_id)

    assert join(world).beaten.member_epoch == 2  # of a new group, not of the old generations


def test_an_id_that_was_handed_out_may_join_the_converted_group(world: World) -> None:
    member_id = world.join().joined.member_id
    join(world)
    world.advance(1_000)

    assert world.join(member_id=member_id, protocols=(("range", subscribed("t")),)).error is (
        ErrorCode.NONE
    )


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_only_a_member_that_joins_converts_a_group(world: World, epoch: int) -> None:
    world.commit("g", offsets={0: 7})
    answer = join(world, epoch=epoch, instance_id="i" if epoch == -2 else None).beaten

    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g is not a consumer group."
    assert group_type(world) is GroupType.CLASSIC


def test_a_refused_join_converts_nothing(world: World) -> None:
    world.commit("g", offsets={0: 7})
    answer = join(world, regex="[").beaten

    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group_type(world) is GroupType.CLASSIC
    assert not world.events_of(GroupConverted)


# ---------------------------------------------------------------- a group with members


def test_the_conversion_and_the_join_are_one_batch_in_kafkas_order(world: World) -> None:
    given_classic_group(world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3]))
    join(world)

    conversion = ["2-", "5", "5", "3", "7", "7", "6", "8", "8"]
    assert kinds(world)[: len(conversion)] == conversion
    assert kinds(world)[len(conversion) :] == ["5", "3", "7", "7", "6", "8"]


def test_members_stay_members_in_the_epoch_of_their_generation(world: World) -> None:
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3])
    )
    join(world)

    group = world.consumer_group()
    assert (group.epoch, group.assignment_epoch) == (2, 2)
    member = group.members[first.member_id]
    offered = (("range", subscribed("t")),)
    assert member.metadata.classic == ClassicMetadata(SESSION_TIMEOUT_MS, offered)
    assert member.metadata.subscribed_topic_names == ("t",)
    assert member.current.member_epoch == member.current.previous_member_epoch == 1
    assert member.current.state is ConsumerMemberState.STABLE
    assert member.current.assigned == {world.topics.id_of("t"): {0: 1, 1: 1}}
    assert group.members[second.member_id].current.assigned == {
        world.topics.id_of("t"): {2: 1, 3: 1}
    }


def test_the_same_group_is_there_after_a_crash(world: World) -> None:
    given_classic_group(world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3]))
    world.commit("g", offsets={0: 7})
    join(world)
    before = world.consumer_group()
    world.crash()
    after = world.consumer_group()

    assert after.epoch == before.epoch
    assert after.offsets == before.offsets
    for member_id, member in before.members.items():
        assert after.members[member_id].metadata == member.metadata
        assert after.members[member_id].current == member.current
    assert after.targets == before.targets


def test_racks_come_from_the_subscriptions(world: World) -> None:
    [only] = given_classic_group(
        world,
        assigned(partitions=[0]),
        protocols=(("range", subscribed("t", rack_id="east")),),
    )
    join(world)

    assert world.consumer_group().members[only.member_id].metadata.rack_id == "east"


def test_topics_that_do_not_exist_are_left_out(world: World) -> None:
    [only] = given_classic_group(world, assigned("gone", [0]))
    join(world)

    assert world.consumer_group().members[only.member_id].current.assigned == {}


def test_a_partition_that_was_assigned_twice_has_one_owner(world: World) -> None:
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[1, 2])
    )
    join(world)

    topic_id = world.topics.id_of("t")
    members = world.consumer_group().members
    assert members[first.member_id].current.assigned == {topic_id: {0: 1, 1: 1}}
    assert members[second.member_id].current.assigned == {topic_id: {2: 1}}
    targets = [target[topic_id] for target in world.consumer_group().targets.values() if target]
    assert sorted(partition for target in targets for partition in target) == [0, 1, 2, 3]


@pytest.mark.parametrize("topics", [["t"], ["t", "u"]], ids=["homogeneous", "heterogeneous"])
def test_a_topic_that_was_created_again_with_fewer_partitions_can_be_upgraded(
    world: World, topics: list[str]
) -> None:
    world.given_topics(t=4, u=4)
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3])
    )
    world.topics.counts[TopicName("t")] = 1  # an assignment names its topics, and not their ids
    asked = join(world, topics=topics)

    assert asked.error is ErrorCode.NONE
    topic_id = world.topics.id_of("t")
    members = world.consumer_group().members
    assert members[first.member_id].current.assigned == {topic_id: {0: 1}}
    assert members[second.member_id].current.assigned == {}
    targets = world.consumer_group().targets.values()
    assert [target[topic_id] for target in targets if topic_id in target] == [frozenset({0})]


def test_classic_members_keep_their_own_session_timeout(world: World) -> None:
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3])
    )
    join(world)
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.beat("g", first.member_id, 1)
    world.advance(1)

    assert world.consumer_group().members.keys() == {first.member_id, "new"}
    assert world.beat("g", second.member_id, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_upgrades_in_its_place(world: World) -> None:
    answers = world.given_joined(instances=["a", "b"], protocols=(("range", subscribed("t")),))
    by_member = {a.member_id: assigned(partitions=[n]) for n, a in enumerate(answers)}
    for answer in reversed(answers):
        leads = answer.leader == answer.member_id
        world.sync("g", answer.member_id, 1, assignments=by_member if leads else None)
    old = world.group().static_members["a"]  # type: ignore[index]
    join(world, instance_id="a")

    group = world.consumer_group()
    assert group.static_members["a"] == "new"  # type: ignore[index]
    assert old not in group.members
    assert group.members[MemberId("new")].metadata.classic is None


# ---------------------------------------------------------------- in the middle of a rebalance


def test_parked_joins_are_sent_back(world: World) -> None:
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3])
    )
    parked = world.join(member_id=first.member_id, protocols=(("range", subscribed("t")),))
    assert parked.waits
    join(world)

    assert parked.joined.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert parked.joined.member_id == first.member_id
    assert world.beat("g", second.member_id, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_parked_syncs_are_sent_back(world: World) -> None:
    leader, follower = world.given_joined(protocols=(("range", subscribed("t")),))
    parked = world.sync("g", follower.member_id, 1)
    join(world)

    assert parked.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.sync("g", leader.member_id, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    again = world.join(member_id=leader.member_id, protocols=(("range", subscribed("t")),))
    assert (again.error, again.joined.generation_id) == (ErrorCode.NONE, 2)


def test_assignments_that_are_being_stored_do_not_apply_any_more(world: World) -> None:
    world.storing = False
    asked = [world.join(version=3, protocols=(("range", subscribed("t")),)) for _ in range(2)]
    world.advance(world.settings.group_initial_rebalance_delay_ms)
    world.advance(world.settings.group_initial_rebalance_delay_ms)
    world.store()
    leader = next(a.joined for a in asked if a.joined.leader == a.joined.member_id)
    synced = world.sync(
        "g", leader.member_id, 1, assignments={leader.member_id: assigned(partitions=[0])}
    )
    joined = join(world)
    world.store()

    assert synced.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert joined.error is ErrorCode.NONE
    assert world.consumer_group().members[leader.member_id].current.assigned == {}


def test_a_group_before_its_first_generation_converts(world: World) -> None:
    parked = world.join(version=3, protocols=(("range", subscribed("t")),))
    join(world)

    assert parked.error is ErrorCode.REBALANCE_IN_PROGRESS
    member_id = parked.joined.member_id
    again = world.join(member_id=member_id, protocols=(("range", subscribed("t")),))
    assert again.joined.generation_id == world.consumer_group().epoch


def test_partitions_that_a_cooperative_member_has_not_given_back_stay_its_own(world: World) -> None:
    """It learns of its assignment later than the coordinator, and still reads the others."""
    offered = (("cooperative-sticky", subscribed("t", owned={"t": [0, 1, 2, 3]})),)
    [only] = world.given_joined(members=1, protocols=offered)
    world.sync(
        "g",
        only.member_id,
        1,
        assignments={only.member_id: assigned(partitions=[0])},
        protocol_name="cooperative-sticky",
    )
    answer = join(world).beaten

    assert answer.assignment is not None
    assert not answer.assignment.topic_partitions
    world.join(member_id=only.member_id, protocols=(("cooperative-sticky", subscribed("t")),))
    answer = world.heartbeat_consumer(member_id="new", epoch=answer.member_epoch, owned={}).beaten
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions


def test_partitions_that_do_not_exist_are_nobodys(world: World) -> None:
    offered = (("cooperative-sticky", subscribed("t", owned={"t": [0, 4, -1], "gone": [0]})),)
    [only] = world.given_joined(members=1, protocols=offered)
    join(world)

    member = world.consumer_group().members[only.member_id]
    assert member.current.assigned == {world.topics.id_of("t"): {0: 1}}


def test_members_whose_session_has_lapsed_are_removed_first(world: World) -> None:
    restarted(world, forgive_slow_member=True)
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3])
    )
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.beat("g", first.member_id, 1)
    world.advance(1)
    assert second.member_id in world.group().members  # lapsed, and forgiven so far
    join(world)

    assert world.consumer_group().members.keys() == {first.member_id, "new"}


# ---------------------------------------------------------------- refused


def refusal(world: World) -> str:
    answer = join(world).beaten
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group_type(world) is GroupType.CLASSIC
    assert world.group().state is GroupState.STABLE
    [refused] = world.events_of(ConversionRefused)
    assert answer.error_message == (
        f"Cannot upgrade classic group g to consumer group because {refused.reason}."
    )
    return refused.reason


@pytest.mark.parametrize("policy", [MigrationPolicy.DOWNGRADE, MigrationPolicy.DISABLED])
def test_the_policy_has_to_allow_it(world: World, policy: MigrationPolicy) -> None:
    restarted(world, group_consumer_migration_policy=policy)
    given_classic_group(world, assigned(partitions=[0]))

    assert refusal(world) == "online upgrade is disabled"


def test_a_group_of_another_protocol_type_is_not_upgraded(world: World) -> None:
    world.given_stable_group(protocol_type="connect")

    assert refusal(world) == "the group does not use the consumer embedded protocol"


def test_a_group_above_the_size_of_consumer_groups_is_not_upgraded(world: World) -> None:
    restarted(world, group_consumer_max_size=1)
    given_classic_group(world, assigned(partitions=[0]), assigned(partitions=[1]))

    assert refusal(world) == "the group size exceeds the consumer group maximum size"


def test_a_full_group_refuses_the_member_and_stays_classic(world: World) -> None:
    restarted(world, group_consumer_max_size=2)
    given_classic_group(world, assigned(partitions=[0]), assigned(partitions=[1]))

    assert join(world).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert group_type(world) is GroupType.CLASSIC


@pytest.mark.parametrize("assignment", [b"x", b"\xff\xff", b"\0\1\0\0"])
def test_an_assignment_that_cannot_be_read_is_not_upgraded(world: World, assignment: bytes) -> None:
    given_classic_group(world, assignment)

    assert refusal(world) == "the embedded consumer protocol is malformed"


def test_a_custom_assignor_is_not_upgraded(world: World) -> None:
    given_classic_group(world, assigned(partitions=[0], user_data=b"mine"))

    assert refusal(world).startswith("an unsupported custom assignor is in use. Please refer to")


def test_metadata_that_no_record_could_hold_is_not_upgraded(world: World) -> None:
    """The record of a classic group has one protocol of a member, that of its own has all."""
    restarted(world, max_batch_bytes=1_000)
    given_classic_group(world, assigned(partitions=[0]), assigned(partitions=[1]))
    offered = tuple((name, subscribed("t", "x" * 390)) for name in ("range", "b", "c"))
    world.join(version=3, protocols=offered)

    answer = join(world).beaten
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    [refused] = world.events_of(ConversionRefused)
    assert refused.reason == "the protocols of a member do not fit into a record"


class Fails:
    """An assignor that always refuses."""

    name = "uniform"

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        raise AssignorFailed("it is broken")


def test_an_assignor_that_fails_refuses_the_join_alone(world: World) -> None:
    """Also if members have lapsed: the heartbeat is not the first turn of its chain then."""
    world.assignors["uniform"] = Fails()
    restarted(world, forgive_slow_member=True)
    first, second = given_classic_group(
        world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3])
    )
    world.advance(SESSION_TIMEOUT_MS - 1)
    world.beat("g", first.member_id, 1)
    world.advance(1)
    assert second.member_id in world.group().lapsed_member_ids
    asked = join(world)

    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert group_type(world) is GroupType.CLASSIC
    [refused] = world.events_of(ConversionRefused)
    assert refused.reason == "it is broken"


def test_the_state_that_librdkafka_copies_into_assignments_is_no_custom_assignor(
    world: World,
) -> None:
    given_classic_group(
        world, assigned(partitions=[0], user_data=b"state"), protocol_name="cooperative-sticky"
    )

    assert join(world).error is ErrorCode.NONE


# ---------------------------------------------------------------- assignments made outside of turns


def offloading(world: World) -> LaterRunner:
    runner = world.assignment_runner = LaterRunner(world)
    restarted(world, assignor_inline_max=0, group_consumer_assignment_interval_ms=0)
    return runner


def test_the_target_of_an_upgrade_may_be_made_outside_of_the_turn(world: World) -> None:
    runner = offloading(world)
    given_classic_group(world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3]))
    join(world)
    assert world.consumer_group().assignment_epoch == 1
    runner.run()

    assert world.consumer_group().assignment_epoch == 2


def test_a_target_that_comes_after_the_downgrade_is_dropped(world: World) -> None:
    runner = offloading(world)
    given_classic_group(world, assigned(partitions=[0, 1]), assigned(partitions=[2, 3]))
    join(world)
    world.heartbeat_consumer(member_id="new", epoch=-1)
    runner.run()

    assert group_type(world) is GroupType.CLASSIC
    assert world.group().generation_id == 2
