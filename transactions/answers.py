"""Answers: the response of each API and version to what was decided about a transactional id.

Clients of older versions do not know PRODUCER_FENCED: they are answered INVALID_PRODUCER_EPOCH, as
by Kafka. An id that came in bytes which are not text may be too long to be repeated.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from protocol.messages.end_txn import EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdResponse
from protocol.names import ApiKey, ErrorCode, ProducerId, TopicName
from protocol.primitives import echoed
from storage.api import TopicPartition
from transactions.metadata import UNKNOWN_EPOCH, UNKNOWN_PRODUCER_ID
from transactions.outcome import TransactionAnswer

_FENCED_SINCE: Final = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""The version from which an API knows PRODUCER_FENCED."""


def known_error(error_code: ErrorCode, api_key: ApiKey, api_version: int) -> ErrorCode:
    """The error as clients of this version know it."""
    if error_code is ErrorCode.PRODUCER_FENCED and api_version < _FENCED_SINCE[api_key]:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error_code


def init_producer_id_response(
    answer: TransactionAnswer, api_version: int
) -> InitProducerIdResponse:
    error_code = known_error(answer.error_code, ApiKey.INIT_PRODUCER_ID, api_version)
    return InitProducerIdResponse(
        error_code=error_code,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def end_txn_response(answer: TransactionAnswer, api_version: int) -> EndTxnResponse:
    error_code = known_error(answer.error_code, ApiKey.END_TXN, api_version)
    return EndTxnResponse(
        error_code=error_code,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def new_producer_id_response(producer_id: ProducerId | None) -> InitProducerIdResponse:
    """To an idempotent producer."""
    if producer_id is None:  # As Kafka answers while it has none: the client asks again.
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            producer_id=UNKNOWN_PRODUCER_ID,
            producer_epoch=UNKNOWN_EPOCH,
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def named_partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    """In the order of the request, each once."""
    named = (TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)
    return list(dict.fromkeys(named))


def topic_results(
    errors: Mapping[TopicPartition, ErrorCode],
) -> list[AddPartitionsToTxnTopicResult]:
    """In the order of `errors`, which is that of the request."""
    results: dict[TopicName, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), error_code in errors.items():
        result = AddPartitionsToTxnPartitionResult(partition, error_code)
        results.setdefault(TopicName(topic), []).append(result)
    return [
        AddPartitionsToTxnTopicResult(echoed(topic), partitions)
        for topic, partitions in results.items()
    ]
