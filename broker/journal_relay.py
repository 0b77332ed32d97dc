"""How does word from the journal's thread reach the event loop? By one call for each flush.

The flusher reports in its own thread; everything that hears of it lives on the loop. Counts what
comes by. After the loop is closed nobody listens, and nothing is lost: what was stored is stored.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from storage.api import Position, TopicPartition

Stored = list[tuple[TopicPartition, Position]]


class JournalRelay:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._on_stored: Callable[[Stored], None] | None = None
        self._on_failed: Callable[[Exception], None] | None = None
        self.flushes = 0
        self.partitions_flushed = 0

    def connect(
        self, on_stored: Callable[[Stored], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Both are called on the loop."""
        self._on_stored = on_stored
        self._on_failed = on_failed

    # In the flusher's thread.

    def stored(self, stored: Stored) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, stored)

    def failed(self, failure: Exception) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver_failure, failure)

    # On the loop.

    def _deliver(self, stored: Stored) -> None:
        self.flushes += 1
        self.partitions_flushed += len(stored)
        if self._on_stored is not None:
            self._on_stored(stored)

    def _deliver_failure(self, failure: Exception) -> None:
        if self._on_failed is not None:
            self._on_failed(failure)
