"""ListPartitionReassignments (api key 46): which partitions are being moved to other brokers?"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import ERROR_CODE, INT32, STRING, Message, Struct, array, nullable


class ListPartitionReassignmentsTopics(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partition_indexes: Annotated[Sequence[int], array(INT32)] = ()


class ListPartitionReassignmentsRequest(Message):
    API_KEY: ClassVar = ApiKey.LIST_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    timeout_ms: Annotated[int, INT32] = 60000
    topics: Annotated[
        Sequence[ListPartitionReassignmentsTopics] | None,
        nullable(array(ListPartitionReassignmentsTopics)),
    ] = None


class OngoingPartitionReassignment(Struct):
    partition_index: Annotated[int, INT32] = 0
    replicas: Annotated[Sequence[int], array(INT32)] = ()
    adding_replicas: Annotated[Sequence[int], array(INT32)] = ()
    removing_replicas: Annotated[Sequence[int], array(INT32)] = ()


class OngoingTopicReassignment(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[OngoingPartitionReassignment], array(OngoingPartitionReassignment)
    ] = ()


class ListPartitionReassignmentsResponse(Message):
    API_KEY: ClassVar = ApiKey.LIST_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    topics: Annotated[Sequence[OngoingTopicReassignment], array(OngoingTopicReassignment)] = ()
