"""In which words are a group's events told? Members, rebalances, offsets, and their partitions.

Kafka's counterpart: the log calls of `GroupMetadataManager` and `OffsetMetadataManager`, and of
`GroupCoordinator` up to 3.x.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.observe.log_lines import Facts, Line, Table, named, offsets_partition, told
from coordinator.classic import events as groups
from coordinator.classic.events import JoinKind, RemovalCause
from coordinator.member_identity import MemberIdentity
from coordinator.offsets import events as offsets
from coordinator.offsets.events import DeletionCause, OffsetsOfTopics
from protocol.names import GroupState

SKIPPED_NAMED_MAX: Final = 5

TABLE: Final[Table] = {}

# Groups and their members.


@told(TABLE, groups.GroupCreated)
def _(event: groups.GroupCreated) -> Iterable[Line]:
    if event.simple:
        words = "Creating a simple consumer group via manual offset commit"
        yield Line("info", words, {"group_id": event.group_id})


@told(TABLE, groups.MemberIdAssigned)
def _(event: groups.MemberIdAssigned) -> Iterable[Line]:
    yield Line(
        "info",
        "Dynamic member with unknown member id joins group; "
        "created a new member id and requesting rejoin",
        {
            "group_id": event.group_id,
            "state": event.state,
            "member_id": event.member_id,
            "client_id": event.client_id,
            "client_host": event.client_host,
        },
    )


_ENTRANCES: Final[Mapping[JoinKind, str]] = {
    JoinKind.DYNAMIC: "Dynamic member with unknown member id joins group; created a new member id",
    JoinKind.PENDING: "Pending dynamic member joins group; adding to the group now",
    JoinKind.STATIC: "Static member with unknown member id joins group; created a new member id",
}


@told(TABLE, groups.MemberAdded)
def _(event: groups.MemberAdded) -> Iterable[Line]:
    facts: Facts = {"group_id": event.group_id, "state": event.state, **_member(event.member)}
    yield Line("info", _ENTRANCES[event.join_kind], facts)


@told(TABLE, groups.StaticMemberReplaced)
def _(event: groups.StaticMemberReplaced) -> Iterable[Line]:
    facts: Facts = {
        "group_id": event.group_id,
        "state": event.state,
        **_member(event.member),
        "replaced_member_id": event.old_member_id,
    }
    yield Line(
        "info",
        "Static member with unknown member id joins group, replacing previously mapped member",
        facts,
    )
    if event.settled:
        yield Line(
            "info",
            "Static member which joins during Stable stage and doesn't affect the selected "
            "protocol will not trigger a rebalance",
            {"group_id": event.group_id, "member_id": event.member.member_id},
        )


@told(TABLE, groups.MemberFenced)
def _(event: groups.MemberFenced) -> Iterable[Line]:
    yield Line(
        "info",
        "Request for static member is fenced by existing member",
        {
            "group_id": event.group_id,
            "group_instance_id": event.group_instance_id,
            "member_id": event.member_id,
            "existing_member_id": event.current_member_id,
            "operation": event.api_key.name,
        },
    )


@told(TABLE, groups.JoinRefused)
def _(event: groups.JoinRefused) -> Iterable[Line]:
    yield Line(
        "info",
        "Member offers no protocol that all members of the group support",
        {
            "group_id": event.group_id,
            "client_id": event.client_id,
            "client_host": event.client_host,
            "offered": list(event.offered),
            "supported": list(event.supported),
        },
    )


@told(TABLE, groups.MembersRemoved)
def _(event: groups.MembersRemoved) -> Iterable[Line]:
    match event.cause:
        case RemovalCause.SESSION_EXPIRED | RemovalCause.NEW_MEMBER_TIMED_OUT:
            for gone in event.removed:
                facts: Facts = {"group_id": event.group_id, **_member(gone.member)}
                yield Line("info", "Member has failed, removing it from the group", facts)
        case RemovalCause.LEFT:
            for gone in event.removed:
                facts = {"group_id": event.group_id, **_member(gone.member)}
                facts["client_reason"] = gone.reason or "not provided"
                words = "Member has left group through explicit `LeaveGroup` request"
                yield Line("info", words, facts)
        case RemovalCause.DID_NOT_REJOIN:
            yield _removed(event, "Group removed dynamic members who haven't joined")
        case RemovalCause.DID_NOT_SYNC:
            yield _removed(event, "Group removed members who haven't sent their sync requests")
        case _:
            yield _removed(event, "Group removed members because it is full")


def _removed(event: groups.MembersRemoved, words: str) -> Line:
    facts: Facts = {
        "group_id": event.group_id,
        "generation_id": event.generation_id,
        "members": _names(gone.member for gone in event.removed),
    }
    return Line("info", words, facts)


@told(TABLE, groups.PendingMemberRemoved)
def _(event: groups.PendingMemberRemoved) -> Iterable[Line]:
    facts: Facts = {"group_id": event.group_id, "member_id": event.member_id}
    if event.cause is RemovalCause.LEFT:
        words = "Pending member has left group through explicit `LeaveGroup` request"
        facts["client_reason"] = event.reason or "not provided"
    else:
        words = "Pending member has been removed after session timeout expiration"
    yield Line("info", words, facts)


@told(TABLE, groups.MemberLapsed)
def _(event: groups.MemberLapsed) -> Iterable[Line]:
    yield Line(
        "info",
        "Member was silent for its whole session; the group waits for it a little longer",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            **_member(event.member),
            "session_timeout_ms": event.session_timeout_ms,
            "forgiven_for_ms": event.forgiven_until_ms - event.now_ms,
        },
    )


@told(TABLE, groups.LapseForgiven)
def _(event: groups.LapseForgiven) -> Iterable[Line]:
    yield Line(
        "info",
        "Silent member was heard in time; no rebalance was needed",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            **_member(event.member),
            "late_by_ms": event.late_by_ms,
        },
    )


# Rebalances.


@told(TABLE, groups.RebalanceBegun)
def _(event: groups.RebalanceBegun) -> Iterable[Line]:
    facts: Facts = {
        "group_id": event.group_id,
        "state": GroupState.PREPARING_REBALANCE,
        "old_generation_id": event.old_generation_id,
        "reason": event.reason,
    }
    if event.waiting_for:
        facts["waiting_for"] = _names(event.waiting_for)
    yield Line("info", "Preparing to rebalance group", facts)


@told(TABLE, groups.InitialDelayExtended)
def _(event: groups.InitialDelayExtended) -> Iterable[Line]:
    yield Line(
        "debug",
        "Extending the initial rebalance delay of group",
        {
            "group_id": event.group_id,
            "delay_ms": event.delay_ms,
            "remaining_ms": event.remaining_ms,
        },
    )


@told(TABLE, groups.NobodyRejoined)
def _(event: groups.NobodyRejoined) -> Iterable[Line]:
    yield Line(
        "error",
        "Group could not complete rebalance because no members rejoined",
        {"group_id": event.group_id, "waiting_for": _names(event.waiting_for)},
    )


@told(TABLE, groups.LeaderChanged)
def _(event: groups.LeaderChanged) -> Iterable[Line]:
    yield Line(
        "info",
        "Group leader failed to join before the rebalance timeout; "
        "another member was elected as the new leader",
        {
            "group_id": event.group_id,
            "old_leader_id": event.old_leader.member_id,
            "group_instance_id": event.old_leader.group_instance_id,
            "leader_id": event.new_leader.member_id,
        },
    )


@told(TABLE, groups.GenerationBegun)
def _(event: groups.GenerationBegun) -> Iterable[Line]:
    yield Line(
        "info",
        "Stabilized group",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            "members": len(event.joins) + len(event.absent),
            "protocol_name": event.protocol_name,
            "leader_id": event.leader_id,
        },
    )


@told(TABLE, groups.GroupEmptied)
def _(event: groups.GroupEmptied) -> Iterable[Line]:
    facts: Facts = {"group_id": event.group_id, "generation_id": event.generation_id}
    yield Line("info", "Group is now empty", facts)


@told(TABLE, groups.AssignmentReceived)
def _(event: groups.AssignmentReceived) -> Iterable[Line]:
    group: Facts = {"group_id": event.group_id, "generation_id": event.generation_id}
    facts: Facts = {
        **group,
        "leader_id": event.leader_id,
        "members": event.member_count,
        "static_members": event.static_member_count,
    }
    yield Line("info", "Assignment received from leader", facts)
    if event.without_assignment:
        words = "Setting empty assignments for members"
        yield Line("warning", words, {**group, "members": named(event.without_assignment)})


@told(TABLE, groups.AssignmentDropped)
def _(event: groups.AssignmentDropped) -> Iterable[Line]:
    yield Line(
        "info",
        "Assignment was stored but the group has moved on",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            "state": event.state,
            "current_generation_id": event.current_generation_id,
        },
    )


@told(TABLE, groups.AssignmentRefused)
def _(event: groups.AssignmentRefused) -> Iterable[Line]:
    yield Line(
        "error",
        "Error when storing group assignment during SyncGroup",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            "leader_id": event.leader_id,
            "error": event.error_code.name,
        },
    )


@told(TABLE, groups.TopicsChanged)
def _(event: groups.TopicsChanged) -> Iterable[Line]:
    words = "Partitions of subscribed topics have changed"
    yield Line("info", words, {"group_id": event.group_id, "topics": sorted(event.topics)})


@told(TABLE, groups.PartitionLoaded)
def _(event: groups.PartitionLoaded) -> Iterable[Line]:
    partition = offsets_partition(event.partition)
    if event.groups:
        yield Line(
            "debug",
            "Loaded groups",
            {"partition": partition, "groups": event.groups, "members": event.members},
        )
    for skipped in event.skipped[:SKIPPED_NAMED_MAX]:
        yield Line(
            "warning",
            "Unknown record type while loading. Ignoring it",
            {
                "partition": partition,
                "offset": skipped.offset,
                "record_type": skipped.name or skipped.record_type,
            },
        )


@told(TABLE, groups.PartitionLoadFailed)
def _(event: groups.PartitionLoadFailed) -> Iterable[Line]:
    facts: Facts = {"partition": offsets_partition(event.partition), "reason": event.reason}
    yield Line("error", "Failed to load metadata", facts)


@told(TABLE, groups.PartitionClosed)
def _(event: groups.PartitionClosed) -> Iterable[Line]:
    facts: Facts = {"partition": offsets_partition(event.partition), "groups": event.groups}
    yield Line("info" if event.groups else "debug", "Finished unloading metadata", facts)


# Offsets.


@told(TABLE, offsets.OffsetsDeleted)
def _(event: offsets.OffsetsDeleted) -> Iterable[Line]:
    words = {
        DeletionCause.EXPIRED: "Removed expired offsets",
        DeletionCause.TOPIC_DELETED: "Removed offsets of a deleted topic",
        DeletionCause.REQUESTED: "Deleted offsets of group on request",
    }[event.cause]
    yield Line("info", words, {"group_id": event.group_id, "offsets": _count(event.offsets)})


@told(TABLE, offsets.GroupDeleted)
def _(event: offsets.GroupDeleted) -> Iterable[Line]:
    facts: Facts = {
        "group_id": event.group_id,
        "cause": event.cause,
        "offsets": _count(event.offsets),
    }
    yield Line("info", "The following groups were deleted", facts)


def _member(member: MemberIdentity) -> Facts:
    facts: Facts = {"member_id": member.member_id, "client_host": member.client_host}
    if member.group_instance_id is not None:
        facts["group_instance_id"] = member.group_instance_id
    return facts


def _names(members: Iterable[MemberIdentity]) -> list[str]:
    return named(member.member_id for member in members)


def _count(of_topics: OffsetsOfTopics) -> int:
    return sum(len(partitions) for _, partitions in of_topics)
