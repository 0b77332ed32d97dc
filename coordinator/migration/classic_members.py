"""Classic members: which member of a consumer group does a request of the classic protocol name?

Kafka's counterpart: `GroupMetadataManager.validateConsumerGroupMember`,
`throwIfMemberDoesNotUseClassicProtocol`, `throwIfGenerationIdUnmatched`, and
`ConsumerGroup.waitingOnUnreleasedPartition`.
"""

from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.target_assignment import is_assignment_due
from coordinator.consumer.events import (
    ClassicRejoinRequested,
    ConsumerEvent,
    ConsumerMemberFenced,
    ConsumerSessionExtended,
)
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberState
from protocol.names import ErrorCode, GenerationId, GroupInstanceId, MemberId
from seams.now import Now

Found = ConsumerMemberView | ErrorCode


def find_classic_member(
    group: ConsumerGroupView,
    member_id: MemberId,
    group_instance_id: GroupInstanceId | None,
    generation_id: GenerationId,
) -> Found:
    """The member, if it uses the classic protocol and is in this generation; else the error."""
    found = find_named_member(group, member_id, group_instance_id)
    if isinstance(found, ErrorCode):
        return found
    if found.metadata.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if found.current.member_epoch != generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return found


def find_named_member(
    group: ConsumerGroupView, member_id: MemberId, group_instance_id: GroupInstanceId | None
) -> Found:
    """Of either protocol. A static member has to be the holder of its instance id."""
    if group_instance_id is not None:
        holder_id = group.static_members.get(group_instance_id)
        if holder_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if holder_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        return group.members[holder_id]
    member = group.members.get(member_id)
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else member


def instance_fenced(
    group: ConsumerGroupView,
    member_id: MemberId,
    group_instance_id: GroupInstanceId | None,
    generation_id: GenerationId,
    now: Now,
) -> ConsumerMemberFenced:
    """The event for a FENCED_INSTANCE_ID of `find_named_member`."""
    assert group_instance_id is not None
    holder = group.members[group.static_members[group_instance_id]]
    return ConsumerMemberFenced(
        group.group_id,
        now.wall_ms,
        member_id,
        ErrorCode.FENCED_INSTANCE_ID,
        generation_id,
        holder.current.member_epoch,
        group_instance_id,
        holder.member_id,
    )


def session_extended(
    group: ConsumerGroupView, member: ConsumerMemberView, now: Now
) -> ConsumerSessionExtended:
    """A member of the classic protocol keeps the session timeout of its JoinGroup."""
    assert member.metadata.classic is not None
    deadline_ms = now.mono_ms + member.metadata.classic.session_timeout_ms
    return ConsumerSessionExtended(group.group_id, member.member_id, deadline_ms)


def rejoin_requested(
    group: ConsumerGroupView, member: ConsumerMemberView, now: Now
) -> tuple[ConsumerEvent, ...]:
    """It is told REBALANCE_IN_PROGRESS. The time it has runs from the first time it is told."""
    if member.rejoin_deadline_ms is not None:
        return ()
    deadline_ms = now.mono_ms + max(member.metadata.rebalance_timeout_ms, 0)
    return (ClassicRejoinRequested(group.group_id, member.member_id, deadline_ms),)


def waits_for_others(group: ConsumerGroupView, member: ConsumerMemberView) -> bool:
    """Whether some partition of its target is still owned by another member."""
    for topic_id, partitions in group.target_of(member.member_id).items():
        owners = group.owners.get(topic_id)
        if owners is None:
            continue
        assigned = member.current.assigned.get(topic_id, ())
        if any(partition in owners for partition in partitions if partition not in assigned):
            return True
    return False


def has_to_rejoin(
    group: ConsumerGroupView, member: ConsumerMemberView, now: Now, context: ConsumerContext
) -> bool:
    """Whether a new target waits for it, it is to give partitions back, or the rest is free now."""
    current = member.current
    if current.member_epoch < group.assignment_epoch:
        return True
    match current.state:
        case ConsumerMemberState.UNREVOKED_PARTITIONS:
            return True
        case ConsumerMemberState.UNRELEASED_PARTITIONS if not waits_for_others(group, member):
            return True
        case _:
            return _only_a_join_assigns(group, now, context)


def _only_a_join_assigns(group: ConsumerGroupView, now: Now, context: ConsumerContext) -> bool:
    """Whether a target is due that no heartbeat of a consumer is going to ask for.

    Kafka differs: if no member of the consumer protocol is left, and the group is not downgraded,
    it leaves partitions without a reader until a member joins.
    """
    if group.classic_member_count < len(group.members):
        return False
    return bool(group.changed_topics) or is_assignment_due(group, group.epoch, now, context)
