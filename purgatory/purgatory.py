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

from purgatory.deadlines import Deadlines
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
        # Under most keys is one op, which stands there itself. Several are a dict for their order:
        # they are asked in the order in which they were parked.
        self._watchers: dict[Hashable, DelayedOp[CommandT] | dict[DelayedOp[CommandT], None]] = {}

    @property
    def delayed(self) -> int:
        """How many ops wait (Kafka's NumDelayedOperations)."""
        return len(self._deadlines)

    @property
    def watched(self) -> int:
        """How many (key, op) pairs are watched (Kafka's PurgatorySize)."""
        return sum(len(ops) if isinstance(ops, dict) else 1 for ops in self._watchers.values())

    def operations(self) -> tuple[DelayedOp[CommandT], ...]:
        """Those that wait now, for a reader that takes pauses."""
        return tuple(self._deadlines)

    @property
    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def try_complete_else_watch(self, op: DelayedOp[CommandT]) -> CommandT | None:
        """The op's command if it can complete now; else None, and the op is parked."""
        command = op.try_complete()
        if command is None:
            self.watch(op)
        return command

    def watch(self, op: DelayedOp[CommandT]) -> None:
        """Park without a check: for ops that only time can end."""
        if not self._deadlines.add(op):
            raise AssertionError(f"{op!r} is parked already")
        watchers = self._watchers
        for key in op.keys:
            ops = watchers.setdefault(key, op)
            if ops is op:
                continue  # the only one; it may name one key twice
            if isinstance(ops, dict):
                ops[op] = None
            else:
                watchers[key] = {ops: None, op: None}

    def check_and_complete(self, key: Hashable) -> list[CommandT]:
        """Check every op under `key`; the commands of those that completed."""
        commands: list[CommandT] = []
        for op in self._under(key):
            command = op.try_complete()
            if command is not None and self._end(op):
                commands.append(command)
        return commands

    def expire_due(self, now_ms: int, ops_max: int | None = None) -> list[CommandT]:
        """End the ops whose deadline has come, in deadline order; their commands.

        With `ops_max` at most so many: the others stay due.
        """
        commands = []
        for op in islice(self._deadlines.pop_due(now_ms), ops_max):
            self._unwatch(op)
            command = op.on_expiration()
            if command is not None:
                commands.append(command)
        return commands

    def cancel(self, key: Hashable) -> int:
        """Remove every op under `key`, without a command; returns their number."""
        ops = self._watchers.pop(key, None)
        if ops is None:
            return 0
        if isinstance(ops, dict):
            self._watchers[key] = ops
            return sum([self._end(op) for op in tuple(ops)])
        # With a million ops each look into a table waits for memory: no more of them than needed.
        self._deadlines.remove(ops)
        if len(ops.keys) > 1:
            self._unwatch(ops)
        return 1

    def watching(self, key: Hashable) -> bool:
        return key in self._watchers

    def deadline_of(self, key: Hashable) -> int | None:
        """When the nearest op under `key` expires; None if there is none."""
        deadlines = [op.deadline_ms for op in self._under(key)]
        return min(deadlines, default=None)

    def cancel_all(self) -> int:
        return sum(self._end(op) for op in tuple(self._deadlines))

    def _end(self, op: DelayedOp[CommandT]) -> bool:
        """Remove the op; False if it has ended before."""
        if not self._deadlines.remove(op):
            return False
        self._unwatch(op)
        return True

    def _unwatch(self, op: DelayedOp[CommandT]) -> None:
        for key in op.keys:
            ops = self._watchers.get(key)
            if ops is op:
                del self._watchers[key]
            elif isinstance(ops, dict) and op in ops:  # it may name one key twice
                del ops[op]
                if not ops:
                    del self._watchers[key]

    def _under(self, key: Hashable) -> tuple[DelayedOp[CommandT], ...]:
        ops = self._watchers.get(key)
        if ops is None:
            return ()
        return tuple(ops) if isinstance(ops, dict) else (ops,)

    def check(self) -> None:
        """Assert that the tables agree; called by tests after every step."""
        assert len(self._deadlines) == sum(1 for _ in self._deadlines), "the count is wrong"
        for op in self._deadlines:
            assert all(op in self._under(key) for key in op.keys), f"{op!r} is not watched"
        for key in self._watchers:
            assert self._under(key), f"no op is left under {key!r}"
            for op in self._under(key):
                assert op in self._deadlines, f"{op!r} is watched under {key!r} but has ended"
