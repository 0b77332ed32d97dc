"""OffsetDelete: may these committed offsets be forgotten? (KIP-496)

Route: dispatch -> Shard.offset_delete -> decide_offset_delete. First the group's type may refuse
(`GroupView.validate_offset_delete`): a classic group with members must be one of consumers, whose
subscriptions can be read. Then topics are refused one by one that the client may not read, or that
the group subscribes to. Offsets that were never committed are deleted without an error.
Kafka's counterpart: `KafkaApis.handleOffsetDeleteRequest`,
`OffsetMetadataManager.deleteOffsets`, `Group.isSubscribedToTopic`.
"""

from collections.abc import Sequence

from coordinator.events import Event
from coordinator.group import CommittedOffset
from coordinator.group_view import GroupView
from coordinator.offsets.events import DeletionCause, OffsetsDeleted, PendingOffsetsDeleted
from coordinator.offsets.pending_offsets import NOTHING_PENDING, PendingOfTopics
from coordinator.outcome import Outcome, Reply
from coordinator.records import add_offset_tombstones
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from protocol.names import ErrorCode, TopicName
from protocol.primitives import echoed
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView
from storage.api import RecordPair


def decide_offset_delete(
    group: GroupView | None,
    request: OffsetDeleteRequest,
    token: ReplyToken,
    now: Now,
    topics: TopicsView,
    pending: PendingOfTopics = NOTHING_PENDING,
    authorizer: Authorizer = ALLOW_ALL,
) -> Outcome:
    """Pending offsets are deleted like committed ones."""
    error_code = _refusal(group, request)
    if group is None or error_code is not ErrorCode.NONE:
        return Outcome([Reply(token, refuse_offset_delete(error_code))])

    unreadable = authorizer.unreadable_topics(token, (topic.name for topic in request.topics))
    unknown: list[OffsetDeleteResponseTopic] = []
    answers: list[OffsetDeleteResponseTopic] = []
    records: list[RecordPair] = []
    deleted: list[tuple[TopicName, dict[int, CommittedOffset]]] = []
    uncommitted: list[tuple[TopicName, list[int]]] = []
    for topic in request.topics:
        name = topic.name
        if name in unreadable:
            named = [partition.partition_index for partition in topic.partitions]
            unknown.append(_answer(name, named, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        known, missing = _split(topic, topics)
        if missing is not None:
            unknown.append(_answer(name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if not known:
            continue
        if group.is_subscribed_to(name):
            answers.append(_answer(name, known, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            continue
        answers.append(_answer(name, known, ErrorCode.NONE))
        committed = group.offsets.get(name, {})
        gone = {index: committed[index] for index in known if index in committed}
        if gone:
            add_offset_tombstones(records, group.group_id, name, gone)
            deleted.append((name, gone))
        if name in pending:
            alone = [index for index in dict.fromkeys(known) if index in pending[name]]
            alone = [index for index in alone if index not in committed]
            if alone:
                add_offset_tombstones(records, group.group_id, name, alone)
                uncommitted.append((name, alone))

    events: list[Event] = []
    if uncommitted:
        cause = DeletionCause.REQUESTED
        events.append(PendingOffsetsDeleted(group.group_id, now.wall_ms, cause, uncommitted))
    if deleted:
        events.append(
            OffsetsDeleted(
                group.group_id,
                now.wall_ms,
                DeletionCause.REQUESTED,
                deleted,
                token.client_id,
                token.client_host,
                token.named_principal,
            )
        )
    response = OffsetDeleteResponse(topics=_merge(unknown, answers))
    return Outcome([Reply(token, response)], events, records)


def refuse_offset_delete(error_code: ErrorCode) -> OffsetDeleteResponse:
    """An error for the whole request; no topic is mentioned then."""
    return OffsetDeleteResponse(error_code)


def _refusal(group: GroupView | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    return ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.validate_offset_delete()


def _split(
    topic: OffsetDeleteRequestTopic, topics: TopicsView
) -> tuple[list[int], list[int] | None]:
    """The partitions that exist, and those that do not; None when nothing is amiss."""
    named = [partition.partition_index for partition in topic.partitions]
    count = topics.partition_count(topic.name)
    if count is None:
        return [], named
    known = [index for index in named if 0 <= index < count]
    missing = [index for index in named if not 0 <= index < count]
    return known, missing or None


def _answer(
    name: TopicName, partitions: Sequence[int], error_code: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        echoed(name), [OffsetDeleteResponsePartition(index, error_code) for index in partitions]
    )


def _merge(
    unknown: list[OffsetDeleteResponseTopic], answers: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    """What does not exist comes first; a topic of which some partitions do stands once."""
    if not unknown:
        return answers
    merged: dict[TopicName, list[OffsetDeleteResponsePartition]] = {}
    for topic in (*unknown, *answers):  # a request may name a topic a hundred thousand times
        merged.setdefault(topic.name, []).extend(topic.partitions)
    return [OffsetDeleteResponseTopic(name, merged[name]) for name in merged]
