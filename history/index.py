"""What does memory hold of the groups' stories? The last rebalances of each, within limits.

The newest of the groups that were touched last are kept; what is dropped here is still in the
topic, and is read from there when somebody asks. A rebalance that runs is never dropped: there are
no more of those than groups with members.
"""

from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

from history.events import GroupDeleted, HistoryEvent, Rebalance
from history.story import Story


class IndexLimits(Struct, frozen=True):
    rebalances_per_group: int = 20  # rollcall.history.memory.rebalances.per.group
    rebalances: int = 20_000  # rollcall.history.memory.rebalances; some 1 KB each


class HistoryIndex:
    """Stories by group id, the one that was touched last at the end."""

    def __init__(self, limits: IndexLimits) -> None:
        self._limits = limits
        self._stories: OrderedDict[str, Story] = OrderedDict()
        self.kept = 0  # rebalances that are over

    def apply(self, event: HistoryEvent) -> None:
        """Add an event to its group's story."""
        group_id = event.group_id
        if isinstance(event, GroupDeleted):
            return
        story = self._stories.get(group_id)
        if story is None:
            story = Story(self._limits.rebalances_per_group)
        before = len(story.done)
        story.apply(event)
        if story.running is None and not story.done:
            return  # nothing of it is a story
        self._stories[group_id] = story
        self._stories.move_to_end(group_id)
        self.kept += len(story.done) - before
        if self.kept > self._limits.rebalances:
            self._forget()

    def clear(self) -> None:
        self._stories.clear()
        self.kept = 0

    def _forget(self) -> None:
        """Drop the rebalances of the groups that were touched longest ago."""
        for group_id in tuple(self._stories):
            if self.kept <= self._limits.rebalances:
                return
            story = self._stories[group_id]
            while story.done and self.kept > self._limits.rebalances:
                story.done.popleft()
                self.kept -= 1
            if story.running is None and not story.done:
                del self._stories[group_id]

    def running(self, group_id: str) -> Rebalance | None:
        story = self._stories.get(group_id)
        return None if story is None else story.running

    def rebalances(self, group_id: str) -> list[Rebalance]:
        """Those in memory, newest first; one that runs comes first of all."""
        story = self._stories.get(group_id)
        return [] if story is None else story.newest_first

    def groups(self) -> Iterator[str]:
        return iter(tuple(self._stories))

    def check(self) -> None:
        """Assert what must hold between events; called by tests."""
        assert self.kept == sum(len(story.done) for story in self._stories.values())
        assert self.kept <= self._limits.rebalances
