"""Heartbeat (api key 12): a member proves it is alive and asks if its generation still stands.

Version notes: v1 throttle_time_ms; v3 group_instance_id (KIP-345); v4 flexible (KIP-482).
"""

from typing import Annotated, ClassVar

from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
)
from protocol.schema import ERROR_CODE, INT32, STRING, Message, since


class HeartbeatRequest(Message):
    API_KEY: ClassVar = ApiKey.HEARTBEAT
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4

    group_id: Annotated[GroupId, STRING] = GroupId("")
    generation_id: Annotated[GenerationId, INT32] = GenerationId(0)
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, since(STRING, 3, nullable=True)] = None


class HeartbeatResponse(Message):
    API_KEY: ClassVar = ApiKey.HEARTBEAT
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
