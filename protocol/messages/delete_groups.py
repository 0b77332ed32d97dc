"""DeleteGroups (api key 42): forget these groups and all that they committed.

Version notes: v1 as v0; v2 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, GroupId
from protocol.schema import ERROR_CODE, INT32, STRING, Message, Struct, array


class DeleteGroupsRequest(Message):
    API_KEY: ClassVar = ApiKey.DELETE_GROUPS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    groups_names: Annotated[Sequence[GroupId], array(STRING)] = ()


class DeletableGroupResult(Struct):
    group_id: Annotated[GroupId, STRING] = GroupId("")
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class DeleteGroupsResponse(Message):
    API_KEY: ClassVar = ApiKey.DELETE_GROUPS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    results: Annotated[Sequence[DeletableGroupResult], array(DeletableGroupResult)] = ()
