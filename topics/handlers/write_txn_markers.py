"""WriteTxnMarkers: ends transactions in partitions, as an administrator demands it.

The transaction coordinator of this process does not use the request. `kafka-transactions abort`
does, to end a transaction that no coordinator knows (KIP-664).
Kafka's counterpart: `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from collections.abc import Callable
from functools import partial

from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.names import ErrorCode
from seams.now import Now
from seams.transactions import PartitionErrors, TransactionMarker, TransactionPartitions
from storage.api import TopicPartition


def write_txn_markers(
    request: WriteTxnMarkersRequest,
    partitions: TransactionPartitions,
    now: Now,
    answer: Callable[[WriteTxnMarkersResponse], None],
) -> None:
    """Write them all, then `answer`."""
    results: dict[int, PartitionErrors] = {}

    def written(number: int, errors: PartitionErrors) -> None:
        results[number] = errors
        if len(results) == len(request.markers):
            found = [
                _result(marker, results[number]) for number, marker in enumerate(request.markers)
            ]
            answer(WriteTxnMarkersResponse(found))

    if not request.markers:
        answer(WriteTxnMarkersResponse())
    for number, marker in enumerate(request.markers):
        fault = _fault(marker)
        if fault is not None:
            written(number, dict.fromkeys(_partitions(marker), fault))
            continue
        partitions.write_markers(
            TransactionMarker(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
            ),
            _partitions(marker),
            now,
            partial(written, number),
        )


def _fault(marker: WritableTxnMarker) -> ErrorCode | None:
    """A batch without a producer and its epoch is no marker."""
    if marker.producer_id < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.INVALID_PRODUCER_EPOCH if marker.producer_epoch < 0 else None


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    keys = [
        TopicPartition(topic.name, index)
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    return list(dict.fromkeys(keys))


def _result(marker: WritableTxnMarker, errors: PartitionErrors) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        marker.producer_id,
        [
            WritableTxnMarkerTopicResult(
                topic.name,
                [
                    WritableTxnMarkerPartitionResult(
                        index, errors[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
