"""Producer ids: assigns the next id, never one that was assigned before, not even after kill -9.

Ids are reserved in blocks. The end of a block is on the disk before its first id is assigned, and a
crash skips the rest of a block. The next block is reserved before this one is used up, so that few
requests wait for the disk. Kafka's counterpart: `RPCProducerIdManager`.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from protocol.names import ProducerId
from topics.admin_queue import AdminQueue, Steps
from topics.events import ProducerIdsReserved, TopicEvent
from topics.registry import TopicRegistry

BLOCK: Final = 1_000
"""Kafka's ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE."""

FEW: Final = BLOCK // 10
"""With this many left the next block is reserved; at a tenth, as in Kafka."""


class ProducerIds:
    def __init__(self, registry: TopicRegistry, observe: Callable[[TopicEvent], None]) -> None:
        self._registry = registry
        self._observe = observe
        self._next = self._end = 0
        self._spare: ProducerId | None = None  # the first id of the next block

    def take(self) -> ProducerId | None:
        """A new id; None if a block must be reserved first."""
        if self._next == self._end:
            if self._spare is None:
                return None
            self._next, self._spare = self._spare, None
            self._end = self._next + BLOCK
        self._next += 1
        return ProducerId(self._next - 1)

    @property
    def are_few(self) -> bool:
        """Whether the next block should be reserved."""
        return self._spare is None and self._end - self._next <= FEW

    def reserve(self) -> Steps[None]:
        """Reserve a block, unless there is a spare one. Raises OSError."""
        if self._spare is None:
            self._spare = first = yield from self._registry.reserve_producer_ids(BLOCK)
            self._observe(ProducerIdsReserved(first, ProducerId(first + BLOCK - 1)))


class ProducerIdQueue:
    """Implements ProducerIdSource: blocks are reserved by operations of the admin queue."""

    def __init__(self, ids: ProducerIds, queue: AdminQueue) -> None:
        self._ids = ids
        self._queue = queue
        self._is_reserving = False

    def take(self, done: Callable[[ProducerId | None], None], /) -> None:
        producer_id = self._ids.take()
        if producer_id is None:
            self._queue.run(lambda: self._reserve_and_take(done), lambda: None)
            return
        done(producer_id)
        if self._ids.are_few:
            self._reserve_ahead()

    def _reserve_and_take(self, done: Callable[[ProducerId | None], None]) -> Steps[None]:
        """Those before it in the queue may have used up a block meanwhile."""
        while (producer_id := self._ids.take()) is None:
            try:
                yield from self._ids.reserve()
            except OSError:
                break
        done(producer_id)

    def _reserve_ahead(self) -> None:
        """So that the next one need not wait. If the disk fails, the last id tries again."""

        def steps() -> Steps[None]:
            try:
                with suppress(OSError):
                    yield from self._ids.reserve()
            finally:
                self._is_reserving = False

        if not self._is_reserving:
            self._is_reserving = True
            self._queue.run(steps, lambda: None)
