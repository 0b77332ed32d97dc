"""Open partitions: in which partitions is a transaction open, and whose is the oldest?

For the transaction watch and the console. The data plane knows the producers of its partitions, the
group coordinator those of `__consumer_offsets`.
"""

from collections.abc import Iterator

from broker.lag.transaction_watch import OpenPartition
from coordinator.coordinator import GroupCoordinator
from protocol.names import OFFSETS_TOPIC, ProducerId
from topics.partition import NONE_OPEN, NOT_RESTORED, Partition
from topics.registry import TopicRegistry


def open_partitions(
    registry: TopicRegistry, coordinator: GroupCoordinator
) -> Iterator[OpenPartition]:
    """In no order; one that changes at this moment may be missing."""
    for partition in registry.partitions():
        first = partition.first_unstable_offset
        if partition.log is None or first in (NONE_OPEN, NOT_RESTORED):
            continue
        key = partition.topic_partition
        if key.topic == OFFSETS_TOPIC:
            found = _of_offsets(coordinator, key.partition, first)
        else:
            found = _of_data(partition, first)
        if found is not None:
            yield OpenPartition(key, first, partition.log.high_watermark, *found)


def _of_data(partition: Partition, first_offset: int) -> tuple[ProducerId, int] | None:
    producers = partition.producers
    if producers is None:
        return None
    for producer_id, entry in tuple(producers.entries.items()):  # the appender may add to it
        if entry.transaction_first_offset == first_offset:
            return producer_id, entry.epoch
    return None


def _of_offsets(
    coordinator: GroupCoordinator, partition: int, first_offset: int
) -> tuple[ProducerId, int] | None:
    producers = coordinator.transactions.producers(partition) or {}
    for producer_id, known in producers.items():
        if known.first_offset == first_offset:
            return ProducerId(producer_id), known.producer_epoch
    return None
