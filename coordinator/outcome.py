"""What does one decision yield? Replies, events, records, ops to park, and what to do next.

An `Outcome` is a value: a function of `decide/` makes it and `Shard.turn` carries it out.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from protocol.messages import Response
from seams.reply_token import ReplyToken
from storage.api import RecordPair

if TYPE_CHECKING:
    from coordinator.classic.commands import AssignmentStored, Command
    from coordinator.classic.delayed import Op
    from coordinator.classic.events import Event


class Reply(Struct, frozen=True):
    token: ReplyToken
    response: Response


class Outcome(Struct, frozen=True):
    """Replies go out once everything that they depend on is stored; see Shard.turn.

    `then` are the commands for the turns that follow at once, before any reply goes out;
    `when_stored` is the command for the turn that follows the storing of `records`.
    """

    replies: Sequence[Reply] = ()
    events: Sequence["Event"] = ()
    records: Sequence[RecordPair] = ()
    ops: Sequence["Op"] = ()
    then: Sequence["Command"] = ()
    when_stored: "AssignmentStored | None" = None
