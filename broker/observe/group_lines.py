"""Log lines of groups: members, rebalances, offsets, and the partitions of the offsets topic.

Kafka's counterpart: the log calls of `GroupMetadataManager` and `OffsetMetadataManager`, and of
`GroupCoordinator` up to 3.x.
"""

from collections.abc import Iterable
from typing import Final

from broker.observe.log_lines import (
    NO_CLIENT_REASON,
    LineTable,
    LogFields,
    LogLine,
    Sentence,
    first_names,
    java_list,
    log_lines_for,
    log_sentence,
    offsets_partition,
    principal_field,
    shorten,
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
)
from coordinator.group import GroupType
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
        template = "[GroupId {}] Creating a simple consumer group via manual offset commit."
        message = log_sentence(template, event.group_id)
        yield LogLine("info", message, {"group_id": event.group_id})


@log_lines_for(GROUP_LINES, GroupConverted)
def _(event: GroupConverted) -> Iterable[LogLine]:
    old, new = event.from_type, event.to_type
    old_group = f"{old} group" if event.had_members else f"empty {old} group"
    template = "[GroupId {}] Converted the {} to a {} group."
    message = log_sentence(template, event.group_id, old_group, new)
    yield LogLine("info", message, {"group_id": event.group_id, "reason": event.reason})


@log_lines_for(GROUP_LINES, ConversionRefused)
def _(event: ConversionRefused) -> Iterable[LogLine]:
    template = "Cannot upgrade classic group {} to consumer group because {}."
    if event.to_type is GroupType.CLASSIC:
        template = "Cannot downgrade consumer group {} to classic group because {}."
    message = log_sentence(template, event.group_id, event.reason)
    yield LogLine("info", message, {"group_id": event.group_id, "reason": event.reason})


@log_lines_for(GROUP_LINES, groups.MemberIdAssigned)
def _(event: groups.MemberIdAssigned) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        log_sentence(
            "Dynamic member with unknown member id joins group {} in {} state. Created a new "
            "member id {} and requesting the member to rejoin with this id.",
            event.group_id,
            event.state,
            event.member_id,
        ),
        {
            "group_id": event.group_id,
            "state": event.state,
            "member_id": event.member_id,
            "client_id": event.client_id,
            "client_host": event.client_host,
            **principal_field(event.principal),
        },
    )


def _joined(event: groups.MemberAdded) -> Sentence:
    member, state = event.member, event.state
    match event.join_kind:
        case JoinKind.DYNAMIC:
            return log_sentence(
                "Dynamic member with unknown member id joins group {} in state {}. Created a new "
                "member id {} and added the member to the group.",
                event.group_id,
                state,
                member.member_id,
            )
        case JoinKind.PENDING:
            return log_sentence(
                "Pending dynamic member with id {} joins group {} in {} state. Adding to the "
                "group now.",
                member.member_id,
                event.group_id,
                state,
            )
        case JoinKind.STATIC:
            return log_sentence(
                "Static member with groupInstanceId={} and unknown member id joins group {} in {} "
                "state. Created a new member id {} for this member and added to the group.",
                member.group_instance_id,
                event.group_id,
                state,
                member.member_id,
            )


@log_lines_for(GROUP_LINES, groups.MemberAdded)
def _(event: groups.MemberAdded) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "state": event.state, **_member(event.member)}
    yield LogLine("info", _joined(event), fields)


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
        log_sentence(
            "Static member with groupInstanceId={} and unknown member id joins group {} in {} "
            "state. Replacing previously mapped member {} with this groupInstanceId.",
            event.member.group_instance_id,
            event.group_id,
            event.state,
            event.old_member_id,
        ),
        fields,
    )
    if event.without_rebalance:
        yield LogLine(
            "info",
            log_sentence(
                "Static member which joins during Stable stage and doesn't affect the selected "
                "protocol will not trigger a rebalance."
            ),
            {"group_id": event.group_id, "member_id": event.member.member_id},
        )


