"""Upgrade: a classic group becomes a consumer group when a member joins with that protocol.

A group without members converts freely. One with members converts if the policy allows it and all
that its members said can be read; they stay members, in the epoch of their generation, and go on
with the classic protocol. The heartbeat is then decided as at any consumer group: its records and
those of the conversion are one batch, and if it is refused nothing is converted. Parked joins and
syncs are answered REBALANCE_IN_PROGRESS.
Kafka's counterpart: `GroupMetadataManager.validateOnlineUpgrade` and `convertToConsumerGroup`,
`ConsumerGroup.fromClassicGroup`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from coordinator.classic.commands import RemoveLapsed
from coordinator.classic.decide.join_answers import refuse_join
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.commands import ConsumerHeartbeat
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decisions import decide_consumer
from coordinator.consumer.events import (
    ClassicGroupUpgraded,
    ConsumerEvent,
    ConsumerSessionExtended,
    ConvertedMember,
    EpochCause,
    GroupEpochBumped,
    TargetAssignmentRefused,
)
from coordinator.consumer.evolve import evolve_consumer_group
from coordinator.consumer.group import FIRST_GROUP_EPOCH, ConsumerGroup
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    CurrentAssignment,
)
from coordinator.consumer.records import turn_records
from coordinator.events import ConversionRefused, Event, GroupConverted
from coordinator.group import GroupType
from coordinator.migration.embedded_protocol import (
    CustomAssignor,
    assigned_topic_ids,
    owned_topic_ids,
)
from coordinator.outcome import Outcome, Reply
from protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolSubscription,
    read_subscription,
)
from protocol.messages.consumer_group_heartbeat import JOIN_EPOCH, ConsumerGroupHeartbeatResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode, GroupState, MemberId, TopicId
from protocol.primitives import Malformed
from seams.java_hash import hash_map_order
from seams.now import Now
from seams.reply_token import ReplyToken

_EMPTY_GROUP: Final = "a member joins the empty group with the consumer protocol"
_MEMBER_JOINED: Final = "a member joins with the consumer protocol"

_POLICY: Final = "online upgrade is disabled"
_NO_CONSUMERS: Final = "the group does not use the consumer embedded protocol"
_TOO_LARGE: Final = "the group size exceeds the consumer group maximum size"
_TOO_MUCH_METADATA: Final = "the protocols of a member do not fit into a record"
_MALFORMED: Final = "the embedded consumer protocol is malformed"
_CUSTOM_ASSIGNOR: Final = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
    "default assignor before re-attempting the upgrade"
)


def decide_upgrade(
    group: ClassicGroupView, command: ConsumerHeartbeat, now: Now, context: ConsumerContext
) -> Outcome:
    """Convert the group and let the member join it, or refuse the heartbeat."""
    if command.request.member_epoch != JOIN_EPOCH:
        message = f"Group {group.group_id} is not a consumer group."
        return Outcome(replies=(_refusal(command.token, message),))
    if group.state is GroupState.EMPTY:
        return _converted(group, (), _EMPTY_GROUP, command, now, context)
    if group.lapsed_member_ids:
        return Outcome(then=(RemoveLapsed(group.group_id), command))
    reason = _reason_against(group, context)
    if reason is not None:
        return _refused(group, command, reason, now)
    try:
        happened = tuple(_upgrade_events(group, now, context))
    except Malformed:
        return _refused(group, command, _MALFORMED, now)
    except CustomAssignor:
        return _refused(group, command, _CUSTOM_ASSIGNOR, now)
    return _converted(group, happened, _MEMBER_JOINED, command, now, context)


def _reason_against(group: ClassicGroupView, context: ConsumerContext) -> str | None:
    settings = context.settings
    if not settings.group_consumer_migration_policy.is_upgrade_enabled:
        return _POLICY
    if group.protocol_type != PROTOCOL_TYPE:
        return _NO_CONSUMERS
    if len(group.members) > settings.group_consumer_max_size:
        return _TOO_LARGE
    if any(_protocol_bytes(member) > settings.max_batch_bytes for member in group.members.values()):
        return _TOO_MUCH_METADATA
    return None


def _protocol_bytes(member: ClassicMemberView) -> int:
    """Its record has all of its protocols; that of a classic group has the selected one."""
    return sum(len(metadata) for _, metadata in member.protocols)


def _refused(group: ClassicGroupView, command: ConsumerHeartbeat, reason: str, now: Now) -> Outcome:
    group_id = group.group_id
    message = f"Cannot upgrade classic group {group_id} to consumer group because {reason}."
    refused = ConversionRefused(
        group_id, now.wall_ms, GroupType.CLASSIC, GroupType.CONSUMER, reason
    )
    return Outcome(replies=(_refusal(command.token, message),), events=(refused,))


def _refusal(token: ReplyToken, message: str) -> Reply:
    error_code = ErrorCode.GROUP_ID_NOT_FOUND
    return Reply(
        token, ConsumerGroupHeartbeatResponse(error_code=error_code, error_message=message)
    )


def _converted(
    group: ClassicGroupView,
    happened: tuple[ConsumerEvent, ...],
    reason: str,
    command: ConsumerHeartbeat,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    """The heartbeat is decided at the group as it is after the conversion."""
    converted = ConsumerGroup(group.group_id, now.wall_ms)
    for event in happened:
        evolve_consumer_group(converted, event)
    joined = decide_consumer(converted, command, now, context)
    if _needs_target(group, converted, joined, context):
        bumped = GroupEpochBumped(
            group.group_id,
            now.wall_ms,
            converted.epoch + 1,
            converted.metadata_hash,
            (EpochCause.GROUP_CONVERTED,),
            (command.request.member_id,),
        )
        evolve_consumer_group(converted, bumped)
        happened = (*happened, bumped)
        joined = decide_consumer(converted, command, now, context)
    if any(_is_refusal(reply) for reply in joined.replies):
        return _not_converted(group, joined, now)
    conversion = GroupConverted(
        group.group_id,
        now.wall_ms,
        GroupType.CLASSIC,
        GroupType.CONSUMER,
        reason,
        had_members=bool(group.members),
    )
    all_events: tuple[Event, ...] = (conversion, *happened, *joined.events)
    return replace(
        joined,
        replies=(*_parked_refusals(group), *joined.replies),
        events=all_events,
        records=(*group.tombstones(), *turn_records(happened), *joined.records),
    )


def _needs_target(
    group: ClassicGroupView, converted: ConsumerGroup, joined: Outcome, context: ConsumerContext
) -> bool:
    """Whether nobody would assign what the classic group had not assigned yet.

    The group epoch does not rise if a static member takes its own place. Kafka differs: then these
    partitions are not read until the epoch rises for another reason.
    """
    if not converted.members or any(isinstance(e, GroupEpochBumped) for e in joined.events):
        return False
    if group.state is not GroupState.STABLE:
        return True
    assigned = defaultdict[TopicId, int](int)
    for target in converted.targets.values():
        for topic_id, partitions in target.items():
            assigned[topic_id] += len(partitions)
    topics = context.topics.view
    for name in {n for m in converted.members.values() for n in m.metadata.subscribed_topic_names}:
        found = topics.topic_id(name)
        if found is not None and assigned[found] < (topics.partition_count(name) or 0):
            return True
    return False


def _not_converted(group: ClassicGroupView, joined: Outcome, now: Now) -> Outcome:
    """The answer, and why an assignor failed: the rest is of a group that there will not be."""
    refused = tuple(
        ConversionRefused(
            group.group_id, now.wall_ms, GroupType.CLASSIC, GroupType.CONSUMER, event.reason
        )
        for event in joined.events
        if isinstance(event, TargetAssignmentRefused)
    )
    return Outcome(replies=joined.replies, events=refused)


def _is_refusal(reply: Reply) -> bool:
    response = reply.response
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response.error_code is not ErrorCode.NONE


def _parked_refusals(group: ClassicGroupView) -> Iterator[Reply]:
    """These members are to join again, in the consumer group."""
    error_code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        if member.awaiting_join is not None:
            yield refuse_join(member.awaiting_join, error_code, member.member_id)
        if member.awaiting_sync is not None:
            yield Reply(member.awaiting_sync, SyncGroupResponse(error_code=error_code))


# ---------------------------------------------------------------- the members


def _upgrade_events(
    group: ClassicGroupView, now: Now, context: ConsumerContext
) -> Iterator[ConsumerEvent]:
    """Raises Malformed, CustomAssignor."""
    # Kafka differs: it fails for a group whose first rebalance is not over, in generation 0.
    epoch = max(group.generation_id, FIRST_GROUP_EPOCH)
    converting = [_read_member(group, member, context) for member in group.members.values()]
    owned = _owned(converting, group.state)
    targets = _exclusive((found.member.member_id, found.assigned) for found in converting)
    by_id = {found.member.member_id: found for found in converting}
    # Kafka puts them into its map in the order of another map, and again when it reads its records.
    order = reversed(hash_map_order([*by_id]))
    members = tuple(_converted_member(by_id[MemberId(id_)], targets, owned, epoch) for id_ in order)
    names = {name for found in converting for name in found.subscription.topics}
    metadata_hash = context.topics.metadata_hash(names)
    yield ClassicGroupUpgraded(group.group_id, now.wall_ms, epoch, metadata_hash, members)
    for member in group.members.values():
        deadline_ms = now.mono_ms + member.session_timeout_ms
        yield ConsumerSessionExtended(group.group_id, member.member_id, deadline_ms)


_Exclusive = dict[MemberId, dict[TopicId, list[int]]]
"""Partitions of members, each of one."""


class _ConvertingMember(NamedTuple):
    """A member with what its bytes say."""

    member: ClassicMemberView
    subscription: ConsumerProtocolSubscription
    assigned: Assignment
    held: Assignment
    reported: Assignment


def _read_member(
    group: ClassicGroupView, member: ClassicMemberView, context: ConsumerContext
) -> _ConvertingMember:
    """All protocols of a consumer have one subscription. Maybe none has been selected yet."""
    topics = context.topics.view
    assigned = assigned_topic_ids(member.assignment, group.protocol_name, topics)
    held = assigned_topic_ids(member.held_assignment, group.protocol_name, topics)
    metadata = member.metadata_for(group.protocol_name) or member.protocols[0][1]
    subscription = read_subscription(metadata)
    reported = owned_topic_ids(subscription, topics)
    return _ConvertingMember(member, subscription, assigned, held, reported)


def _owned(members: Sequence[_ConvertingMember], state: GroupState) -> _Exclusive:
    """What each member owns: its assignment, and what it may not have given back yet.

    A cooperative member joins with its partitions, and gives some back when it reads its next
    assignment, which it then confirms with another join. A member that has not joined since a
    downgrade reads what it owned before. One that has joined since its last assignment reads what
    it says there, while those that are assigned the same by the downgrade have not been told:
    its join waits, or all have been answered and the leader has not assigned. Kafka differs: it
    lets other members have these partitions at once, so that a partition may have two readers for
    a moment.
    """
    has_begun = state is GroupState.COMPLETING_REBALANCE
    reporting = [found for found in members if has_begun or found.member.awaiting_join is not None]
    claims = [(found.member.member_id, found.held) for found in members]
    claims += [(found.member.member_id, found.reported) for found in reporting]
    claims += [(found.member.member_id, found.assigned) for found in members]
    claims += [(found.member.member_id, found.reported) for found in members]
    return _exclusive(claims)


def _exclusive(claims: Iterable[tuple[MemberId, Assignment]]) -> _Exclusive:
    """Of a partition that several claim, as one that the leader assigned twice, the first has it.

    Kafka differs: both have it in their targets, and the second waits forever.
    """
    given: _Exclusive = {}
    taken: dict[TopicId, set[int]] = {}
    for member_id, claimed in claims:
        of_member = given.setdefault(member_id, {})
        for topic_id, partitions in claimed.items():
            of_others = taken.setdefault(topic_id, set())
            free = sorted(partitions - of_others)
            if free:
                of_others.update(free)
                of_member.setdefault(topic_id, []).extend(free)
    return given


def _converted_member(
    found: _ConvertingMember, targets: _Exclusive, owned: _Exclusive, epoch: int
) -> ConvertedMember:
    member, subscription = found.member, found.subscription
    metadata = ConsumerMemberMetadata(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        principal=member.caller.principal,
    )
    target = {topic_id: frozenset(held) for topic_id, held in targets[member.member_id].items()}
    assigned = {
        topic_id: dict.fromkeys(held, epoch) for topic_id, held in owned[member.member_id].items()
    }
    return ConvertedMember(metadata, target, CurrentAssignment(epoch, epoch, assigned=assigned))
