"""DescribeLogDirs (api key 35): log directories and the sizes of their replicas.

Version notes: v2 flexible; v3 the top-level error_code; v4 the sizes of the volume; v5 is_cordoned
(KIP-1066).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    since,
)


class DescribableLogDirTopic(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class DescribeLogDirsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS: ClassVar = range(1, 6)
    FLEXIBLE_SINCE: ClassVar = 2

    topics: Annotated[
        Sequence[DescribableLogDirTopic] | None, nullable(array(DescribableLogDirTopic))
    ] = ()


class DescribeLogDirsPartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    partition_size: Annotated[int, INT64] = 0
    offset_lag: Annotated[int, INT64] = 0
    is_future_key: Annotated[bool, BOOL] = False


class DescribeLogDirsTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[DescribeLogDirsPartition], array(DescribeLogDirsPartition)] = ()


class DescribeLogDirsResult(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    log_dir: Annotated[str, STRING] = ""
    topics: Annotated[Sequence[DescribeLogDirsTopic], array(DescribeLogDirsTopic)] = ()
    total_bytes: Annotated[int, since(INT64, 4, ignorable=True)] = -1
    usable_bytes: Annotated[int, since(INT64, 4, ignorable=True)] = -1
    is_cordoned: Annotated[bool, since(BOOL, 5, ignorable=True)] = False


class DescribeLogDirsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS: ClassVar = range(1, 6)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 3, ignorable=True)] = ErrorCode.NONE
    results: Annotated[Sequence[DescribeLogDirsResult], array(DescribeLogDirsResult)] = ()
