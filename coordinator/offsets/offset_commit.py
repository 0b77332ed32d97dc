"""OffsetCommit: may this client move the group's offsets, and which of them are kept?

Route: dispatch -> Shard.offset_commit -> decide_offset_commit -> records -> log -> stored ->
answer. Two layers of refusal, as in Kafka. Topics and partitions that do not exist are refused one
by one, before the group is asked, and so are topics that the client may not read; if nothing is
left, it is not asked at all. Then the group, by
the rules of its type, accepts or refuses all that is left (`GroupView.validate_offset_commit`);
single partitions whose metadata is too long are refused too. There is no error for the whole
request, so the group's refusal stands on each partition that reached it.

With heartbeats the most frequent request: one where all topics are known takes a short way.
Kafka's counterpart: `KafkaApis.handleOffsetCommitRequest`, `OffsetMetadataManager.commitOffset`.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from coordinator.events import Event, GroupCreated
from coordinator.group import CommittedOffset
from coordinator.group_view import GroupView
from coordinator.offsets.events import OffsetsCommitted, OffsetsOfTopics
from coordinator.outcome import Outcome, Reply
from coordinator.records import add_offset_commits, batch_bytes_at_most
from coordinator.settings import GroupSettings
from protocol.compiled_codec import function_in_c
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.names import ErrorCode, GenerationId, TopicId, TopicName
from protocol.primitives import echoed, fits_string
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView
from storage.api import RecordPair

_TOPIC_IDS_SINCE: Final = 10
_GROUP_ID_NOT_FOUND_SINCE: Final = 9

OF_ANOTHER_EPOCH: Final = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH)

KnownTopic = tuple[TopicName, TopicId, Sequence[OffsetCommitRequestPartition]]
"""What of a request's topic exists: the name, the id, and the existing partitions."""

Accepted = tuple[list[OffsetCommitResponsePartition], Mapping[int, CommittedOffset]]
"""Of one topic: the answer to each of its partitions, and the offsets to keep."""

NONE_UNREADABLE: Final[frozenset[TopicName]] = frozenset()

RETENTION_NOT_GIVEN: Final = -1
NO_EXPIRY: Final = -1

# The answer "stored" is the same for partition 0 of every topic, and so on; nobody writes to it.
_KEPT: Final = 1_024
STORED: Final = tuple(OffsetCommitResponsePartition(n) for n in range(_KEPT))

_SURELY_FIT: Final = 20
"""So many records, each with the longest strings there can be, fit into any batch."""


def decide_offset_commit(
    group: GroupView | None,
    request: OffsetCommitRequest,
    token: ReplyToken,
    now: Now,
    settings: GroupSettings,
    topics: TopicsView,
    authorizer: Authorizer = ALLOW_ALL,
) -> Outcome:
    """Keep what may be kept; a commit by a member in its generation also extends its session."""
    unreadable = unreadable_commits(request, token, topics, authorizer)
    if not unreadable:
        all_known = _all_known(request, token.api_version, topics)
        if all_known:
            return _commit(group, request, all_known, [], token, now, settings)
    known, refused = _split(request, token.api_version, topics, unreadable)
    if known:
        return _commit(group, request, known, refused, token, now, settings)
    return Outcome((Reply(token, OffsetCommitResponse(0, refused)),))


def refuse_offset_commit(
    request: OffsetCommitRequest,
    api_version: int,
    topics: TopicsView,
    error_code: ErrorCode,
    unreadable: AbstractSet[TopicName] = NONE_UNREADABLE,
) -> OffsetCommitResponse:
    """The answer of a coordinator that cannot look at the group: loading, not ours, shut down.

    What does not exist is still named as such, and what the client may not read; only the rest
    gets the coordinator's error.
    """
    known, refused = _split(request, api_version, topics, unreadable)
    answers = _all_refused(known, error_code)
    if refused:
        answers = _merge(refused, answers, api_version)
    return OffsetCommitResponse(0, answers)


