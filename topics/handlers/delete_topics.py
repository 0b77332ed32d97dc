"""DeleteTopics: deletes topics, by name or by id, with their records.

A topic that is named twice, or by both name and id, is refused.
Kafka's counterpart: `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicId, TopicName
from seams.reply_token import ReplyToken
from topics.admin_queue import Steps
from topics.api_error import (
    DUPLICATE_TOPIC,
    NO_SUCH_TOPIC,
    NO_SUCH_TOPIC_ID,
    ApiError,
    disk_error,
    internal_topic_error,
)
from topics.registry import Topic, TopicRegistry

FIRST_VERSION_WITH_DISABLED: Final = 3

_DONE: Final = ApiError(ErrorCode.NONE)
_NEITHER: Final = ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
_BOTH: Final = ApiError(
    ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
)
_DUPLICATE_ID: Final = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
_SAME_TOPIC: Final = ApiError(
    ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
)


def answer_delete_topics(
    request: DeleteTopicsRequest, token: ReplyToken, registry: TopicRegistry, *, enabled: bool
) -> Steps[DeleteTopicsResponse]:
    """All valid topics are deleted together, with one save of the catalog."""
    if not enabled:
        return _disabled(request, token.api_version)
    deleted: dict[TopicId, Topic] = {}
    results = list(_refused(request, registry, deleted))
    internal = [topic for topic in deleted.values() if topic.is_internal]
    others = [topic for topic in deleted.values() if not topic.is_internal]
    results += [
        _result(topic.name, topic.topic_id, internal_topic_error(topic.name, "deleted"))
        for topic in internal
    ]
    outcome = _DONE
    try:
        if others:
            yield from registry.delete(
                *others, client_id=token.client_id, client_host=token.client_host
            )
    except OSError as fault:
        outcome = disk_error(fault)
    results += [_result(topic.name, topic.topic_id, outcome) for topic in others]
    return DeleteTopicsResponse(responses=results)


def _refused(
    request: DeleteTopicsRequest, registry: TopicRegistry, deleted: dict[TopicId, Topic]
) -> Iterator[DeletableTopicResult]:
    """The results of refused topics; the others are added to `deleted`."""
    names: Counter[TopicName] = Counter(request.topic_names)
    ids: Counter[TopicId] = Counter()
    for requested in request.topics:
        if requested.name is None and requested.topic_id == ZERO_TOPIC_ID:
            yield _result(None, ZERO_TOPIC_ID, _NEITHER)
        elif requested.name is None:
            ids[requested.topic_id] += 1
        elif requested.topic_id == ZERO_TOPIC_ID:
            names[requested.name] += 1
        else:
            yield _result(requested.name, requested.topic_id, _BOTH)
    for topic_id, times in ids.items():
        topic = registry.by_id(topic_id)
        if times > 1:
            yield _result(None, topic_id, _DUPLICATE_ID)
        elif topic is None:
            yield _result(None, topic_id, NO_SUCH_TOPIC_ID)
        else:
            deleted[topic_id] = topic
    for name, times in names.items():
        topic = registry.by_name(name)
        if times > 1:
            yield _result(name, ZERO_TOPIC_ID, DUPLICATE_TOPIC)
        elif topic is None:
            yield _result(name, ZERO_TOPIC_ID, NO_SUCH_TOPIC)
        elif topic.topic_id in ids:
            deleted.pop(topic.topic_id, None)
            yield _result(name, topic.topic_id, _SAME_TOPIC)
        else:
            deleted[topic.topic_id] = topic


def _disabled(request: DeleteTopicsRequest, api_version: int) -> DeleteTopicsResponse:
    error_code = ErrorCode.TOPIC_DELETION_DISABLED
    if api_version < FIRST_VERSION_WITH_DISABLED:
        error_code = ErrorCode.INVALID_REQUEST
    results = [DeletableTopicResult(name, error_code=error_code) for name in request.topic_names]
    results += [
        DeletableTopicResult(requested.name, requested.topic_id, error_code)
        for requested in request.topics
    ]
    return DeleteTopicsResponse(responses=results)


def _result(name: TopicName | None, topic_id: TopicId, error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(name, topic_id, error.error_code, error.message)
