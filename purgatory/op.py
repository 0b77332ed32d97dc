"""What is a delayed operation? A question that may be asked again, and a deadline.

An op never changes state and never answers anybody: it returns a command, and the owner of the
state carries that out. So it may be asked any number of times, by anyone, in any order.
Kafka's counterpart: `DelayedOperation` (tryComplete, forceComplete, onExpiration).
"""

from collections.abc import Hashable, Iterable
from typing import Protocol, TypeVar

CommandT_co = TypeVar("CommandT_co", covariant=True)


class DelayedOp(Protocol[CommandT_co]):
    """Watched under `keys` until it completes or the monotonic clock reaches `deadline_ms`."""

    @property
    def keys(self) -> Iterable[Hashable]: ...

    @property
    def deadline_ms(self) -> int: ...

    def try_complete(self) -> CommandT_co | None:
        """The command, if what the op waits for has come true; None to go on waiting."""

    def on_expiration(self) -> CommandT_co | None:
        """The command for having waited in vain; None if silence is the answer."""
