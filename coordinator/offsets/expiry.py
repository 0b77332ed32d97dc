"""When is it time to look for expired offsets, and at which group next?

One per shard. Every offsets.retention.check.interval.ms a sweep begins: it asks every group that
was there then, in slices small enough that clients do not feel them, each slice in a tick of its
own. The shard carries out what a slice returns, as it does with any outcome, before it asks for the
next. Reads groups, keeps nothing but its place. Kafka's counterpart:
`GroupCoordinatorShard.scheduleGroupMetadataExpiration` and `cleanupGroupMetadata`, in one go.
"""

from collections.abc import Mapping
from typing import Final

from coordinator.group import GroupView
from coordinator.offsets.events import GroupDeleted
from coordinator.offsets.expire_offsets import decide_expire_offsets
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from protocol.names import GroupId
from seams.now import Now

OFFSETS_READ_PER_SLICE: Final = 5_000
"""About a millisecond."""

TOMBSTONES_PER_SLICE: Final = 1_000
"""They fit into one batch, unless names are longer than 500 characters on average."""

PAUSE_BETWEEN_SLICES_MS: Final = 5


class OffsetExpiry:
    """`due_ms` is when `next_slice` wants to be called: a deadline, monotonic."""

    __slots__ = ("_group_ids", "_settings", "due_ms")

    def __init__(self, settings: GroupSettings, now: Now) -> None:
        self._settings = settings
        self._group_ids: list[GroupId] = []  # still to be asked in this sweep, the next one last
        self.due_ms = now.mono_ms + settings.offsets_retention_check_interval_ms

    @property
    def sweeping(self) -> bool:
        return bool(self._group_ids)

    def next_slice(
        self, groups: Mapping[GroupId, GroupView], now: Now
    ) -> list[tuple[GroupId, Outcome]]:
        """What is to be forgotten now, each group at most once; nothing before `due_ms`."""
        if now.mono_ms < self.due_ms:
            return []
        if not self._group_ids:
            self._group_ids = list(groups)
            self._group_ids.reverse()
        outcomes = self._ask_some(groups, now)
        pause_ms = self._settings.offsets_retention_check_interval_ms
        if self._group_ids:
            pause_ms = PAUSE_BETWEEN_SLICES_MS
        self.due_ms = now.mono_ms + pause_ms
        return outcomes

    def _ask_some(
        self, groups: Mapping[GroupId, GroupView], now: Now
    ) -> list[tuple[GroupId, Outcome]]:
        outcomes: list[tuple[GroupId, Outcome]] = []
        read, room = 0, TOMBSTONES_PER_SLICE
        while self._group_ids and read < OFFSETS_READ_PER_SLICE and room > 0:
            group_id = self._group_ids.pop()
            group = groups.get(group_id)
            if group is None:
                continue  # deleted since the sweep began
            read += 1 + sum(map(len, group.offsets.values()))
            outcome = decide_expire_offsets(group, now, self._settings, room)
            if not outcome.events:
                continue
            outcomes.append((group_id, outcome))
            if len(outcome.records) >= room and not _is_gone(outcome):
                self._group_ids.append(group_id)  # there may be more of it
            room -= len(outcome.records)
        return outcomes


def _is_gone(outcome: Outcome) -> bool:
    return any(isinstance(event, GroupDeleted) for event in outcome.events)
