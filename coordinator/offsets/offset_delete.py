"""OffsetDelete: may these committed offsets be forgotten? (KIP-496)

Route: dispatch -> Shard.turn -> decide_offset_delete. The group answers for itself first: it must
exist, and if it has members they must be consumers, whose subscriptions we can read. Then each
topic answers: what the group still subscribes to is kept. What was never committed is forgotten
without an error. Kafka's counterpart: `KafkaApis.handleOffsetDeleteRequest`,
`OffsetMetadataManager.deleteOffsets`, `ClassicGroup.isSubscribedToTopic`.
"""

from collections.abc import Sequence

from coordinator.classic.subscriptions import CONSUMER, is_subscribed
from coordinator.group import CommittedOffset, GroupView
from coordinator.offsets.events import DeletionCause, OffsetsDeleted
from coordinator.outcome import Outcome, Reply
from coordinator.records import add_offset_tombstones
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from protocol.names import ErrorCode, GroupState, TopicName
from protocol.primitives import echoed
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
) -> Outcome:
    error_code = _refusal(group, request)
    if group is None or error_code is not ErrorCode.NONE:
        return Outcome([Reply(token, refuse_offset_delete(error_code))])

    unknown: list[OffsetDeleteResponseTopic] = []
    answers: list[OffsetDeleteResponseTopic] = []
    records: list[RecordPair] = []
    deleted: list[tuple[TopicName, dict[int, CommittedOffset]]] = []
    for topic in request.topics:
        name = topic.name
        known, missing = _split(topic, topics)
        if missing is not None:
            unknown.append(_answer(name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if not known:
            continue
        if is_subscribed(group, name):
            answers.append(_answer(name, known, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            continue
        answers.append(_answer(name, known, ErrorCode.NONE))
        committed = group.offsets.get(name, {})
        gone = {index: committed[index] for index in known if index in committed}
        if gone:
            add_offset_tombstones(records, group.group_id, name, gone)
            deleted.append((name, gone))

    events = []
    if deleted:
        events.append(
            OffsetsDeleted(
                group.group_id,
                now.wall_ms,
                DeletionCause.REQUESTED,
                deleted,
                token.client_id,
                token.client_host,
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
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        return ErrorCode.NON_EMPTY_GROUP  # Its members' metadata is opaque: they may read anything.
    return ErrorCode.NONE


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
