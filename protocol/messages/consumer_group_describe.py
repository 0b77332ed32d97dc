"""ConsumerGroupDescribe (api key 69): the members, epochs and assignments of consumer groups.

A group of another type is GROUP_ID_NOT_FOUND; DescribeGroups (api key 15) knows classic groups.

Version notes: v1 member_type (KIP-1099).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from msgspec import field

from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
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
    BOOL,
    ERROR_CODE,
    INT8,
    INT32,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1
UNKNOWN_MEMBER: Final = -1


class ConsumerGroupDescribeRequest(Message):
    API_KEY: ClassVar = ApiKey.CONSUMER_GROUP_DESCRIBE
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    group_ids: Annotated[Sequence[GroupId], array(STRING)] = ()
    include_authorized_operations: Annotated[bool, BOOL] = False


class DescribedTopicPartitions(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    topic_name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class DescribedAssignment(Struct):
    topic_partitions: Annotated[
        Sequence[DescribedTopicPartitions], array(DescribedTopicPartitions)
    ] = ()


class DescribedConsumerMember(Struct):
    member_id: Annotated[MemberId, STRING] = UNKNOWN_MEMBER_ID
    instance_id: Annotated[GroupInstanceId | None, nullable(STRING)] = None
    rack_id: Annotated[str | None, nullable(STRING)] = None
    member_epoch: Annotated[int, INT32] = 0
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    subscribed_topic_names: Annotated[Sequence[TopicName], array(STRING)] = ()
    subscribed_topic_regex: Annotated[str | None, nullable(STRING)] = None
    assignment: Annotated[DescribedAssignment, since(DescribedAssignment, 0)] = field(
        default_factory=DescribedAssignment
    )
    target_assignment: Annotated[DescribedAssignment, since(DescribedAssignment, 0)] = field(
        default_factory=DescribedAssignment
    )
    member_type: Annotated[int, since(INT8, 1, ignorable=True)] = UNKNOWN_MEMBER


class DescribedConsumerGroup(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = None
    group_id: Annotated[GroupId, STRING] = GroupId("")
    group_state: Annotated[str, STRING] = ""
    group_epoch: Annotated[int, INT32] = 0
    assignment_epoch: Annotated[int, INT32] = 0
    assignor_name: Annotated[str, STRING] = ""
    members: Annotated[Sequence[DescribedConsumerMember], array(DescribedConsumerMember)] = ()
    authorized_operations: Annotated[int, INT32] = OPERATIONS_NOT_REQUESTED


class ConsumerGroupDescribeResponse(Message):
    API_KEY: ClassVar = ApiKey.CONSUMER_GROUP_DESCRIBE
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    groups: Annotated[Sequence[DescribedConsumerGroup], array(DescribedConsumerGroup)] = ()
