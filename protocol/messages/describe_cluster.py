"""DescribeCluster (api key 60): which brokers make up this cluster, and which one controls it?

Version notes: v1 endpoint_type, brokers or controllers (KIP-919); v2 fenced brokers (KIP-1073).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import OPERATIONS_NOT_REQUESTED, ApiKey, ErrorCode
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


class DescribeClusterRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_CLUSTER
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    include_cluster_authorized_operations: Annotated[bool, BOOL] = False
    endpoint_type: Annotated[int, since(INT8, 1)] = 1
    include_fenced_brokers: Annotated[bool, since(BOOL, 2)] = False


class DescribeClusterBroker(Struct):
    broker_id: Annotated[int, INT32] = 0
    host: Annotated[str, STRING] = ""
    port: Annotated[int, INT32] = 0
    rack: Annotated[str | None, nullable(STRING)] = None
    is_fenced: Annotated[bool, since(BOOL, 2)] = False


class DescribeClusterResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_CLUSTER
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = None
    endpoint_type: Annotated[int, since(INT8, 1)] = 1
    cluster_id: Annotated[str, STRING] = ""
    controller_id: Annotated[int, INT32] = -1
    brokers: Annotated[Sequence[DescribeClusterBroker], array(DescribeClusterBroker)] = ()
    cluster_authorized_operations: Annotated[int, INT32] = OPERATIONS_NOT_REQUESTED
