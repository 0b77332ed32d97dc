"""Consumer recorder: turns the events of consumer groups into history entries.

The counterpart for consumer groups of the classic part of recorder.py, which hands over the events
of each turn to a `ConsumerTurnRecorder`.
"""

from collections.abc import Sequence
from typing import Final

from coordinator.classic.group import ClassicGroup
from coordinator.consumer.events import GroupEpochBumped
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.events import ConversionRefused, Event, GroupConverted, GroupCreated
from coordinator.group import GroupType
from coordinator.group_types import AnyGroupView
from history.entries import GroupLoadedEntry, HistoryEntry
from history.recording.consumer_state import CONSUMER_GROUP, ConsumerRecordingState
from history.recording.consumer_turn import ConsumerTurn
from history.recording.consumer_turn_recorder import ConsumerTurnRecorder
from history.recording.downtime import Downtime
from history.recording.rebalance_tracker import interrupted_entry
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupId, GroupState
from seams.now import Now

_UNSETTLED: Final = (GroupState.ASSIGNING, GroupState.RECONCILING)


_OF_A_TYPE: Final = frozenset((GroupCreated, GroupConverted, ConversionRefused))


def is_of_consumers(group: AnyGroupView | None, happened: Sequence[Event]) -> bool:
    """Whether the group is a consumer group before or after the turn, or was asked to become one.

    A conversion is the first event of its turn, as a creation is.
    """
    if group is not None and not isinstance(group, ClassicGroup):
        return True
    first = happened[0] if happened else None
    if type(first) not in _OF_A_TYPE:
        return False
    return not isinstance(first, GroupCreated) or first.group_type is GroupType.CONSUMER


class ConsumerRecorder:
    def __init__(self, state: ConsumerRecordingState) -> None:
        self.state = state

    def turn(
        self,
        group: ConsumerGroupView | None,
        group_id: GroupId,
        happened: Sequence[object],
        now: Now,
    ) -> ConsumerTurnRecorder:
        """`group` is as it was before the turn; None if there was none of this type."""
        has_new_epoch = any(isinstance(event, GroupEpochBumped) for event in happened)
        turn = ConsumerTurn(group_id, group)
        return ConsumerTurnRecorder(self.state, turn, now, has_new_epoch=has_new_epoch)

    def loaded(self, group: ConsumerGroupView, downtime: Downtime, now: Now) -> list[HistoryEntry]:
        """The entries of a group that this process serves from now on."""
        group_id, recorded = group.group_id, list[HistoryEntry]()
        story = self.state.index.running(group_id)
        self.state.reconciliations.forget(group_id)
        if story is not None:
            if group.state in _UNSETTLED and story.group_type == CONSUMER_GROUP:
                self.state.reconciliations.resume(group, story, now)
                story = None
            else:
                members = len(group.members)
                recorded.append(interrupted_entry(group_id, story, group.epoch, members, now))
        if group.members or story is not None:
            recorded.append(
                GroupLoadedEntry(
                    group_id,
                    now.wall_ms,
                    group.epoch,
                    str(group.state),
                    len(group.members),
                    story is not None,
                    downtime.away_ms,
                    downtime.stopped,
                    PROTOCOL_TYPE,
                    CONSUMER_GROUP,
                )
            )
        return recorded
