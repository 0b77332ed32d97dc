"""Heartbeat validation: what is invalid in itself, with the words of Kafka and in its order."""

import pytest
from msgspec.structs import replace

from coordinator.consumer.decide.validate_heartbeat import validate_heartbeat
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.names import ErrorCode, GroupId, GroupInstanceId, MemberId, TopicName
from tests.world import World, kafka_settings

JOIN = ConsumerGroupHeartbeatRequest(
    GroupId("g"),
    MemberId("m"),
    0,
    rebalance_timeout_ms=1,
    subscribed_topic_names=[TopicName("t")],
    topic_partitions=[],
)
BEAT = ConsumerGroupHeartbeatRequest(GroupId("g"), MemberId("m"), 7)
ASSIGNORS = ("uniform", "range")
NO_SUBSCRIPTION = (
    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
)


@pytest.mark.parametrize("request_", [JOIN, BEAT, replace(BEAT, member_epoch=-1)])
def test_valid_requests(request_: ConsumerGroupHeartbeatRequest) -> None:
    for version in (0, 1):
        assert validate_heartbeat(request_, version, ASSIGNORS) is None


def test_a_null_name_list_with_an_expression_is_a_subscription() -> None:
    request = replace(JOIN, subscribed_topic_names=None, subscribed_topic_regex="")
    assert validate_heartbeat(request, 1, ASSIGNORS) is None


def test_a_member_of_version_zero_may_join_without_an_id() -> None:
    nameless = replace(JOIN, member_id=MemberId(""))
    assert validate_heartbeat(nameless, 0, ASSIGNORS) is None
    assert validate_heartbeat(nameless, 1, ASSIGNORS) is not None


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (replace(BEAT, member_id=MemberId("")), "MemberId can't be empty."),
        (replace(BEAT, member_id=MemberId(" \t")), "MemberId can't be empty."),
        (replace(BEAT, member_epoch=-1, member_id=MemberId("")), "MemberId can't be empty."),
        (replace(BEAT, group_id=GroupId("")), "GroupId can't be empty."),
        (replace(BEAT, instance_id=GroupInstanceId("")), "InstanceId can't be empty."),
        (replace(BEAT, rack_id=" "), "RackId can't be empty."),
        (
            replace(JOIN, rebalance_timeout_ms=-1),
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (replace(JOIN, topic_partitions=None), "TopicPartitions must be empty when (re-)joining."),
        (
            replace(JOIN, topic_partitions=[HeartbeatTopicPartitions()]),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            replace(JOIN, subscribed_topic_names=None),
            NO_SUBSCRIPTION,
        ),
        (replace(BEAT, member_epoch=-2), "InstanceId can't be null."),
        (replace(BEAT, member_epoch=-3), "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests(request_: ConsumerGroupHeartbeatRequest, text: str) -> None:
    refusal = validate_heartbeat(request_, 1, ASSIGNORS)
    assert refusal is not None
    assert (refusal.error_code, refusal.text) == (ErrorCode.INVALID_REQUEST, text)


def test_the_first_reason_is_given() -> None:
    wrong = replace(BEAT, member_id=MemberId(""), group_id=GroupId(""), server_assignor="x")
    refusal = validate_heartbeat(wrong, 1, ASSIGNORS)
    assert refusal is not None
    assert refusal.text == "MemberId can't be empty."


def test_an_assignor_that_is_not_configured() -> None:
    refusal = validate_heartbeat(replace(BEAT, server_assignor="x"), 1, ASSIGNORS)
    assert refusal is not None
    assert refusal.error_code is ErrorCode.UNSUPPORTED_ASSIGNOR
    text = "ServerAssignor x is not supported. Supported assignors: uniform, range."
    assert refusal.text == text


def test_the_protocol_may_be_turned_off() -> None:
    world = World(kafka_settings(group_coordinator_rebalance_protocols=("classic",)))
    asked = world.heartbeat_consumer("g", "a")
    assert asked.error is ErrorCode.UNSUPPORTED_VERSION
    assert not world.has_group()


def test_what_no_record_could_hold_is_refused() -> None:
    world = World()
    long = "ä" * 20_000  # more than 32,767 bytes of UTF-8
    assert world.heartbeat_consumer("g", long).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.heartbeat_consumer("g", "a", rack_id=long).error is ErrorCode.UNKNOWN_SERVER_ERROR
    asked = world.heartbeat_consumer("g", "a", topics=(long,))
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not world.has_group()


def test_names_that_no_batch_could_hold_are_refused() -> None:
    """The journal would refuse the batch, which ends the shard."""
    world = World()
    names = [f"{number:06}{'x' * 30_000}" for number in range(300)]
    asked = world.heartbeat_consumer("g", "a", topics=names)
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not world.has_group()
    assert world.heartbeat_consumer("g", "a", topics=names[:30]).error is ErrorCode.NONE


def test_a_text_that_repeats_a_long_name_is_cut() -> None:
    name = "x" * 32_767
    answer = World().heartbeat_consumer("g", name, 3).beaten
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    answer = World().heartbeat_consumer("g", "a", assignor=name).beaten
    assert answer.error_message is not None
    assert len(answer.error_message) == 32_767
