"""How many groups and members are there? Counted as things happen, so that nobody has to scan."""

from collections.abc import Iterable

from coordinator.group import Group
from protocol.names import GroupState


class Census:
    """One for all shards of a coordinator."""

    __slots__ = ("members", "states")

    def __init__(self) -> None:
        self.states: dict[GroupState, int] = dict.fromkeys(GroupState, 0)
        self.members = 0

    @property
    def groups(self) -> int:
        return sum(self.states.values())

    def came(self, group: Group) -> None:
        self.states[group.state] += 1
        self.members += len(group.members)

    def went(self, state: GroupState, members: int) -> None:
        self.states[state] -= 1
        self.members -= members

    def changed(self, group: Group, state_before: GroupState, members_before: int) -> None:
        if group.state is not state_before:
            self.states[state_before] -= 1
            self.states[group.state] += 1
        self.members += len(group.members) - members_before

    def all_went(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self.went(group.state, len(group.members))
