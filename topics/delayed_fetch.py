"""Delayed fetch: a Fetch that waits until enough bytes can be read.

It is checked again whenever one of its partitions gained records, lost its first ones, or was
deleted. It compares two values of each partition's count of written bytes: when it was parked, and
now. With read_committed only bytes below the last stable offset count: a marker wakes it, data of
an open transaction does not. `Purgatory` watches it and expires it.
Kafka's counterpart: `DelayedFetch`.
"""

from collections.abc import Hashable
from typing import NamedTuple

from msgspec import Struct

from seams.reply_token import ReplyToken
from topics.fetch_session import FetchContext
from topics.partition import Partition


class FetchPartitionStatus(NamedTuple):
    """One partition of a delayed fetch, as it was when the fetch was parked."""

    partition: Partition
    readable_bytes: int
    written_bytes: int  # that it may read, with its isolation level
    max_bytes: int
    fetch_offset: int
    stable_offset: int

    @property
    def has_failed(self) -> bool:
        """Whether the answer is an error by now, so that waiting is over."""
        partition = self.partition
        if partition.deleted or partition.offline or partition.log is None:
            return True
        return self.fetch_offset < partition.log.log_start_offset

    def arrived_bytes(self, *, is_committed: bool) -> int:
        """What became readable since it was parked."""
        partition = self.partition
        if not is_committed:
            return partition.written_bytes - self.written_bytes
        arrived = max(partition.committed_bytes - self.written_bytes, 0)
        assert partition.log is not None, "it has not failed"
        stable_offset = partition.last_stable_offset(partition.log.high_watermark)
        if not arrived and stable_offset > self.stable_offset:
            return 1  # it was written before the start: at least so much
        return arrived


class CompleteFetch(NamedTuple):
    """The command: read again, and answer."""

    context: FetchContext
    token: ReplyToken


class DelayedFetch(Struct, frozen=True, eq=False):
    """Waits for `min_bytes`. Its keys are its partitions, and its token, for a disconnect."""

    context: FetchContext
    token: ReplyToken
    awaited: tuple[FetchPartitionStatus, ...]
    min_bytes: int
    deadline_ms: int
    is_committed: bool = False  # it reads committed records only

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.token, *(status.partition.topic_partition for status in self.awaited))

    def try_complete(self) -> CompleteFetch | None:
        readable = 0
        for status in self.awaited:
            if status.has_failed:
                return CompleteFetch(self.context, self.token)
            arrived = status.arrived_bytes(is_committed=self.is_committed)
            readable += min(status.readable_bytes + arrived, status.max_bytes)
        if readable < self.min_bytes:
            return None
        return CompleteFetch(self.context, self.token)

    def on_expiration(self) -> CompleteFetch:
        return CompleteFetch(self.context, self.token)
