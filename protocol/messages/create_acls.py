"""CreateAcls (api key 30): add access control entries.

Version notes: v1 pattern types of resources; v2 flexible; v3 user resources.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, INT8, INT32, STRING, Message, Struct, array, nullable


class AclCreation(Struct):
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    resource_pattern_type: Annotated[int, INT8] = 3
    principal: Annotated[str, STRING] = ""
    host: Annotated[str, STRING] = ""
    operation: Annotated[int, INT8] = 0
    permission_type: Annotated[int, INT8] = 0


class CreateAclsRequest(Message):
    API_KEY: ClassVar = ApiKey.CREATE_ACLS
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    creations: Annotated[Sequence[AclCreation], array(AclCreation)] = ()


class AclCreationResult(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""


class CreateAclsResponse(Message):
    API_KEY: ClassVar = ApiKey.CREATE_ACLS
    VERSIONS: ClassVar = range(1, 4)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    results: Annotated[Sequence[AclCreationResult], array(AclCreationResult)] = ()
