"""What does one decision yield? Replies, events, records, ops to park, and what to do once stored.

An `Outcome` is a value: a function of `decide/` makes it and `Shard.turn` carries it out, in the order
in which its fields stand here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.messages import Response
from protocol.reply_token import ReplyToken
from purgatory.op import DelayedOp
from storage.api import Record

if TYPE_CHECKING:
    from coordinator.commands import Command
    from coordinator.events import Event


@dataclass(slots=True)
class Reply:
    token: ReplyToken
    response: Response


@dataclass(slots=True)
class Outcome:
    """Replies go out once everything that they depend on is stored; see Shard.turn.

    `when_stored` is the command for the turn that follows the storing of `records`.
    """

    replies: Sequence[Reply] = ()
    events: Sequence["Event"] = ()
    records: Sequence[Record] = ()
    ops: Sequence[DelayedOp["Command"]] = ()
    when_stored: "Command | None" = None
