"""Deadline queue: the next op to expire; an op is taken out, or put off, at a small constant cost.

A bucket of entries for each millisecond that something is filed under, and a sorted list of these
milliseconds. The entries of a bucket are linked, so one is taken out without a search for it, or
for its bucket. Only the first op of a millisecond and the last one touch the list. An op that is
put off leaves its entry where it is: it is filed again when the millisecond of the entry comes.
With a million ops most steps wait for memory, so each is made in as few places as possible.

Equal deadlines fire in the order in which they were filed, which keeps a replay deterministic.
Kafka has a hierarchical timing wheel here (`TimingWheel`), whose buckets are as wide as its ticks:
`TimerTaskList` is the bucket, `TimerTaskEntry` the entry.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from sortedcontainers import SortedList


class HasDeadline(Protocol):
    """What is filed; its deadline never changes."""

    @property
    def deadline_ms(self) -> int: ...


OpT = TypeVar("OpT", bound=HasDeadline)


class DeadlineEntry(Generic[OpT]):
    """The place of an op in the queue, between two others. Without an op: it has ended."""

    __slots__ = ("after", "before", "filed_ms", "has_one_key", "is_put_off", "op")

    def __init__(self, op: OpT | None, filed_ms: int, *, has_one_key: bool = True) -> None:
        self.op = op
        self.filed_ms = filed_ms  # its bucket; never after the op's deadline
        self.has_one_key = has_one_key  # for the owner: whether it has to look elsewhere
        self.is_put_off = False  # its op may have a later deadline
        self.before: DeadlineEntry[OpT] | None = None
        self.after: DeadlineEntry[OpT] | None = None


class Deadlines(Generic[OpT]):
    __slots__ = ("_buckets", "_count", "_front_ms", "_times_ms")

    def __init__(self) -> None:
        # An entry without an op stands for the bucket: before the first one and after the last.
        self._buckets: dict[int, DeadlineEntry[OpT]] = {}
        self._times_ms: SortedList = SortedList()  # the keys of the buckets
        self._front_ms: int | None = None  # the first of them
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[OpT]:
        for bucket in self._buckets.values():
            entry = bucket.after
            while entry is not None and entry.op is not None:
                yield entry.op
                entry = entry.after

    def add(self, entry: DeadlineEntry[OpT]) -> None:
        """File the op of an entry, which has been in no queue."""
        self._link(entry)

    def remove(self, entry: DeadlineEntry[OpT]) -> bool:
        """End the op of an entry; False if it has ended."""
        if entry.op is None:
            return False
        entry.op = None
        self._unlink(entry)
        return True

    def put_off(self, entry: DeadlineEntry[OpT], op: OpT) -> bool:
        """Put an op in the place of one that has not ended; False if it would expire too late."""
        assert entry.op is not None
        if op.deadline_ms < entry.filed_ms:
            return False
        entry.op = op
        entry.is_put_off = True
        return True

    def clear(self) -> int:
        """End every op; returns their number."""
        count = self._count
        while self._front_ms is not None:
            entry = self._buckets[self._front_ms].after
            assert entry is not None
            self.remove(entry)
        return count

    def next_ms(self) -> int | None:
        """When `pop_due` has something to do, or None when nothing is filed.

        The nearest deadline, or an earlier one of an op that was put off since.
        """
        return self._front_ms

    def pop_due(self, now_ms: int) -> Iterator[tuple[DeadlineEntry[OpT], OpT]]:
        """End, in deadline order, every op whose deadline is not after `now_ms`.

        Ops may end or be added while the caller works through the due ones.
        """
        while self._front_ms is not None and self._front_ms <= now_ms:
            entry = self._buckets[self._front_ms].after
            assert entry is not None
            op = entry.op
            assert op is not None
            self._unlink(entry)
            if entry.is_put_off:
                entry.is_put_off = False
                entry.filed_ms = op.deadline_ms
                self._link(entry)
                continue
            entry.op = None
            yield entry, op

    def _link(self, entry: DeadlineEntry[OpT]) -> None:
        """Put an entry at the end of its bucket."""
        filed_ms = entry.filed_ms
        bucket = self._buckets.get(filed_ms)
        if bucket is None:
            bucket = self._add_bucket(filed_ms)
        last = bucket.before
        assert last is not None
        last.after = bucket.before = entry
        entry.before, entry.after = last, bucket
        self._count += 1

    def _unlink(self, entry: DeadlineEntry[OpT]) -> None:
        before, after = entry.before, entry.after
        assert before is not None
        assert after is not None
        before.after, after.before = after, before
        entry.before = entry.after = None
        self._count -= 1
        if before is after:  # only the bucket is left
            before.before = before.after = None
            self._remove_bucket(entry.filed_ms)

    def _add_bucket(self, filed_ms: int) -> DeadlineEntry[OpT]:
        bucket: DeadlineEntry[OpT] = DeadlineEntry(None, filed_ms)
        bucket.before = bucket.after = bucket
        self._buckets[filed_ms] = bucket
        self._times_ms.add(filed_ms)
        if self._front_ms is None or filed_ms < self._front_ms:
            self._front_ms = filed_ms
        return bucket

    def _remove_bucket(self, filed_ms: int) -> None:
        del self._buckets[filed_ms]
        self._times_ms.remove(filed_ms)
        if filed_ms == self._front_ms:
            self._front_ms = self._times_ms[0] if self._times_ms else None

    def check(self) -> None:
        """Assert that entries and buckets agree; called by tests after every step."""
        assert len(self) == sum(1 for _ in self), "the count is wrong"
        assert list(self._times_ms) == sorted(self._buckets), "a millisecond has no bucket"
        assert self._front_ms == min(self._buckets, default=None), "another bucket is the first"
        for filed_ms, bucket in self._buckets.items():
            assert bucket.after is not bucket, "an empty bucket was kept"
            entry = bucket
            while entry.after is not bucket:
                assert entry.after is not None
                assert entry.after.before is entry, "the links disagree"
                entry = entry.after
                assert entry.op is not None, "an op that has ended is filed"
                assert entry.filed_ms == filed_ms <= entry.op.deadline_ms
                assert entry.is_put_off or filed_ms == entry.op.deadline_ms
            assert bucket.before is entry, "the bucket does not know its last entry"