@log_lines_for(GROUP_LINES, groups.MemberFenced)
def _(event: groups.MemberFenced) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        log_sentence(
            "Request memberId={} for static member with groupInstanceId={} is fenced by existing "
            "memberId={} during operation {}",
            event.member_id,
            event.group_instance_id,
            event.current_member_id,
            event.api_key.name.lower().replace("_", "-"),
        ),
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
    group_id = event.group_id
    match event.cause:
        case RemovalCause.SESSION_EXPIRED | RemovalCause.NEW_MEMBER_TIMED_OUT:
            template = "Member {} in group {} has failed, removing it from the group."
            for gone in event.removed:
                message = log_sentence(template, gone.member.member_id, group_id)
                yield LogLine("info", message, {"group_id": group_id, **_member(gone.member)})
        case RemovalCause.LEFT:
            for gone in event.removed:
                fields: LogFields = {"group_id": group_id, **_member(gone.member)}
                fields["client_reason"] = gone.reason or NO_CLIENT_REASON
                yield LogLine("info", _left(group_id, gone), fields)
        case RemovalCause.DID_NOT_REJOIN:
            template = "Group {} removed dynamic members who haven't joined: {}"
            yield _removed("info", event, template)
        case RemovalCause.DID_NOT_SYNC:
            template = "Group {} removed members who haven't sent their sync requests: {}"
            yield _removed("debug", event, template)
        case _:
            yield LogLine(
                "info",
                "Group removed members because it is full",
                {
                    "group_id": group_id,
                    "generation_id": event.generation_id,
                    "members": _names(gone.member for gone in event.removed),
                },
            )


def _left(group_id: str, gone: groups.RemovedMember) -> Sentence:
    return log_sentence(
        "[Group {}] Member {} has left group through explicit `LeaveGroup` request; "
        "client reason: {}",
        group_id,
        gone.member.member_id,
        gone.reason or NO_CLIENT_REASON,
    )


def _removed(level: str, event: groups.MembersRemoved, template: str) -> LogLine:
    members = [gone.member.member_id for gone in event.removed]
    fields: LogFields = {
        "group_id": event.group_id,
        "generation_id": event.generation_id,
        "members": first_names(members),
    }
    return LogLine(level, log_sentence(template, event.group_id, java_list(members)), fields)


@log_lines_for(GROUP_LINES, groups.PendingMemberRemoved)
def _(event: groups.PendingMemberRemoved) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "member_id": event.member_id}
    if event.cause is RemovalCause.LEFT:
        fields["client_reason"] = event.reason or NO_CLIENT_REASON
        message = log_sentence(
            "[Group {}] Pending member {} has left group through explicit `LeaveGroup` request; "
            "client reason: {}",
            event.group_id,
            event.member_id,
            event.reason or NO_CLIENT_REASON,
        )
    else:
        message = log_sentence(
            "Pending member {} in group {} has been removed after session timeout expiration.",
            event.member_id,
            event.group_id,
        )
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
    message = log_sentence(
        "Preparing to rebalance group {} in state {} with old generation {} (reason: {}).",
        event.group_id,
        GroupState.PREPARING_REBALANCE,
        event.old_generation_id,
        event.reason,
    )
    yield LogLine("info", message, fields)


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
        log_sentence(
            "Group {} could not complete rebalance because no members rejoined.", event.group_id
        ),
        {"group_id": event.group_id, "waiting_for": _names(event.waiting_for)},
    )


@log_lines_for(GROUP_LINES, groups.LeaderChanged)
def _(event: groups.LeaderChanged) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        log_sentence(
            "Group leader [memberId: {}, groupInstanceId: {}] failed to join before the "
            "rebalance timeout. Member {} was elected as the new leader.",
            event.old_leader.member_id,
            event.old_leader.group_instance_id,
            _kafkas_member(event),
        ),
        {
            "group_id": event.group_id,
            "old_leader_id": event.old_leader.member_id,
            "group_instance_id": event.old_leader.group_instance_id,
            "leader_id": event.new_leader.member_id,
        },
    )


