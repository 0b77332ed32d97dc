"""Purgatory: delayed operations watched by key, expired by deadline, each completed once.

`try_complete_else_watch` checks an op and parks it if its condition is not fulfilled. Code that
changes state for which an op may wait calls `check_and_complete(key)`. `expire_due` ends ops whose
deadline has come. Each op ends through `_end`, in which only the first caller succeeds.

Commands are returned, not carried out: the caller queues them for its next turn. So nothing here
can re-enter a group, and the deadlocks of Kafka's "story about lock" cannot be written. Kafka's
counterpart: `DelayedOperationPurgatory`.
"""

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from purgatory.deadlines import DeadlineEntry, Deadlines
from purgatory.op import DelayedOp

CommandT = TypeVar("CommandT")


class OfKind(NamedTuple):
    """How many ops of one type wait, under how many keys, and when the first of them expires."""

    ops: int
    keys: int
    next_deadline_ms: int


def by_kind(ops: Iterable[DelayedOp[CommandT]]) -> dict[str, OfKind]:
    """These ops by their type. Of `Purgatory.operations` a reader takes some at a time."""
    found: dict[str, OfKind] = {}
    for op in ops:
        kind = type(op).__name__
        count, keys, deadline_ms = found.get(kind, (0, 0, op.deadline_ms))
        found[kind] = OfKind(count + 1, keys + len({*op.keys}), min(deadline_ms, op.deadline_ms))
    return found


class Purgatory(Generic[CommandT]):
    """Not thread-safe: one owner, one thread, no waiting inside."""

    def __init__(self) -> None:
        self._deadlines: Deadlines[DelayedOp[CommandT]] = Deadlines()
        # Under most keys is one op, whose entry stands there itself. Several are a dict for their
        # order: they are asked in the order in which they were parked.
        self._watchers: dict[
            Hashable,
            DeadlineEntry[DelayedOp[CommandT]]
            | dict[DelayedOp[CommandT], DeadlineEntry[DelayedOp[CommandT]]],
        ] = {}

    @property
    def delayed(self) -> int:
        """How many ops wait (Kafka's NumDelayedOperations)."""
        return len(self._deadlines)

    @property
    def watched(self) -> int:
        """How many (key, op) pairs are watched (Kafka's PurgatorySize)."""
        return sum(len(each) if isinstance(each, dict) else 1 for each in self._watchers.values())

    def operations(self) -> tuple[DelayedOp[CommandT], ...]:
        """Those that wait now, for a reader that takes pauses."""
        return tuple(self._deadlines)

    @property
    def next_deadline_ms(self) -> int | None:
        """When `expire_due` has something to do: the nearest deadline.

        Or that of an op that was replaced since; then nothing expires at it.
        """
        return self._deadlines.next_ms()

    def try_complete_else_watch(self, op: DelayedOp[CommandT]) -> CommandT | None:
        """The op's command if it can complete now; else None, and the op is parked."""
        command = op.try_complete()
        if command is None:
            self.watch(op)
        return command

    def watch(self, op: DelayedOp[CommandT]) -> None:
        """Park without a check: for ops that only time can end. It has at least one key."""
        keys = op.keys
        entry = DeadlineEntry(op, op.deadline_ms, has_one_key=len(keys) == 1)
        watchers = self._watchers
        for key in keys:
            present = watchers.setdefault(key, entry)
            if present is entry:
                continue  # the only one; it may name one key twice
            if isinstance(present, DeadlineEntry):
                other = present.op
                assert other is not None
                present = watchers[key] = {other: present}
            if present.setdefault(op, entry) is not entry:
                raise AssertionError(f"{op!r} is parked already")
        self._deadlines.add(entry)

    def replace(self, key: Hashable, op: DelayedOp[CommandT]) -> None:
        """Park an op in place of those under `key`, which end without a command.

        An op with the same one key and a later deadline takes the place of the other in the queue,
        and moves to the end of its own millisecond when the other's deadline comes.
        """
        present = self._watchers.get(key)
        if present is not None:
            if (
                isinstance(present, DeadlineEntry)
                and present.has_one_key
                and op.keys == (key,)
                and self._deadlines.put_off(present, op)
            ):
                return
            self.cancel(key)
        self.watch(op)

    def check_and_complete(self, key: Hashable) -> list[CommandT]:
        """Check every op under `key`; the commands of those that completed."""
        commands: list[CommandT] = []
        for entry in self._under(key):
            op = entry.op
            if op is None:
                continue
            command = op.try_complete()
            if command is not None and self._end(entry):
                commands.append(command)
        return commands

    def expire_due(self, now_ms: int, ops_max: int | None = None) -> list[CommandT]:
        """End the ops whose deadline has come, in deadline order; their commands.

        With `ops_max` at most so many: the others stay due.
        """
        commands = []
        for entry, op in islice(self._deadlines.pop_due(now_ms), ops_max):
            self._unwatch(entry, op)
            command = op.on_expiration()
            if command is not None:
                commands.append(command)
        return commands

    def cancel(self, key: Hashable) -> int:
        """Remove every op under `key`, without a command; returns their number."""
        present = self._watchers.pop(key, None)
        if present is None:
            return 0
        if isinstance(present, dict):
            self._watchers[key] = present
            return sum([self._end(entry) for entry in tuple(present.values())])
        # With a million ops each look into a table waits for memory: no more of them than needed.
        op = present.op
        assert op is not None
        self._deadlines.remove(present)
        if not present.has_one_key:
            self._unwatch(present, op)
        return 1

    def watching(self, key: Hashable) -> bool:
        return key in self._watchers

    def deadline_of(self, key: Hashable) -> int | None:
        """When the nearest op under `key` expires; None if there is none."""
        ops = [entry.op for entry in self._under(key)]
        return min((op.deadline_ms for op in ops if op is not None), default=None)

    def cancel_all(self) -> int:
        self._watchers.clear()
        return self._deadlines.clear()

    def _end(self, entry: DeadlineEntry[DelayedOp[CommandT]]) -> bool:
        """Remove the op; False if it has ended before."""
        op = entry.op
        if op is None:
            return False
        self._deadlines.remove(entry)
        self._unwatch(entry, op)
        return True

    def _unwatch(self, entry: DeadlineEntry[DelayedOp[CommandT]], op: DelayedOp[CommandT]) -> None:
        for key in op.keys:
            present = self._watchers.get(key)
            if present is entry:
                del self._watchers[key]
            elif isinstance(present, dict) and op in present:  # it may name one key twice
                del present[op]
                if not present:
                    del self._watchers[key]

    def _under(self, key: Hashable) -> tuple[DeadlineEntry[DelayedOp[CommandT]], ...]:
        present = self._watchers.get(key)
        if present is None:
            return ()
        return tuple(present.values()) if isinstance(present, dict) else (present,)

    def check(self) -> None:
        """Assert that the tables agree; called by tests after every step."""
        self._deadlines.check()
        for op in self._deadlines:
            watched = [any(entry.op is op for entry in self._under(key)) for key in op.keys]
            assert all(watched), f"{op!r} is not watched"
        for key in self._watchers:
            assert self._under(key), f"no op is left under {key!r}"
            for entry in self._under(key):
                assert entry.op is not None, f"an op that has ended is watched under {key!r}"
