"""DescribeAcls (api key 29): which access control entries match a filter?

Version notes: v1 pattern types of resources; v2 flexible; v3 user resources.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, INT8, INT32, STRING, Message, Struct, array, nullable


class DescribeAclsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_ACLS
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    resource_type_filter: Annotated[int, INT8] = 0
    resource_name_filter: Annotated[str | None, nullable(STRING)] = ""
    pattern_type_filter: Annotated[int, INT8] = 3
    principal_filter: Annotated[str | None, nullable(STRING)] = ""
    host_filter: Annotated[str | None, nullable(STRING)] = ""
    operation: Annotated[int, INT8] = 0
    permission_type: Annotated[int, INT8] = 0


class AclDescription(Struct):
    principal: Annotated[str, STRING] = ""
    host: Annotated[str, STRING] = ""
    operation: Annotated[int, INT8] = 0
    permission_type: Annotated[int, INT8] = 0


class DescribeAclsResource(Struct):
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    pattern_type: Annotated[int, INT8] = 3
    acls: Annotated[Sequence[AclDescription], array(AclDescription)] = ()


class DescribeAclsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_ACLS
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    resources: Annotated[Sequence[DescribeAclsResource], array(DescribeAclsResource)] = ()
