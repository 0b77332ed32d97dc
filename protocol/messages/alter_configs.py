"""AlterConfigs (api key 33): replace all configs of topics, brokers or groups.

Superseded by IncrementalAlterConfigs: what a request does not name is reset.

Version notes: v2 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT8,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
)


class AlterableConfig(Struct):
    name: Annotated[str, STRING] = ""
    value: Annotated[str | None, nullable(STRING)] = ""


class AlterConfigsResource(Struct):
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    configs: Annotated[Sequence[AlterableConfig], array(AlterableConfig)] = ()


class AlterConfigsRequest(Message):
    API_KEY: ClassVar = ApiKey.ALTER_CONFIGS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    resources: Annotated[Sequence[AlterConfigsResource], array(AlterConfigsResource)] = ()
    validate_only: Annotated[bool, BOOL] = False


class AlterConfigsResourceResponse(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""


class AlterConfigsResponse(Message):
    API_KEY: ClassVar = ApiKey.ALTER_CONFIGS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    responses: Annotated[
        Sequence[AlterConfigsResourceResponse], array(AlterConfigsResourceResponse)
    ] = ()
