"""Consumer history: a consumer group whose turns are made by hand, with a history.

Each turn is recorded with the group as it was before and then applied to it, as the shard does. The
events are those that decisions make; times are virtual.
"""

from collections.abc import Iterable, Mapping

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.events import ConsumerEvent, ConsumerRemovalCause, EpochCause
from coordinator.consumer.evolve import evolve_consumer_group
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    ConsumerMemberState,
    CurrentAssignment,
    without_epochs,
)
from coordinator.events import Event, GroupCreated
from coordinator.group import GroupType
from history.encoding import decode
from history.entries import HistoryEntry, Rebalance
from history.story import GroupStory
from protocol.names import GroupId, GroupInstanceId, GroupState, MemberId, TopicId, TopicName
from seams.now import Now
from tests.history.history_world import MemoryHistory

G = GroupId("g")
T = TopicId(int=7)
HEARTBEAT_MS = 5_000
REBALANCE_TIMEOUT_MS = 60_000
SESSION_TIMEOUT_MS = 45_000
BEGAN_AT_MS = 1_700_000_000_000


def metadata(
    name: str, *topics: str, instance_id: str | None = None, regex: str = ""
) -> ConsumerMemberMetadata:
    return ConsumerMemberMetadata(
        MemberId(name),
        None if instance_id is None else GroupInstanceId(instance_id),
        client_id=f"client-{name}",
        client_host="/10.0.0.1",
        subscribed_topic_names=tuple(map(TopicName, topics or ("t",))),
        subscribed_topic_regex=regex,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
    )


class ConsumerHistory:
    """`t` is the one topic; a target is given as the member's partitions of it."""

    def __init__(self) -> None:
        self.history = MemoryHistory()
        self.history.recorder.name_topics({T: TopicName("t")}.get)
        self.group: ConsumerGroup | None = None
        self.now = Now(1_000, BEGAN_AT_MS)

    # ------------------------------------------------------------ turns

    def advance(self, ms: int) -> None:
        self.now = Now(self.now.mono_ms + ms, self.now.wall_ms + ms)

    def turn(self, *happened: Event) -> list[HistoryEntry]:
        """One turn; returns its entries."""
        self.history.begin()
        self.history.record(self.group, happened, self.now)
        self.history.end()
        for event in happened:
            if isinstance(event, GroupCreated):
                self.group = ConsumerGroup(event.group_id, event.at_ms)
            elif isinstance(event, ConsumerEvent):
                assert self.group is not None
                evolve_consumer_group(self.group, event)
        assert self.group is not None
        self.group.check()
        return self.history.turns[-1]

    def restart(self) -> list[HistoryEntry]:
        """Another process reads the same history and has the same group."""
        assert self.group is not None
        self.history = MemoryHistory(self.history.records)
        self.history.recorder.name_topics({T: TopicName("t")}.get)
        self.history.loaded(self.group, self.now)
        return self.history.turns[-1]

    # ------------------------------------------------------------ what happens

    def created(self) -> Event:
        return GroupCreated(G, self.now.wall_ms, simple=False, group_type=GroupType.CONSUMER)

    def joins(self, name: str, *topics: str, instance_id: str | None = None) -> ConsumerEvent:
        member = metadata(name, *topics, instance_id=instance_id)
        return events.ConsumerMemberUpdated(G, self.now.wall_ms, member, is_new=True)

    def bumped(
        self, cause: EpochCause, *names: str, topics: Iterable[str] = ()
    ) -> events.GroupEpochBumped:
        epoch = 1 if self.group is None else self.group.epoch
        triggers = tuple(map(MemberId, names))
        changed = tuple(map(TopicName, topics))
        return events.GroupEpochBumped(
            G, self.now.wall_ms, epoch + 1, 0, (cause,), triggers, changed
        )

    def targets(self, epoch: int, /, **partitions: Iterable[int]) -> ConsumerEvent:
        changed: Mapping[MemberId, Assignment] = {
            MemberId(name): {T: frozenset(indexes)} if indexes else {}
            for name, indexes in partitions.items()
        }
        return events.TargetAssignmentUpdated(G, self.now.wall_ms, epoch, "uniform", changed, 3)

    def moves(
        self,
        name: str,
        epoch: int,
        state: ConsumerMemberState = ConsumerMemberState.STABLE,
        owned: Iterable[int] = (),
        revoking: Iterable[int] = (),
    ) -> ConsumerEvent:
        assigned = dict.fromkeys(owned, max(epoch, 0))
        pending = dict.fromkeys(revoking, max(epoch, 0))
        current = CurrentAssignment(
            epoch,
            epoch,
            state,
            {T: assigned} if assigned else {},
            {T: pending} if pending else {},
        )
        deadline_ms = self.now.mono_ms + REBALANCE_TIMEOUT_MS if pending else None
        return events.CurrentAssignmentUpdated(
            G, self.now.wall_ms, self.now.mono_ms, MemberId(name), current, deadline_ms
        )

    def goes(
        self, name: str, cause: ConsumerRemovalCause = ConsumerRemovalCause.LEFT
    ) -> ConsumerEvent:
        assert self.group is not None
        member = self.group.members[MemberId(name)]
        silent_ms = None
        if cause is ConsumerRemovalCause.SESSION_EXPIRED:
            silent_ms = SESSION_TIMEOUT_MS
        return events.ConsumerMemberRemoved(
            G,
            self.now.wall_ms,
            member.metadata.identity,
            cause,
            member.current.member_epoch,
            without_epochs(member.current.assigned),
            silent_ms,
            None if silent_ms is None else SESSION_TIMEOUT_MS,
        )

    # ------------------------------------------------------------ givens

    def given_stable(self) -> None:
        """m-1 alone owns t-0 to t-3 in epoch 2; a minute passes."""
        self.turn(
            self.created(),
            self.joins("m-1"),
            self.bumped(EpochCause.MEMBER_JOINED, "m-1"),
            self.targets(2, **{"m-1": range(4)}),
            self.moves("m-1", 2, owned=range(4)),
        )
        assert self.state is GroupState.STABLE
        self.advance(60_000)

    def given_revocation(self) -> None:
        """m-2 joined and m-1 is to give t-2 and t-3 back; it was told 5 s later."""
        self.given_stable()
        self.turn(
            self.joins("m-2"),
            self.bumped(EpochCause.MEMBER_JOINED, "m-2"),
            self.targets(3, **{"m-1": (0, 1), "m-2": (2, 3)}),
            self.moves("m-2", 3, ConsumerMemberState.UNRELEASED_PARTITIONS),
        )
        self.advance(HEARTBEAT_MS)
        state = ConsumerMemberState.UNREVOKED_PARTITIONS
        self.turn(self.moves("m-1", 2, state, owned=(0, 1), revoking=(2, 3)))

    # ------------------------------------------------------------ what is known

    @property
    def state(self) -> GroupState:
        assert self.group is not None
        return self.group.state

    @property
    def entries(self) -> list[HistoryEntry]:
        found = [decode(value) for _, value in self.history.records]
        return [entry for entry in found if entry is not None]

    def rebalances(self) -> list[Rebalance]:
        """Newest first; what is in memory equals the fold of the records."""
        story = GroupStory()
        for entry in self.entries:
            story.apply(entry)
        found = self.history.index.rebalances(G)
        assert found == story.newest_first
        return found
