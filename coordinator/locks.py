"""Who is changing this group right now? A guard around the critical section of a turn.

One event loop and plain functions: nothing can interleave, so this lock is never waited for. It
catches the one mistake that is left: an op, a reply or an observer that re-enters the group whose
turn is not over (the deadlock of Kafka's "story about lock" in `DelayedOperation`).
"""


class GroupLock:
    """Synchronous and not reentrant; remembers who holds it, for the message."""

    __slots__ = ("_holder",)

    def __init__(self) -> None:
        self._holder: str | None = None

    @property
    def held(self) -> bool:
        return self._holder is not None

    def acquire(self, holder: str) -> None:
        if self._holder is not None:
            raise AssertionError(f"{holder} entered a group in the turn of {self._holder}")
        self._holder = holder

    def release(self) -> None:
        self._holder = None
