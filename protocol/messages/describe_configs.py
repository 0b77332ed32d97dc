"""DescribeConfigs (api key 32): which settings hold for this topic, broker or group?

Version notes: v1 config_source and synonyms; v3 config_type and documentation; v4 flexible.
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
    since,
)


class DescribeConfigsResource(Struct):
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    configuration_keys: Annotated[Sequence[str] | None, nullable(array(STRING))] = ()


class DescribeConfigsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_CONFIGS
    VERSIONS: ClassVar = range(1, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    resources: Annotated[Sequence[DescribeConfigsResource], array(DescribeConfigsResource)] = ()
    include_synonyms: Annotated[bool, BOOL] = False
    include_documentation: Annotated[bool, since(BOOL, 3)] = False


class DescribeConfigsSynonym(Struct):
    name: Annotated[str, STRING] = ""
    value: Annotated[str | None, nullable(STRING)] = ""
    source: Annotated[int, INT8] = 0


class DescribeConfigsResourceResult(Struct):
    name: Annotated[str, STRING] = ""
    value: Annotated[str | None, nullable(STRING)] = ""
    read_only: Annotated[bool, BOOL] = False
    config_source: Annotated[int, INT8] = -1
    is_sensitive: Annotated[bool, BOOL] = False
    synonyms: Annotated[Sequence[DescribeConfigsSynonym], array(DescribeConfigsSynonym)] = ()
    config_type: Annotated[int, since(INT8, 3, ignorable=True)] = 0
    documentation: Annotated[str | None, since(STRING, 3, nullable=True, ignorable=True)] = ""


class DescribeConfigsResult(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    configs: Annotated[
        Sequence[DescribeConfigsResourceResult], array(DescribeConfigsResourceResult)
    ] = ()


class DescribeConfigsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_CONFIGS
    VERSIONS: ClassVar = range(1, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    throttle_time_ms: Annotated[int, INT32] = 0
    results: Annotated[Sequence[DescribeConfigsResult], array(DescribeConfigsResult)] = ()
