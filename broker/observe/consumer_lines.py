"""Log lines of consumer groups: members, epochs, target assignments, reconciliation.

Kafka's counterpart: the log calls of `GroupMetadataManager` about consumer groups. group_lines.py
has the lines of conversions and of all that other types share.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.observe.log_lines import (
    LineTable,
    LogFields,
    LogLine,
    first_names,
    log_lines_for,
    principal_field,
)
from coordinator.consumer import events
from coordinator.consumer.events import ConsumerRemovalCause
from coordinator.member_identity import MemberIdentity

CONSUMER_LINES: Final[LineTable] = {}

_FENCED: Final[Mapping[ConsumerRemovalCause, str]] = {
    ConsumerRemovalCause.SESSION_EXPIRED: "the member session expired",
    ConsumerRemovalCause.REBALANCE_TIMED_OUT: "it failed to transition from its epoch within its "
    "rebalance timeout",
    ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT: "the classic member failed to join within its "
    "rebalance timeout",
    ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT: "the classic member failed to sync within its "
    "rebalance timeout",
}


@log_lines_for(CONSUMER_LINES, events.ConsumerMemberUpdated)
def _(event: events.ConsumerMemberUpdated) -> Iterable[LogLine]:
    member = event.member
    fields = _member(event.group_id, member.identity)
    if event.is_new:
        protocol = "consumer" if member.classic is None else "classic"
        message = f"Member joins the consumer group using the {protocol} protocol"
    else:
        message = "Member updated its subscribed topics or other metadata"
    fields["topics"] = first_names(member.subscribed_topic_names)
    if member.subscribed_topic_regex:
        fields["regex"] = member.subscribed_topic_regex
    yield LogLine("info", message, fields)


@log_lines_for(CONSUMER_LINES, events.ConsumerMemberRemoved)
def _(event: events.ConsumerMemberRemoved) -> Iterable[LogLine]:
    fields = _member(event.group_id, event.member)
    fields["member_epoch"] = event.member_epoch
    reason = _FENCED.get(event.cause)
    message = "Member left the consumer group"
    if reason is not None:
        message = f"Member fenced from the group because {reason}"
    yield LogLine("info", message, fields)


@log_lines_for(CONSUMER_LINES, events.ConsumerStaticMemberReplaced)
def _(event: events.ConsumerStaticMemberReplaced) -> Iterable[LogLine]:
    fields = _member(event.group_id, event.member.identity)
    fields["replaced_member_id"] = event.old_member_id
    message = "Static member re-joins the consumer group, replacing previously mapped member"
    yield LogLine("info", message, fields)


@log_lines_for(CONSUMER_LINES, events.ConsumerMemberFenced)
def _(event: events.ConsumerMemberFenced) -> Iterable[LogLine]:
    fields: LogFields = {
        "group_id": event.group_id,
        "member_id": event.member_id,
        "received_epoch": event.received_epoch,
        "member_epoch": event.member_epoch,
        "error": event.error_code.name,
    }
    if event.instance_id is not None:
        fields["group_instance_id"] = event.instance_id
    yield LogLine("info", "Request of member is fenced by the consumer group", fields)


@log_lines_for(CONSUMER_LINES, events.GroupEpochBumped)
def _(event: events.GroupEpochBumped) -> Iterable[LogLine]:
    fields: LogFields = {
        "group_id": event.group_id,
        "group_epoch": event.epoch,
        "metadata_hash": event.metadata_hash,
        "causes": [str(cause) for cause in event.causes],
    }
    if event.trigger_ids:
        fields["members"] = first_names(event.trigger_ids)
    if event.changed_topics:
        fields["topics"] = first_names(event.changed_topics)
    yield LogLine("info", "Bumped group epoch", fields)


@log_lines_for(CONSUMER_LINES, events.TargetAssignmentUpdated)
def _(event: events.TargetAssignmentUpdated) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Computed a new target assignment",
        {
            "group_id": event.group_id,
            "assignment_epoch": event.assignment_epoch,
            "assignor": event.assignor,
            "took_ms": event.took_ms,
            "changed_members": len(event.changed),
        },
    )


@log_lines_for(CONSUMER_LINES, events.TargetAssignmentRefused)
def _(event: events.TargetAssignmentRefused) -> Iterable[LogLine]:
    yield LogLine(
        "error",
        "Failed to compute a new target assignment",
        {
            "group_id": event.group_id,
            "group_epoch": event.group_epoch,
            "assignor": event.assignor,
            "reason": event.reason,
        },
    )


@log_lines_for(CONSUMER_LINES, events.CurrentAssignmentUpdated)
def _(event: events.CurrentAssignmentUpdated) -> Iterable[LogLine]:
    current = event.current
    fields: LogFields = {
        "group_id": event.group_id,
        "member_id": event.member_id,
        "member_epoch": current.member_epoch,
        "previous_member_epoch": current.previous_member_epoch,
        "state": current.state.name,
        "assigned_partitions": sum(map(len, current.assigned.values())),
        "revoked_partitions": sum(map(len, current.pending_revocation.values())),
    }
    message = "Member has a new assignment state"
    if current.has_left_for_a_while:
        message = "Static member temporarily left the consumer group"
    yield LogLine("info", message, fields)


@log_lines_for(CONSUMER_LINES, events.RegularExpressionResolved)
def _(event: events.RegularExpressionResolved) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        "Scanned topics to refresh regular expressions",
        {
            "group_id": event.group_id,
            "regex": event.pattern,
            "topics": first_names(sorted(event.topics)),
        },
    )


def _member(group_id: str, member: MemberIdentity) -> LogFields:
    fields: LogFields = {
        "group_id": group_id,
        "member_id": member.member_id,
        "client_host": member.client_host,
        **principal_field(member.principal),
    }
    if member.group_instance_id is not None:
        fields["group_instance_id"] = member.group_instance_id
    return fields
