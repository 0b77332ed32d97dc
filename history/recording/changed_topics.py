"""Changed topics: whose partitions changed lately, and which group has not taken note of it?

A rebalance of their readers may come of it. A leader assigns by its own metadata, which may be
older than the change: then the change counts for the next rebalance of that group too.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator.classic.group_view import ClassicGroupView
from history.entries import Rebalance, TopicPartitionCounts
from history.ownership import Shift
from protocol.names import GroupId, TopicName
from seams.now import Now

TOPICS_REMEMBERED: Final = 10_000
"""The last ones."""

METADATA_AGE_MAX_MS: Final = 600_000
"""Twice metadata.max.age.ms: by then each leader knows of a change of its topics."""


class _Stale(NamedTuple):
    """Changes that a group's last assignment did not show, and until when they count."""

    until_ms: int  # monotonic
    topics: tuple[TopicPartitionCounts, ...]


class ChangedTopics:
    def __init__(self) -> None:
        # -> wall clock ms, and the numbers of partitions
        self._topics: OrderedDict[TopicName, tuple[int, TopicPartitionCounts]] = OrderedDict()
        self._stale: dict[GroupId, _Stale] = {}

    def note(self, changes: Iterable[TopicPartitionCounts], now: Now) -> None:
        """Topics came, went, or got more partitions."""
        for change in changes:
            name = TopicName(change.topic)
            self._topics[name] = (now.wall_ms, change)
            self._topics.move_to_end(name)
        while len(self._topics) > TOPICS_REMEMBERED:
            self._topics.popitem(last=False)

    def of(
        self, group: ClassicGroupView, rebalances: Iterable[Rebalance], most: int, now: Now
    ) -> tuple[TopicPartitionCounts, ...]:
        """Of the topics subscribed to: changed since the last rebalance began, or before it if its
        assignment did not show the change. By name, at most so many.
        """
        subscribed = group.subscribed_topics
        if not subscribed:
            return ()
        since_ms = group.state_since_ms
        for last in rebalances:
            if last.generation_after != last.generation_before:
                since_ms = last.began_at_ms
                break
        changed = {one.topic: one for one in self._since(subscribed, since_ms)}
        stale = self._stale.get(group.group_id)
        if stale is not None and now.mono_ms <= stale.until_ms:
            for one in stale.topics:
                if one.topic in subscribed:
                    changed.setdefault(one.topic, one)
        return tuple(changed[topic] for topic in sorted(changed)[:most])

    def _since(self, names: Iterable[TopicName], since_ms: int) -> Iterable[TopicPartitionCounts]:
        for name in names:
            at_ms, change = self._topics.get(name, (-1, None))
            if change is not None and at_ms >= since_ms:
                yield change

    def numbers(self, names: Iterable[str]) -> tuple[TopicPartitionCounts, ...]:
        """What is known of these topics' last changes."""
        return tuple(
            self._topics.get(TopicName(name), (0, TopicPartitionCounts(name)))[1] for name in names
        )

    def handed_out(
        self,
        group_id: GroupId,
        changed: Iterable[TopicPartitionCounts],
        shift: Shift | None,
        now: Now,
    ) -> None:
        """An assignment is known: which of these changes does it not show?"""
        self._stale.pop(group_id, None)
        if shift is None:
            return
        stale = tuple(
            one
            for one in changed
            if one.now is not None and shift.partitions_of(one.topic) != one.now
        )
        if stale:
            self._stale[group_id] = _Stale(now.mono_ms + METADATA_AGE_MAX_MS, stale)

    def forget(self, group_id: GroupId) -> None:
        self._stale.pop(group_id, None)

    def forget_groups(self) -> None:
        self._stale.clear()
