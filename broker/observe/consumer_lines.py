"""Log lines of consumer groups: members, epochs, target assignments, reconciliation.

Kafka's counterpart: the log calls of `GroupMetadataManager` about consumer groups. group_lines.py
has the lines of conversions and of all that other types share.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.observe.log_lines import (
    NO_CLIENT_REASON,
    LineTable,
    LogFields,
    LogLine,
    Sentence,
    first_names,
    log_lines_for,
    log_sentence,
    principal_field,
    shorten,
)
from coordinator.consumer import events
from coordinator.consumer.events import ConsumerRemovalCause
from coordinator.member_identity import MemberIdentity
from protocol.names import ErrorCode

CONSUMER_LINES: Final[LineTable] = {}

_FENCED: Final[Mapping[ConsumerRemovalCause, str]] = {
    ConsumerRemovalCause.SESSION_EXPIRED: "the member session expired",
    ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT: "the classic member failed to join within the "
    "rebalance timeout",
    ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT: "the member failed to sync within timeout",
}


@log_lines_for(CONSUMER_LINES, events.ConsumerMemberUpdated)
def _(event: events.ConsumerMemberUpdated) -> Iterable[LogLine]:
    member = event.member
    fields = _member(event.group_id, member.identity)
    fields["topics"] = first_names(member.subscribed_topic_names)
    if member.subscribed_topic_regex:
        fields["regex"] = member.subscribed_topic_regex
    message: str = "Member updated its subscribed topics or other metadata"
    if event.is_new:
        message = log_sentence(
            "[GroupId {}] {} joins the consumer group using the {} protocol.",
            event.group_id,
            _kafkas_name(member.identity),
            _protocol(is_classic=member.classic is not None),
        )
    yield LogLine("info", message, fields)


@log_lines_for(CONSUMER_LINES, events.ConsumerMemberRemoved)
def _(event: events.ConsumerMemberRemoved) -> Iterable[LogLine]:
    fields = _member(event.group_id, event.member)
    fields["member_epoch"] = event.member_epoch
    yield LogLine("info", _removed(event), fields)


def _removed(event: events.ConsumerMemberRemoved) -> Sentence:
    group_id, member = event.group_id, event.member
    if event.leave_reason is not None:
        template = (
            "[GroupId {}] {} has left group through explicit `LeaveGroup` request; "
            "client reason: {}"
        )
        name = _kafkas_name(member)
        if member.group_instance_id is None:
            name = f"Dynamic member {shorten(member.member_id)}"
        return log_sentence(template, group_id, name, event.leave_reason or NO_CLIENT_REASON)
    if event.cause is ConsumerRemovalCause.LEFT:
        return log_sentence(
            "[GroupId {}] {} left the consumer group.", group_id, _kafkas_name(member)
        )
    if event.cause is ConsumerRemovalCause.REBALANCE_TIMED_OUT:
        return log_sentence(
            "[GroupId {}] Member {} fenced from the group because it failed to transition from "
            "epoch {} within {}ms.",
            group_id,
            member.member_id,
            event.member_epoch,
            event.rebalance_timeout_ms,
        )
    template = "[GroupId {}] Member {} fenced from the group because {}."
    return log_sentence(template, group_id, member.member_id, _FENCED[event.cause])


@log_lines_for(CONSUMER_LINES, events.ConsumerStaticMemberReplaced)
def _(event: events.ConsumerStaticMemberReplaced) -> Iterable[LogLine]:
    fields = _member(event.group_id, event.member.identity)
    fields["replaced_member_id"] = event.old_member_id
    message = log_sentence(
        "[GroupId {}] Static member with instance id {} re-joins the consumer group using the {} "
        "protocol. Created a new member {} to replace the existing member {}.",
        event.group_id,
        event.member.instance_id,
        _protocol(is_classic=event.is_classic),
        event.member.member_id,
        event.old_member_id,
    )
    yield LogLine("info", message, fields)


_INSTANCE_TAKEN: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.FENCED_INSTANCE_ID: "[GroupId {}] Static member {} with instance id {} is fenced by "
    "existing member {}.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "[GroupId {}] Static member {} with instance id {} cannot "
    "join the group because the instance id is owned by member {}.",
}


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
    message: str = "Request of member is fenced by the consumer group"
    template = _INSTANCE_TAKEN.get(event.error_code)
    if template is not None:
        message = log_sentence(
            template, event.group_id, event.member_id, event.instance_id, event.holder_id
        )
    yield LogLine("info", message, fields)


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
    template = "[GroupId {}] Bumped group epoch to {} with metadata hash {}."
    message = log_sentence(template, event.group_id, event.epoch, event.metadata_hash)
    yield LogLine("info", message, fields)


@log_lines_for(CONSUMER_LINES, events.TargetAssignmentUpdated)
def _(event: events.TargetAssignmentUpdated) -> Iterable[LogLine]:
    yield LogLine(
        "info",
        log_sentence(
            "[GroupId {}] Computed a new target assignment for epoch {} with '{}' assignor in "
            "{}ms.",
            event.group_id,
            event.assignment_epoch,
            event.assignor,
            event.took_ms,
        ),
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
    message: str = "Member has a new assignment state"
    if current.has_left_for_a_while:
        message = log_sentence(
            "[GroupId {}] Static member {} with instance id {} temporarily left the consumer "
            "group.",
            event.group_id,
            event.member_id,
            event.instance_id,
        )
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


def _kafkas_name(member: MemberIdentity) -> str:
    member_id = shorten(member.member_id)
    if member.group_instance_id is None:
        return f"Member {member_id}"
    return f"Static member {member_id} with instance id {shorten(member.group_instance_id)}"


def _protocol(*, is_classic: bool) -> str:
    return "classic" if is_classic else "consumer"


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
