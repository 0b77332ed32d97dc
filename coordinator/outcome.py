"""Outcome: what one decision yields: replies, events, records, ops to schedule, next commands.

It is a value: a decision returns it and the shard carries it out.
"""

from collections.abc import Sequence

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
