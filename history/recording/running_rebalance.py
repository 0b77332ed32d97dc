"""What is known of a rebalance besides its story, while it runs? Whose partitions go where.

Kept by recorder.py from the turn that begins a rebalance until its last member has its
assignment; and, from one turn of a chain to the next, what may turn out to be its reason.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from coordinator.classic.events import MembersRemoved, RemovalCause
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.member_identity import MemberIdentity
from history.causes import End, Removal
from history.entries import Rebalance, RebalanceEndedEntry, TopicPartitionCounts
from history.ownership import Shift, offered, owned_by_subscription
from history.recording.attribution import owner_of
from history.story import end
from protocol.names import GroupId, GroupState, MemberId
from protocol.primitives import Malformed
from seams.now import Now

T = TypeVar("T")


class Running:
    """What is known of a rebalance besides its story, until it is over. Monotonic ms."""

    __slots__ = ("began_ms", "changed", "shift", "stable_ms", "to_sync")

    def __init__(self, began_ms: int, shift: Shift | None) -> None:
        self.began_ms = began_ms
        self.shift = shift
        self.changed: tuple[
            TopicPartitionCounts, ...
        ] = ()  # that the assignment should take note of
        self.stable_ms: int | None = None  # when the assignments were handed out
        self.to_sync: set[MemberId] = set()  # who has not come for its own by then


class Away(Struct, frozen=True):
    """How long the coordinator was away before this start, and how it had ended: see
    GroupLoaded."""

    away_ms: int | None = None
    stopped: str = ""


class Removed(Struct, frozen=True):
    """Members that went in the turn before, perhaps the reason for a rebalance that begins now."""

    group_id: GroupId
    now_ms: int
    removal: Removal
    whos: dict[MemberId, MemberIdentity]
    members: int  # that were in a generation
    owners: list[tuple[str, bytes, int]]  # owner, assignment, last sign of life
    reasons: dict[MemberId, str]  # the clients' own
    silent: dict[MemberId, tuple[int, int]] = {}  # for so long; and its session timeout
    poll_ms: int | None = None  # max.poll.interval.ms of one that may have exceeded it

    @property
    def by_operator(self) -> bool:
        return self.removal is Removal.OPERATOR


class Came(Struct, frozen=True):
    """Another process came with a static member's instance id in the turn before."""

    group_id: GroupId
    now_ms: int
    replaced: MemberIdentity


class Offered(Struct, frozen=True):
    """A member rejoined in the turn before. `other_topics`: it reads or offers something else.

    `note`: what changed, in words, where that says more.
    """

    group_id: GroupId
    now_ms: int
    other_topics: bool
    note: str = ""


def polls_too_rarely_ms(group: ClassicGroupView, event: MembersRemoved, now: Now) -> int | None:
    """max.poll.interval.ms of a member that leaves and may have exceeded it: since it joined last
    so much time has passed. None if not."""
    stable_ms = now.wall_ms - group.state_since_ms
    if group.state is not GroupState.STABLE or event.cause is not RemovalCause.LEFT:
        return None
    members = [group.members[one.member.member_id] for one in event.removed]
    return next(
        (one.rebalance_timeout_ms for one in members if 0 < one.rebalance_timeout_ms <= stable_ms),
        None,
    )


def release_joined(shift: Shift, group: ClassicGroupView, removed: Removed | None) -> bool:
    """Who is gone, or has rejoined, when the rebalance begins; False: too much to read."""
    if removed is not None:
        for owner, _, heard_ms in removed.owners:
            if owner in group.static_members:  # another process has its place
                shift.release(owner, heard_ms)
            else:
                shift.gone(owner, heard_ms)
    for member in group.members.values():
        if member.awaiting_join is not None and not member.is_new:
            kept = owned_by_subscription(offered(member.protocols, group.protocol_name))
            if kept is None:
                return False
            shift.release(owner_of(member), member.join_parked_at_ms, kept)
    return True


def release_rejoined(
    running: Running | None,
    member: ClassicMemberView,
    offers: Iterable[tuple[str, bytes]],
    protocol_name: str | None,
    now: Now,
) -> None:
    """A member rejoined while the rebalance runs; only the first time counts, and is read."""
    owner = owner_of(member)
    shift = None if running is None else running.shift
    if running is None or shift is None or shift.is_released(owner):
        return
    kept = owned_by_subscription(offered(offers, protocol_name))
    if kept is None:
        running.shift = None  # it is too large to read: nothing is said of partitions
    else:
        shift.release(owner, now.mono_ms, kept)


def interrupted(
    group_id: GroupId, running: Rebalance, group: ClassicGroupView | None, now: Now
) -> RebalanceEndedEntry:
    """The rebalance that ran when the coordinator stopped; what came of it is what was loaded."""
    generation = running.generation_before if group is None else group.generation_id
    members = 0 if group is None else len(group.members)
    running = replace(running, generation_after=generation, members_after=members)
    return RebalanceEndedEntry(group_id, now.wall_ms, end(running, End.INTERRUPTED, now.wall_ms))


def or_none(running: Running, ask: Callable[[Shift], T]) -> T | None:
    """None where the assignments cannot be read: then they are not looked at again."""
    if running.shift is None:
        return None
    try:
        return ask(running.shift)
    except Malformed:
        running.shift = None
        return None
