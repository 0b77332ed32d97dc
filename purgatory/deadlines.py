"""Deadline queue: the next op to expire, and removal of any op at a constant cost.

A bucket for each millisecond that something expires in, and a sorted list of these milliseconds. An
insert and a removal touch one bucket; only the first op of a millisecond and the last one touch the
list. Equal deadlines fire in the order they were filed, which keeps a replay deterministic. Kafka
has a hierarchical timing wheel here (`TimingWheel`), whose buckets are as wide as its ticks.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

from sortedcontainers import SortedList

DUE_AT_ONCE: Final = 256
"""Ops read from a bucket at once: a dict whose first entries went is searched from its beginning
each time, so reading them one by one takes the square of their number."""


class HasDeadline(Protocol):
    """What is filed: hashable, and its deadline never changes."""

    @property
    def deadline_ms(self) -> int: ...


OpT = TypeVar("OpT", bound=HasDeadline)


class Deadlines(Generic[OpT]):
    __slots__ = ("_buckets", "_count", "_times_ms")

    def __init__(self) -> None:
        # Dicts for their order, and because any op may be removed.
        self._buckets: dict[int, dict[OpT, None]] = {}
        self._times_ms: SortedList = SortedList()  # the keys of the buckets
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, op: OpT) -> bool:
        bucket = self._buckets.get(op.deadline_ms)
        return bucket is not None and op in bucket

    def __iter__(self) -> Iterator[OpT]:
        for bucket in self._buckets.values():
            yield from bucket

    def add(self, op: OpT) -> bool:
        """File an op; False if it is filed already."""
        deadline_ms = op.deadline_ms
        bucket = self._buckets.get(deadline_ms)
        if bucket is None:
            self._buckets[deadline_ms] = {op: None}
            self._times_ms.add(deadline_ms)
        else:
            size = len(bucket)
            bucket[op] = None
            if len(bucket) == size:
                return False
        self._count += 1
        return True

    def remove(self, op: OpT) -> bool:
        """Take an op out; False if it is not filed."""
        deadline_ms = op.deadline_ms
        bucket = self._buckets.get(deadline_ms)
        if bucket is None or bucket.pop(op, False) is False:
            return False
        self._count -= 1
        if not bucket:
            del self._buckets[deadline_ms]
            self._times_ms.remove(deadline_ms)
        return True

    def next_ms(self) -> int | None:
        """The nearest deadline, or None when nothing is filed."""
        if not self._times_ms:
            return None
        nearest_ms: int = self._times_ms[0]
        return nearest_ms

    def pop_due(self, now_ms: int) -> Iterator[OpT]:
        """Take out, in deadline order, every op whose deadline is not after `now_ms`.

        Ops may be removed or added while the caller works through the due ones.
        """
        while (deadline_ms := self.next_ms()) is not None and deadline_ms <= now_ms:
            for op in tuple(islice(self._buckets[deadline_ms], DUE_AT_ONCE)):
                if self.next_ms() != deadline_ms:
                    break  # the caller added an earlier one, or removed the others
                if self.remove(op):
                    yield op
