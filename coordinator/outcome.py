"""Outcome: what one decision yields: replies, events, records, ops to schedule, next commands.

It is a value: a decision returns it and the shard carries it out.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, overload

from msgspec import Struct

from coordinator.commands import Command, Op, StoredCommand
from coordinator.consumer.assignment_job import AssignmentJob
from coordinator.events import Event
from protocol.messages import Response
from seams.reply_token import ReplyToken
from storage.api import BatchProducer, RecordPair


class Reply(Struct, frozen=True, gc=False):
    token: ReplyToken
    response: Response


MADE_AT_ONCE: Final = 100
"""Replies that a decision makes itself; more of them are made when they are sent."""


class LaterReplies(Sequence[Reply]):
    """Replies to the members of a large group, which would take milliseconds of a turn.

    `make` gets the first position and the end. It must not read what may change after the turn.
    """

    __slots__ = ("_count", "_make")

    def __init__(self, count: int, make: Callable[[int, int], list[Reply]]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Reply: ...
    @overload
    def __getitem__(self, at: slice) -> list[Reply]: ...
    def __getitem__(self, at: int | slice) -> Reply | list[Reply]:
        if isinstance(at, slice):
            first, end, step = at.indices(self._count)
            return self._make(first, max(first, end)) if step == 1 else list(self)[at]
        position = range(self._count)[at]
        return self._make(position, position + 1)[0]

    def __iter__(self) -> Iterator[Reply]:
        return iter(self._make(0, self._count))


def replies_to_many(count: int, make: Callable[[int, int], list[Reply]]) -> Sequence[Reply]:
    return make(0, count) if count <= MADE_AT_ONCE else LaterReplies(count, make)


class Outcome(Struct, frozen=True):
    """Replies go out once everything that they depend on is stored; see Shard.turn.

    `then` are the commands for the turns that follow at once, before any reply goes out;
    `when_stored` is the command for the turn that follows the storing of `records`; `job` is
    computed outside of the turn, and ends in a command; `producer` is the one in whose transaction
    the records are.
    """

    replies: Sequence[Reply] = ()
    events: Sequence[Event] = ()
    records: Sequence[RecordPair] = ()
    ops: Sequence[Op] = ()
    then: Sequence[Command] = ()
    when_stored: StoredCommand | None = None
    job: AssignmentJob | None = None
    producer: BatchProducer | None = None
