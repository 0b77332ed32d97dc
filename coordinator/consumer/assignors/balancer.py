"""Balancer: which subscribers of a topic give and take partitions, so that their sizes meet.

It walks from both ends of the subscribers in order of their sizes: from the smallest up with a
*low level*, from the largest down with a *high level*. All members up to `_low_end` have reached
the low level, all from `_high_start` to `_high_end` are down to the high one. Members beyond
`_high_end` have nothing of this topic to give. The topic is balanced when the levels meet.
The order of the choices is Kafka's, as it decides who gets which partition.
Kafka's counterpart: `UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer`.
"""

from collections.abc import Sequence


class Balancer:
    """For one topic. `sizes` changes while partitions move: the caller does that."""

    def __init__(self, by_size: Sequence[int], sizes: Sequence[int]) -> None:
        self._by_size = [*by_size]
        self._sizes = sizes
        self._low_end = 0
        self._low_level = sizes[by_size[0]] - 1
        self._low_next = 0
        self._high_start = self._high_end = len(by_size)
        self._high_level = sizes[by_size[-1]] + 1
        self._high_next = len(by_size) - 1

    @property
    def is_balanced(self) -> bool:
        return self._high_level - self._low_level <= 1

    def taker(self) -> int:
        """The member that gets the next partition."""
        if self._low_next == self._low_end:
            self._low_level += 1
            members, sizes, end = self._by_size, self._sizes, self._low_end
            while end < len(members) and sizes[members[end]] == self._low_level:
                end += 1
            self._low_end = end
            self._low_next = 0
        self._low_next += 1
        return self._by_size[self._low_next - 1]

    def giver(self) -> int | None:
        """The member that gives up the next partition; None if none is left that has any."""
        if self._high_next < self._high_start:
            members, sizes, start = self._by_size, self._sizes, self._high_start
            if start and self._high_end <= start:
                # All of the level have nothing to give: on to the next lower one there is.
                self._high_level = sizes[members[start - 1]]
            else:
                self._high_level -= 1
            while start and sizes[members[start - 1]] == self._high_level:
                start -= 1
            self._high_start = start
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._by_size[self._high_next + 1]

    def exclude_giver(self) -> None:
        """The last giver has nothing to give."""
        members, place, last = self._by_size, self._high_next + 1, self._high_end - 1
        members[place], members[last] = members[last], members[place]
        self._high_end = last
