"""JoinGroup (api key 11): a member asks to be part of the next generation, and waits for it.

Version notes: v1 rebalance_timeout_ms (before, the session timeout served for both); v2
throttle_time_ms; v4 a new member is first told its id and joins again with it (KIP-394); v5
group_instance_id (KIP-345); v6 flexible; v7 protocol_type, and protocol_name may be null (KIP-559);
v8 reason (KIP-800); v9 skip_assignment (KIP-814).

`protocols` is the member's order of preference. Only the leader's answer has `members`.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
)
from protocol.schema import (
    BOOL,
    BYTES,
    ERROR_CODE,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    since,
)

PROTOCOLS_MAX: Final = 1_000
"""A member offers one for each of its assignors: a handful."""


class JoinGroupRequestProtocol(Struct):
    name: Annotated[str, STRING] = ""
    metadata: Annotated[bytes, BYTES] = b""


class JoinGroupRequest(Message):
    API_KEY: ClassVar = ApiKey.JOIN_GROUP
    VERSIONS: ClassVar = range(10)
    FLEXIBLE_SINCE: ClassVar = 6

    group_id: Annotated[GroupId, STRING] = GroupId("")
    session_timeout_ms: Annotated[int, INT32] = 0
    rebalance_timeout_ms: Annotated[int, since(INT32, 1, ignorable=True)] = -1
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, since(STRING, 5, nullable=True)] = None
    protocol_type: Annotated[str, STRING] = ""
    protocols: Annotated[
        Sequence[JoinGroupRequestProtocol],
        array(JoinGroupRequestProtocol, at_most=PROTOCOLS_MAX),
    ] = ()
    reason: Annotated[str | None, since(STRING, 8, nullable=True, ignorable=True)] = None


class JoinGroupResponseMember(Struct):
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[
        GroupInstanceId | None, since(STRING, 5, nullable=True, ignorable=True)
    ] = None
    metadata: Annotated[bytes, BYTES] = b""


class JoinGroupResponse(Message):
    API_KEY: ClassVar = ApiKey.JOIN_GROUP
    VERSIONS: ClassVar = range(10)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: Annotated[int, since(INT32, 2, ignorable=True)] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    generation_id: Annotated[GenerationId, INT32] = NO_GENERATION
    protocol_type: Annotated[str | None, since(STRING, 7, nullable=True, ignorable=True)] = None
    protocol_name: Annotated[str | None, nullable(STRING, since=7)] = ""
    leader: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    skip_assignment: Annotated[bool, since(BOOL, 9)] = False
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    members: Annotated[Sequence[JoinGroupResponseMember], array(JoinGroupResponseMember)] = ()
