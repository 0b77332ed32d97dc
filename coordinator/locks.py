"""Group lock: asserts that nothing enters a group while an outcome is carried out.

One event loop and plain functions: turns cannot interleave, so this lock is never waited for. It
catches the one mistake that is left: an op, a reply or an observer that re-enters the group whose
turn is not over (the deadlock of Kafka's "story about lock" in `DelayedOperation`).
"""


class GroupLock:
    """Synchronous and not reentrant."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = False

    def acquire(self) -> None:
        assert not self.held, "a group was entered in the middle of its turn"
        self.held = True

    def release(self) -> None:
        self.held = False
