"""TxnOffsetCommit: may this producer commit offsets of the group in its transaction?

Route: dispatch -> TransactionalCommits (transactional_commits.py), where the transaction
coordinator is asked first -> Shard.txn_offset_commit -> decide_txn_offset_commit -> records ->
log -> stored -> answer. The offsets are pending until a marker ends the transaction.

As for OffsetCommit: what does not exist or may not be read is refused one by one, then the group's
type has its say on all that is left; its refusal stands on each partition. Kafka's counterpart:
`KafkaApis.handleTxnOffsetCommitRequest`, `OffsetMetadataManager.commitTransactionalOffset`.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from coordinator.events import Event, GroupCreated
from coordinator.group import CommittedOffset
from coordinator.group_view import GroupView
from coordinator.offsets.events import OffsetsOfTopics, OffsetsPending
from coordinator.offsets.offset_commit import (
    NONE_UNREADABLE,
    OF_ANOTHER_EPOCH,
    is_metadata_too_large,
)
from coordinator.outcome import Outcome, Reply
from coordinator.records import add_offset_commits, batch_bytes_at_most
from coordinator.settings import GroupSettings
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from protocol.names import ErrorCode, TopicId, TopicName
from protocol.primitives import echoed
from seams.now import Now
from seams.reply_token import ReplyToken
from seams.topics_view import TopicsView
from storage.api import BatchProducer, Position, RecordPair

_LOADING_SINCE: Final = 2
"""Older producers take COORDINATOR_LOAD_IN_PROGRESS for a fault."""


class ExistingTopic(NamedTuple):
    """What of a request's topic exists."""

    name: TopicName
    topic_id: TopicId
    partitions: Sequence[TxnOffsetCommitRequestPartition]


class TxnOffsetCommit(NamedTuple):
    """A request: what of it exists and may be read, and the answers to the rest."""

    request: TxnOffsetCommitRequest
    known: Sequence[ExistingTopic]
    unknown: Sequence[TxnOffsetCommitResponseTopic]

    @property
    def producer(self) -> BatchProducer:
        return BatchProducer(self.request.producer_id, self.request.producer_epoch)


