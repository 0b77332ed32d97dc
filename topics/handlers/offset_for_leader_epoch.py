"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a consumer detects truncation.

Answered in the reader thread, because the end of an earlier epoch is read from the log.
Kafka's counterpart: `ReplicaManager.lastOffsetForLeaderEpoch`.
"""

from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from protocol.names import ErrorCode, TopicName
from storage.api import Corrupt
from topics.leader_epochs import end_of_epoch, epoch_error
from topics.registry import TopicRegistry


def answer_offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, registry: TopicRegistry
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [_answer(topic.topic, asked, registry) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(
    name: TopicName, asked: OffsetForLeaderPartition, registry: TopicRegistry
) -> EpochEndOffset:
    partition = registry.partition(name, asked.partition)
    if partition is None:
        return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked.partition)
    log = partition.usable_log()
    if isinstance(log, ErrorCode):
        return EpochEndOffset(log, asked.partition)
    error_code = epoch_error(log, asked.current_leader_epoch)
    if error_code is not None:
        return EpochEndOffset(error_code, asked.partition)
    try:
        epoch, end_offset = end_of_epoch(log, asked.leader_epoch)
    except (Corrupt, OSError, IndexError):
        return EpochEndOffset(partition.read_error(), asked.partition)
    return EpochEndOffset(ErrorCode.NONE, asked.partition, epoch, end_offset)
