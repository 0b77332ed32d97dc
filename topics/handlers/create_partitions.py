"""CreatePartitions: increases the number of partitions of topics.

Kafka's counterpart: `ReplicationControlManager.createPartitions`, `ControllerApis`.
"""

from collections import Counter
from typing import Final

from protocol.acl_codes import AclOperation
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from protocol.names import ErrorCode
from seams.authorizer import Authorizer
from seams.client_throttle import ClientThrottle
from seams.reply_token import ReplyToken
from topics.admin_queue import Steps
from topics.api_error import (
    DUPLICATE_TOPIC,
    OVER_MUTATION_QUOTA,
    TOO_MANY_PARTITIONS,
    ApiError,
    disk_error,
    internal_topic_error,
)
from topics.placement import assignment_fault
from topics.registry import TopicRegistry
from topics.settings import MAX_PARTITIONS_PER_REQUEST, TOPIC_PARTITIONS_MAX
from topics.topic_rights import forbidden_topics

_STRICT_QUOTA_SINCE: Final = 3
_DONE: Final = ApiError(ErrorCode.NONE)
_FORBIDDEN: Final = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def answer_create_partitions(
    request: CreatePartitionsRequest,
    token: ReplyToken,
    registry: TopicRegistry,
    authorizer: Authorizer,
    throttle: ClientThrottle,
    node_id: int,
) -> Steps[CreatePartitionsResponse]:
    times = Counter(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(name, *DUPLICATE_TOPIC) for name, n in times.items() if n > 1
    ]
    names = [name for name, n in times.items() if n == 1]
    forbidden = forbidden_topics(authorizer, token, AclOperation.ALTER, names)
    results += [
        CreatePartitionsTopicResult(name, *_FORBIDDEN) for name in names if name in forbidden
    ]
    left = MAX_PARTITIONS_PER_REQUEST
    for requested in request.topics:
        if times[requested.name] == 1 and requested.name not in forbidden:
            error = _fault(requested, registry, node_id, left)
            if error is None:
                additional = requested.count - (registry.partition_count(requested.name) or 0)
                error = yield from _grow(
                    requested, token, registry, throttle, validate_only=request.validate_only
                )
                if error is _DONE:
                    left -= additional
            results.append(CreatePartitionsTopicResult(requested.name, *error))
    return CreatePartitionsResponse(results=results)


def _fault(
    requested: CreatePartitionsTopic, registry: TopicRegistry, node_id: int, most: int
) -> ApiError | None:
    topic = registry.by_name(requested.name)
    if topic is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    fault = _count_fault(requested, len(topic.partitions), most) or _assignments_fault(
        requested, len(topic.partitions), node_id
    )
    if fault is not None:
        return fault
    if topic.is_internal:
        # The offsets topic's count is part of the hash that locates a group.
        return internal_topic_error(topic.name, "given more partitions")
    return None


def _grow(
    requested: CreatePartitionsTopic,
    token: ReplyToken,
    registry: TopicRegistry,
    throttle: ClientThrottle,
    *,
    validate_only: bool,
) -> Steps[ApiError]:
    topic = registry.by_name(requested.name)
    assert topic is not None, "it was checked"
    additional = requested.count - len(topic.partitions)
    is_strict = token.api_version >= _STRICT_QUOTA_SINCE
    if not throttle.may_mutate(token, additional, is_strict=is_strict):
        return OVER_MUTATION_QUOTA
    if validate_only:
        return _DONE
    try:
        yield from registry.add_partitions(topic, requested.count)
    except OSError as error:
        return disk_error(error)
    return _DONE


def _count_fault(requested: CreatePartitionsTopic, present: int, most: int) -> ApiError | None:
    """`most`: how many may be added yet."""
    if requested.count == present:
        text = f"Topic already has {present} partition(s)."
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if requested.count < present:
        text = (
            f"The topic {requested.name} currently has {present} partition(s); "
            f"{requested.count} would not be an increase."
        )
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if requested.count - present > most:
        return TOO_MANY_PARTITIONS
    if requested.count > TOPIC_PARTITIONS_MAX:
        text = f"A topic can have {TOPIC_PARTITIONS_MAX} partitions, not {requested.count}."
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    return None


def _assignments_fault(
    requested: CreatePartitionsTopic, present: int, node_id: int
) -> ApiError | None:
    if requested.assignments is None:
        return None
    additional = requested.count - present
    if len(requested.assignments) != additional:
        text = (
            f"Attempted to add {additional} additional partition(s), "
            f"but only {len(requested.assignments)} assignment(s) were specified."
        )
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    faults = (
        assignment_fault(assignment.broker_ids, node_id) for assignment in requested.assignments
    )
    return next((fault for fault in faults if fault is not None), None)
