"""DeleteTopics: deletes topics, by name or by id, with their records.

A topic that is named twice, or by both name and id, is refused.
Kafka's counterpart: `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from protocol.names import ZERO_TOPIC_ID, ErrorCode, TopicId, TopicName
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.client_throttle import ClientThrottle
from seams.reply_token import ReplyToken
from topics.admin_queue import Steps
from topics.api_error import (
    DUPLICATE_TOPIC,
    NO_SUCH_TOPIC,
    NO_SUCH_TOPIC_ID,
    OVER_MUTATION_QUOTA,
    TOPIC_REFUSED,
    ApiError,
    disk_error,
    internal_topic_error,
)
from topics.registry import TopicRegistry
from topics.topic import Topic
from topics.topic_rights import NONE_FORBIDDEN, forbidden_topics

FIRST_VERSION_WITH_DISABLED: Final = 3
_STRICT_QUOTA_SINCE: Final = 5

_DONE: Final = ApiError(ErrorCode.NONE)
_NEITHER: Final = ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
_BOTH: Final = ApiError(
    ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
)
_DUPLICATE_ID: Final = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
_SAME_TOPIC: Final = ApiError(
    ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
)


class _Forbidden(NamedTuple):
    """Topics that the client may not see, and topics that it may not delete."""

    describe: frozenset[TopicName] = NONE_FORBIDDEN
    delete: frozenset[TopicName] = NONE_FORBIDDEN


def answer_delete_topics(
    request: DeleteTopicsRequest,
    token: ReplyToken,
    registry: TopicRegistry,
    authorizer: Authorizer,
    throttle: ClientThrottle,
    *,
    enabled: bool,
) -> Steps[DeleteTopicsResponse]:
    """All valid topics are deleted together, with one save of the catalog."""
    if not enabled:
        return _disabled(request, token.api_version)
    deleted: dict[TopicId, Topic] = {}
    results = list(_refused(request, token, registry, authorizer, deleted))
    internal = [topic for topic in deleted.values() if topic.is_internal]
    others = []
    is_strict = token.api_version >= _STRICT_QUOTA_SINCE
    for topic in deleted.values():
        if topic.is_internal:
            continue
        if throttle.may_mutate(token, len(topic.partitions), is_strict=is_strict):
            others.append(topic)
        else:
            results.append(_result(topic.name, topic.topic_id, OVER_MUTATION_QUOTA))
    results += [
        _result(topic.name, topic.topic_id, internal_topic_error(topic.name, "deleted"))
        for topic in internal
    ]
    outcome = _DONE
    try:
        if others:
            yield from registry.delete(
                *others,
                client_id=token.client_id,
                client_host=token.client_host,
                principal=token.named_principal,
            )
    except OSError as fault:
        outcome = disk_error(fault)
    results += [_result(topic.name, topic.topic_id, outcome) for topic in others]
    return DeleteTopicsResponse(responses=results)


def _refused(
    request: DeleteTopicsRequest,
    token: ReplyToken,
    registry: TopicRegistry,
    authorizer: Authorizer,
    deleted: dict[TopicId, Topic],
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
    named = [name for name, times in names.items() if times == 1]
    known = [registry.by_id(topic_id) for topic_id, times in ids.items() if times == 1]
    named += [topic.name for topic in known if topic is not None]
    forbidden = _forbidden(named, token, authorizer)
    for topic_id, times in ids.items():
        topic = registry.by_id(topic_id)
        if times > 1:
            yield _result(None, topic_id, _DUPLICATE_ID)
        elif topic is None:
            yield _result(None, topic_id, NO_SUCH_TOPIC_ID)
        elif topic.name in forbidden.delete:
            is_visible = topic.name not in forbidden.describe
            yield _result(topic.name if is_visible else None, topic_id, TOPIC_REFUSED)
        else:
            deleted[topic_id] = topic
    for name, times in names.items():
        topic = registry.by_name(name)
        if times > 1:
            yield _result(name, ZERO_TOPIC_ID, DUPLICATE_TOPIC)
        elif name in forbidden.describe:
            yield _result(name, ZERO_TOPIC_ID, TOPIC_REFUSED)
        elif topic is None:
            yield _result(name, ZERO_TOPIC_ID, NO_SUCH_TOPIC)
        elif name in forbidden.delete:
            yield _result(name, ZERO_TOPIC_ID, TOPIC_REFUSED)
        elif topic.topic_id in ids:
            deleted.pop(topic.topic_id, None)
            yield _result(name, topic.topic_id, _SAME_TOPIC)
        else:
            deleted[topic.topic_id] = topic


def _forbidden(names: Sequence[TopicName], token: ReplyToken, authorizer: Authorizer) -> _Forbidden:
    """DELETE on the cluster is enough for all of them."""
    if not authorizer.is_enabled or authorizer.allows(
        token, AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=False
    ):
        return _Forbidden()
    return _Forbidden(
        forbidden_topics(authorizer, token, AclOperation.DESCRIBE, names),
        forbidden_topics(authorizer, token, AclOperation.DELETE, names),
    )


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
