"""Newest: a short list that drops its oldest item when it is full.

A deque does the same, but takes 760 bytes for its first item, and there are several for each group.
"""

from typing import TypeVar

T = TypeVar("T")


class Newest(list[T]):
    """Oldest first; at most `most` items, None for any number. For some hundreds."""

    __slots__ = ("_most",)

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most

    def append(self, item: T) -> None:
        """Add the newest."""
        super().append(item)
        if self._most is not None and len(self) > self._most:
            del self[0]

    def popleft(self) -> T:
        """Take the oldest out. Raises IndexError."""
        return self.pop(0)
