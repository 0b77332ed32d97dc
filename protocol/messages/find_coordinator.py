"""FindCoordinator (api key 10): which broker coordinates this group or transactional id?

Version notes: v1 key_type and error_message; v3 flexible; v4 many keys in one request, and the
single-key fields leave (KIP-699); v5 TRANSACTION_ABORTABLE may be answered; v6 share groups.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    ERROR_CODE,
    INT8,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    between,
    nullable,
    since,
    until,
)


class FindCoordinatorRequest(Message):
    API_KEY: ClassVar = ApiKey.FIND_COORDINATOR
    VERSIONS: ClassVar = range(7)
    FLEXIBLE_SINCE: ClassVar = 3

    key: Annotated[str, until(STRING, 3)] = ""
    key_type: Annotated[int, since(INT8, 1)] = 0
    coordinator_keys: Annotated[Sequence[str], since(array(STRING), 4)] = ()


class Coordinator(Struct):
    key: Annotated[str, STRING] = ""
    node_id: Annotated[int, INT32] = 0
    host: Annotated[str, STRING] = ""
    port: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""


class FindCoordinatorResponse(Message):
    API_KEY: ClassVar = ApiKey.FIND_COORDINATOR
    VERSIONS: ClassVar = range(7)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    error_code: Annotated[ErrorCode, until(ERROR_CODE, 3)] = ErrorCode.NONE
    error_message: Annotated[str | None, between(STRING, 1, 3, nullable=True, ignorable=True)] = ""
    node_id: Annotated[int, until(INT32, 3)] = 0
    host: Annotated[str, until(STRING, 3)] = ""
    port: Annotated[int, until(INT32, 3)] = 0
    coordinators: Annotated[Sequence[Coordinator], since(array(Coordinator), 4)] = ()
