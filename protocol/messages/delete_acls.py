"""DeleteAcls (api key 31): remove the access control entries that match a filter.

Version notes: v1 pattern types of resources; v2 flexible; v3 user resources.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, INT8, INT32, STRING, Message, Struct, array, nullable


class DeleteAclsFilter(Struct):
    resource_type_filter: Annotated[int, INT8] = 0
    resource_name_filter: Annotated[str | None, nullable(STRING)] = ""
    pattern_type_filter: Annotated[int, INT8] = 3
    principal_filter: Annotated[str | None, nullable(STRING)] = ""
    host_filter: Annotated[str | None, nullable(STRING)] = ""
    operation: Annotated[int, INT8] = 0
    permission_type: Annotated[int, INT8] = 0


class DeleteAclsRequest(Message):
    API_KEY: ClassVar = ApiKey.DELETE_ACLS
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    filters: Annotated[Sequence[DeleteAclsFilter], array(DeleteAclsFilter)] = ()


class DeleteAclsMatchingAcl(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    pattern_type: Annotated[int, INT8] = 3
    principal: Annotated[str, STRING] = ""
    host: Annotated[str, STRING] = ""
    operation: Annotated[int, INT8] = 0
    permission_type: Annotated[int, INT8] = 0


class DeleteAclsFilterResult(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    matching_acls: Annotated[Sequence[DeleteAclsMatchingAcl], array(DeleteAclsMatchingAcl)] = ()


class DeleteAclsResponse(Message):
    API_KEY: ClassVar = ApiKey.DELETE_ACLS
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    filter_results: Annotated[Sequence[DeleteAclsFilterResult], array(DeleteAclsFilterResult)] = ()
