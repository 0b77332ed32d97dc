"""Attribution: which cause and which member the history names for an event.

Pure functions of one event and of the group as it was before. docs/history.md describes the rules.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import MembersRemoved, RebalanceBegun, RemovalCause
from coordinator.classic.group_view import SESSION_PAUSED, ClassicGroupView, ClassicMemberView
from coordinator.member_identity import MemberIdentity
from history.causes import Cause, Removal
from history.entries import Rebalance
from history.ownership import SUBSCRIPTION_BYTES_MAX
from protocol.consumer_protocol import PROTOCOL_TYPE, read_subscription_topics
from protocol.member_metadata import CONNECT, SCHEMA_REGISTRY, connect_worker, registry_url
from protocol.names import MemberId
from seams.now import Now

Offers = Iterable[tuple[str, bytes]]

JOIN_REASON: Final = "client reason: "
NO_REASON: Final = "not provided"

ADMIN_REASON: Final = "member was removed by an admin"
"""Begins the reason that Java's admin client sends (KIP-800)."""

CAUSES: Final[dict[RebalanceCause, Cause]] = {
    RebalanceCause.MEMBER_JOINED: Cause.MEMBER_JOINED,
    RebalanceCause.METADATA_CHANGED: Cause.SUBSCRIPTION_CHANGED,
    RebalanceCause.LEADER_REJOINED: Cause.LEADER_REJOINED,
    RebalanceCause.STATIC_MEMBER_CHANGED: Cause.STATIC_MEMBER_REPLACED,
    RebalanceCause.SESSION_EXPIRED: Cause.SESSION_EXPIRED,
    RebalanceCause.MEMBER_LEFT: Cause.MEMBER_LEFT,
    RebalanceCause.DID_NOT_SYNC: Cause.SYNC_TIMEOUT,
    RebalanceCause.ASSIGNMENT_NOT_STORED: Cause.ASSIGNMENT_NOT_STORED,
    # Found at a load: group.max.size was made smaller before the restart.
    RebalanceCause.OVER_CAPACITY: Cause.COORDINATOR_MOVED,
    RebalanceCause.PARTITIONS_CHANGED: Cause.PARTITIONS_CHANGED,
}
_REMOVALS: Final[dict[RemovalCause, Removal]] = {
    RemovalCause.SESSION_EXPIRED: Removal.SESSION_EXPIRED,
    RemovalCause.NEW_MEMBER_TIMED_OUT: Removal.NEW_MEMBER_TIMED_OUT,
    RemovalCause.LEFT: Removal.LEFT,
    RemovalCause.DID_NOT_REJOIN: Removal.REBALANCE_TIMEOUT,
    RemovalCause.DID_NOT_SYNC: Removal.SYNC_TIMEOUT,
    RemovalCause.GROUP_FULL: Removal.GROUP_FULL,
}


def removal_of(event: MembersRemoved) -> Removal:
    """An operator's LeaveGroup comes from another client than the member, or names no member id."""
    if event.cause is not RemovalCause.LEFT:
        return _REMOVALS[event.cause]
    for removed in event.removed:
        # A static member keeps the client id of the process that it replaced.
        is_other = (
            removed.member.group_instance_id is None and removed.member.client_id != event.client_id
        )
        by_admin = (removed.reason or "").startswith(ADMIN_REASON)
        if removed.by_instance or is_other or by_admin:
            return Removal.OPERATOR
    return Removal.LEFT


def trigger_of(
    group: ClassicGroupView, event: RebalanceBegun, removed: Mapping[MemberId, MemberIdentity]
) -> MemberIdentity | None:
    for member_id in event.trigger_ids:
        if member_id in removed:
            return removed[member_id]
        member = group.members.get(member_id)
        if member is not None:
            return member.caller
    return MemberIdentity(event.trigger_ids[0]) if event.trigger_ids else None


def client_reason(sentence: str, left: Mapping[MemberId, str]) -> str:
    """The client's own reason: of a LeaveGroup, or of a JoinGroup as quoted in Kafka's text."""
    if left:
        return next(iter(left.values()))
    reason = sentence.partition(JOIN_REASON)[2]
    return "" if reason == NO_REASON else reason


def last_heard_ms(member: ClassicMemberView, now: Now) -> int:
    """The last sign of life, computed from the end of its session."""
    if member.lapsed_at_ms is not None:
        return member.lapsed_at_ms - member.session_timeout_ms
    if member.session_deadline_ms == SESSION_PAUSED or member.is_new:
        return now.mono_ms
    return min(now.mono_ms, member.session_deadline_ms - member.session_timeout_ms)


def owner_of(member: ClassicMemberView) -> str:
    return member.group_instance_id or member.member_id


def process_of(member: ClassicMemberView, rebalances: Iterable[Rebalance]) -> MemberIdentity:
    """The process of a static member; after a restart only the history has it."""
    for rebalance in rebalances:
        if rebalance.trigger is not None and rebalance.trigger.member_id == member.member_id:
            return rebalance.trigger
    return member.caller


def offer_change(
    before: Offers, after: Offers, protocol_name: str | None, protocol_type: str | None
) -> tuple[bool, str]:
    """Whether a member that rejoins subscribes to or offers something else; and what, as text.

    Other parts of a consumer's metadata may change. Of a loaded group only the chosen protocol is
    known. Only the metadata for the group's protocol is read, if its bytes differ and are not too
    many. Of other protocol types the documented part is read; the rest is opaque.
    """
    was, now = dict(before), dict(after)
    if was == now:
        return False, ""
    if len(was) > 1 and was.keys() != now.keys():
        return True, ""
    name = protocol_name if protocol_name in was else next(iter(was), "")
    assert name is not None
    old, new = was.get(name), now.get(name)
    if old is None or new is None:
        return True, ""
    if old == new or max(len(old), len(new)) > SUBSCRIPTION_BYTES_MAX:
        return False, ""
    if protocol_type == CONNECT:
        return _worker_changed(old, new)
    if protocol_type != PROTOCOL_TYPE:
        return _node_changed(old, new, protocol_type or "")
    old_topics, new_topics = read_subscription_topics(old), read_subscription_topics(new)
    if old_topics is None or new_topics is None:
        return True, f"its subscription cannot be read: {len(new)} bytes, which are others"
    return frozenset(old_topics) != frozenset(new_topics), ""


def _worker_changed(old: bytes, new: bytes) -> tuple[bool, str]:
    was, now = connect_worker(old), connect_worker(new)
    if was is None or now is None:
        return True, _opaque(new, CONNECT)
    if was.config_offset != now.config_offset:
        return True, (
            f"Kafka Connect: its config offset went from {was.config_offset} to "
            f"{now.config_offset} (connectors or tasks were created, changed or deleted)"
        )
    if was.url != now.url:
        return True, f"Kafka Connect: its URL went from {was.url} to {now.url}"
    return False, (
        f"Kafka Connect: its config offset is {now.config_offset} as before; what it runs changed"
    )


def _node_changed(old: bytes, new: bytes, protocol_type: str) -> tuple[bool, str]:
    if protocol_type == SCHEMA_REGISTRY:
        was, now = registry_url(old), registry_url(new)
        if was is not None and now is not None and was != now:
            return True, f"Schema Registry: its URL went from {was} to {now}"
    return True, _opaque(new, protocol_type)


def _opaque(metadata: bytes, protocol_type: str) -> str:
    return (
        f"its metadata changed ({len(metadata)} bytes; of protocol type {protocol_type or 'none'}, "
        "which is opaque: compared as bytes, not read)"
    )
