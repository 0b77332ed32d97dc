"""Find member: for which member does a heartbeat speak, and is its epoch the member's?

Kafka's counterpart: `GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember`,
`getOrMaybeSubscribeStaticConsumerGroupMember`, `throwIfConsumerGroupMemberEpochIsInvalid`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from coordinator.consumer import events
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.decide.refusal import Refusal
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import (
    ConsumerMemberMetadata,
    CurrentAssignment,
    OwnedPartitions,
)
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.names import ErrorCode, MemberId
from seams.now import Now


class FoundMember(NamedTuple):
    """A member as it is before the heartbeat.

    `replaces` names the member whose instance id, target and partitions it takes over.
    """

    metadata: ConsumerMemberMetadata
    current: CurrentAssignment
    target: Assignment
    is_new: bool = False
    replaces: MemberId | None = None

    @property
    def member_id(self) -> MemberId:
        return self.metadata.member_id


def find_member(
    group: ConsumerGroupView,
    request: ConsumerGroupHeartbeatRequest,
    member_id: MemberId,
    now: Now,
) -> FoundMember | Refusal:
    """`member_id` is the one of the request, or a new one if that has none."""
    joins = request.member_epoch == JOIN_EPOCH
    if request.instance_id is not None:
        holder_id = group.static_members.get(request.instance_id)
        if holder_id is not None:
            holder = group.members[holder_id]
            if joins:
                return _replace(group, request, member_id, holder, now)
            return _fence_instance(group, request, holder, now) or _known(
                group, request, holder, now
            )
        if not joins:
            return unknown_instance(request)
    member = group.members.get(member_id)
    if member is not None:
        if request.instance_id is not None:  # Joins: as in Kafka, whatever its epoch is.
            return _found(group, member)
        return _known(group, request, member, now)
    if not joins:
        return unknown_member(group, member_id)
    return FoundMember(ConsumerMemberMetadata(member_id), CurrentAssignment(), {}, is_new=True)


def _found(group: ConsumerGroupView, member: ConsumerMemberView) -> FoundMember:
    return FoundMember(member.metadata, member.current, group.target_of(member.member_id))


def _known(
    group: ConsumerGroupView,
    request: ConsumerGroupHeartbeatRequest,
    member: ConsumerMemberView,
    now: Now,
) -> FoundMember | Refusal:
    """A member that is there, if the epoch of the request is its own.

    An answer with a new epoch may have been lost. So the epoch before it is accepted from a client
    that owns nothing but what the member owns.
    """
    received, epoch = request.member_epoch, member.current.member_epoch
    if received in (JOIN_EPOCH, epoch):
        return _found(group, member)
    is_previous = received < epoch and received == member.current.previous_member_epoch
    if is_previous and _is_part_of(request.topic_partitions, member.current.assigned):
        return _found(group, member)
    relation = "greater" if received > epoch else "smaller"
    text = (
        f"The consumer group member has a {relation} member epoch ({received}) than the one known"
        f" by the group coordinator ({epoch}). The member must abandon all its partitions and"
        " rejoin."
    )
    error_code = ErrorCode.FENCED_MEMBER_EPOCH
    fenced = _fenced(group, request, member.member_id, member, error_code, now)
    return Refusal(error_code, text, (fenced,))


def _is_part_of(
    owned: Sequence[HeartbeatTopicPartitions] | None,
    assigned: OwnedPartitions,
) -> bool:
    """Whether the client says what it owns, and nothing that is not assigned to it."""
    if owned is None:
        return False
    for of_topic in owned:
        partitions = assigned.get(of_topic.topic_id)
        if partitions is None or any(number not in partitions for number in of_topic.partitions):
            return False
    return True


def _replace(
    group: ConsumerGroupView,
    request: ConsumerGroupHeartbeatRequest,
    member_id: MemberId,
    holder: ConsumerMemberView,
    now: Now,
) -> FoundMember | Refusal:
    """A static member is back. One that speaks the consumer protocol must have left before."""
    if holder.metadata.classic is None and not holder.current.has_left_for_a_while:
        text = (
            f"Static member {member_id} with instance id {request.instance_id} cannot join the"
            f" group because the instance id is owned by {holder.member_id} member."
        )
        error_code = ErrorCode.UNRELEASED_INSTANCE_ID
        fenced = _fenced(group, request, member_id, holder, error_code, now)
        return Refusal(error_code, text, (fenced,))
    return FoundMember(
        replace(holder.metadata, member_id=member_id),
        replace(holder.current, member_epoch=0, previous_member_epoch=0),
        group.target_of(holder.member_id),
        replaces=holder.member_id,
    )


def _fence_instance(
    group: ConsumerGroupView,
    request: ConsumerGroupHeartbeatRequest,
    holder: ConsumerMemberView,
    now: Now,
) -> Refusal | None:
    if holder.member_id == request.member_id:
        return None
    error_code = ErrorCode.FENCED_INSTANCE_ID
    text = (
        f"Static member {request.member_id} with instance id {request.instance_id} was fenced by"
        f" member {holder.member_id}."
    )
    fenced = _fenced(group, request, request.member_id, holder, error_code, now)
    return Refusal(error_code, text, (fenced,))


def _fenced(
    group: ConsumerGroupView,
    request: ConsumerGroupHeartbeatRequest,
    member_id: MemberId,
    holder: ConsumerMemberView,
    error_code: ErrorCode,
    now: Now,
) -> events.ConsumerMemberFenced:
    """`holder` is the member that the request should have come from."""
    return events.ConsumerMemberFenced(
        group.group_id,
        now.wall_ms,
        member_id,
        error_code,
        request.member_epoch,
        holder.current.member_epoch,
        request.instance_id,
        holder.member_id,
    )


def find_leaving(
    group: ConsumerGroupView, request: ConsumerGroupHeartbeatRequest, now: Now
) -> ConsumerMemberView | Refusal:
    """The member of a heartbeat that leaves. Its epoch does not matter."""
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        return unknown_member(group, request.member_id) if member is None else member
    holder_id = group.static_members.get(request.instance_id)
    if holder_id is None:
        return unknown_instance(request)
    holder = group.members[holder_id]
    return _fence_instance(group, request, holder, now) or holder


def unknown_member(group: ConsumerGroupView, member_id: MemberId) -> Refusal:
    text = f"Member {member_id} is not a member of group {group.group_id}."
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, text)


def unknown_instance(request: ConsumerGroupHeartbeatRequest) -> Refusal:
    text = f"Instance id {request.instance_id} is unknown."
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, text)
