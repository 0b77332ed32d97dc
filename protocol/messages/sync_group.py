"""SyncGroup (api key 14): the leader sends all assignments; each member receives its own.

Version notes: v1 throttle_time_ms; v3 group_instance_id (KIP-345); v4 flexible; v5 protocol_type
and protocol_name in both directions, so that a mix-up is noticed (KIP-559).
"""

from collections.abc import Sequence
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
from protocol.schema import BYTES, ERROR_CODE, INT32, STRING, Message, Struct, array, since


class SyncGroupRequestAssignment(Struct):
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    assignment: Annotated[bytes, BYTES] = b""


class SyncGroupRequest(Message):
    API_KEY: ClassVar = ApiKey.SYNC_GROUP
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 4

    group_id: Annotated[GroupId, STRING] = GroupId("")
    generation_id: Annotated[GenerationId, INT32] = GenerationId(0)
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[GroupInstanceId | None, since(STRING, 3, nullable=True)] = None
    protocol_type: Annotated[str | None, since(STRING, 5, nullable=True, ignorable=True)] = None
    protocol_name: Annotated[str | None, since(STRING, 5, nullable=True, ignorable=True)] = None
    assignments: Annotated[
        Sequence[SyncGroupRequestAssignment], array(SyncGroupRequestAssignment)
    ] = ()


class SyncGroupResponse(Message):
    API_KEY: ClassVar = ApiKey.SYNC_GROUP
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    protocol_type: Annotated[str | None, since(STRING, 5, nullable=True, ignorable=True)] = None
    protocol_name: Annotated[str | None, since(STRING, 5, nullable=True, ignorable=True)] = None
    assignment: Annotated[bytes, BYTES] = b""
