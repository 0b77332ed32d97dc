"""Offset expiration sweep: when a shard checks which group for expired offsets.

One per shard. Every offsets.retention.check.interval.ms a sweep begins. It checks each group that
exists at that moment, in slices, one per tick, so that requests are not delayed. The shard carries
out the outcomes of a slice before it asks for the next slice. Reads groups and keeps only the ids
that are left. Kafka's counterpart: `GroupCoordinatorShard.scheduleGroupMetadataExpiration` and
`cleanupGroupMetadata`, which does the whole sweep at once.
"""

from collections.abc import Mapping
from typing import Final

from coordinator.events import GroupDeleted
from coordinator.group_view import GroupView
from coordinator.offsets.expire_offsets import decide_expire_offsets
from coordinator.offsets.pending_offsets import NOTHING_PENDING, PendingOfTopics
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from protocol.names import GroupId
from seams.now import Now

OFFSETS_READ_PER_SLICE: Final = 5_000
"""About a millisecond."""

TOMBSTONES_PER_SLICE: Final = 1_000
"""They fit into one batch, unless names are longer than 500 characters on average."""

PAUSE_BETWEEN_SLICES_MS: Final = 5

NO_GROUP: Final[Mapping[GroupId, PendingOfTopics]] = {}


class OffsetExpiry:
    """`due_ms` is when `next_slice` wants to be called: a deadline, monotonic."""

    __slots__ = ("_group_ids", "_settings", "due_ms")

    def __init__(self, settings: GroupSettings, now: Now) -> None:
        self._settings = settings
        self._group_ids: list[GroupId] = []  # still to be checked in this sweep, the next one last
        self.due_ms = now.mono_ms + settings.offsets_retention_check_interval_ms

    @property
    def sweeping(self) -> bool:
        return bool(self._group_ids)

    def next_slice(
        self,
        groups: Mapping[GroupId, GroupView],
        now: Now,
        pending: Mapping[GroupId, PendingOfTopics] = NO_GROUP,
    ) -> list[tuple[GroupId, Outcome]]:
        """The outcomes that expire offsets now, one group at most once; none before `due_ms`."""
        if now.mono_ms < self.due_ms:
            return []
        if not self._group_ids:
            self._group_ids = list(groups)
            self._group_ids.reverse()
        outcomes = self._next_outcomes(groups, now, pending)
        pause_ms = self._settings.offsets_retention_check_interval_ms
        if self._group_ids:
            pause_ms = PAUSE_BETWEEN_SLICES_MS
        self.due_ms = now.mono_ms + pause_ms
        return outcomes

    def _next_outcomes(
        self,
        groups: Mapping[GroupId, GroupView],
        now: Now,
        pending: Mapping[GroupId, PendingOfTopics],
    ) -> list[tuple[GroupId, Outcome]]:
        outcomes: list[tuple[GroupId, Outcome]] = []
        read, room = 0, TOMBSTONES_PER_SLICE
        while self._group_ids and read < OFFSETS_READ_PER_SLICE and room > 0:
            group_id = self._group_ids.pop()
            group = groups.get(group_id)
            if group is None:
                continue  # deleted since the sweep began
            read += 1 + sum(map(len, group.offsets.values()))
            outcome = decide_expire_offsets(
                group, now, self._settings, room, pending.get(group_id, NOTHING_PENDING)
            )
            if not outcome.events:
                continue
            outcomes.append((group_id, outcome))
            if len(outcome.records) >= room and not _is_gone(outcome):
                self._group_ids.append(group_id)  # there may be more of it
            room -= len(outcome.records)
        return outcomes


def _is_gone(outcome: Outcome) -> bool:
    return any(isinstance(event, GroupDeleted) for event in outcome.events)
