"""CreateTopics (api key 19): make these topics, or only say whether they could be made.

Version notes: v4 num_partitions and replication_factor of -1 mean the default (KIP-464); v5
flexible, and the answer tells the topic's configs (KIP-525); v6 THROTTLING_QUOTA_EXCEEDED may be
answered; v7 topic_id in the answer.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ZERO_TOPIC_ID, ApiKey, ErrorCode, TopicId, TopicName
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT8,
    INT16,
    INT32,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
    tagged,
)


class CreatableReplicaAssignment(Struct):
    partition_index: Annotated[int, INT32] = 0
    broker_ids: Annotated[Sequence[int], array(INT32)] = ()


class CreatableTopicConfig(Struct):
    name: Annotated[str, STRING] = ""
    value: Annotated[str | None, nullable(STRING)] = ""


class CreatableTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    num_partitions: Annotated[int, INT32] = 0
    replication_factor: Annotated[int, INT16] = 0
    assignments: Annotated[
        Sequence[CreatableReplicaAssignment], array(CreatableReplicaAssignment)
    ] = ()
    configs: Annotated[Sequence[CreatableTopicConfig], array(CreatableTopicConfig)] = ()


class CreateTopicsRequest(Message):
    API_KEY: ClassVar = ApiKey.CREATE_TOPICS
    VERSIONS: ClassVar = range(2, 8)
    FLEXIBLE_SINCE: ClassVar = 5

    topics: Annotated[Sequence[CreatableTopic], array(CreatableTopic)] = ()
    timeout_ms: Annotated[int, INT32] = 60000
    validate_only: Annotated[bool, BOOL] = False


class CreatableTopicConfigs(Struct):
    name: Annotated[str, STRING] = ""
    value: Annotated[str | None, nullable(STRING)] = ""
    read_only: Annotated[bool, BOOL] = False
    config_source: Annotated[int, INT8] = -1
    is_sensitive: Annotated[bool, BOOL] = False


class CreatableTopicResult(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 7, ignorable=True)] = ZERO_TOPIC_ID
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    topic_config_error_code: Annotated[
        ErrorCode, tagged(ERROR_CODE, 0, since=5, ignorable=True)
    ] = ErrorCode.NONE
    num_partitions: Annotated[int, since(INT32, 5, ignorable=True)] = -1
    replication_factor: Annotated[int, since(INT16, 5, ignorable=True)] = -1
    configs: Annotated[
        Sequence[CreatableTopicConfigs] | None,
        since(array(CreatableTopicConfigs), 5, nullable=True, ignorable=True),
    ] = ()


class CreateTopicsResponse(Message):
    API_KEY: ClassVar = ApiKey.CREATE_TOPICS
    VERSIONS: ClassVar = range(2, 8)
    FLEXIBLE_SINCE: ClassVar = 5

    throttle_time_ms: Annotated[int, INT32] = 0
    topics: Annotated[Sequence[CreatableTopicResult], array(CreatableTopicResult)] = ()
