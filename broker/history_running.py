"""What is known of a rebalance besides its story, while it runs? Whose partitions go where.

Kept by history_facts.py from the turn that begins a rebalance until its last member has its
assignment; and, from one turn of a chain to the next, what may turn out to be its reason.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from broker.history_causes import owner_of
from coordinator.group import GroupView, MemberView
from history import events as facts
from history.causes import End, Removal
from history.events import Rebalance, Who
from history.ownership import Shift, offered, owned_by_subscription
from history.story import end
from protocol.names import GroupId, MemberId
from protocol.primitives import Malformed
from purgatory.now import Now

T = TypeVar("T")


class Running:
    """What is known of a rebalance besides its story, until it is over. Monotonic ms."""

    __slots__ = ("began_ms", "shift", "stable_ms", "to_sync")

    def __init__(self, began_ms: int, shift: Shift | None) -> None:
        self.began_ms = began_ms
        self.shift = shift
        self.stable_ms: int | None = None  # when the assignments were handed out
        self.to_sync: set[MemberId] = set()  # who has not come for its own by then


class Removed(Struct, frozen=True):
    """Members that went in the turn before, perhaps the reason for a rebalance that begins now."""

    group_id: GroupId
    now_ms: int
    removal: Removal
    whos: dict[MemberId, Who]
    members: int  # that were in a generation
    owners: list[tuple[str, bytes, int]]  # owner, assignment, last sign of life
    reasons: dict[MemberId, str]  # the clients' own


class Offered(Struct, frozen=True):
    """A member rejoined with these topics and protocols in the turn before."""

    group_id: GroupId
    now_ms: int
    other_topics: bool


def release_joined(shift: Shift, group: GroupView, removed: Removed | None) -> bool:
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
    member: MemberView,
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
    group_id: GroupId, running: Rebalance, group: GroupView | None, now: Now
) -> facts.RebalanceEnded:
    """The rebalance that ran when the coordinator stopped; what came of it is what was loaded."""
    generation = running.generation_before if group is None else group.generation_id
    members = 0 if group is None else len(group.members)
    running = replace(running, generation_after=generation, members_after=members)
    return facts.RebalanceEnded(group_id, now.wall_ms, end(running, End.INTERRUPTED, now.wall_ms))


def or_none(running: Running, ask: Callable[[Shift], T]) -> T | None:
    """None where the assignments cannot be read: then they are not looked at again."""
    if running.shift is None:
        return None
    try:
        return ask(running.shift)
    except Malformed:
        running.shift = None
        return None