def txn_offset_commit_of(
    request: TxnOffsetCommitRequest,
    topics: TopicsView,
    unreadable: AbstractSet[TopicName] = NONE_UNREADABLE,
) -> TxnOffsetCommit:
    known: list[ExistingTopic] = []
    unknown: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        if topic.name in unreadable:
            refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            unknown.append(_answers(echoed(topic.name), topic.partitions, refusal))
            continue
        topic_id = topics.topic_id(topic.name)
        count = topics.partition_count(topic.name) or 0
        there = [p for p in topic.partitions if 0 <= p.partition_index < count]
        missing = [p for p in topic.partitions if not 0 <= p.partition_index < count]
        if topic_id is None:
            there, missing = [], list(topic.partitions)
        if there and topic_id is not None:
            known.append(ExistingTopic(topic.name, topic_id, there))
        if missing or topic_id is None:
            unknown.append(
                _answers(echoed(topic.name), missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
    return TxnOffsetCommit(request, known, _merged(unknown))


def decide_txn_offset_commit(
    group: GroupView | None,
    commit: TxnOffsetCommit,
    token: ReplyToken,
    now: Now,
    settings: GroupSettings,
    first_offset: Position,
) -> Outcome:
    """The group's say on what exists. `first_offset` is where its records will be."""
    request = commit.request
    error_code = _refusal(group, commit, settings)
    if error_code is not ErrorCode.NONE:
        events: Sequence[Event] = ()
        if group is not None:
            instance_id = request.group_instance_id
            events = group.commit_refused(request.member_id, instance_id, error_code, now)
        refusal = txn_offset_commit_refusal(commit, token.api_version, error_code)
        return Outcome((Reply(token, refusal),), events)

    answers, offsets = _judge_partitions(commit, now.wall_ms, settings)
    records: list[RecordPair] = []
    for topic, commits in offsets:
        add_offset_commits(
            records, request.group_id, topic, commits, settings.offsets_value_version
        )
    if records and batch_bytes_at_most(records) > settings.max_batch_bytes:
        error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        refusal = txn_offset_commit_refusal(commit, token.api_version, error_code)
        return Outcome((Reply(token, refusal),))
    happened: list[Event] = []
    if group is None:
        # There is no record for this: the pending offsets alone bring it back after a restart.
        happened.append(GroupCreated(request.group_id, now.wall_ms, simple=True))
    if records:
        happened.append(_pending(request, token, now, first_offset, offsets))
    response = TxnOffsetCommitResponse(0, _merged((*commit.unknown, *answers)))
    return Outcome((Reply(token, response),), happened, records, producer=commit.producer)


def txn_offset_commit_refusal(
    commit: TxnOffsetCommit, api_version: int, error_code: ErrorCode
) -> TxnOffsetCommitResponse:
    """An error for all that exists; NONE where nothing does."""
    if error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and api_version < _LOADING_SINCE:
        error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    refused = [_answers(topic.name, topic.partitions, error_code) for topic in commit.known]
    return TxnOffsetCommitResponse(0, _merged((*commit.unknown, *refused)))


def forbid_txn_offset_commit(
    request: TxnOffsetCommitRequest, error_code: ErrorCode
) -> TxnOffsetCommitResponse:
    """To a client without a right on its transactional id, or on the group."""
    topics = [
        _answers(echoed(topic.name), topic.partitions, error_code) for topic in request.topics
    ]
    return TxnOffsetCommitResponse(0, topics)


def refused_txn_commits(
    topics: Sequence[TxnOffsetCommitResponseTopic], error_code: ErrorCode
) -> list[TxnOffsetCommitResponseTopic]:
    """Instead of an answer that was ready; partitions that were refused keep their reason."""
    return [
        TxnOffsetCommitResponseTopic(
            topic.name,
            [
                TxnOffsetCommitResponsePartition(
                    partition.partition_index,
                    error_code if partition.error_code is ErrorCode.NONE else partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


# ---------------------------------------------------------------- what the group says


def _refusal(
    group: GroupView | None, commit: TxnOffsetCommit, settings: GroupSettings
) -> ErrorCode:
    request = commit.request
    generation_id = request.generation_id
    if group is None:
        return ErrorCode.NONE if generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
    error_code = group.validate_txn_offset_commit(
        request.member_id, request.group_instance_id, generation_id
    )
    if error_code in OF_ANOTHER_EPOCH:
        partitions = [
            (topic.topic_id, list(_indexes_to_keep(topic.partitions, settings)))
            for topic in commit.known
        ]
        error_code = group.validate_earlier_commit(request.member_id, generation_id, partitions)
    if error_code is ErrorCode.STALE_MEMBER_EPOCH:
        return ErrorCode.ILLEGAL_GENERATION
    return error_code


def _indexes_to_keep(
    partitions: Iterable[TxnOffsetCommitRequestPartition], settings: GroupSettings
) -> Iterable[int]:
    for partition in partitions:
        if not is_metadata_too_large(partition.committed_metadata, settings):
            yield partition.partition_index


def _judge_partitions(
    commit: TxnOffsetCommit, now_wall_ms: int, settings: GroupSettings
) -> tuple[list[TxnOffsetCommitResponseTopic], OffsetsOfTopics]:
    """The answers, and the offsets to keep: all but those with too much metadata."""
    answers: list[TxnOffsetCommitResponseTopic] = []
    offsets: list[tuple[TopicName, dict[int, CommittedOffset]]] = []
    for name, topic_id, partitions in commit.known:
        commits: dict[int, CommittedOffset] = {}
        verdicts: list[TxnOffsetCommitResponsePartition] = []
        for partition in partitions:
            index = partition.partition_index
            if is_metadata_too_large(partition.committed_metadata, settings):
                refused = ErrorCode.OFFSET_METADATA_TOO_LARGE
                verdicts.append(TxnOffsetCommitResponsePartition(index, refused))
                continue
            verdicts.append(TxnOffsetCommitResponsePartition(index))
            commits[index] = CommittedOffset(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_wall_ms,
                topic_id=topic_id,
            )
        answers.append(TxnOffsetCommitResponseTopic(name, verdicts))
        if commits:
            offsets.append((name, commits))
    return answers, offsets


def _pending(
    request: TxnOffsetCommitRequest,
    token: ReplyToken,
    now: Now,
    first_offset: Position,
    offsets: OffsetsOfTopics,
) -> OffsetsPending:
    return OffsetsPending(
        request.group_id,
        now.wall_ms,
        request.generation_id,
        request.member_id,
        token.client_id,
        token.client_host,
        request.producer_id,
        request.producer_epoch,
        first_offset,
        offsets,
        token.named_principal,
    )


# ---------------------------------------------------------------- the answer


def _answers(
    name: TopicName, partitions: Sequence[TxnOffsetCommitRequestPartition], error_code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name, [TxnOffsetCommitResponsePartition(p.partition_index, error_code) for p in partitions]
    )


def _merged(topics: Iterable[TxnOffsetCommitResponseTopic]) -> list[TxnOffsetCommitResponseTopic]:
    """A topic stands once, where it was named first."""
    merged: dict[TopicName, list[TxnOffsetCommitResponsePartition]] = {}
    for topic in topics:
        merged.setdefault(topic.name, []).extend(topic.partitions)
    return [TxnOffsetCommitResponseTopic(name, answers) for name, answers in merged.items()]
