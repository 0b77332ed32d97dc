"""ListOffsets: the offset of a timestamp, the first offset, or the next one.

Negative timestamps are special queries, each since its version. For a consumer, records at or after
the high watermark do not exist yet; for a read_committed one, those at or after the last stable
offset. Queries that need a log to be read are answered in the reader
thread. Kafka's counterpart: `ReplicaManager.fetchOffset`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.names import ErrorCode, TopicName
from storage.api import Corrupt, TopicLog
from topics.handlers.fetch import ISOLATION_LEVELS
from topics.leader_epochs import epoch_at, epoch_error, retry_while_start_moves
from topics.partition import NO_STABLE_OFFSET, READ_COMMITTED, Partition
from topics.registry import TopicRegistry

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

FIRST_VERSION: Final[Mapping[int, int]] = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_EPOCHS: Final = 4
_CONSUMER: Final = -1
_NONE: Final = -1


def reads_nothing(request: ListOffsetsRequest) -> bool:
    """Whether no log must be read. Most requests are for the end offset alone."""
    return all(
        partition.timestamp in (LATEST, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
        for topic in request.topics
        for partition in topic.partitions
    )


def committed_partitions(
    request: ListOffsetsRequest, registry: TopicRegistry, forbidden: AbstractSet[TopicName]
) -> Sequence[Partition]:
    """Those whose last stable offset is asked for."""
    if request.isolation_level != READ_COMMITTED:
        return ()
    found = [
        registry.partition(topic.name, asked.partition_index)
        for topic in request.topics
        if topic.name not in forbidden
        for asked in topic.partitions
    ]
    return [partition for partition in dict.fromkeys(found) if partition is not None]


def answer_list_offsets(
    request: ListOffsetsRequest,
    api_version: int,
    registry: TopicRegistry,
    forbidden: AbstractSet[TopicName],
) -> ListOffsetsResponse:
    requested = Counter(
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    topics: dict[TopicName, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        for partition in topic.partitions:
            index = partition.partition_index
            if topic.name in forbidden:
                answers[index] = _refused(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif requested[topic.name, index] > 1:
                answers[index] = _refused(index, ErrorCode.INVALID_REQUEST)
            else:
                answers[index] = _answer(request, topic.name, partition, api_version, registry)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name, list(answers.values()))
            for name, answers in topics.items()
        ]
    )


def _answer(
    request: ListOffsetsRequest,
    name: TopicName,
    requested: ListOffsetsPartition,
    api_version: int,
    registry: TopicRegistry,
) -> ListOffsetsPartitionResponse:
    index, timestamp = requested.partition_index, requested.timestamp
    if timestamp < 0 and api_version < FIRST_VERSION.get(timestamp, api_version + 1):
        return _refused(index, ErrorCode.UNSUPPORTED_VERSION)
    partition = registry.partition(name, index)
    if partition is None:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    log = partition.usable_log()
    if isinstance(log, ErrorCode):
        return _refused(index, log)
    error_code = epoch_error(log, requested.current_leader_epoch)
    if error_code is None and request.isolation_level not in ISOLATION_LEVELS:
        error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    if error_code is not None:
        return _refused(index, error_code)
    # Only a consumer is limited to the high watermark; debugging clients see the log's end.
    end = log.high_watermark if request.replica_id == _CONSUMER else log.log_end_offset
    if request.replica_id == _CONSUMER and request.isolation_level == READ_COMMITTED:
        end = partition.last_stable_offset(end)
        if end == NO_STABLE_OFFSET:
            return _refused(index, partition.read_error())
    try:
        found = retry_while_start_moves(log, lambda: _find(log, timestamp, end))
    except (Corrupt, OSError, IndexError):
        return _refused(index, partition.read_error())
    if found is None:
        return ListOffsetsPartitionResponse(index)
    found_timestamp, offset, epoch = found
    if api_version < FIRST_VERSION_WITH_EPOCHS:
        epoch = _NONE
    return ListOffsetsPartitionResponse(index, ErrorCode.NONE, found_timestamp, offset, epoch)


def _find(log: TopicLog, timestamp: int, end: int) -> tuple[int, int, int] | None:
    """(timestamp, offset, leader epoch); None if there is no such record."""
    if timestamp == LATEST:
        return _NONE, end, log.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        epoch = epoch_at(log, start) if start < log.high_watermark else log.leader_epoch
        return _NONE, start, epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None  # there is no tiered storage
    found = (
        log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    )
    if found is None or found[1] >= end:
        return None
    return found[0], found[1], epoch_at(log, found[1])


def _refused(index: int, error_code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(index, error_code)
