"""DescribeGroups (api key 15): in which state are these groups, and who is in them?

Version notes: v1 throttle_time_ms; v3 authorized operations; v4 group_instance_id; v5 flexible; v6
error_message, and an unknown group is GROUP_ID_NOT_FOUND (KIP-1043); older versions say Dead.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    MemberId,
)
from protocol.schema import BOOL, BYTES, ERROR_CODE, INT32, STRING, Message, Struct, array, since


class DescribeGroupsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_GROUPS
    VERSIONS: ClassVar = range(7)
    FLEXIBLE_SINCE: ClassVar = 5

    groups: Annotated[Sequence[GroupId], array(STRING)] = ()
    include_authorized_operations: Annotated[bool, since(BOOL, 3)] = False


class DescribedGroupMember(Struct):
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    group_instance_id: Annotated[
        GroupInstanceId | None, since(STRING, 4, nullable=True, ignorable=True)
    ] = None
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    member_metadata: Annotated[bytes, BYTES] = b""
    member_assignment: Annotated[bytes, BYTES] = b""


class DescribedGroup(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, since(STRING, 6, nullable=True)] = None
    group_id: Annotated[GroupId, STRING] = GroupId("")
    group_state: Annotated[str, STRING] = ""
    protocol_type: Annotated[str, STRING] = ""
    protocol_data: Annotated[str, STRING] = ""
    members: Annotated[Sequence[DescribedGroupMember], array(DescribedGroupMember)] = ()
    authorized_operations: Annotated[int, since(INT32, 3)] = OPERATIONS_NOT_REQUESTED


class DescribeGroupsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_GROUPS
    VERSIONS: ClassVar = range(7)
    FLEXIBLE_SINCE: ClassVar = 5

    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    groups: Annotated[Sequence[DescribedGroup], array(DescribedGroup)] = ()
