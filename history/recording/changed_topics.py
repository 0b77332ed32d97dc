"""Changed topics: topics whose partitions changed lately, and groups that have not noticed it yet.

Their consumers may rebalance because of it. A leader assigns by its own metadata, which may be
older than the change: then the change also counts for the next rebalance of that group.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator.classic.group_view import ClassicGroupView
from history.entries import Rebalance
from history.entry_values import TopicPartitionCounts
from history.ownership import OwnershipChange
from protocol.names import GroupId, TopicName
from seams.now import Now

CHANGED_TOPICS_MAX: Final = 10_000
"""The most recent changes are kept."""

METADATA_AGE_MAX_MS: Final = 600_000
"""Twice metadata.max.age.ms: by then every leader has detected the change."""


class _Stale(NamedTuple):
    """Changes that the last assignment of a group did not include, and until when they count."""

    until_ms: int  # monotonic
    topics: tuple[TopicPartitionCounts, ...]


class ChangedTopics:
    def __init__(self) -> None:
        # -> wall clock ms, and the numbers of partitions
        self._topics: OrderedDict[TopicName, tuple[int, TopicPartitionCounts]] = OrderedDict()
        self._stale: dict[GroupId, _Stale] = {}

    def add(self, changes: Iterable[TopicPartitionCounts], now: Now) -> None:
        """Topics were created, deleted, or got partitions."""
        for change in changes:
            name = TopicName(change.topic)
            self._topics[name] = (now.wall_ms, change)
            self._topics.move_to_end(name)
        while len(self._topics) > CHANGED_TOPICS_MAX:
            self._topics.popitem(last=False)

    def of(
        self, group: ClassicGroupView, rebalances: Iterable[Rebalance], most: int, now: Now
    ) -> tuple[TopicPartitionCounts, ...]:
        """Changes of the subscribed topics since the last rebalance began, or before it if its
        assignment did not include them. By name, at most `most`.
        """
        subscribed = group.subscribed_topics
        if not subscribed:
            return ()
        since_ms = group.state_since_ms
        for last in rebalances:
            if last.generation_after != last.generation_before:
                since_ms = last.began_at_ms
                break
        changed = {change.topic: change for change in self._since(subscribed, since_ms)}
        stale = self._stale.get(group.group_id)
        if stale is not None and now.mono_ms <= stale.until_ms:
            for change in stale.topics:
                if change.topic in subscribed:
                    changed.setdefault(change.topic, change)
        return tuple(changed[topic] for topic in sorted(changed)[:most])

    def _since(self, names: Iterable[TopicName], since_ms: int) -> Iterable[TopicPartitionCounts]:
        for name in names:
            at_ms, change = self._topics.get(name, (-1, None))
            if change is not None and at_ms >= since_ms:
                yield change

    def numbers(self, names: Iterable[str]) -> tuple[TopicPartitionCounts, ...]:
        """The last known change of each of these topics."""
        return tuple(
            self._topics.get(TopicName(name), (0, TopicPartitionCounts(name)))[1] for name in names
        )

    def assigned(
        self,
        group_id: GroupId,
        changed: Iterable[TopicPartitionCounts],
        ownership: OwnershipChange | None,
        now: Now,
    ) -> None:
        """An assignment is known: keep the changes that it does not include."""
        self._stale.pop(group_id, None)
        if ownership is None:
            return
        stale = tuple(
            change
            for change in changed
            if change.now is not None and ownership.partitions_of(change.topic) != change.now
        )
        if stale:
            self._stale[group_id] = _Stale(now.mono_ms + METADATA_AGE_MAX_MS, stale)

    def forget(self, group_id: GroupId) -> None:
        self._stale.pop(group_id, None)

    def forget_groups(self) -> None:
        self._stale.clear()
