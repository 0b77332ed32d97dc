"""How far is a group behind, partition by partition? The only place where the metrics ask.

What a scrape shows of lag comes through `LagReader`, so that who computes it may change.
`CommittedLag` takes the committed offset and the partition's end at one instant, in one process:
unlike a poller's figure it is never negative and never mixes two times.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from coordinator.group import GroupView
from protocol.names import TopicName
from topics.partition import Partition


class PartitionLag(NamedTuple):
    """`lag_records` is None where the partition is not there (any more), or cannot be read."""

    topic: TopicName
    partition: int
    committed_offset: int
    lag_records: int | None
    lag_seconds: float | None = None


class LagReader(Protocol):
    def of(self, group: GroupView) -> Iterator[PartitionLag]:
        """All partitions that the group has committed; the group may change meanwhile."""


class PartitionTable(Protocol):
    def partition(self, topic: str, index: int) -> Partition | None: ...


class CommittedLag:
    """Records between the committed offset and the high watermark."""

    def __init__(self, table: PartitionTable) -> None:
        self._table = table

    def of(self, group: GroupView) -> Iterator[PartitionLag]:
        partition_of = self._table.partition
        for topic, offsets in tuple(group.offsets.items()):
            for index, offset in tuple(offsets.items()):
                committed = offset.committed_offset
                partition = partition_of(topic, index)
                log = None if partition is None else partition.log
                lag = None if log is None else max(log.high_watermark - committed, 0)
                yield PartitionLag(topic, index, committed, lag)
