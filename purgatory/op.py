"""Delayed operation: a condition that may be checked again, and a deadline.

An op never changes state and never sends an answer: it returns a command, and the owner of the
state carries that out. So it may be checked any number of times, in any order.
Kafka's counterpart: `DelayedOperation` (tryComplete, forceComplete, onExpiration).
"""

from collections.abc import Hashable
from typing import Protocol, TypeVar

CommandT_co = TypeVar("CommandT_co", covariant=True)


class DelayedOp(Protocol[CommandT_co]):
    """Watched under `keys` until it completes or the monotonic clock reaches `deadline_ms`."""

    @property
    def keys(self) -> tuple[Hashable, ...]: ...

    @property
    def deadline_ms(self) -> int: ...

    def try_complete(self) -> CommandT_co | None:
        """The command, if the condition is fulfilled; None to keep waiting."""

    def on_expiration(self) -> CommandT_co | None:
        """The command of the deadline; None if nothing follows from it."""
