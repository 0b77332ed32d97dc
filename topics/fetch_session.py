"""Fetch session: which partitions a client fetches, and which of them an answer must contain.

The broker keeps the partitions of a session with the offset that was requested last. An incremental
request names only partitions that are new or changed; the others are read from their stored
offsets. Its answer names only partitions that have something new for the client.

Each incremental request has the session's next epoch. The epoch is used up when the request is
accepted, so of two requests with one epoch only the first is served, on whatever connection.
`fetch_session_cache.py` keeps the sessions. Pure: no clock, no I/O.
Kafka's counterpart: `FetchSession`, `FetchContext` (KIP-227).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from protocol.names import ErrorCode, TopicId, TopicName

NO_SESSION: Final = 0
"""The session id of an answer without a session."""

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2_147_483_647
_NO_OFFSET: Final = -1

FetchKey = tuple[TopicId | TopicName | None, int]
"""A partition as the client names it: by topic id since version 13, before that by topic name."""


class RequestedPartition(NamedTuple):
    """One partition of a request, with the topic's name and id."""

    name: TopicName | None
    topic_id: TopicId
    asked: FetchPartition

    @property
    def key(self) -> FetchKey:
        return self.topic_id if self.topic_id.int else self.name, self.asked.partition


class ReadPartition(Protocol):
    """The result of reading one partition."""

    @property
    def requested(self) -> RequestedPartition: ...

    @property
    def data(self) -> PartitionData: ...


ReadT = TypeVar("ReadT", bound=ReadPartition)


class CachedPartition(Struct):
    """One partition of a session, and what the client knows of it."""

    requested: RequestedPartition
    high_watermark: int = _NO_OFFSET
    log_start_offset: int = _NO_OFFSET

    def has_changed(self, data: PartitionData) -> bool:
        """Whether the client must see this result. A new last stable offset alone is no reason."""
        return (
            bool(data.records)
            or data.diverging_epoch is not None
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.error_code is not ErrorCode.NONE
        )

    def answered(self, data: PartitionData) -> None:
        """The client sees this result."""
        is_failed = data.error_code is not ErrorCode.NONE
        # After an error it is sent again when it has recovered.
        self.high_watermark = _NO_OFFSET if is_failed else data.high_watermark
        self.log_start_offset = data.log_start_offset


class FetchSession:
    """Its partitions are in the order in which they are read.

    `epoch` is that of the next incremental request. `evictable_size` is the number of partitions
    under which the cache has it as evictable; 0: it is not.
    """

    __slots__ = (
        "created_ms",
        "epoch",
        "evictable_size",
        "partitions",
        "session_id",
        "used_ms",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, *, uses_topic_ids: bool, created_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.used_ms = created_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[FetchKey, CachedPartition] = {}
        self.evictable_size = 0

    def refusal(self, epoch: int, *, uses_topic_ids: bool) -> ErrorCode | None:
        """The error of an incremental request; None if it is accepted."""
        if epoch != self.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if uses_topic_ids != self.uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return None

    def begin(self, reads: Iterable[ReadPartition]) -> None:
        """Take the partitions of the first answer, which has all of them."""
        for read in reads:
            data = read.data
            self.partitions[read.requested.key] = CachedPartition(
                read.requested, data.high_watermark, data.log_start_offset
            )

    def update(
        self, requested: Iterable[RequestedPartition], forgotten: Iterable[FetchKey]
    ) -> None:
        """Add and change what is requested, then remove what is forgotten."""
        for partition in requested:
            cached = self.partitions.get(partition.key)
            if cached is None:
                self.partitions[partition.key] = CachedPartition(partition)
            else:
                # The name is kept: a topic that was resolved once keeps it, even when deleted.
                name = cached.requested.name or partition.name
                cached.requested = partition._replace(name=name)
        for key in forgotten:
            self.partitions.pop(key, None)

    def resolve_names(self, name_of: Callable[[TopicId], TopicName | None]) -> None:
        """Look up the topics that were unknown so far."""
        for cached in self.partitions.values():
            if cached.requested.name is None:
                name = name_of(cached.requested.topic_id)
                if name is not None:
                    cached.requested = cached.requested._replace(name=name)

    def changes(self, reads: Iterable[ReadT]) -> list[ReadT]:
        """The results that the client must see."""
        partitions = self.partitions
        return [
            read
            for read in reads
            if (cached := partitions.get(read.requested.key)) is not None
            and cached.has_changed(read.data)
        ]

    def changed(self, reads: Iterable[ReadT]) -> list[ReadT]:
        """The same; take them as known. Partitions with records go to the end."""
        changed = self.changes(reads)
        for read in changed:
            key = read.requested.key
            self.partitions[key].answered(read.data)
            if read.data.records:
                self.partitions[key] = self.partitions.pop(key)
        return changed


class FetchContext(Struct, frozen=True, eq=False):
    """One accepted request: what is read for it, and the session it belongs to.

    `session` is None for a full request. `epoch` is the session's after this request.
    """

    request: FetchRequest
    requested: Sequence[RequestedPartition]
    uses_topic_ids: bool
    accepted_ms: int
    creates_session: bool = False
    session: FetchSession | None = None
    epoch: int = FINAL_EPOCH


def next_epoch(epoch: int) -> int:
    """The epoch after this one; 0 and -1 begin a session or do without one."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1
