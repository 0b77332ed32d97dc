"""ConsumerGroupHeartbeat (api key 68): join, stay in, reconcile with or leave a consumer group.

The one request of a member of the consumer group protocol (KIP-848). A null field of the request
means "as in the last heartbeat". A null `assignment` of the response means "unchanged"; one without
topics means that the member owns nothing.

Version notes: v1 subscribed_topic_regex, and the member makes its own id (KIP-1082).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ZERO_TOPIC_ID,
    ApiKey,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicId,
    TopicName,
)
from protocol.schema import (
    ERROR_CODE,
    INT32,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
)

JOIN_EPOCH: Final = 0
"""The member epoch of a request that joins, or joins again."""

LEAVE_EPOCH: Final = -1
"""The member epoch of a request that leaves."""

LEAVE_STATIC_EPOCH: Final = -2
"""The member epoch of a static member that leaves for a while and keeps its assignment."""


class HeartbeatTopicPartitions(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY: ClassVar = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    group_id: Annotated[GroupId, STRING] = GroupId("")
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    member_epoch: Annotated[int, INT32] = 0
    instance_id: Annotated[GroupInstanceId | None, nullable(STRING)] = None
    rack_id: Annotated[str | None, nullable(STRING)] = None
    rebalance_timeout_ms: Annotated[int, INT32] = -1
    subscribed_topic_names: Annotated[Sequence[TopicName] | None, nullable(array(STRING))] = None
    subscribed_topic_regex: Annotated[str | None, since(STRING, 1, nullable=True)] = None
    server_assignor: Annotated[str | None, nullable(STRING)] = None
    topic_partitions: Annotated[
        Sequence[HeartbeatTopicPartitions] | None, nullable(array(HeartbeatTopicPartitions))
    ] = None


class HeartbeatAssignment(Struct):
    topic_partitions: Annotated[
        Sequence[HeartbeatTopicPartitions], array(HeartbeatTopicPartitions)
    ] = ()


class ConsumerGroupHeartbeatResponse(Message):
    API_KEY: ClassVar = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = None
    member_id: Annotated[MemberId | None, nullable(STRING)] = None
    member_epoch: Annotated[int, INT32] = 0
    heartbeat_interval_ms: Annotated[int, INT32] = 0
    assignment: Annotated[HeartbeatAssignment | None, nullable(HeartbeatAssignment)] = None
