"""Contained failures: an unwritable id or a bug in a decision fails its own request only."""

from typing import Final

import pytest

from coordinator.classic.decide.describe_group import describe_group
from coordinator.classic.group_view import ClassicGroupView
from coordinator.decision_failed import AnswerPending
from protocol.codec import encode_response
from protocol.messages import Request
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest
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
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.sync_group import SyncGroupRequest
from protocol.names import ErrorCode, GroupId, GroupInstanceId, GroupState, MemberId, TopicName
from tests.coordinator.test_coordinator import EVERY_REQUEST, G, error_of
from tests.world import Asked, World, kafka_settings

DECISIONS: dict[type[Request], str] = {
    HeartbeatRequest: "coordinator.shard.judge_heartbeat",
    JoinGroupRequest: "coordinator.shard.decide_turn",
    SyncGroupRequest: "coordinator.shard.decide_turn",
    LeaveGroupRequest: "coordinator.shard.decide_turn",
    OffsetCommitRequest: "coordinator.shard.decide_offset_commit",
    OffsetDeleteRequest: "coordinator.offset_turns.decide_offset_delete",
    OffsetFetchRequest: "coordinator.offset_turns.fetch_offsets_of_group",
    ListGroupsRequest: "coordinator.shard.list_groups",
    DescribeGroupsRequest: "coordinator.describe_groups.describe_group",
    DeleteGroupsRequest: "coordinator.offset_turns.decide_delete_group",
}


@pytest.mark.pure
@pytest.mark.parametrize("name", EVERY_REQUEST)
def test_a_bug_in_a_decision_fails_its_request_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    request, version = EVERY_REQUEST[name]
    decision = DECISIONS[type(request)]
    group = world.given_stable_group("h", members=1)
    world.given_stable_group(members=1)
    with monkeypatch.context() as patched:
        patched.setattr(decision, planted)
        with pytest.raises(ZeroDivisionError, match="planted"):
            world.ask(request, version=version)
    asked = Asked(request, world.tokens[-1])
    assert error_of(asked) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.heartbeat(group, group.leader_id) is ErrorCode.NONE
    world.check()


def test_parts_that_wait_for_the_disk_are_answered_beside_one_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another answer meanwhile would have failed the partition that gives its part."""
    world = World(kafka_settings(offsets_topic_num_partitions=2))
    by_partition = {world.coordinator.partition_for(GroupId(name)): name for name in "abcdef"}
    failing, waiting = GroupId(by_partition[0]), GroupId(by_partition[1])
    for group_id in (failing, waiting):
        world.commit(group_id)
    world.storing = False
    world.committing(waiting)

    def describe(
        group: ClassicGroupView | None, group_id: GroupId, *rest: int, **more: object
    ) -> object:
        if group_id == failing:
            planted()
        return describe_group(group, group_id, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr("coordinator.describe_groups.describe_group", describe)
        with pytest.raises(AnswerPending, match="planted"):
            world.ask(DescribeGroupsRequest([failing, waiting]), version=6)
    asked = world.tokens[-1]
    assert asked.answers == []
    world.store()
    (answer,) = asked.answers
    assert isinstance(answer, DescribeGroupsResponse)
    assert {group.group_id: group.error_code for group in answer.groups} == {
        failing: ErrorCode.UNKNOWN_SERVER_ERROR,
        waiting: ErrorCode.NONE,
    }


@pytest.mark.pure
def test_a_bug_in_the_refusal_of_a_commit_fails_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was changed: the shard goes on."""
    world = World(kafka_settings(groups_max=1))
    group = world.given_stable_group(members=1)
    for full in (False, True):  # one group too many; no room in the log
        world.log.full = full
        with monkeypatch.context() as patched:
            patched.setattr("coordinator.refusals.refuse_offset_commit", planted)
            with pytest.raises(ZeroDivisionError, match="planted"):
                world.committing("another")
        assert world.heartbeat(group, group.leader_id) is ErrorCode.NONE
    world.check()


@pytest.mark.pure
def test_a_shard_that_ended_is_loaded_again_even_if_its_request_cannot_be_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []
    world.coordinator._shard_failed = lambda partition, _: failed.append(partition)
    with monkeypatch.context() as patched:
        patched.setattr(world.log, "append", planted)
        patched.setattr("coordinator.refusals.refuse_offset_commit", planted)
        with pytest.raises(ZeroDivisionError, match="planted"):
            world.committing("g")
    assert failed == [0]


