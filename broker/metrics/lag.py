"""Partition lag: in records, in seconds and as a status, for the metrics.

Records: from the committed offset and the high watermark at the moment of the scrape, both read at
one instant (broker/lag/reader.py). Seconds and status: from the last sample (sampler.py),
because they need the times of records and a window of commits; so they are up to
`rollcall.lag.interval.ms` old. No lag is negative; where it is unknown there is no sample.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from broker.lag.reader import LagReader
from coordinator.group_types import AnyGroupView
from history.lag.model import LagStatus
from history.lag.store import LagStore
from protocol.names import TopicName


class ShownLag(NamedTuple):
    """`lag_records` is None where the partition does not exist, or is another one by now."""

    topic: TopicName
    partition: int
    committed_offset: int
    lag_records: int | None
    lag_seconds: float | None = None
    status: LagStatus | None = None


class LagSource(Protocol):
    def groups(self) -> Iterator[Iterable[AnyGroupView]]:
        """All groups, in slices; each slice is read when it is asked for."""

    def of(self, group: AnyGroupView) -> Iterator[ShownLag]:
        """All partitions that the group has committed; the group may change meanwhile."""

    def status(self, group: AnyGroupView) -> LagStatus | None:
        """Of the group as a whole; None before the first sample."""


class SampledLag:
    def __init__(self, reader: LagReader, book: LagStore) -> None:
        self._reader = reader
        self._book = book

    def groups(self) -> Iterator[Iterable[AnyGroupView]]:
        return self._reader.groups()

    def of(self, group: AnyGroupView) -> Iterator[ShownLag]:
        sampled = self._book.groups.get(group.group_id)
        windows = {} if sampled is None else sampled.windows
        for topic, offsets in tuple(group.offsets.items()):
            for reading in self._reader.read(topic, tuple(offsets.items())):
                lag, committed = reading.lag, reading.committed_offset
                assert committed is not None, "of partitions with a commit"
                window = windows.get((topic, reading.partition))
                seconds = status = None
                if lag == 0:
                    seconds = 0.0
                elif lag is not None and window is not None:
                    seconds = window.seconds
                if window is not None:
                    status = window.status
                yield ShownLag(topic, reading.partition, committed, lag, seconds, status)

    def status(self, group: AnyGroupView) -> LagStatus | None:
        sampled = self._book.groups.get(group.group_id)
        return None if sampled is None else sampled.status
