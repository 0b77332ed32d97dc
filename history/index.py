"""History index: the last rebalances of each group in memory, within limits.

The most recent rebalances of the groups used last are kept, within limits of number and of bytes;
older ones are read from the topic on request. A running rebalance is never dropped: there are no
more of them than groups with members.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator.member_identity import MemberIdentity
from history.entries import GroupDeletedEntry, HistoryEntry, Rebalance
from history.newest import Newest
from history.story import GroupStory


class IndexLimits(Struct, frozen=True):
    rebalances_per_group: int = 20  # rollcall.history.memory.rebalances.per.group
    rebalances: int = 20_000  # rollcall.history.memory.rebalances
    memory_bytes: int = 32 << 20  # rollcall.history.memory.bytes


REBALANCE_MEMORY_BYTES: Final = 500
NAMED_BYTES: Final = 160
MOVE_BYTES: Final = 250  # a partition that moved, or a topic that changed
TEXT_BYTES: Final = 49
"""CPython's memory for a rebalance without members, for each member that it names, and for each
text besides its characters."""


def bytes_of(rebalance: Rebalance) -> int:
    """Its approximate memory: members are most of it."""
    named = [wait.member for wait in rebalance.waited_for]
    named += [joined.member for joined in rebalance.joined]
    named += [also.member for also in rebalance.also if also.member is not None]
    named += [member for member in (rebalance.trigger, rebalance.replaced) if member is not None]
    named += [*rebalance.with_trigger, *(tasks.member for tasks in rebalance.held)]
    texts = len(rebalance.reason) + len(rebalance.client_reason)
    texts += len(rebalance.note) + len(rebalance.described)
    pairs = len(rebalance.moves) + len(rebalance.topics)
    return REBALANCE_MEMORY_BYTES + texts + MOVE_BYTES * pairs + sum(map(_bytes_of_member, named))


def _bytes_of_member(member: MemberIdentity) -> int:
    texts = (
        len(member.member_id) + len(member.group_instance_id or "") + len(member.principal or "")
    )
    return NAMED_BYTES + 3 * TEXT_BYTES + texts + len(member.client_id) + len(member.client_host)


class HistoryIndex:
    """Stories by group id, the last used at the end."""

    def __init__(self, limits: IndexLimits) -> None:
        self._limits = limits
        self._stories: OrderedDict[str, GroupStory] = OrderedDict()
        self._sizes: dict[str, Newest[int]] = {}  # of each story's rebalances that are over
        self.kept = 0  # rebalances that are over
        self.kept_bytes = 0  # about what they take

    def apply(self, event: HistoryEntry) -> None:
        """Add an event to its group's story."""
        group_id = event.group_id
        if isinstance(event, GroupDeletedEntry):
            return
        story = self._stories.get(group_id)
        if story is None:
            story = GroupStory(self._limits.rebalances_per_group)
        last = story.done[-1] if story.done else None
        story.apply(event)
        if story.done and story.done[-1] is not last:
            self._count(group_id, story.done[-1])
        if story.running is None and not story.done:
            return  # no part of a rebalance
        self._stories[group_id] = story
        self._stories.move_to_end(group_id)
        if self._is_over_a_limit:
            self._forget()

    def without_stories(self) -> "HistoryIndex":
        """Another one with the same limits."""
        return HistoryIndex(self._limits)

    def take_over(self, other: "HistoryIndex") -> None:
        """Have what the other one has, which is not used any more."""
        self._stories, self._sizes = other._stories, other._sizes
        self.kept, self.kept_bytes = other.kept, other.kept_bytes

    def _count(self, group_id: str, rebalance: Rebalance) -> None:
        """Count a rebalance; a full story has dropped its oldest."""
        sizes = self._sizes.setdefault(group_id, Newest())
        size = bytes_of(rebalance)
        sizes.append(size)
        self.kept += 1
        self.kept_bytes += size
        if len(sizes) > self._limits.rebalances_per_group:
            self._uncount(group_id)

    def _uncount(self, group_id: str) -> None:
        sizes = self._sizes[group_id]
        self.kept_bytes -= sizes.popleft()
        self.kept -= 1
        if not sizes:
            del self._sizes[group_id]

    @property
    def _is_over_a_limit(self) -> bool:
        limits = self._limits
        return self.kept > limits.rebalances or self.kept_bytes > limits.memory_bytes

    def _forget(self) -> None:
        """Drop rebalances of the groups used least recently."""
        for group_id in tuple(self._stories):
            if not self._is_over_a_limit:
                return
            story = self._stories[group_id]
            while story.done and self._is_over_a_limit:
                story.done.popleft()
                self._uncount(group_id)
            if story.running is None and not story.done:
                del self._stories[group_id]

    def running(self, group_id: str) -> Rebalance | None:
        story = self._stories.get(group_id)
        return None if story is None else story.running

    def rebalances(self, group_id: str) -> list[Rebalance]:
        """Those in memory, newest first; a running one comes first."""
        story = self._stories.get(group_id)
        return [] if story is None else story.newest_first

    def groups(self) -> Iterator[str]:
        return iter(tuple(self._stories))

    def check(self) -> None:
        """Assert what must hold between events; called by tests."""
        assert self.kept == sum(len(story.done) for story in self._stories.values())
        assert not self._is_over_a_limit
        sizes = {
            group_id: [bytes_of(rebalance) for rebalance in story.done]
            for group_id, story in self._stories.items()
            if story.done
        }
        assert sizes == {group_id: list(of_group) for group_id, of_group in self._sizes.items()}
        assert self.kept_bytes == sum(map(sum, sizes.values()))
