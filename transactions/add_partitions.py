"""AddPartitionsToTxn: which partitions may be added, and one response for several transactions.

Up to v3 it is a client's request about one transaction, and each topic must be there and writable.
From v4 on it is a broker's request about several, which Kafka sends itself; here it only has to be
understood. Kafka's counterpart: `KafkaApis.handleAddPartitionsToTxnRequest`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
)
from protocol.names import ErrorCode, TopicName, TransactionalId
from protocol.primitives import echoed
from seams.topic_names import is_internal
from seams.topics_view import TopicsView
from storage.api import TopicPartition
from transactions.answers import topic_results

BROKERS_SINCE: Final = 4
"""From this version on only brokers send the request."""


def partition_refusals(
    partitions: Sequence[TopicPartition],
    topics: TopicsView,
    writable: frozenset[TopicName],
    api_version: int,
) -> dict[TopicPartition, ErrorCode] | None:
    """None if all may be added. Otherwise none of them is: each has its own error, or
    OPERATION_NOT_ATTEMPTED."""
    errors = {
        partition: _refusal(partition, topics, writable, api_version) for partition in partitions
    }
    if all(error_code is ErrorCode.NONE for error_code in errors.values()):
        return None
    return {
        partition: ErrorCode.OPERATION_NOT_ATTEMPTED if error_code is ErrorCode.NONE else error_code
        for partition, error_code in errors.items()
    }


def _refusal(
    partition: TopicPartition, topics: TopicsView, writable: frozenset[TopicName], api_version: int
) -> ErrorCode:
    name = TopicName(partition.topic)
    if api_version < BROKERS_SINCE and (name not in writable or is_internal(name)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    count = topics.partition_count(name)
    if count is None or not 0 <= partition.partition < count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


class CombinedResults:
    """The response to a broker's request, once every transaction in it has its results."""

    def __init__(
        self,
        transactional_ids: Sequence[TransactionalId],
        reply: Callable[[AddPartitionsToTxnResponse], None],
    ) -> None:
        self._results = [AddPartitionsToTxnResult(echoed(name)) for name in transactional_ids]
        self._left = len(self._results)
        self._reply = reply
        if not self._left:
            # Kafka differs: it never answers an empty request.
            reply(AddPartitionsToTxnResponse())

    def add(self, index: int, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        self._results[index].topic_results = topic_results(errors)
        self._left -= 1
        if not self._left:
            self._reply(AddPartitionsToTxnResponse(results_by_transaction=self._results))
