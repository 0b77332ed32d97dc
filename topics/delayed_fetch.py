"""Delayed fetch: a Fetch that waits until enough bytes can be read.

It is checked again whenever one of its partitions gained records, lost its first ones, or was
deleted. It compares two values of each partition's count of written bytes: when it was parked, and
now. `Purgatory` watches it and expires it.
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
    written_bytes: int
    max_bytes: int
    fetch_offset: int

    @property
    def has_failed(self) -> bool:
        """Whether the answer is an error by now, so that waiting is over."""
        partition = self.partition
        if partition.deleted or partition.offline or partition.log is None:
            return True
        return self.fetch_offset < partition.log.log_start_offset


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

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return (self.token, *(status.partition.topic_partition for status in self.awaited))

    def try_complete(self) -> CompleteFetch | None:
        readable = 0
        for status in self.awaited:
            if status.has_failed:
                return CompleteFetch(self.context, self.token)
            arrived = status.partition.written_bytes - status.written_bytes
            readable += min(status.readable_bytes + arrived, status.max_bytes)
        if readable < self.min_bytes:
            return None
        return CompleteFetch(self.context, self.token)

    def on_expiration(self) -> CompleteFetch:
        return CompleteFetch(self.context, self.token)