@log_lines_for(GROUP_LINES, groups.GenerationBegun)
def _(event: groups.GenerationBegun) -> Iterable[LogLine]:
    members = len(event.joined) + len(event.absent)
    template = "Stabilized group {} generation {} with {} members."
    yield LogLine(
        "info",
        log_sentence(template, event.group_id, event.generation_id, members),
        {
            "group_id": event.group_id,
            "generation_id": event.generation_id,
            "members": members,
            "protocol_name": event.protocol_name,
            "leader_id": event.leader_id,
        },
    )


@log_lines_for(GROUP_LINES, groups.GroupEmptied)
def _(event: groups.GroupEmptied) -> Iterable[LogLine]:
    fields: LogFields = {"group_id": event.group_id, "generation_id": event.generation_id}
    template = "Group {} with generation {} is now empty."
    yield LogLine("info", log_sentence(template, event.group_id, event.generation_id), fields)


@log_lines_for(GROUP_LINES, groups.AssignmentReceived)
def _(event: groups.AssignmentReceived) -> Iterable[LogLine]:
    group: LogFields = {"group_id": event.group_id, "generation_id": event.generation_id}
    fields: LogFields = {
        **group,
        "leader_id": event.leader_id,
        "members": event.member_count,
        "static_members": event.static_member_count,
    }
    message = log_sentence(
        "Assignment received from leader {} for group {} for generation {}. The group has {} "
        "members, {} of which are static.",
        event.leader_id,
        event.group_id,
        event.generation_id,
        event.member_count,
        event.static_member_count,
    )
    yield LogLine("info", message, fields)
    if event.without_assignment:
        message = log_sentence(
            "Setting empty assignments for members {} of {} for generation {}.",
            f"{{{', '.join(map(shorten, first_names(event.without_assignment)))}}}",
            event.group_id,
            event.generation_id,
        )
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
            log_sentence(
                "Unknown record type {} while loading offsets and group metadata from {}. "
                "Ignoring it. It could be a left over from an aborted upgrade.",
                skipped.record_type,
                partition,
            ),
            {
                "partition": partition,
                "offset": skipped.offset,
                "record_type": skipped.name or skipped.record_type,
            },
        )


@log_lines_for(GROUP_LINES, PartitionClosed)
def _(event: PartitionClosed) -> Iterable[LogLine]:
    fields: LogFields = {"partition": offsets_partition(event.partition), "groups": event.groups}
    yield LogLine("info" if event.groups else "debug", "Unloaded groups", fields)


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
    offsets = _count(event.offsets)
    fields: LogFields = {
        "group_id": event.group_id,
        "cause": event.cause,
        "offsets": offsets,
        **principal_field(event.principal),
    }
    message: str = "Removed a group without members and offsets"
    if event.cause is DeletionCause.REQUESTED:
        template = "The following groups were deleted: {}. A total of {} offsets were removed."
        message = log_sentence(template, event.group_id, offsets)
    yield LogLine("info", message, fields)


def _member(member: MemberIdentity) -> LogFields:
    fields: LogFields = {"member_id": member.member_id, "client_host": member.client_host}
    fields.update(principal_field(member.principal))
    if member.group_instance_id is not None:
        fields["group_instance_id"] = member.group_instance_id
    return fields


def _kafkas_member(event: groups.LeaderChanged) -> str:
    """Kafka logs its object."""
    leader, protocols = event.new_leader, java_list(event.protocol_names)
    return (
        f"ClassicGroupMember(memberId='{leader.member_id}', "
        f"groupInstanceId='{leader.group_instance_id or 'null'}', "
        f"clientId='{shorten(leader.client_id)}', clientHost='{leader.client_host}', "
        f"rebalanceTimeoutMs={event.rebalance_timeout_ms}, "
        f"sessionTimeoutMs={event.session_timeout_ms}, "
        f"protocolType='{shorten(event.protocol_type)}', supportedProtocols={protocols})"
    )


def _names(members: Iterable[MemberIdentity]) -> list[str]:
    return first_names(member.member_id for member in members)


def _count(of_topics: OffsetsOfTopics) -> int:
    return sum(len(partitions) for _, partitions in of_topics)
