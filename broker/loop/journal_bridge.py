"""How does word from the journal's thread reach the event loop? By one call for each flush.

The flusher reports in its own thread; everything that hears of it lives on the loop. Counts what
comes by. After the loop is closed nobody listens, and nothing is lost: what was stored is stored.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from broker.observe.stats import Histogram
from storage.api import Position, TopicPartition

Stored = list[tuple[TopicPartition, Position]]

FLUSH_BUCKETS_S: Final = (
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0,
)  # fmt: skip
PARTITION_BUCKETS: Final = (1, 2, 3, 5, 10, 20, 50)


class JournalBridge:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Set by build.py; called on the loop.
        self.on_stored: Callable[[Stored], None] = _noop
        self.on_failed: Callable[[Exception], None] = _noop
        self.on_reopened: Callable[[], None] = _noop
        self.flushes = 0
        self.flush_seconds = Histogram(FLUSH_BUCKETS_S)  # both by the flusher's thread alone
        self.flush_partitions = Histogram(PARTITION_BUCKETS)

    # In the flusher's thread.

    def stored(self, stored: Stored, seconds: float) -> None:
        self.flush_seconds.add(seconds)
        self.flush_partitions.add(len(stored))
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, stored)

    def failed(self, failure: Exception) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver_failure, failure)

    def reopened(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver_reopening)

    # On the loop.

    def _deliver(self, stored: Stored) -> None:
        self.flushes += 1
        self.on_stored(stored)

    def _deliver_failure(self, failure: Exception) -> None:
        self.on_failed(failure)

    def _deliver_reopening(self) -> None:
        self.on_reopened()


def _noop(*_: object) -> None:
    pass
