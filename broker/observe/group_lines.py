"""Log lines of groups: members, rebalances, offsets, and the partitions of the offsets topic.

Kafka's counterpart: the log calls of `GroupMetadataManager` and `OffsetMetadataManager`, and of
`GroupCoordinator` up to 3.x.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.observe.log_lines import (
    LineTable,
    LogFields,
    LogLine,
    first_names,
    log_lines_for,
    offsets_partition,
    principal_field,
)
from coordinator.classic import events as groups
from coordinator.classic.events import JoinKind, RemovalCause
from coordinator.events import (
    ConversionRefused,
    GroupConverted,
    GroupCreated,
    GroupDeleted,
    PartitionClosed,
    PartitionLoaded,
    PartitionLoadFailed,
)
from coordinator.member_identity import MemberIdentity
from coordinator.offsets import events as offsets
from coordinator.offsets.events import DeletionCause, OffsetsOfTopics
from protocol.names import GroupState

SKIPPED_NAMED_MAX: Final = 5

GROUP_LINES: Final[LineTable] = {}

# Groups and their members.


@log_lines_for(GROUP_LINES, GroupCreated)
def _(event: GroupCreated) -> Iterable[LogLine]:
    if event.simple:
        message = "Creating a simple consumer group via manual offset commit"
        yield LogLine("info", message, {"group_id": event.group_id})


@log_lines_for(GROUP_LINES, GroupConverted)
def _(event: GroupConverted) -> Iterable[LogLine]:
    message = f"Converted the {event.from_type} group to a {event.to_type} group"
    yield LogLine("info", message, {"group_id": event.group_id, "reason": event.reason})


@log_lines_for(GROUP_LINES, ConversionRefused)
def _(event: ConversionRefused) -> Iterable[LogLine]:
    message = f"Cannot convert the {event.from_type} group to a {event.to_type} group"
    yield LogLine("info", message, {"group_id": event.group_id, "reason": event.reason})


@log_lines_for(GROUP_LINES, groups.MemberIdAssigned)
def _(event: groups.MemberIdAssigned) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Dynamic member with unknown member id joins group; "
        "created a new member id and requesting rejoin",
        {
            "group_id": event.group_id,
            "state": event.state,
            "member_id": event.member_id,
            "client_id": event.client_id,
            "client_host": event.client_host,
            **principal_field(event.principal),
        },
    )


_JOIN_MESSAGES: Final[Mapping[JoinKind, str]] = {
    JoinKind.DYNAMIC: "Dynamic member with unknown member id joins group; created a new member id",
    JoinKind.PENDING: "Pending dynamic member joins group; adding to the group now",
    JoinKind.STATIC: "Static member with unknown member id joins group; created a new member id",
}


@log_lines_for(GROUP_LINES, groups.MemberAdded)
def _(event: groups.MemberAdded) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "state": event.state, **_member(event.member)}
    yield LogLine("info", _JOIN_MESSAGES[event.join_kind], fields)


@log_lines_for(GROUP_LINES, groups.StaticMemberReplaced)
def _(event: groups.StaticMemberReplaced) -> Iterable[LogLine]:
    fields: LogFields = {
        "group_id": event.group_id,
        "state": event.state,
        **_member(event.member),
        "replaced_member_id": event.old_member_id,
    }
    yield LogLine(
        "info",
        "Static member with unknown member id joins group, replacing previously mapped member",
        fields,
    )
    if event.without_rebalance:
        yield LogLine(
            "info",
            "Static member which joins during Stable stage and doesn't affect the selected "
            "protocol will not trigger a rebalance",
            {"group_id": event.group_id, "member_id": event.member.member_id},
        )


@log_lines_for(GROUP_LINES, groups.MemberFenced)
def _(event: groups.MemberFenced) -> Iterable[LogLine]:
    yield LogLine(
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


@log_lines_for(GROUP_LINES, groups.JoinRefused)
def _(event: groups.JoinRefused) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Member offers no protocol that all members of the group support",
        {
            "group_id": event.group_id,
            "client_id": event.client_id,
            "client_host": event.client_host,
            **principal_field(event.principal),
            "offered": list(event.offered),
            "supported": list(event.supported),
        },
    )


@log_lines_for(GROUP_LINES, groups.MembersRemoved)
def _(event: groups.MembersRemoved) -> Iterable[LogLine]:
    match event.cause:
        case RemovalCause.SESSION_EXPIRED | RemovalCause.NEW_MEMBER_TIMED_OUT:
            for gone in event.removed:
                fields: LogFields = {"group_id": event.group_id, **_member(gone.member)}
                yield LogLine("info", "Member has failed, removing it from the group", fields)
        case RemovalCause.LEFT:
            for gone in event.removed:
                fields = {"group_id": event.group_id, **_member(gone.member)}
                fields["client_reason"] = gone.reason or "not provided"
                message = "Member has left group through explicit `LeaveGroup` request"
                yield LogLine("info", message, fields)
        case RemovalCause.DID_NOT_REJOIN:
            yield _removed(event, "Group removed dynamic members who haven't joined")
        case RemovalCause.DID_NOT_SYNC:
            yield _removed(event, "Group removed members who haven't sent their sync requests")
        case _:
            yield _removed(event, "Group removed members because it is full")


def _removed(event: groups.MembersRemoved, message: str) -> LogLine:
    fields: LogFields = {
        "group_id": event.group_id,
        "generation_id": event.generation_id,
        "members": _names(gone.member for gone in event.removed),
    }
    return LogLine("info", message, fields)


@log_lines_for(GROUP_LINES, groups.PendingMemberRemoved)
def _(event: groups.PendingMemberRemoved) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "member_id": event.member_id}
    if event.cause is RemovalCause.LEFT:
        message = "Pending member has left group through explicit `LeaveGroup` request"
        fields["client_reason"] = event.reason or "not provided"
    else:
        message = "Pending member has been removed after session timeout expiration"
    yield LogLine("info", message, fields)


@log_lines_for(GROUP_LINES, groups.MemberLapsed)
def _(event: groups.MemberLapsed) -> Iterable[LogLine]:
    yield LogLine(
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


@log_lines_for(GROUP_LINES, groups.LapseForgiven)
def _(event: groups.LapseForgiven) -> Iterable[LogLine]:
    yield LogLine(
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


@log_lines_for(GROUP_LINES, groups.RebalanceBegun)
def _(event: groups.RebalanceBegun) -> Iterable[LogLine]:
    fields: LogFields = {
        "group_id": event.group_id,
        "state": GroupState.PREPARING_REBALANCE,
        "old_generation_id": event.old_generation_id,
        "reason": event.reason,
    }
    if event.waiting_for:
        fields["waiting_for"] = _names(event.waiting_for)
    yield LogLine("info", "Preparing to rebalance group", fields)


@log_lines_for(GROUP_LINES, groups.InitialDelayExtended)
def _(event: groups.InitialDelayExtended) -> Iterable[LogLine]:
    yield LogLine(
        "debug",
        "Extending the initial rebalance delay of group",
        {
            "group_id": event.group_id,
            "delay_ms": event.delay_ms,
            "remaining_ms": event.remaining_ms,
        },
    )


@log_lines_for(GROUP_LINES, groups.NoMemberRejoined)
def _(event: groups.NoMemberRejoined) -> Iterable[LogLine]:
    yield LogLine(
        "error",
        "Group could not complete rebalance because no members rejoined",
        {"group_id": event.group_id, "waiting_for": _names(event.waiting_for)},
    )


@log_lines_for(GROUP_LINES, groups.LeaderChanged)
def _(event: groups.LeaderChanged) -> Iterable[LogLine]:
    yield LogLine(
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


@log_lines_for(GROUP_LINES, groups.GenerationBegun)
def _(event: groups.GenerationBegun) -> Iterable[LogLine]:
    yield LogLine(
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


@log_lines_for(GROUP_LINES, groups.GroupEmptied)
def _(event: groups.GroupEmptied) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "generation_id": event.generation_id}
    yield LogLine("info", "Group is now empty", fields)


@log_lines_for(GROUP_LINES, groups.AssignmentReceived)
def _(event: groups.AssignmentReceived) -> Iterable[LogLine]:
    group: LogFields = {"group_id": event.group_id, "generation_id": event.generation_id}
    fields: LogFields = {
        **group,
        "leader_id": event.leader_id,
        "members": event.member_count,
        "static_members": event.static_member_count,
    }
    yield LogLine("info", "Assignment received from leader", fields)
    if event.without_assignment:
        message = "Setting empty assignments for members"
        yield LogLine(
            "warning", message, {**group, "members": first_names(event.without_assignment)}
        )


@log_lines_for(GROUP_LINES, groups.AssignmentDropped)
def _(event: groups.AssignmentDropped) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Assignment was stored but the group has moved on",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            "state": event.state,
            "current_generation_id": event.current_generation_id,
        },
    )


@log_lines_for(GROUP_LINES, groups.AssignmentRefused)
def _(event: groups.AssignmentRefused) -> Iterable[LogLine]:
    yield LogLine(
        "error",
        "Error when storing group assignment during SyncGroup",
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            "leader_id": event.leader_id,
            "error": event.error_code.name,
        },
    )


@log_lines_for(GROUP_LINES, groups.TopicsChanged)
def _(event: groups.TopicsChanged) -> Iterable[LogLine]:
    message = "Partitions of subscribed topics have changed"
    yield LogLine("info", message, {"group_id": event.group_id, "topics": sorted(event.topics)})


@log_lines_for(GROUP_LINES, PartitionLoaded)
def _(event: PartitionLoaded) -> Iterable[LogLine]:
    partition = offsets_partition(event.partition)
    if event.groups:
        yield LogLine(
            "debug",
            "Loaded groups",
            {"partition": partition, "groups": event.groups, "members": event.members},
        )
    for skipped in event.skipped[:SKIPPED_NAMED_MAX]:
        yield LogLine(
            "warning",
            "Unknown record type while loading. Ignoring it",
            {
                "partition": partition,
                "offset": skipped.offset,
                "record_type": skipped.name or skipped.record_type,
            },
        )


@log_lines_for(GROUP_LINES, PartitionLoadFailed)
def _(event: PartitionLoadFailed) -> Iterable[LogLine]:
    fields: LogFields = {"partition": offsets_partition(event.partition), "reason": event.reason}
    yield LogLine("error", "Failed to load metadata", fields)


@log_lines_for(GROUP_LINES, PartitionClosed)
def _(event: PartitionClosed) -> Iterable[LogLine]:
    fields: LogFields = {"partition": offsets_partition(event.partition), "groups": event.groups}
    yield LogLine("info" if event.groups else "debug", "Finished unloading metadata", fields)


# Offsets.


@log_lines_for(GROUP_LINES, offsets.OffsetsDeleted)
def _(event: offsets.OffsetsDeleted) -> Iterable[LogLine]:
    message = {
        DeletionCause.EXPIRED: "Removed expired offsets",
        DeletionCause.TOPIC_DELETED: "Removed offsets of a deleted topic",
        DeletionCause.REQUESTED: "Deleted offsets of group on request",
    }[event.cause]
    fields: LogFields = {"group_id": event.group_id, "offsets": _count(event.offsets)}
    yield LogLine("info", message, {**fields, **principal_field(event.principal)})


@log_lines_for(GROUP_LINES, GroupDeleted)
def _(event: GroupDeleted) -> Iterable[LogLine]:
    fields: LogFields = {
        "group_id": event.group_id,
        "cause": event.cause,
        "offsets": _count(event.offsets),
        **principal_field(event.principal),
    }
    yield LogLine("info", "The following groups were deleted", fields)


def _member(member: MemberIdentity) -> LogFields:
    fields: LogFields = {"member_id": member.member_id, "client_host": member.client_host}
    fields.update(principal_field(member.principal))
    if member.group_instance_id is not None:
        fields["group_instance_id"] = member.group_instance_id
    return fields


def _names(members: Iterable[MemberIdentity]) -> list[str]:
    return first_names(member.member_id for member in members)


def _count(of_topics: OffsetsOfTopics) -> int:
    return sum(len(partitions) for _, partitions in of_topics)