def forbid_offset_commit(
    request: OffsetCommitRequest, error_code: ErrorCode
) -> OffsetCommitResponse:
    """The answer to a client without a right on the group: nothing else is looked at."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                echoed(topic.name),
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(p.partition_index, error_code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def unreadable_commits(
    request: OffsetCommitRequest, token: ReplyToken, topics: TopicsView, authorizer: Authorizer
) -> frozenset[TopicName]:
    """The names of the request's topics that the client may not read. An unknown id has none."""
    if not authorizer.is_enabled:
        return NONE_UNREADABLE
    if token.api_version < _TOPIC_IDS_SINCE:
        return authorizer.unreadable_topics(token, [topic.name for topic in request.topics])
    names = [topics.topic_name(topic.topic_id) for topic in request.topics]
    return authorizer.unreadable_topics(token, [name for name in names if name is not None])


# ---------------------------------------------------------------- what exists


def _all_known(
    request: OffsetCommitRequest, api_version: int, topics: TopicsView
) -> list[KnownTopic] | None:
    """The request's topics if nothing in it is unknown, as in nearly every request; else None."""
    known: list[KnownTopic] = []
    for topic in request.topics:
        name: TopicName | None
        topic_id: TopicId | None
        if api_version < _TOPIC_IDS_SINCE:
            name = topic.name
            topic_id = topics.topic_id(name)
        else:
            topic_id = topic.topic_id
            name = topics.topic_name(topic_id)
        if name is None or topic_id is None:
            return None
        count = topics.partition_count(name)
        partitions = topic.partitions
        if count is None or not partitions:
            return None
        there = None if _ARE_THERE_IN_C is None else _ARE_THERE_IN_C(partitions, count)
        if there is None:
            there = are_there_in_python(partitions, count)
        if not there:
            return None
        known.append((name, topic_id, partitions))
    return known


def are_there_in_python(partitions: Sequence[OffsetCommitRequestPartition], count: int) -> bool:
    """Whether a topic of so many partitions has all of these: the oracle of the function in C."""
    return all(0 <= partition.partition_index < count for partition in partitions)


_ARE_THERE_IN_C: Final = function_in_c("are_there")


