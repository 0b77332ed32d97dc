"""AlterReplicaLogDirs (api key 34): move replicas to another log directory of the broker.

Version notes: v2 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import ERROR_CODE, INT32, STRING, Message, Struct, array


class AlterReplicaLogDirTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class AlterReplicaLogDir(Struct):
    path: Annotated[str, STRING] = ""
    topics: Annotated[Sequence[AlterReplicaLogDirTopic], array(AlterReplicaLogDirTopic)] = ()


class AlterReplicaLogDirsRequest(Message):
    API_KEY: ClassVar = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    dirs: Annotated[Sequence[AlterReplicaLogDir], array(AlterReplicaLogDir)] = ()


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[AlterReplicaLogDirPartitionResult], array(AlterReplicaLogDirPartitionResult)
    ] = ()


class AlterReplicaLogDirsResponse(Message):
    API_KEY: ClassVar = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    results: Annotated[
        Sequence[AlterReplicaLogDirTopicResult], array(AlterReplicaLogDirTopicResult)
    ] = ()
