"""Producers of coordinator topics: those that DescribeProducers names of `__consumer_offsets`.

Only its partitions have transactional batches. Nobody writes to the other topics of coordinators
with a producer id, so they have no producers.
"""

from collections.abc import Sequence

from coordinator.coordinator import GroupCoordinator
from protocol.messages.describe_producers import DescribedProducer
from protocol.names import OFFSETS_TOPIC, ProducerId
from storage.api import TopicPartition

_NO_OFFSET = -1


def producers_of(
    groups: GroupCoordinator, key: TopicPartition
) -> Sequence[DescribedProducer] | None:
    """None: the partition is not loaded."""
    if key.topic != OFFSETS_TOPIC:
        return ()
    producers = groups.transactions.producers(key.partition)
    if producers is None:
        return None
    return [
        DescribedProducer(
            ProducerId(producer_id),
            known.producer_epoch,
            known.last_sequence,
            known.last_timestamp_ms,
            known.coordinator_epoch,
            _NO_OFFSET if known.first_offset is None else known.first_offset,
        )
        for producer_id, known in producers.items()
    ]
