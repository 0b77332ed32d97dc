"""Describing consumer groups: ListGroups, DescribeGroups and ConsumerGroupDescribe."""

import pytest

from coordinator.consumer.member import ConsumerMemberState
from coordinator.consumer.records import group_epoch_record
from coordinator.many_groups import AnswerBudget
from protocol import answer_budget
from protocol.messages.consumer_group_describe import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedTopicPartitions,
)
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    TopicName,
)
from tests.coordinator.consumer.given import ALICE, BOB, CLASSIC, GROUP, Member, T, world_of
from tests.world import World

ALL_OPERATIONS = 3400  # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS


def describe(
    world: World, *group_ids: str, operations: bool = False, version: int = 1
) -> list[DescribedConsumerGroup]:
    request = ConsumerGroupDescribeRequest([*map(GroupId, group_ids)], operations)
    response = world.ask(request, version=version).response
    assert isinstance(response, ConsumerGroupDescribeResponse)
    return [*response.groups]


def of_t(world: World, *partitions: int) -> DescribedAssignment:
    topic_id = world.topics.topic_id(T)
    assert topic_id is not None
    return DescribedAssignment([DescribedTopicPartitions(topic_id, T, [*partitions])])


def test_a_group_is_described_with_what_its_members_own_and_shall_own() -> None:
    world = world_of(
        Member(
            ALICE,
            4,
            {1: 3, 0: 4},
            {7: 3},
            state=ConsumerMemberState.UNREVOKED_PARTITIONS,
            target=(0, 1),
            instance_id="a",
            assignor="range",
        ),
        Member(BOB, 5, {}, classic=CLASSIC, target=(7,)),
    )

    (group,) = describe(world, "g", operations=True)

    assert group == DescribedConsumerGroup(
        group_id=GROUP,
        group_state="Reconciling",
        group_epoch=5,
        assignment_epoch=5,
        assignor_name="range",
        members=[
            DescribedConsumerMember(
                ALICE,
                GroupInstanceId("a"),
                "north",
                4,
                "client",
                "/10.0.0.1",
                (T,),
                "",
                of_t(world, 0, 1, 7),  # what it is to give back is its own
                of_t(world, 0, 1),
                CONSUMER_MEMBER,
            ),
            DescribedConsumerMember(
                BOB,
                None,
                "north",
                5,
                "client",
                "/10.0.0.1",
                (T,),
                "",
                DescribedAssignment([]),
                of_t(world, 7),
                CLASSIC_MEMBER,
            ),
        ],
        authorized_operations=ALL_OPERATIONS,
    )


@pytest.mark.parametrize(
    ("named", "described"),
    [
        ((None, None, None), "uniform"),
        ((None, "range", None), "range"),
        (("range", "uniform", "uniform"), "uniform"),
        (("range", "range", "uniform"), "range"),
    ],
)
def test_the_assignor_is_the_one_that_most_members_name(
    named: tuple[str | None, ...], described: str
) -> None:
    members = [
        Member(type(ALICE)(f"m-{number}"), 5, {number: 5}, assignor=assignor)
        for number, assignor in enumerate(named)
    ]

    (group,) = describe(world_of(*members), "g")

    assert group.assignor_name == described


def test_a_topic_that_is_gone_is_left_out() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    del world.topics.counts[T]

    (group,) = describe(world, "g")

    assert group.members[0].assignment == DescribedAssignment([])
    assert group.members[0].subscribed_topic_names == (T,)


def test_authorized_operations_are_given_on_request_for_existing_groups() -> None:
    world = world_of()

    assert describe(world, "g")[0].authorized_operations == OPERATIONS_NOT_REQUESTED
    (absent,) = describe(world, "absent", operations=True)
    assert absent.authorized_operations == OPERATIONS_NOT_REQUESTED


def test_groups_that_are_not_there_or_not_of_this_type_are_not_found() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    world.commit("classic")

    found = {group.group_id: group for group in describe(world, "", "absent", "classic", "g")}

    assert found[GroupId("")] == DescribedConsumerGroup(
        ErrorCode.INVALID_GROUP_ID, None, GroupId("")
    )
    assert found[GroupId("absent")] == DescribedConsumerGroup(
        ErrorCode.GROUP_ID_NOT_FOUND, "Group absent not found.", GroupId("absent")
    )
    assert found[GroupId("classic")] == DescribedConsumerGroup(
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group classic is not a consumer group.",
        GroupId("classic"),
    )
    assert found[GROUP].error_code is ErrorCode.NONE


def test_a_coordinator_of_other_partitions_refuses() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    world.coordinator.resign(0, world.now)

    (group,) = describe(world, "g")

    assert group == DescribedConsumerGroup(ErrorCode.NOT_COORDINATOR, None, GROUP)


def test_an_answer_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    monkeypatch.setattr(answer_budget, "ANSWER_BYTES_MAX", 1_000)
    assert AnswerBudget().takes(1_000)

    found = describe(world, *["g"] * 10)

    errors = [group.error_code for group in found]
    assert errors[0] is ErrorCode.NONE
    assert errors[-1] is ErrorCode.INVALID_REQUEST
    assert len(errors) == 10


# ---------------------------------------------------------------- the APIs of all types


def listed(world: World, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
    response = world.ask(ListGroupsRequest(states, types), version=5).response
    assert isinstance(response, ListGroupsResponse)
    return {
        f"{group.group_id} {group.protocol_type} {group.group_state} {group.group_type}"
        for group in response.groups
    }


def test_groups_of_both_types_are_listed_by_type_and_state() -> None:
    world = world_of(Member(ALICE, 4, {0: 4}))
    world.commit("classic")
    ours, other = "g consumer Reconciling consumer", "classic  Empty classic"

    assert listed(world) == {ours, other}
    assert listed(world, types=("CONSUMER",)) == {ours}
    assert listed(world, types=("classic",)) == {other}
    assert listed(world, states=(" reconciling ",)) == {ours}
    assert listed(world, states=("Assigning",)) == set()
    assert listed(world, states=("Empty",), types=("consumer",)) == set()


def test_a_group_that_waits_for_its_target_is_assigning() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    world.log.append([group_epoch_record(GROUP, 6, 0)], world.now.wall_ms)
    world.log.store()
    world.crash()

    assert listed(world, states=("assigning",)) == {"g consumer Assigning consumer"}


@pytest.mark.parametrize("version", [0, 5, 6])
def test_describe_groups_knows_no_consumer_group(version: int) -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))

    response = world.ask(DescribeGroupsRequest([GROUP]), version=version).response

    assert isinstance(response, DescribeGroupsResponse)
    (group,) = response.groups
    assert (group.group_state, group.members) == ("Dead", ())
    if version < 6:
        assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
    else:
        assert group.error_code is ErrorCode.GROUP_ID_NOT_FOUND
        assert group.error_message == "Group g is not a classic group."


def test_names_of_topics_keep_their_order() -> None:
    names = (TopicName("a"), T)

    (group,) = describe(world_of(Member(ALICE, 5, {0: 5}, names=names)), "g")

    assert group.members[0].subscribed_topic_names == names
