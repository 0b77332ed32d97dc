"""Group counts: how many groups and members there are, by state.

Counted as events are applied, so that metrics need no scan over all groups.
"""

from coordinator.group import GroupType
from coordinator.group_view import GroupView
from protocol.names import GroupState


class GroupCounts:
    """One for all shards of a coordinator."""

    __slots__ = ("groups", "members", "of_type", "states", "unrestored")

    def __init__(self) -> None:
        self.states: dict[GroupState, int] = dict.fromkeys(GroupState, 0)
        self.of_type = {kind: dict.fromkeys(GroupState, 0) for kind in GroupType}
        self.members = 0
        self.groups = 0
        self.unrestored = 0  # groups that a load has read and that are not restored yet

    def added(self, group: GroupView) -> None:
        self.states[group.state] += 1
        self.of_type[group.group_type][group.state] += 1
        self.members += len(group.members)
        self.groups += 1

    def removed(self, group: GroupView) -> None:
        """As it is now: before its end."""
        self.states[group.state] -= 1
        self.of_type[group.group_type][group.state] -= 1
        self.members -= len(group.members)
        self.groups -= 1

    def changed(self, group: GroupView, state_before: GroupState, members_before: int) -> None:
        if group.state is not state_before:
            self.states[state_before] -= 1
            self.states[group.state] += 1
            of_type = self.of_type[group.group_type]
            of_type[state_before] -= 1
            of_type[group.state] += 1
        self.members += len(group.members) - members_before
