"""Fetch session cache: the open fetch sessions, how many there are, and which one is evicted.

A full request (epoch 0 or -1) closes the session that it names, and with epoch 0 opens another if
there is a slot. Without a slot it evicts a session that was unused for `EVICTION_MS`. If there is
none it evicts the smallest session that is older than that and has fewer partitions than the new
one. Else the answer has session id 0, and the client continues with full requests. Sessions are not
stored: after a restart clients get FETCH_SESSION_ID_NOT_FOUND and begin again. Pure: no clock.

Kafka differs: its cache has eight shards, for its threads, and each has an eighth of the slots. It
does not limit the partitions of all sessions, so clients that fetch unknown partitions can fill its
memory.
Kafka's counterpart: `FetchManager`, `FetchSessionCache`, `FetchSessionCacheShard`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Final
from uuid import uuid4

from protocol.messages.fetch import FetchRequest
from protocol.names import ErrorCode, TopicId, TopicName
from topics.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchContext,
    FetchKey,
    FetchSession,
    ReadT,
    RequestedPartition,
    next_epoch,
)

EVICTION_MS: Final = 120_000
"""A session that was used within this time is not stale; one that is younger is not evicted for a
larger one. A constant in Kafka too (`KafkaServer.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`)."""

_SESSION_ID_MAX: Final = 2_147_483_647


def random_session_id() -> int:
    """Positive, and unlikely to be one that another client had before a restart."""
    return uuid4().int & _SESSION_ID_MAX or 1


class FetchSessionCache:
    """At most `slots` sessions with `partitions_max` partitions together."""

    def __init__(
        self,
        slots: int,
        partitions_max: int,
        name_of: Callable[[TopicId], TopicName | None],
        new_session_id: Callable[[], int] = random_session_id,
    ) -> None:
        self._slots = slots
        self._partitions_max = partitions_max
        self._name_of = name_of
        self._new_session_id = new_session_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first
        # A heap of (partitions, session id). It also has entries of closed sessions and of earlier
        # sizes: they are dropped when they come first, or when there are too many.
        self._evictable: list[tuple[int, int]] = []
        self.partitions = 0  # of all sessions
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def accept(
        self,
        request: FetchRequest,
        requested: Sequence[RequestedPartition],
        forgotten: Iterable[FetchKey],
        now_ms: int,
        *,
        uses_topic_ids: bool,
    ) -> FetchContext | ErrorCode:
        """What to read for this request, or the error of its session."""
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._close(request.session_id)
            creates = epoch == INITIAL_EPOCH
            return FetchContext(request, requested, uses_topic_ids, now_ms, creates_session=creates)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        error_code = session.refusal(epoch, uses_topic_ids=uses_topic_ids)
        if error_code is not None:
            return error_code
        if not self._update(session, requested, forgotten):
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if not session.partitions:
            self._close(session.session_id)
            return FetchContext(request, requested, uses_topic_ids, now_ms)
        session.epoch = next_epoch(epoch)
        self._touch(session, now_ms)
        if uses_topic_ids:
            session.resolve_names(self._name_of)
        to_read = [cached.requested for cached in session.partitions.values()]
        return FetchContext(
            request, to_read, uses_topic_ids, now_ms, session=session, epoch=session.epoch
        )

    def answer(
        self, context: FetchContext, reads: Sequence[ReadT]
    ) -> tuple[int, Sequence[ReadT]] | ErrorCode:
        """The session id and the results of the answer, or the error of a request that another
        one of its session has overtaken."""
        session = context.session
        if session is None:
            session_id = self._open(context, reads) if context.creates_session else NO_SESSION
            return session_id, reads
        if session.epoch != context.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return session.session_id, session.changed(reads)

    def changes(self, context: FetchContext, reads: Sequence[ReadT]) -> Sequence[ReadT]:
        """The results that `answer` would return; nothing changes."""
        session = context.session
        if session is None:
            return reads
        return session.changes(reads) if session.epoch == context.epoch else ()

    def _update(
        self,
        session: FetchSession,
        requested: Sequence[RequestedPartition],
        forgotten: Iterable[FetchKey],
    ) -> bool:
        """False if it would have too many partitions: then it is closed, and the client begins
        again with a full request, which gets no session."""
        added = sum(partition.key not in session.partitions for partition in requested)
        if added and self.partitions + added > self._partitions_max:
            self._close(session.session_id)
            return False
        before = len(session.partitions)
        session.update(requested, forgotten)
        self.partitions += len(session.partitions) - before
        return True

    def _open(self, context: FetchContext, reads: Sequence[ReadT]) -> int:
        """The id of a new session with these partitions; 0 if there is no room for it."""
        size = len(reads)
        if size > self._partitions_max or self._slots <= 0:
            return NO_SESSION
        while len(self) >= self._slots or self.partitions + size > self._partitions_max:
            if not self._evict(size, context.accepted_ms):
                return NO_SESSION
        session_id = self._unused_id()
        session = FetchSession(
            session_id, uses_topic_ids=context.uses_topic_ids, created_ms=context.accepted_ms
        )
        session.begin(reads)
        self._sessions[session_id] = session
        self.partitions += len(session.partitions)
        return session_id

    def _unused_id(self) -> int:
        while True:
            session_id = self._new_session_id()
            if session_id not in self._sessions:
                return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of this size."""
        stalest = next(iter(self._sessions.values()), None)
        if stalest is None:
            return False
        if now_ms - stalest.used_ms > EVICTION_MS:
            self._close(stalest.session_id)
        else:
            smallest = self._smallest_evictable()
            if smallest is None or smallest.evictable_size >= size:
                return False
            self._close(smallest.session_id)
        self.evictions += 1
        return True

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        """It was used; once it is old enough, a larger one may take its place."""
        session.used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        size = len(session.partitions)
        if now_ms - session.created_ms > EVICTION_MS and size != session.evictable_size:
            session.evictable_size = size
            heappush(self._evictable, (size, session.session_id))
            if len(self._evictable) > 2 * self._slots:
                self._evictable = sorted(filter(self._is_valid, set(self._evictable)))

    def _smallest_evictable(self) -> FetchSession | None:
        while self._evictable:
            if self._is_valid(self._evictable[0]):
                return self._sessions[self._evictable[0][1]]
            heappop(self._evictable)
        return None

    def _is_valid(self, entry: tuple[int, int]) -> bool:
        """Whether it is the newest entry of an open session."""
        size, session_id = entry
        session = self._sessions.get(session_id)
        return session is not None and session.evictable_size == size

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions -= len(session.partitions)
