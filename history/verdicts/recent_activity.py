"""Recent activity of a group: joins, leaves, rebalances and progress, as the detectors need them.

Fed with the group's history entries as they happen, and with an observation of the group in the
rounds of the lag sampler. Bounded in time by the window, and in number by the limits below: beyond
a limit the oldest is dropped.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, assert_never

from coordinator.member_identity import MemberIdentity
from history.causes import Cause
from history.consumer_entries import (
    ConsumerMemberUpdatedEntry,
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RegularExpressionResolvedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
    TargetAssignmentRefusedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entries import (
    AssignmentReceivedEntry,
    AssignmentRefusedEntry,
    GenerationBegunEntry,
    GroupCreatedEntry,
    GroupDeletedEntry,
    GroupEmptiedEntry,
    GroupLoadedEntry,
    HistoryEntry,
    LapseForgivenEntry,
    LeaderChangedEntry,
    MemberAddedEntry,
    MemberFencedEntry,
    MemberLapsedEntry,
    MembersRemovedEntry,
    NoMemberRejoinedEntry,
    OffsetsMovedEntry,
    PendingOffsetsEndedEntry,
    Rebalance,
    RebalanceBegunEntry,
    RebalanceEndedEntry,
    StaticMemberReplacedEntry,
    TopicsChangedEntry,
    VerdictBegunEntry,
    VerdictEndedEntry,
)
from history.lag.model import PartitionKey
from history.newest import Newest
from history.verdicts.model import ObservedGroup, member_key

IDENTITIES_MAX: Final = 200
RETURNS_MAX: Final = 50
RECENT_REBALANCES_MAX: Final = 100
MEMBERS_MAX: Final = 5_000


class MemberReturn(NamedTuple):
    """A member that rejoined after a membership shorter than the window."""

    at_ms: int
    member: MemberIdentity
    stayed_ms: int
    away_ms: int
    reason: str  # why it had left
    replaced: MemberIdentity | None = None  # the process that it replaced


class EndedMembership(NamedTuple):
    """A membership that ended."""

    joined_at_ms: int
    ended_at_ms: int
    reason: str


class RefusedJoin(NamedTuple):
    """A client whose join was refused: it has no assignor in common with the members."""

    at_ms: int
    member: MemberIdentity
    offered: tuple[str, ...]
    supported: tuple[str, ...]


class BegunRebalance(NamedTuple):
    at_ms: int
    cause: Cause
    trigger: MemberIdentity | None
    deadline_ms: int


class AssignorFailure(NamedTuple):
    """A server-side assignor that raised."""

    assignor: str
    reason: str


class GroupAssignment(NamedTuple):
    """The owners of the partitions in one generation, and what was subscribed then."""

    generation: int
    members: frozenset[str]
    owners: Mapping[PartitionKey, str]
    counts: Mapping[str, int]
    topics: frozenset[frozenset[str] | None]
    twice: Mapping[PartitionKey, tuple[str, ...]]  # partitions with several owners: their names
    largest: int  # the number of partitions of the member that owns most


# What groups have that did nothing of the kind: most groups. Nothing is added to these.
_NO_RETURNS: Final[dict[str, Newest[MemberReturn]]] = {}
_NO_REBALANCES: Final[Newest[BegunRebalance]] = Newest()
_NO_REFUSALS: Final[dict[str, RefusedJoin]] = {}
_NO_NUMBERS: Final[dict[str, int]] = {}
_NO_MEMBERSHIPS: Final[dict[str, Newest[EndedMembership]]] = {}


class RecentActivity:
    """The recent activity of one group."""

    __slots__ = (
        "_ended",
        "_present",
        "assignment",
        "assignor_failure",
        "changed_at_ms",
        "grown_at_ms",
        "handed_over_at_ms",
        "last",
        "last_ended_at_ms",
        "mixed_since",
        "previous_assignment",
        "progress",
        "rebalances",
        "refusals",
        "refused",
        "returns",
        "rounds_without_progress",
        "without_progress",
    )

    def __init__(self) -> None:
        self.returns = _NO_RETURNS
        self.rebalances = _NO_REBALANCES
        self.without_progress = _NO_REBALANCES
        self.progress: int | None = None  # the sum of all committed offsets, as last observed
        self.rounds_without_progress = 0
        self.refusals = _NO_REFUSALS  # the last of each client
        self.refused = _NO_NUMBERS  # how often, by client
        self.last: Rebalance | None = None  # the last that ended
        self.last_ended_at_ms = 0
        self.changed_at_ms = 0  # when anything happened
        self.mixed_since = _NO_NUMBERS  # kind of mixture -> since when
        self.assignment: GroupAssignment | None = None
        self.previous_assignment: GroupAssignment | None = None
        self.assignor_failure: AssignorFailure | None = None  # since the last target assignment
        self.handed_over_at_ms = 0  # consumer groups: partitions were given back or taken over
        self.grown_at_ms = _NO_NUMBERS  # topics that got partitions since
        self._present: dict[str, int] = {}  # member id -> since when
        self._ended = _NO_MEMBERSHIPS

    def apply(self, event: HistoryEntry, window_ms: int) -> None:
        """Add an entry of the group's history; called in their order."""
        self.changed_at_ms = event.at_ms
        match event:  # first the four of every rebalance: each case costs six bytecodes
            case RebalanceBegunEntry(group_type="consumer"):
                pass  # its first epoch counts
            case RebalanceBegunEntry():
                deadline_ms = event.at_ms + event.timeout_ms
                self._begun(BegunRebalance(event.at_ms, event.cause, event.trigger, deadline_ms))
            case RebalanceEndedEntry():
                self.last, self.last_ended_at_ms = event.rebalance, event.at_ms
            case GenerationBegunEntry() | AssignmentReceivedEntry():
                pass  # no detector uses them
            case GroupEpochBumpedEntry():
                cause = event.causes[0] if event.causes else Cause.SUBSCRIPTION_CHANGED
                trigger = event.triggers[0] if event.triggers else None
                self._begun(BegunRebalance(event.at_ms, cause, trigger, event.at_ms))
            case RevocationEndedEntry() | PartitionsAssignedEntry():
                self.handed_over_at_ms = event.at_ms
            case TargetAssignmentRefusedEntry():
                self.assignor_failure = AssignorFailure(event.assignor, event.reason)
            case TargetAssignmentUpdatedEntry():
                self.assignor_failure = None
            case MemberAddedEntry():
                self._joined(event.member, event.at_ms, window_ms)
            case StaticMemberReplacedEntry():
                identity = member_key(event.member)  # its instance id stays
                self._left(event.old_member_id, identity, event.at_ms, "replaced")
                self._joined(event.member, event.at_ms, window_ms, event.replaced)
            case MembersRemovedEntry():
                for gone in event.members:
                    reason = gone.reason or event.cause.value
                    identity = member_key(gone.member)
                    self._left(gone.member.member_id, identity, event.at_ms, reason)
            case GroupEmptiedEntry():
                self.mixed_since.clear()
            case (
                GroupConvertedEntry()
                | ConsumerMemberUpdatedEntry()
                | StaticMemberLeftEntry()
                | RevocationRequestedEntry()
                | RegularExpressionResolvedEntry()
                | GroupCreatedEntry()
                | GroupLoadedEntry()
                | GroupDeletedEntry()
                | MemberFencedEntry()
                | MemberLapsedEntry()
                | LapseForgivenEntry()
                | NoMemberRejoinedEntry()
                | LeaderChangedEntry()
                | AssignmentRefusedEntry()
                | TopicsChangedEntry()
                | OffsetsMovedEntry()
                | PendingOffsetsEndedEntry()
                | VerdictBegunEntry()
                | VerdictEndedEntry()
            ):
                pass  # no detector uses it
            case _:
                assert_never(event)
        self._prune(event.at_ms - window_ms)

    def refuse(self, refusal: RefusedJoin) -> None:
        """A JoinGroup was refused with INCONSISTENT_GROUP_PROTOCOL."""
        self.changed_at_ms = refusal.at_ms
        identity = member_key(refusal.member)
        if identity in self.refusals or len(self.refusals) < IDENTITIES_MAX:
            if self.refusals is _NO_REFUSALS:
                self.refusals, self.refused = {}, {}
            self.refusals[identity] = refusal
            self.refused[identity] = self.refused.get(identity, 0) + 1

    def observe(
        self,
        group: ObservedGroup,
        member_ids: frozenset[str],
        assignment: GroupAssignment | None,
    ) -> None:
        """Add the group as it is now."""
        self.changed_at_ms = self.changed_at_ms or group.at_ms
        self._observe_progress(group)
        self._forget_deleted_group(group, member_ids)
        if assignment is not None and (
            self.assignment is None or assignment.generation != self.assignment.generation
        ):
            self.previous_assignment, self.assignment = self.assignment, assignment
            self.grown_at_ms.clear()
        if assignment is not None and self.assignment is not None:
            for topic, count in group.partition_counts.items():
                if count > self.assignment.counts.get(topic, 0):
                    if self.grown_at_ms is _NO_NUMBERS:
                        self.grown_at_ms = {}
                    self.grown_at_ms.setdefault(topic, group.at_ms)

    def _forget_deleted_group(self, group: ObservedGroup, member_ids: frozenset[str]) -> None:
        """Without a history, a deleted group is recognized by generation and members.

        A static member's new process has a new id in the same generation: the assignment is
        read again.
        """
        if self.assignment is None:
            return
        if group.generation < self.assignment.generation:
            self.assignment = self.previous_assignment = None
        elif (
            group.generation == self.assignment.generation
            and member_ids
            and member_ids != self.assignment.members
        ):
            self.assignment = None

    def _observe_progress(self, group: ObservedGroup) -> None:
        """Two observations show whether an offset advanced; it matters after a rebalance only."""
        if not self.without_progress:
            self.progress, self.rounds_without_progress = None, 0
            return
        progress = sum(window.committed_offset or 0 for window in group.windows.values())
        if self.progress is not None and progress > self.progress:
            self.without_progress.clear()
            self.rounds_without_progress = 0
        elif self.progress is not None:
            self.rounds_without_progress += 1
        self.progress = progress

    def mixed(self, mixture: str, *, is_mixed: bool, at_ms: int) -> int | None:
        """Since when the members differ in this; None if they do not."""
        if not is_mixed:
            self.mixed_since.pop(mixture, None)
            return None
        if self.mixed_since is _NO_NUMBERS:
            self.mixed_since = {}
        return self.mixed_since.setdefault(mixture, at_ms)

    def _begun(self, begun: BegunRebalance) -> None:
        if self.rebalances is _NO_REBALANCES:
            self.rebalances = Newest(RECENT_REBALANCES_MAX)
            self.without_progress = Newest(RECENT_REBALANCES_MAX)
        self.rebalances.append(begun)
        self.without_progress.append(begun)

    def _joined(
        self,
        member: MemberIdentity,
        at_ms: int,
        window_ms: int,
        replaced: MemberIdentity | None = None,
    ) -> None:
        identity = member_key(member)
        if len(self._present) < MEMBERS_MAX:
            self._present[member.member_id] = at_ms
        ended = self._ended.get(identity)
        if not ended:
            return
        membership = ended.popleft()
        stayed_ms = membership.ended_at_ms - membership.joined_at_ms
        if stayed_ms >= window_ms:
            return
        if identity not in self.returns and len(self.returns) >= IDENTITIES_MAX:
            del self.returns[next(iter(self.returns))]
        away_ms = at_ms - membership.ended_at_ms
        if self.returns is _NO_RETURNS:
            self.returns = {}
        self.returns.setdefault(identity, Newest(RETURNS_MAX)).append(
            MemberReturn(at_ms, member, stayed_ms, away_ms, membership.reason, replaced)
        )

    def _left(self, member_id: str, identity: str, at_ms: int, reason: str) -> None:
        joined_at_ms = self._present.pop(member_id, None)
        if joined_at_ms is None:
            return  # it joined before the window: no short membership
        if identity not in self._ended and len(self._ended) >= IDENTITIES_MAX:
            del self._ended[next(iter(self._ended))]
        if self._ended is _NO_MEMBERSHIPS:
            self._ended = {}
        self._ended.setdefault(identity, Newest(RETURNS_MAX)).append(
            EndedMembership(joined_at_ms, at_ms, reason)
        )

    def prune(self, now_ms: int, window_ms: int) -> None:
        """Drop what is older than the window."""
        self._prune(now_ms - window_ms)

    def _prune(self, horizon_ms: int) -> None:
        for identity in [i for i, some in self.returns.items() if some[-1].at_ms < horizon_ms]:
            del self.returns[identity]
        for returns in self.returns.values():
            while returns[0].at_ms < horizon_ms:
                returns.popleft()
        for identity in [i for i, some in self._ended.items() if _are_old(some, horizon_ms)]:
            del self._ended[identity]
        for begun in (self.rebalances, self.without_progress):
            while begun and begun[0].at_ms < horizon_ms:
                begun.popleft()
        for identity in [i for i, refusal in self.refusals.items() if refusal.at_ms < horizon_ms]:
            del self.refusals[identity], self.refused[identity]
        if self.last_ended_at_ms < horizon_ms:
            self.last = None


def _are_old(memberships: Newest[EndedMembership], horizon_ms: int) -> bool:
    return not memberships or memberships[-1].ended_at_ms < horizon_ms
