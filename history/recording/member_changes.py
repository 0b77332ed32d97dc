"""Member changes: the joins, leaves and replacements of a turn that a rebalance may follow from.

A decision is a chain of turns: members are removed in one turn, and the rebalance begins in the
next. What the first turn brought is kept until then, so that rebalance_start.py can name the cause.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field

from coordinator.classic.events import MembersRemoved, RemovalCause
from coordinator.classic.group_view import ClassicGroupView
from coordinator.member_identity import MemberIdentity
from history.causes import Removal
from protocol.names import GroupId, GroupState, MemberId
from seams.now import Now


class OwnerRelease(Struct, frozen=True):
    """An owner that is gone, its assignment, and its last sign of life (monotonic ms)."""

    owner: str
    assignment: bytes
    heard_ms: int


class RemovedMembers(Struct, frozen=True):
    """Members that were removed. `reasons`: the clients' own; `silent`: (for how long, session
    timeout) of those that expired; `poll_ms`: max.poll.interval.ms of a member that may have
    exceeded it."""

    group_id: GroupId
    now_ms: int
    removal: Removal
    members: Mapping[MemberId, MemberIdentity]
    generation_members: int  # those that were in a generation
    owners: tuple[OwnerRelease, ...]
    reasons: Mapping[MemberId, str] = field(default_factory=dict)
    silent: Mapping[MemberId, tuple[int, int]] = field(default_factory=dict)
    poll_ms: int | None = None

    @property
    def by_operator(self) -> bool:
        return self.removal is Removal.OPERATOR


class ReplacedProcess(Struct, frozen=True):
    """Another process joined with the instance id of a static member."""

    group_id: GroupId
    now_ms: int
    replaced: MemberIdentity


class ChangedOffer(Struct, frozen=True):
    """A member rejoined. `other_topics`: it subscribes to or offers something else; `note`: what
    changed, as text, where that says more."""

    group_id: GroupId
    now_ms: int
    other_topics: bool
    note: str = ""


Change = TypeVar("Change", RemovedMembers, ReplacedProcess, ChangedOffer)


class MemberChanges:
    """The last change of each kind."""

    def __init__(self) -> None:
        self.removed: RemovedMembers | None = None
        self.replaced: ReplacedProcess | None = None
        self.offer: ChangedOffer | None = None

    def clear(self) -> None:
        self.removed = self.replaced = self.offer = None

    def take(
        self, group_id: GroupId, now: Now
    ) -> tuple[RemovedMembers | None, ReplacedProcess | None, ChangedOffer | None]:
        """Those of this group at this instant; all are forgotten."""
        taken = (
            _of(self.removed, group_id, now),
            _of(self.replaced, group_id, now),
            _of(self.offer, group_id, now),
        )
        self.clear()
        return taken


def _of(change: Change | None, group_id: GroupId, now: Now) -> Change | None:
    if change is None or (change.group_id, change.now_ms) != (group_id, now.mono_ms):
        return None
    return change


def exceeded_poll_interval_ms(
    group: ClassicGroupView, event: MembersRemoved, now: Now
) -> int | None:
    """max.poll.interval.ms of a member that leaves and may have exceeded it; None if none may.

    So much time has passed since it joined last. A consumer's rebalance timeout is that interval.
    """
    stable_ms = now.wall_ms - group.state_since_ms
    if group.state is not GroupState.STABLE or event.cause is not RemovalCause.LEFT:
        return None
    for removed in event.removed:
        timeout_ms = group.members[removed.member.member_id].rebalance_timeout_ms
        if 0 < timeout_ms <= stable_ms:
            return timeout_ms
    return None
