"""Member steps: when each member rejoined and had its assignment, for the timeline.

The history keeps whole rebalances, and not each member's SyncGroup. Here these moments are kept in
memory, for a bounded number of groups and steps: the timeline of an older time is less exact.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from coordinator.classic.events import GroupStabilized, MemberRejoined, MemberSynced
from coordinator.consumer.events import ClassicMemberSynced
from coordinator.events import Event
from history.newest import Newest
from history.timeline import LaneMark, MemberStep
from seams.now import Now

STEP_GROUPS_MAX: Final = 1_000
STEPS_MAX: Final = 500
"""Of one group."""

ALL_STEPS_MAX: Final = 50_000
"""Of all groups together: some 10 MB."""


class MemberSteps:
    """The groups that rebalanced last."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, Newest[MemberStep]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, group_id: str) -> Sequence[MemberStep]:
        """Oldest first."""
        return tuple(self._groups.get(group_id, ()))

    def take(self, happened: Sequence[Event], now: Now) -> None:
        """The events of one turn, within it."""
        for event in happened:
            match event:
                case MemberRejoined():
                    self._add(event.group_id, now, event.member.member_id, LaneMark.JOINED)
                case MemberSynced() | ClassicMemberSynced():
                    self._add(event.group_id, now, event.member_id, LaneMark.SYNCED)
                case GroupStabilized():
                    for member_id in event.answered[:STEPS_MAX]:
                        self._add(event.group_id, now, member_id, LaneMark.SYNCED)
                case _:
                    pass

    def _add(self, group_id: str, now: Now, member_id: str, mark: LaneMark) -> None:
        steps = self._groups.setdefault(group_id, Newest())
        self._groups.move_to_end(group_id)
        steps.append(MemberStep(now.wall_ms, member_id, mark))
        self._count += 1
        if len(steps) > STEPS_MAX:
            steps.popleft()
            self._count -= 1
        while len(self._groups) > STEP_GROUPS_MAX or self._count > ALL_STEPS_MAX:
            _, forgotten = self._groups.popitem(last=False)
            self._count -= len(forgotten)