def _split(
    request: OffsetCommitRequest,
    api_version: int,
    topics: TopicsView,
    unreadable: AbstractSet[TopicName],
) -> tuple[list[KnownTopic], list[OffsetCommitResponseTopic]]:
    """What exists and may be read, and the answers to what does or may not.

    A known topic of which no partition is left, or none was named, is in neither.
    """
    known: list[KnownTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        name: TopicName | None = topic.name
        topic_id: TopicId | None = topic.topic_id
        refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if api_version >= _TOPIC_IDS_SINCE:
            name = topics.topic_name(topic.topic_id)
            refusal = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic_id = topics.topic_id(topic.name)
        if name in unreadable:
            refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if name is None or topic_id is None or name in unreadable:
            answers = [
                OffsetCommitResponsePartition(partition.partition_index, refusal)
                for partition in topic.partitions
            ]
            refused.append(OffsetCommitResponseTopic(echoed(topic.name), topic.topic_id, answers))
            continue
        count = topics.partition_count(name) or 0
        there = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if there:
            known.append((name, topic_id, there))
        answers = [
            OffsetCommitResponsePartition(
                partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for partition in topic.partitions
            if not 0 <= partition.partition_index < count
        ]
        if answers:
            refused.append(OffsetCommitResponseTopic(name, topic_id, answers))
    return known, _merge((), refused, api_version)


def _merge(
    first: Sequence[OffsetCommitResponseTopic],
    then: Sequence[OffsetCommitResponseTopic],
    api_version: int,
) -> list[OffsetCommitResponseTopic]:
    """One list of topics out of two: what does not exist comes first, and a topic stands once."""
    merged: dict[TopicId | TopicName, OffsetCommitResponseTopic] = {}
    partitions_by_key: dict[TopicId | TopicName, list[OffsetCommitResponsePartition]] = {}
    for topic in (*first, *then):  # a request may name a topic a hundred thousand times
        key = topic.topic_id if api_version >= _TOPIC_IDS_SINCE else topic.name
        if key not in merged:
            partitions_by_key[key] = [*topic.partitions]
            merged[key] = OffsetCommitResponseTopic(
                topic.name, topic.topic_id, partitions_by_key[key]
            )
        else:
            partitions_by_key[key].extend(topic.partitions)
    return list(merged.values())


# ---------------------------------------------------------------- what the group says


def _commit(
    group: GroupView | None,
    request: OffsetCommitRequest,
    known: list[KnownTopic],
    refused: list[OffsetCommitResponseTopic],
    token: ReplyToken,
    now: Now,
    settings: GroupSettings,
) -> Outcome:
    """The group's say on what exists; its answers stand behind those that are `refused` already."""
    member_id, instance_id = request.member_id, request.group_instance_id
    generation_id, api_version = request.generation_id_or_member_epoch, token.api_version
    if group is None:
        error_code = _refusal_without_group(generation_id, api_version)
    else:
        error_code = group.validate_offset_commit(
            member_id, instance_id, generation_id, api_version
        )
    events: Sequence[Event] = ()
    if error_code is not ErrorCode.NONE:
        if group is not None and error_code in OF_ANOTHER_EPOCH:
            partitions = _partitions_to_keep(known, settings)
            error_code = group.validate_earlier_commit(member_id, generation_id, partitions)
        if error_code is not ErrorCode.NONE:
            if group is not None:
                events = group.commit_refused(member_id, instance_id, error_code, now)
            return _answer(token, refused, _all_refused(known, error_code), events)

    answers, offsets = _judge_partitions(request, known, now.wall_ms, settings)
    records: list[RecordPair] = []
    for topic, commits in offsets:
        add_offset_commits(
            records, request.group_id, topic, commits, settings.offsets_value_version
        )
    if group is not None:
        events = group.commit_accepted(member_id, now)
    if len(records) > _SURELY_FIT and batch_bytes_at_most(records) > settings.max_batch_bytes:
        # Kafka fails to append such a batch, and takes back all but the session's extension.
        answers = _all_refused(known, ErrorCode.UNKNOWN_SERVER_ERROR)
        return _answer(token, refused, answers, events)

    if group is None:
        # There is no record for this: the offsets alone bring a simple group back after a restart.
        events = (GroupCreated(request.group_id, now.wall_ms, simple=True),)
    if records:
        events = (*events, _committed(group, request, token, now, offsets))
    return _answer(token, refused, answers, events, records)


def _partitions_to_keep(
    known: list[KnownTopic], settings: GroupSettings
) -> list[tuple[TopicId, list[int]]]:
    """Kafka asks the group about no partition that it refuses for its metadata."""
    return [
        (
            topic_id,
            [
                partition.partition_index
                for partition in partitions
                if not is_metadata_too_large(partition.committed_metadata, settings)
            ],
        )
        for _, topic_id, partitions in known
    ]


def is_metadata_too_large(metadata: str | None, settings: GroupSettings) -> bool:
    if not metadata:
        return False
    too_long = _java_length_exceeds(metadata, settings.offset_metadata_max_bytes)
    return too_long or not fits_string(metadata)


def _refusal_without_group(generation_id: GenerationId, api_version: int) -> ErrorCode:
    """A simple consumer's first commit creates its group; a member's group must exist."""
    if generation_id < 0:
        return ErrorCode.NONE
    if api_version >= _GROUP_ID_NOT_FOUND_SINCE:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


# ---------------------------------------------------------------- partition by partition


def _judge_partitions(
    request: OffsetCommitRequest,
    known: list[KnownTopic],
    now_wall_ms: int,
    settings: GroupSettings,
) -> tuple[list[OffsetCommitResponseTopic], OffsetsOfTopics]:
    """The answers, and the offsets to keep: all but those with too much metadata."""
    metadata_max = settings.offset_metadata_max_bytes
    expire_at_ms = _expiry(request.retention_time_ms, now_wall_ms)
    answers: list[OffsetCommitResponseTopic] = []
    offsets: list[tuple[TopicName, Mapping[int, CommittedOffset]]] = []
    for name, topic_id, partitions in known:
        accepted: Accepted | None = None
        if _ACCEPT_IN_C is not None:
            accepted = _ACCEPT_IN_C(
                partitions, STORED, metadata_max, now_wall_ms, expire_at_ms, topic_id
            )
        if accepted is None:
            accepted = accept_in_python(partitions, settings, now_wall_ms, expire_at_ms, topic_id)
        verdicts, commits = accepted
        answers.append(OffsetCommitResponseTopic(name, topic_id, verdicts))
        if commits:
            offsets.append((name, commits))
    return answers, offsets


def accept_in_python(
    partitions: Sequence[OffsetCommitRequestPartition],
    settings: GroupSettings,
    committed_at_ms: int,
    expire_at_ms: int,
    topic_id: TopicId,
) -> Accepted:
    """One topic's partitions: the oracle of the function in C."""
    verdicts: list[OffsetCommitResponsePartition] = []
    commits: dict[int, CommittedOffset] = {}
    for partition in partitions:
        index = partition.partition_index
        metadata = partition.committed_metadata
        if metadata and is_metadata_too_large(metadata, settings):
            verdicts.append(
                OffsetCommitResponsePartition(index, ErrorCode.OFFSET_METADATA_TOO_LARGE)
            )
            continue
        verdicts.append(STORED[index] if index < _KEPT else OffsetCommitResponsePartition(index))
        commits[index] = CommittedOffset(
            partition.committed_offset,
            partition.committed_leader_epoch,
            metadata or "",
            committed_at_ms,
            expire_at_ms,
            topic_id,
        )
    return verdicts, commits


_ACCEPT_IN_C: Final = function_in_c("accept_commits")


def _expiry(retention_time_ms: int, now_wall_ms: int) -> int:
    """When offsets expire whose client named a retention (v2-v4); the sum wraps as Java's does."""
    if retention_time_ms == RETENTION_NOT_GIVEN:
        return NO_EXPIRY
    return ((now_wall_ms + retention_time_ms + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _java_length_exceeds(text: str, limit: int) -> bool:
    """Is it longer than so many UTF-16 units? That is what Kafka counts, not bytes."""
    length = len(text)
    if 2 * length <= limit:
        return False
    return length > limit or length + sum(char > "\uffff" for char in text) > limit


def _committed(
    group: GroupView | None,
    request: OffsetCommitRequest,
    token: ReplyToken,
    now: Now,
    offsets: OffsetsOfTopics,
) -> OffsetsCommitted:
    generation_id = request.generation_id_or_member_epoch
    replaced: OffsetsOfTopics = ()
    if generation_id < 0 and group is not None:
        replaced = replaced_offsets(group.offsets, offsets)
    return OffsetsCommitted(
        request.group_id,
        now.wall_ms,
        generation_id,
        request.member_id,
        token.client_id,
        token.client_host,
        offsets,
        replaced,
        principal=token.named_principal if generation_id < 0 else None,
    )


def replaced_offsets(
    kept: Mapping[TopicName, Mapping[int, CommittedOffset]], offsets: OffsetsOfTopics
) -> OffsetsOfTopics:
    """What the partitions' offsets were before this commit."""
    replaced: list[tuple[TopicName, dict[int, CommittedOffset]]] = []
    for topic, commits in offsets:
        partitions = kept.get(topic)
        if partitions:
            before = {index: partitions[index] for index in commits if index in partitions}
            if before:
                replaced.append((topic, before))
    return replaced


# ---------------------------------------------------------------- the answer


def _all_refused(known: list[KnownTopic], error_code: ErrorCode) -> list[OffsetCommitResponseTopic]:
    return [
        OffsetCommitResponseTopic(
            name,
            topic_id,
            [OffsetCommitResponsePartition(p.partition_index, error_code) for p in partitions],
        )
        for name, topic_id, partitions in known
    ]


def _answer(
    token: ReplyToken,
    refused: list[OffsetCommitResponseTopic],
    answers: list[OffsetCommitResponseTopic],
    events: Sequence[Event],
    records: Sequence[RecordPair] = (),
) -> Outcome:
    if refused:
        answers = _merge(refused, answers, token.api_version)
    return Outcome((Reply(token, OffsetCommitResponse(0, answers)),), events, records)
