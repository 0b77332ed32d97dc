"""Who writes down what happens to groups, for people? Told of each turn, in that very turn.

The shell implements it (broker/history_log/writer.py). A turn's records and its history are
appended
between `hold` and `release`, so that they are stored in one flush: a crash has both or neither.
Nothing here may raise: a history that cannot be written is no reason to refuse a client.
"""

from collections.abc import Sequence
from typing import Protocol

from coordinator.classic.events import Event, SessionMoved, SyncParked
from coordinator.group import GroupView
from coordinator.offsets.events import OffsetsCommitted
from protocol.names import NO_GENERATION
from seams.now import Now


class Chronicle(Protocol):
    def hold(self) -> None:
        """What is appended from now on belongs together."""

    def tell(self, group: GroupView | None, happened: Sequence[Event], now: Now) -> None:
        """One turn's events; the group is as it was before them, None if there was none."""

    def release(self) -> None:
        """That was all."""

    def loaded(self, group: GroupView, now: Now) -> None:
        """The group is served from now on, as the log had it."""


def is_history(happened: Sequence[Event]) -> bool:
    """Not if nothing happened, nor if a member committed: that is its work, not its story."""
    if not happened:
        return False
    last = happened[-1]
    if isinstance(last, OffsetsCommitted):
        return last.generation_id == NO_GENERATION
    return len(happened) > 1 or not isinstance(last, SyncParked | SessionMoved)
