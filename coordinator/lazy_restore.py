"""How do the groups that the log knows come onto a shard's books? One by one.

First the log is written into an image (`begin`, `apply`, `is_read`). Then each group gets ready as
soon as somebody asks for it (`recall`); the others follow in slices (`recall_some`). A shard has
one of these until all are there. Kafka's counterpart: `GroupMetadataManager.onLoaded`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from coordinator.classic.commands import BeginRebalance, RebalanceCause
from coordinator.classic.delayed import DelayedHeartbeat, DelayedSync
from coordinator.group import Group
from coordinator.group_counts import Census
from coordinator.group_store import Books
from coordinator.history_sink import Chronicle
from coordinator.image import NOTHING, Beginning, Image
from coordinator.restore import RecordSkipped
from coordinator.settings import GroupSettings
from protocol.names import GroupId, GroupState, TopicName
from seams.now import Now
from storage.api import StoredRecord


class Loading:
    """The groups that are loaded and not on the books yet."""

    __slots__ = (
        "_begin_rebalance", "_books", "_census", "_chronicle", "_image", "_settings",
        "changed_topics",
    )  # fmt: skip

    def __init__(
        self,
        books: Books,
        settings: GroupSettings,
        census: Census,
        chronicle: Chronicle | None,
        begin_rebalance: Callable[[BeginRebalance, Now], None],
    ) -> None:
        self._books = books
        self._settings = settings
        self._census = census
        self._chronicle = chronicle
        self._begin_rebalance = begin_rebalance
        self._image = Image(NOTHING)
        self.changed_topics: set[TopicName] = set()  # meanwhile

    # ------------------------------------------------------------ reading

    def begin(self, beginning: Beginning) -> None:
        """What the log said before some position; its records follow."""
        self._image = Image(beginning)

    def apply(self, records: Iterable[StoredRecord]) -> None:
        """Write a slice of the log into the groups. Raises UnreadableRecord."""
        apply = self._image.apply
        for record in records:
            apply(record)

    def is_read(self) -> None:
        """That was all of the log."""
        self._census.awaited += len(self._image)

    def give_up(self) -> None:
        """Nobody is going to ask for the rest."""
        self._census.awaited -= len(self._image)

    # ------------------------------------------------------------ facts

    @property
    def awaited(self) -> int:
        """How many groups are not ready yet, unless somebody asks for them."""
        return len(self._image)

    @property
    def cost(self) -> int:
        """What it takes to get these ready, in bytes."""
        return self._image.cost

    @property
    def skipped(self) -> Sequence[RecordSkipped]:
        return self._image.skipped

    def __contains__(self, group_id: GroupId) -> bool:
        return group_id in self._image

    def __iter__(self) -> Iterator[GroupId]:
        return iter(self._image)

    # ------------------------------------------------------------ getting ready

    def recall(self, group_id: GroupId, now: Now) -> None:
        """Get a group ready if it is not yet."""
        group = self._image.take(group_id)
        if group is not None:
            self._welcome(group, now)

    def recall_some(self, now: Now, budget: int) -> bool:
        """Get a slice of the groups ready, up to this cost; False once all are."""
        while budget >= 0:
            taken = self._image.take_next()
            if taken is None:
                return False
            group, cost = taken
            budget -= cost
            self._welcome(group, now)
        return True

    def _welcome(self, group: Group, now: Now) -> None:
        """Every member gets a full session; a group over its limit rebalances."""
        self._books.groups[group.group_id] = group
        self._census.awaited -= 1
        self._census.came(group)
        if self._chronicle is not None:
            self._chronicle.loaded(group, now)
        for member in group.members.values():
            member.session_deadline_ms = now.mono_ms + member.session_timeout_ms
            self._books.file(
                DelayedHeartbeat(group.group_id, member.member_id, member.session_deadline_ms)
            )
        if group.state is GroupState.COMPLETING_REBALANCE:
            # A generation that had begun: its members go on where they were.
            self._books.file(
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
