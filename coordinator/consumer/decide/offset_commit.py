"""Offset commits of consumer groups: may this member commit in this epoch?

Kafka's counterpart: `ConsumerGroup.validateOffsetCommit`.
"""

from typing import Final

from coordinator.consumer.group_view import ConsumerGroupView
from protocol.names import ErrorCode, GenerationId, MemberId

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
    is_classic = member.metadata.classic is not None
    if not is_classic and api_version < _MEMBER_EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    if member_epoch == member.current.member_epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
