"""ListConfigResources (api key 74): which topics, brokers or groups may have configs?

Version notes: v0 lists client metrics subscriptions only; v1 resource types (KIP-1142).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, INT8, INT32, STRING, Message, Struct, array, since


class ListConfigResourcesRequest(Message):
    API_KEY: ClassVar = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    resource_types: Annotated[Sequence[int], since(array(INT8), 1)] = ()


class ConfigResource(Struct):
    resource_name: Annotated[str, STRING] = ""
    resource_type: Annotated[int, since(INT8, 1, ignorable=True)] = 16


class ListConfigResourcesResponse(Message):
    API_KEY: ClassVar = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    config_resources: Annotated[Sequence[ConfigResource], array(ConfigResource)] = ()
