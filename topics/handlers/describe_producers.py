"""DescribeProducers: which producers have written to partitions, and their open transactions.

`kafka-transactions find-hanging` compares them with the transactions that the coordinator knows.
The states of partitions that were not used since the start are restored first. Those of the
offsets topic are the group coordinator's: it gives them by a callback.
Kafka's counterparts: `KafkaApis.handleDescribeProducersRequest`,
`ReplicaManager.activeProducerState`.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from protocol.acl_codes import AclOperation
from protocol.messages.describe_producers import (
    DescribedProducer,
    DescribedProducersPartition,
    DescribedProducersTopic,
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from protocol.names import ErrorCode, TopicName
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from seams.topic_names import name_fault
from storage.api import TopicPartition
from topics.api_error import NO_SUCH_TOPIC, TOPIC_REFUSED
from topics.partition import Partition
from topics.producers import ProducerStates
from topics.registry import TopicRegistry
from topics.topic_rights import forbidden_topics

_NO_OFFSET: Final = -1

ProducersOf = Callable[[TopicPartition], Sequence[DescribedProducer] | None]
"""The producers of a partition whose log the data plane does not write; None: it is not loaded."""


def forbidden_producers(
    request: DescribeProducersRequest, token: ReplyToken, authorizer: Authorizer
) -> frozenset[TopicName]:
    names = [topic.name for topic in request.topics if name_fault(topic.name) is None]
    return forbidden_topics(authorizer, token, AclOperation.READ, names)


def described_partitions(
    request: DescribeProducersRequest, registry: TopicRegistry, forbidden: AbstractSet[TopicName]
) -> Sequence[Partition]:
    """Those that must be restored before the answer."""
    found = [
        registry.partition(topic.name, index)
        for topic in request.topics
        if topic.name not in forbidden
        for index in topic.partition_indexes
    ]
    return [partition for partition in dict.fromkeys(found) if partition is not None]


def answer_describe_producers(
    request: DescribeProducersRequest,
    registry: TopicRegistry,
    attached: ProducersOf,
    forbidden: AbstractSet[TopicName],
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribedProducersTopic(
                topic.name,
                [
                    DescribedProducersPartition(index, *TOPIC_REFUSED)
                    if topic.name in forbidden
                    else _describe(registry, topic.name, index, attached)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(
    registry: TopicRegistry, name: TopicName, index: int, attached: ProducersOf
) -> DescribedProducersPartition:
    reason = name_fault(name)
    if reason is not None:
        return DescribedProducersPartition(index, ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    topic = registry.by_name(name)
    if topic is None:
        return DescribedProducersPartition(index, *NO_SUCH_TOPIC)
    partition = registry.partition(name, index)
    if partition is None:
        return DescribedProducersPartition(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    log = partition.usable_log()
    if isinstance(log, ErrorCode):
        return DescribedProducersPartition(index, log)
    if partition.producers is not None:
        return DescribedProducersPartition(index, active_producers=_active(partition.producers))
    if not topic.is_internal:
        return DescribedProducersPartition(index, partition.read_error())
    producers = attached(partition.topic_partition)
    if producers is None:
        return DescribedProducersPartition(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return DescribedProducersPartition(index, active_producers=producers)


def _active(producers: ProducerStates) -> list[DescribedProducer]:
    return [
        DescribedProducer(
            producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            _NO_OFFSET if first_offset is None else first_offset,
        )
        for producer_id, entry in tuple(producers.entries.items())  # the appender adds to them
        for first_offset in (entry.transaction_first_offset,)
    ]
