"""Heartbeat validation: is a ConsumerGroupHeartbeat request valid in itself?

Asked before the group is looked for. Kafka's counterpart:
`GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid`.
"""

from collections.abc import Iterable
from typing import Final

from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.refusal import Refusal
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupHeartbeatRequest,
)
from protocol.names import ErrorCode
from seams.reply_token import ReplyToken

_OWN_MEMBER_IDS_SINCE: Final = 1
_NOT_GIVEN: Final = -1
_TRIMMED: Final = "".join(map(chr, range(0x21)))  # what Java's `String.trim` removes


def forbid_heartbeat(
    request: ConsumerGroupHeartbeatRequest, token: ReplyToken, context: ConsumerContext
) -> ErrorCode:
    """What is refused before anything else. Kafka: `KafkaApis.handleConsumerGroupHeartbeat`."""
    if not context.settings.is_consumer_protocol_enabled:
        return ErrorCode.UNSUPPORTED_VERSION
    if not context.authorizer.is_enabled:
        return ErrorCode.NONE
    if not context.authorizer.may_read_group(token, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    names = request.subscribed_topic_names
    if names and len(context.authorizer.describable_topics(token, names)) < len(set(names)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def validate_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Iterable[str]
) -> Refusal | None:
    """The first reason to refuse, in Kafka's order."""
    text = _empty_string(request, api_version) or _wrong_for_epoch(request)
    if text is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, text)
    wanted = request.server_assignor
    if wanted is not None and wanted not in assignors:
        known = ", ".join(assignors)
        text = f"ServerAssignor {wanted} is not supported. Supported assignors: {known}."
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    return None


def _empty_string(request: ConsumerGroupHeartbeatRequest, api_version: int) -> str | None:
    """A string that is there but blank."""
    epoch = request.member_epoch
    must_have_id = api_version >= _OWN_MEMBER_IDS_SINCE or epoch > 0 or epoch == LEAVE_EPOCH
    if must_have_id and _is_empty(request.member_id):
        return "MemberId can't be empty."
    if _is_empty(request.group_id):
        return "GroupId can't be empty."
    if _is_empty(request.instance_id):
        return "InstanceId can't be empty."
    if _is_empty(request.rack_id):
        return "RackId can't be empty."
    return None


def _is_empty(text: str | None) -> bool:
    return text is not None and not text.strip(_TRIMMED)


def _wrong_for_epoch(request: ConsumerGroupHeartbeatRequest) -> str | None:
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == _NOT_GIVEN:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
                " (re-)joining."
            )
    if epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    if epoch < LEAVE_STATIC_EPOCH:
        return "MemberEpoch is invalid."
    return None
