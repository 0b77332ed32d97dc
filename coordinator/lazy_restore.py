"""Lazy restore: groups enter the group store one by one after their partition was loaded.

First the log is read into an image (`begin`, `apply`, `is_read`). Then a group is restored when a
request names it (`restore`); the others follow in slices (`restore_slice`). A shard keeps this
object until all groups are restored. Kafka's counterpart: `GroupMetadataManager.onLoaded`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from coordinator.commands import Command
from coordinator.group_store import GroupStore
from coordinator.group_types import AnyGroup, started_after_load
from coordinator.image import NOTHING, Image, LoadStart
from coordinator.loaded_record import LoadedRecord
from coordinator.shard_context import ShardContext
from coordinator.stored_records import RecordSkipped
from protocol.names import GroupId, TopicName
from seams.now import Now


class LazyRestore:
    """The groups of a loaded partition that are not in the group store yet."""

    __slots__ = (
        "_carry_out",
        "_configs",
        "_group_counts",
        "_history_sink",
        "_image",
        "_settings",
        "_store",
        "changed_topics",
    )  # fmt: skip

    def __init__(
        self, store: GroupStore, context: ShardContext, carry_out: Callable[[Command, Now], None]
    ) -> None:
        self._store = store
        self._settings = context.settings
        self._configs = context.consumer.configs
        self._group_counts = context.group_counts
        self._history_sink = context.history_sink
        self._carry_out = carry_out
        self._image = Image(NOTHING)
        self.changed_topics: set[TopicName] = set()  # meanwhile

    # ------------------------------------------------------------ reading

    def begin(self, load_start: LoadStart) -> None:
        """What the log said before some position; its records follow."""
        self._image = Image(load_start)

    def apply(self, records: Iterable[LoadedRecord]) -> None:
        """Write a slice of the log into the groups. Raises UnreadableRecord."""
        apply = self._image.apply
        for record in records:
            apply(record)

    def is_read(self) -> None:
        """That was all of the log."""
        self._store.transactions = self._image.transactions
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
            self._add(group, now)

    def restore_slice(self, now: Now, budget: int) -> bool:
        """Restore groups up to this cost; False once all are restored."""
        while budget >= 0:
            taken = self._image.take_next()
            if taken is None:
                return False
            group, cost = taken
            budget -= cost
            self._add(group, now)
        return True

    def _add(self, group: AnyGroup, now: Now) -> None:
        self._store.add(group)
        self._group_counts.unrestored -= 1
        if self._history_sink is not None:
            self._history_sink.loaded(group, now)
        ops, command = started_after_load(group, now, self._settings, self._configs)
        for op in ops:
            self._store.schedule(op)
        if command is not None:
            self._carry_out(command, now)
