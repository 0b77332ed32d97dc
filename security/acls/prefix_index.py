"""Prefix index: which of many prefixes does a name begin with?

The prefixes are sorted. A prefix of a name sorts before the name, and everything between the two
begins with that prefix as well. So the search starts at the name, goes down while it finds
prefixes, and where an entry is none it goes on at what that entry and the name have in common: it
never reads what only shares a beginning. Kafka's counterpart: `StandardAuthorizerData`, where it
searches the entries of a resource.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator


class PrefixIndex:
    """No prefix is empty."""

    def __init__(self) -> None:
        self._sorted: list[str] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, prefix: str) -> None:
        """One that is there already is kept once."""
        assert prefix, "an empty prefix would be one of every name"
        if not self._is_at(bisect_left(self._sorted, prefix), prefix):
            insort(self._sorted, prefix)

    def remove(self, prefix: str) -> None:
        """One that is not there is no error."""
        at = bisect_left(self._sorted, prefix)
        if self._is_at(at, prefix):
            del self._sorted[at]

    def _is_at(self, at: int, prefix: str) -> bool:
        return at < len(self._sorted) and self._sorted[at] == prefix

    def prefixes_of(self, name: str) -> Iterator[str]:
        """The longest first."""
        known = self._sorted
        end = bisect_right(known, name)
        while end:
            prefix = known[end - 1]
            if name.startswith(prefix):
                yield prefix
                end -= 1
            else:
                name = name[: _common_length(prefix, name)]
                end = bisect_right(known, name, 0, end - 1)


def _common_length(left: str, right: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
