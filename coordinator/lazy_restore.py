"""Lazy restore: groups enter the group store one by one after their partition was loaded.

First the log is read into an image (`begin`, `apply`, `is_read`). Then a group is restored when a
request names it (`restore`); the others follow in slices (`restore_slice`). A shard keeps this
object until all groups are restored. Kafka's counterpart: `GroupMetadataManager.onLoaded`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from coordinator.classic.commands import BeginRebalance, RebalanceCause
from coordinator.classic.delayed import DelayedHeartbeat, DelayedSync
from coordinator.group import Group
from coordinator.group_counts import GroupCounts
from coordinator.group_store import GroupStore
from coordinator.history_sink import HistorySink
from coordinator.image import NOTHING, Image, LoadStart
from coordinator.restore import RecordSkipped
from coordinator.settings import GroupSettings
from protocol.names import GroupId, GroupState, TopicName
from seams.now import Now
from storage.api import StoredRecord


class LazyRestore:
    """The groups of a loaded partition that are not in the group store yet."""

    __slots__ = (
        "_begin_rebalance",
        "_group_counts",
        "_history_sink",
        "_image",
        "_settings",
        "_store",
        "changed_topics",
    )  # fmt: skip

    def __init__(
        self,
        books: GroupStore,
        settings: GroupSettings,
        group_counts: GroupCounts,
        history_sink: HistorySink | None,
        begin_rebalance: Callable[[BeginRebalance, Now], None],
    ) -> None:
        self._store = books
        self._settings = settings
        self._group_counts = group_counts
        self._history_sink = history_sink
        self._begin_rebalance = begin_rebalance
        self._image = Image(NOTHING)
        self.changed_topics: set[TopicName] = set()  # meanwhile

    # ------------------------------------------------------------ reading

    def begin(self, load_start: LoadStart) -> None:
        """What the log said before some position; its records follow."""
        self._image = Image(load_start)

    def apply(self, records: Iterable[StoredRecord]) -> None:
        """Write a slice of the log into the groups. Raises UnreadableRecord."""
        apply = self._image.apply
        for record in records:
            apply(record)

    def is_read(self) -> None:
        """That was all of the log."""
        self._group_counts.unrestored += len(self._image)

    def give_up(self) -> None:
        """Nobody is going to ask for the rest."""
        self._group_counts.unrestored -= len(self._image)

    # ------------------------------------------------------------ facts

    @property
    def unrestored(self) -> int:
        """How many groups are still to be restored."""
        return len(self._image)

    @property
    def cost(self) -> int:
        """What restoring them takes, in bytes."""
        return self._image.cost

    @property
    def skipped(self) -> Sequence[RecordSkipped]:
        return self._image.skipped

    def __contains__(self, group_id: GroupId) -> bool:
        return group_id in self._image

    def __iter__(self) -> Iterator[GroupId]:
        return iter(self._image)

    # ------------------------------------------------------------ getting ready

    def restore(self, group_id: GroupId, now: Now) -> None:
        """Restore a group if it is not in the store yet."""
        group = self._image.take(group_id)
        if group is not None:
            self._restored(group, now)

    def restore_slice(self, now: Now, budget: int) -> bool:
        """Restore groups up to this cost; False once all are restored."""
        while budget >= 0:
            taken = self._image.take_next()
            if taken is None:
                return False
            group, cost = taken
            budget -= cost
            self._restored(group, now)
        return True

    def _restored(self, group: Group, now: Now) -> None:
        """Every member gets a full session; a group over its limit rebalances."""
        self._store.groups[group.group_id] = group
        self._group_counts.unrestored -= 1
        self._group_counts.came(group)
        if self._history_sink is not None:
            self._history_sink.loaded(group, now)
        for member in group.members.values():
            member.session_deadline_ms = now.mono_ms + member.session_timeout_ms
            self._store.schedule(
                DelayedHeartbeat(group.group_id, member.member_id, member.session_deadline_ms)
            )
        if group.state is GroupState.COMPLETING_REBALANCE:
            # A generation that had begun: its members go on where they were.
            self._store.schedule(
                DelayedSync(group, group.generation_id, now.mono_ms + group.rebalance_timeout_ms)
            )
        size, limit = len(group.members), self._settings.group_max_size
        if size > limit:
            reason = (
                f"Freshly-loaded group {group.group_id} (size {size}) is over capacity "
                f"{limit}. Rebalancing in order to give a chance for consumers to commit "
                "offsets"
            )
            begin = BeginRebalance(group.group_id, RebalanceCause.OVER_CAPACITY, reason)
            self._begin_rebalance(begin, now)
