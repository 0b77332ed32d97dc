"""Offset commits and fetches of consumer groups: may this member do so in this epoch?

Kafka's counterpart: `ConsumerGroup.validateOffsetCommit`, `validateOffsetFetch` and
`createAssignmentEpochValidator`.
"""

from collections.abc import Iterable
from typing import Final

from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from protocol.names import (
    NO_GENERATION,
    ErrorCode,
    GenerationId,
    GroupInstanceId,
    MemberId,
    TopicId,
)

_MEMBER_EPOCHS_SINCE: Final = 9


def validate_offset_commit(
    group: ConsumerGroupView, member_id: MemberId, member_epoch: GenerationId, api_version: int
) -> ErrorCode:
    """The first reason to refuse, in Kafka's order."""
    if member_epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.metadata.classic is None and api_version < _MEMBER_EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return _same_epoch(member, member_epoch)


def validate_txn_offset_commit(
    group: ConsumerGroupView,
    member_id: MemberId,
    group_instance_id: GroupInstanceId | None,
    member_epoch: GenerationId,
) -> ErrorCode:
    """Of a producer's transaction; older producers do not know the member."""
    if member_epoch < 0 and not group.members:
        return ErrorCode.NONE
    if member_epoch == NO_GENERATION and not member_id and group_instance_id is None:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else _same_epoch(member, member_epoch)


def validate_earlier_commit(
    group: ConsumerGroupView,
    member_id: MemberId,
    member_epoch: GenerationId,
    partitions: Iterable[tuple[TopicId, Iterable[int]]],
) -> ErrorCode:
    """A commit from before the member's epoch: are all partitions its own since that epoch?

    So a member may commit what it has read while its next epoch is on the way to it.
    """
    member = group.members[member_id]
    current = member.current
    refused = _of_another_epoch(member)
    if member_epoch > current.member_epoch:
        return refused
    for topic_id, indexes in partitions:
        assigned = current.assigned.get(topic_id, {})
        pending = current.pending_revocation.get(topic_id, {})
        for index in indexes:
            assignment_epoch = assigned.get(index, pending.get(index))
            if assignment_epoch is None or member_epoch < assignment_epoch:
                return refused
    return ErrorCode.NONE


def validate_offset_fetch(
    group: ConsumerGroupView, member_id: MemberId | None, member_epoch: int
) -> ErrorCode:
    """Who names neither a member nor an epoch may always fetch: tools, and older versions."""
    if member_id is None and member_epoch < 0:
        return ErrorCode.NONE
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return _same_epoch(member, member_epoch)


def _same_epoch(member: ConsumerMemberView, member_epoch: int) -> ErrorCode:
    if member_epoch == member.current.member_epoch:
        return ErrorCode.NONE
    return _of_another_epoch(member)


def _of_another_epoch(member: ConsumerMemberView) -> ErrorCode:
    is_classic = member.metadata.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
