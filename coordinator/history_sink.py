"""History sink: receives the events of each turn and writes the group history.

The broker implements it (broker/history_log/writer.py). A turn's records and its history are
appended between `begin` and `end`, so that one flush stores both: after a crash both are there or
neither. No method may raise: a history that cannot be written is no reason to refuse a client.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from coordinator.classic.events import SessionExtended, SyncParked
from coordinator.consumer.events import ConsumerSessionExtended
from coordinator.events import Event
from coordinator.group_types import AnyGroupView
from coordinator.offsets.events import OffsetsCommitted, OffsetsPending, PendingOffsetsEnded
from protocol.names import NO_GENERATION
from seams.now import Now


class HistorySink(Protocol):
    def begin(self) -> None:
        """What is appended from now on is stored in one flush."""

    def record(self, group: AnyGroupView | None, happened: Sequence[Event], now: Now) -> None:
        """The events of one turn. `group` is as it was before them; None if there was none."""

    def end(self) -> None:
        """End of what `begin` began."""

    def loaded(self, group: AnyGroupView, now: Now) -> None:
        """The group is served from now on, as the log had it."""


_NOT_RECORDED_ALONE: Final = (
    SyncParked,
    SessionExtended,
    ConsumerSessionExtended,
    OffsetsPending,
)


_PERHAPS_NOT_RECORDED: Final = frozenset(
    (*_NOT_RECORDED_ALONE, OffsetsCommitted, PendingOffsetsEnded)
)


def is_history(happened: Sequence[Event]) -> bool:
    """Is there anything for the history? A member's ordinary commit is not recorded."""
    if not happened:
        return False
    last = happened[-1]
    if type(last) not in _PERHAPS_NOT_RECORDED:  # one look in place of six
        return True
    if isinstance(last, OffsetsCommitted):
        return last.generation_id == NO_GENERATION
    if isinstance(last, PendingOffsetsEnded) and last.is_commit:
        return is_history(happened[:-1])
    if len(happened) > 1:
        return True
    return not isinstance(last, _NOT_RECORDED_ALONE)
