"""ElectLeaders (api key 43): elect the preferred or an unclean leader of partitions.

Version notes: v1 election_type (KIP-460) and the top-level error_code; v2 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import (
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


class ElectLeadersTopic(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class ElectLeadersRequest(Message):
    API_KEY: ClassVar = ApiKey.ELECT_LEADERS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    election_type: Annotated[int, since(INT8, 1)] = 0
    topic_partitions: Annotated[
        Sequence[ElectLeadersTopic] | None, nullable(array(ElectLeadersTopic))
    ] = ()
    timeout_ms: Annotated[int, INT32] = 60000


class ElectedPartition(Struct):
    partition_id: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""


class ReplicaElectionResult(Struct):
    topic: Annotated[TopicName, STRING] = TopicName("")
    partition_result: Annotated[Sequence[ElectedPartition], array(ElectedPartition)] = ()


class ElectLeadersResponse(Message):
    API_KEY: ClassVar = ApiKey.ELECT_LEADERS
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 2

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 1)] = ErrorCode.NONE
    replica_election_results: Annotated[
        Sequence[ReplicaElectionResult], array(ReplicaElectionResult)
    ] = ()
