"""Which producer id comes next? Never one that was given out before, not even after kill -9.

Ids are reserved in blocks: the end of a block is on the disk before its first id is given out, and
what a crash leaves of a block is skipped. Kafka's counterpart: `ProducerIdManager`.
"""

from collections.abc import Callable
from typing import Final

from protocol.names import ProducerId
from topics.events import ProducerIdsReserved, TopicEvent
from topics.registry import TopicRegistry

BLOCK: Final = 1_000


class ProducerIds:
    def __init__(self, registry: TopicRegistry, observe: Callable[[TopicEvent], None]) -> None:
        self._registry = registry
        self._observe = observe
        self._next = self._end = 0

    def next(self) -> ProducerId:
        """A new id; OSError if no block can be reserved."""
        if self._next == self._end:
            self._next = self._registry.reserve_producer_ids(BLOCK)
            self._end = self._next + BLOCK
            self._observe(ProducerIdsReserved(ProducerId(self._next), ProducerId(self._end - 1)))
        self._next += 1
        return ProducerId(self._next - 1)