def planted(*_: object, **__: object) -> None:
    raise ZeroDivisionError("planted")


LONG: Final = "\ufffd" * 11_000
"""What 11,000 bytes that are no UTF-8 become: 33,000 bytes, more than a string can have."""


def test_what_no_record_can_hold_is_refused_before_the_turn(world: World) -> None:
    group = world.given_stable_group(members=1)
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.join(LONG, version=5).error is failed
    assert world.join("g", client_id="c" * 32_740).error is failed
    assert world.join("g", client_id="c" * 32_740, version=3).error is failed
    assert world.join("g", client_id=LONG, member_id="m").error is failed
    assert world.join("g", instance_id="i" * 32_740).error is failed
    assert world.join("g", instance_id=LONG, member_id="m").error is failed
    assert world.join("g", protocol_type=LONG).error is failed
    assert world.join("g", protocols=[(LONG, b"")]).error is failed
    assert world.join("g", member_id=LONG).error is failed
    assert world.commit(LONG) is failed
    assert world.join("g", client_id="c" * 32_730).error is ErrorCode.MEMBER_ID_REQUIRED
    world.check()
    assert world.heartbeat(group, group.leader_id) is ErrorCode.NONE
    assert not world.has_group(LONG)


def test_what_cannot_be_echoed_is_cut_off_and_refused(world: World) -> None:
    """And the group that is called as the rest of it is left alone."""
    cut = "\ufffd" * 10_922
    world.given_stable_group(cut, members=1)
    asked = [
        (DescribeGroupsRequest([GroupId(LONG), G]), 6),
        (DescribeGroupsRequest([GroupId("g" * 32_767)]), 6),
        (DeleteGroupsRequest([GroupId(LONG)]), 2),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GroupId(LONG), None)]), 9),
        (FindCoordinatorRequest(coordinator_keys=[LONG]), 4),
        (LeaveGroupRequest(G, members=[MemberIdentity(MemberId(LONG), GroupInstanceId(LONG))]), 5),
        (
            OffsetDeleteRequest(
                GroupId("h"),
                [OffsetDeleteRequestTopic(TopicName(LONG), [OffsetDeleteRequestPartition(0)])],
            ),
            0,
        ),
    ]
    world.commit("h")
    for request, version in asked:
        response = world.ask(request, version=version).response
        encode_response(request.API_KEY, version, 1, response)
    assert world.commit("h", topic=LONG) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.group(cut).state is GroupState.STABLE


@pytest.mark.parametrize("value_version", [3, 4])
def test_metadata_that_no_record_can_hold_is_too_large_whatever_the_limit(
    value_version: int,
) -> None:
    world = World(
        kafka_settings(offset_metadata_max_bytes=40_000, offsets_value_version=value_version)
    )
    for metadata, expected in (
        ("m" * 32_767, ErrorCode.NONE),
        ("\ufffd" * 10_922, ErrorCode.NONE),
        (LONG, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ):
        partition = OffsetCommitRequestPartition(0, 1, -1, metadata)
        request = OffsetCommitRequest(
            G, topics=[OffsetCommitRequestTopic(TopicName("t"), partitions=[partition])]
        )
        answer = world.ask(request, version=8).response
        assert isinstance(answer, OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code is expected
    world.crash()
    assert world.group("g").offsets[TopicName("t")][0].metadata == "\ufffd" * 10_922


@pytest.mark.timeout(60)  # it takes a second, or minutes
def test_a_topic_that_a_request_names_over_and_over_is_answered_in_one_pass(world: World) -> None:
    """Where each naming copied all before it, such a request of one megabyte took a minute."""
    times = 150_000
    world.commit("g")
    unknown = TopicName("unknown")
    partition = OffsetDeleteRequestPartition(0)
    topics = [OffsetDeleteRequestTopic(unknown, [partition])] * times
    deleted = world.ask(OffsetDeleteRequest(G, topics), version=0).response
    assert isinstance(deleted, OffsetDeleteResponse)
    assert [len(topic.partitions) for topic in deleted.topics] == [times]

    commit_topic = OffsetCommitRequestTopic(unknown, partitions=[OffsetCommitRequestPartition(0)])
    commit = OffsetCommitRequest(G, topics=[commit_topic] * times)
    committed = world.ask(commit, version=8).response
    assert isinstance(committed, OffsetCommitResponse)
    assert [len(topic.partitions) for topic in committed.topics] == [times]
