"""IncrementalAlterConfigs (api key 44): change single configs of topics, brokers or groups.

Version notes: v1 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.messages.alter_configs import AlterConfigsResourceResponse
from protocol.names import ApiKey
from protocol.schema import BOOL, INT8, INT32, STRING, Message, Struct, array, nullable


class IncrementalAlterableConfig(Struct):
    name: Annotated[str, STRING] = ""
    config_operation: Annotated[int, INT8] = 0
    value: Annotated[str | None, nullable(STRING)] = ""


class IncrementalAlterConfigsResource(Struct):
    resource_type: Annotated[int, INT8] = 0
    resource_name: Annotated[str, STRING] = ""
    configs: Annotated[Sequence[IncrementalAlterableConfig], array(IncrementalAlterableConfig)] = ()


class IncrementalAlterConfigsRequest(Message):
    API_KEY: ClassVar = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    resources: Annotated[
        Sequence[IncrementalAlterConfigsResource], array(IncrementalAlterConfigsResource)
    ] = ()
    validate_only: Annotated[bool, BOOL] = False


class IncrementalAlterConfigsResponse(Message):
    API_KEY: ClassVar = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    throttle_time_ms: Annotated[int, INT32] = 0
    responses: Annotated[
        Sequence[AlterConfigsResourceResponse], array(AlterConfigsResourceResponse)
    ] = ()
