"""Producer id source: where the transaction coordinator gets new producer ids from."""

from collections.abc import Callable
from typing import Protocol

from protocol.names import ProducerId


class ProducerIdSource(Protocol):
    def take(self, done: Callable[[ProducerId | None], None], /) -> None:
        """Call `done` once with an id that was never given out; None if none can be reserved.

        It is called on the event loop, before this returns, or later if a block of ids has to be
        reserved on the disk first. Kafka's counterpart: `ProducerIdManager.generateProducerId`.
        """
