"""LeaveGroup (api key 13): a member goes, or an operator removes members by their instance ids.

Version notes: v1 throttle_time_ms; v3 many members in one request, each with an answer of its own
(KIP-345), and the single member_id leaves; v4 flexible; v5 reason (KIP-800).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import UNKNOWN_MEMBER_ID, ApiKey, ErrorCode, GroupId, GroupInstanceId, MemberId
from protocol.schema import (
    ERROR_CODE,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    since,
    until,
)


class MemberIdentity(Struct):
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, nullable(STRING)] = None
    reason: Annotated[str | None, since(STRING, 5, nullable=True, ignorable=True)] = None


class LeaveGroupRequest(Message):
    API_KEY: ClassVar = ApiKey.LEAVE_GROUP
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 4

    group_id: Annotated[GroupId, STRING] = GroupId("")
    member_id: Annotated[MemberId, until(STRING, 2)] = UNKNOWN_MEMBER_ID
    members: Annotated[Sequence[MemberIdentity], since(array(MemberIdentity), 3)] = ()


class MemberResponse(Struct):
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, nullable(STRING)] = GroupInstanceId("")
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class LeaveGroupResponse(Message):
    API_KEY: ClassVar = ApiKey.LEAVE_GROUP
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    members: Annotated[Sequence[MemberResponse], since(array(MemberResponse), 3)] = ()
