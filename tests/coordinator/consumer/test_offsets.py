"""Committed offsets of consumer groups: who may commit and fetch, what is deleted, what expires."""

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import ConsumerMemberState
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from protocol.names import ErrorCode, GenerationId, MemberId, TopicName
from tests.coordinator.consumer.given import (
    ALICE,
    BOB,
    CLASSIC,
    GROUP,
    Member,
    T,
    append_group,
    group_of,
    world_of,
)
from tests.world import World, kafka_settings

DAY_MS = 24 * 3_600_000
OTHER = TopicName("other")


def two_members() -> World:
    """Alice owns 0 since epoch 3 and 1 since epoch 5, and has to give back 2, hers since 4."""
    return world_of(
        Member(
            ALICE,
            5,
            {0: 3, 1: 5},
            {2: 4},
            state=ConsumerMemberState.UNREVOKED_PARTITIONS,
            instance_id="a",
        ),
        Member(BOB, 5, {3: 3}, classic=CLASSIC),
    )


# ---------------------------------------------------------------- OffsetCommit


@pytest.mark.parametrize(
    ("member_id", "epoch", "partitions", "version", "error_code"),
    [
        (ALICE, 5, (0, 1, 2, 9), 9, ErrorCode.NONE),
        (ALICE, 4, (0, 2), 9, ErrorCode.NONE),  # both were hers in epoch 4 already
        (ALICE, 3, (0,), 9, ErrorCode.NONE),
        (ALICE, 4, (0, 1), 9, ErrorCode.STALE_MEMBER_EPOCH),  # 1 was not hers in epoch 4
        (ALICE, 3, (0, 2), 9, ErrorCode.STALE_MEMBER_EPOCH),
        (ALICE, 4, (0, 3), 9, ErrorCode.STALE_MEMBER_EPOCH),  # 3 is Bob's
        (ALICE, 4, (0, 9), 9, ErrorCode.STALE_MEMBER_EPOCH),  # no member owns 9
        (ALICE, 6, (0,), 9, ErrorCode.STALE_MEMBER_EPOCH),
        (ALICE, -1, (0,), 9, ErrorCode.STALE_MEMBER_EPOCH),
        (ALICE, 5, (0,), 8, ErrorCode.UNSUPPORTED_VERSION),
        (ALICE, 4, (0,), 8, ErrorCode.UNSUPPORTED_VERSION),
        (BOB, 5, (3,), 2, ErrorCode.NONE),
        (BOB, 4, (3,), 2, ErrorCode.NONE),
        (BOB, 2, (3,), 9, ErrorCode.ILLEGAL_GENERATION),
        (BOB, 6, (3,), 9, ErrorCode.ILLEGAL_GENERATION),
        (MemberId("carol"), 5, (0,), 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (MemberId(""), -1, (0,), 9, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_commits_in_its_epoch_or_what_was_its_own_in_an_earlier_one(
    member_id: MemberId,
    epoch: int,
    partitions: tuple[int, ...],
    version: int,
    error_code: ErrorCode,
) -> None:
    world = two_members()
    offsets = dict.fromkeys(partitions, 41)

    asked = world.committing("g", member_id, epoch, offsets=offsets, version=version)

    # The whole request is accepted or refused, whichever partition is the reason.
    assert isinstance(asked.response, OffsetCommitResponse)
    (answered,) = asked.response.topics
    assert {p.error_code for p in answered.partitions} == {error_code}
    kept = group_of(world).offsets.get(T, {})
    assert kept.keys() == ({*partitions} if error_code is ErrorCode.NONE else set())


def test_a_commit_does_not_extend_the_session() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    before = group_of(world).members[ALICE].session_deadline_ms
    world.advance(1_000)

    assert world.commit("g", ALICE, 5) is ErrorCode.NONE
    assert group_of(world).members[ALICE].session_deadline_ms == before


def test_a_partition_whose_metadata_is_too_long_does_not_refuse_the_others() -> None:
    """Kafka looks at the metadata first: partition 1 would be refused for its epoch."""
    world = two_members()
    partitions = [
        OffsetCommitRequestPartition(0, 41),
        OffsetCommitRequestPartition(1, 41, committed_metadata="x" * 5_000),
    ]
    request = OffsetCommitRequest(
        GROUP, GenerationId(4), ALICE, topics=[OffsetCommitRequestTopic(T, partitions=partitions)]
    )

    response = world.ask(request, version=9).response

    assert isinstance(response, OffsetCommitResponse)
    assert [p.error_code for p in response.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ]


def test_a_tool_commits_for_a_group_without_members() -> None:
    world = world_of()

    assert world.commit("g", offsets={0: 41}, version=2) is ErrorCode.NONE
    assert world.commit("g", "anybody", offsets={1: 41}) is ErrorCode.NONE
    assert world.commit("g", "anybody", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    world.crash()
    assert group_of(world).offsets[T].keys() == {0, 1}


# ---------------------------------------------------------------- OffsetFetch


def fetch(world: World, member_id: str | None, epoch: int) -> OffsetFetchResponseGroup:
    wanted = OffsetFetchRequestGroup(
        GROUP,
        None if member_id is None else MemberId(member_id),
        epoch,
        [OffsetFetchRequestTopics(T, partition_indexes=[0])],
    )
    response = world.ask(OffsetFetchRequest(groups=[wanted]), version=9).response
    assert isinstance(response, OffsetFetchResponse)
    (found,) = response.groups
    return found


@pytest.mark.parametrize(
    ("member_id", "epoch", "error_code"),
    [
        (None, -1, ErrorCode.NONE),
        (ALICE, 5, ErrorCode.NONE),
        (ALICE, 4, ErrorCode.STALE_MEMBER_EPOCH),
        (ALICE, 6, ErrorCode.STALE_MEMBER_EPOCH),
        (ALICE, -1, ErrorCode.STALE_MEMBER_EPOCH),
        (BOB, 5, ErrorCode.NONE),
        (BOB, 4, ErrorCode.ILLEGAL_GENERATION),
        ("carol", 5, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 5, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_fetches_in_its_epoch(
    member_id: str | None, epoch: int, error_code: ErrorCode
) -> None:
    world = two_members()
    world.commit("g", ALICE, 5, offsets={0: 41})

    found = fetch(world, member_id, epoch)

    assert found.error_code is error_code
    offsets = [p.committed_offset for topic in found.topics for p in topic.partitions]
    assert offsets == ([41] if error_code is ErrorCode.NONE else [])


def test_a_classic_group_and_an_absent_group_accept_any_member_epoch() -> None:
    world = World()
    assert fetch(world, "carol", 5).error_code is ErrorCode.NONE
    world.commit("g", offsets={0: 41})

    assert fetch(world, "carol", 5).topics[0].partitions[0].committed_offset == 41


# ---------------------------------------------------------------- OffsetDelete, DeleteGroups


def delete_offsets(world: World, topic: TopicName) -> ErrorCode:
    partitions = [OffsetDeleteRequestPartition(0)]
    request = OffsetDeleteRequest(GROUP, [OffsetDeleteRequestTopic(topic, partitions)])
    response = world.ask(request, version=0).response
    assert isinstance(response, OffsetDeleteResponse)
    assert response.error_code is ErrorCode.NONE
    return response.topics[0].partitions[0].error_code


def test_offsets_of_a_subscribed_topic_are_not_deleted() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    world.topics.counts[OTHER] = 1
    world.commit("g", ALICE, 5, offsets={0: 41})
    world.commit("g", ALICE, 5, topic=OTHER, offsets={0: 41})

    assert delete_offsets(world, T) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offsets(world, OTHER) is ErrorCode.NONE
    world.crash()
    assert group_of(world).offsets.keys() == {T}


def delete_group(world: World) -> ErrorCode:
    response = world.ask(DeleteGroupsRequest([GROUP]), version=2).response
    assert isinstance(response, DeleteGroupsResponse)
    return response.results[0].error_code


def test_a_group_with_members_is_not_deleted() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))

    assert delete_group(world) is ErrorCode.NON_EMPTY_GROUP


def test_a_group_without_members_is_deleted_with_its_offsets_and_regular_expressions() -> None:
    world = world_of()
    world.commit("g", offsets={0: 41})

    assert delete_group(world) is ErrorCode.NONE
    assert delete_group(world) is ErrorCode.GROUP_ID_NOT_FOUND
    world.crash()
    assert world.coordinator.group(GROUP) is None


# ---------------------------------------------------------------- expiration, deleted topics


def test_offsets_expire_except_those_of_subscribed_topics() -> None:
    settings = kafka_settings(group_consumer_session_timeout_ms=365 * DAY_MS)
    world = World(settings)
    append_group(world, Member(ALICE, 5, {0: 5}))
    world.crash()
    world.topics.counts[OTHER] = 1
    world.commit("g", ALICE, 5, offsets={0: 41})
    world.commit("g", ALICE, 5, topic=OTHER, offsets={0: 41})

    world.advance(8 * DAY_MS)

    assert group_of(world).offsets.keys() == {T}


def test_a_group_without_members_goes_with_its_last_offset() -> None:
    world = world_of()
    world.commit("g", offsets={0: 41})
    world.advance(6 * DAY_MS)
    assert isinstance(world.coordinator.group(GROUP), ConsumerGroup)

    world.advance(2 * DAY_MS)

    assert world.coordinator.group(GROUP) is None
    world.crash()
    assert world.coordinator.group(GROUP) is None


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    world = world_of(Member(ALICE, 5, {0: 5}))
    world.commit("g", ALICE, 5, offsets={0: 41})
    topic_id = world.topics.topic_id(T)
    assert topic_id is not None

    world.coordinator.topics_deleted([(T, topic_id)], world.now)
    world.advance(1)

    assert group_of(world).offsets == {}
    assert world.forgotten == [topic_id]


def test_offsets_of_a_group_of_tools_stay_when_it_becomes_a_consumer_group() -> None:
    world = World()
    world.commit("g", offsets={0: 41})
    assert isinstance(world.coordinator.group(GROUP), ClassicGroup)

    append_group(world, Member(ALICE, 5, {0: 5}))
    world.crash()

    assert group_of(world).offsets[T][0].committed_offset == 41
