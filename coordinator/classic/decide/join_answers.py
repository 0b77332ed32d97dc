"""JoinGroup responses: the current generation, or an error without one.

Kafka's counterpart: the `JoinGroupResponseData` that `GroupMetadataManager` builds in many places.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.outcome import Reply
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GenerationId,
    MemberId,
)
from seams.reply_token import ReplyToken

_NULL_NAME_SINCE: Final = 7


def refuse_join(
    token: ReplyToken, error_code: ErrorCode, member_id: MemberId = UNKNOWN_MEMBER_ID
) -> Reply:
    """An answer without a generation; `member_id` is what Kafka puts in beside this error."""
    return Reply(token, join_refusal(error_code, member_id, token.api_version))


def join_refusal(error_code: ErrorCode, member_id: MemberId, api_version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error_code,
        member_id=member_id,
        protocol_name=answered_name(None, api_version),
    )


def answered_name(protocol_name: str | None, api_version: int) -> str | None:
    """Versions before 7 cannot say null, later ones say it for an empty name, too."""
    return protocol_name or (None if api_version >= _NULL_NAME_SINCE else "")


def join_answer(
    group: ClassicGroupView,
    token: ReplyToken,
    member_id: MemberId,
    *,
    leader_id: MemberId | None = None,
    members: Sequence[JoinGroupResponseMember] = (),
    skip_assignment: bool = False,
) -> Reply:
    """The current generation as it stands."""
    return Reply(
        token,
        JoinGroupResponse(
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=answered_name(group.protocol_name, token.api_version),
            leader=group.leader_id if leader_id is None else leader_id,
            member_id=member_id,
            members=members,
            skip_assignment=skip_assignment,
        ),
    )


def generation_answer(
    token: ReplyToken,
    generation_id: GenerationId,
    protocol: tuple[str, str],
    leader_id: MemberId,
    member_id: MemberId,
    members: Sequence[JoinGroupResponseMember],
) -> Reply:
    """A generation that is about to begin. `protocol` is (type, name)."""
    return Reply(
        token,
        JoinGroupResponse(
            generation_id=generation_id,
            protocol_type=protocol[0],
            protocol_name=answered_name(protocol[1], token.api_version),
            leader=leader_id,
            member_id=member_id,
            members=members,
        ),
    )


def members_for_leader(
    members: Iterable[ClassicMemberView], protocol_name: str | None
) -> list[JoinGroupResponseMember]:
    """The list from which the leader assigns: who is in, and what each offers for the protocol."""
    return [
        JoinGroupResponseMember(
            member.member_id, member.group_instance_id, member.metadata_for(protocol_name)
        )
        for member in members
    ]
