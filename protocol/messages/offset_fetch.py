"""OffsetFetch (api key 9): which positions did this group commit?

Version notes: v2 null topics mean all, and an error of the group's own; v3 throttle_time_ms; v5
committed_leader_epoch; v6 flexible; v7 require_stable (KIP-447); v8 many groups in one request, the
single-group fields leave; v9 member_id and member_epoch (KIP-848); v10 topics by id.

So the same facts come in two shapes. Up to v7 `OffsetFetchRequestTopic` and its answer; since v8
`OffsetFetchRequestGroup` with `OffsetFetchRequestTopics`, spelled by Kafka with a plural s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, GroupId, MemberId, TopicId, TopicName, ZERO_TOPIC_ID
from protocol.schema import BOOL, ERROR_CODE, INT32, INT64, STRING, UUID, array, between, since


@dataclass(slots=True)
class OffsetFetchRequestTopic:
    name: Annotated[TopicName, between(STRING, 1, 7)] = TopicName("")
    partition_indexes: Annotated[Sequence[int], between(array(INT32), 1, 7)] = ()


@dataclass(slots=True)
class OffsetFetchRequestTopics:
    name: Annotated[TopicName, between(STRING, 8, 9, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    partition_indexes: Annotated[Sequence[int], since(array(INT32), 8)] = ()


@dataclass(slots=True)
class OffsetFetchRequestGroup:
    group_id: Annotated[GroupId, since(STRING, 8)] = GroupId("")
    member_id: Annotated[MemberId | None, since(STRING, 9, nullable=True, ignorable=True)] = None
    member_epoch: Annotated[int, since(INT32, 9, ignorable=True)] = -1
    topics: Annotated[Sequence[OffsetFetchRequestTopics] | None, since(array(OffsetFetchRequestTopics), 8, nullable=True)] = ()


@dataclass(slots=True)
class OffsetFetchRequest:
    API_KEY: ClassVar = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar = range(1, 11)
    FLEXIBLE_SINCE: ClassVar = 6

    group_id: Annotated[GroupId, between(STRING, 1, 7)] = GroupId("")
    topics: Annotated[Sequence[OffsetFetchRequestTopic] | None, between(array(OffsetFetchRequestTopic), 1, 7, nullable=2)] = ()
    groups: Annotated[Sequence[OffsetFetchRequestGroup], since(array(OffsetFetchRequestGroup), 8)] = ()
    require_stable: Annotated[bool, since(BOOL, 7)] = False


@dataclass(slots=True)
class OffsetFetchResponsePartition:
    partition_index: Annotated[int, between(INT32, 1, 7)] = 0
    committed_offset: Annotated[int, between(INT64, 1, 7)] = 0
    committed_leader_epoch: Annotated[int, between(INT32, 5, 7, ignorable=True)] = -1
    metadata: Annotated[str | None, between(STRING, 1, 7, nullable=True)] = ""
    error_code: Annotated[ErrorCode, between(ERROR_CODE, 1, 7)] = ErrorCode.NONE


@dataclass(slots=True)
class OffsetFetchResponseTopic:
    name: Annotated[TopicName, between(STRING, 1, 7)] = TopicName("")
    partitions: Annotated[Sequence[OffsetFetchResponsePartition], between(array(OffsetFetchResponsePartition), 1, 7)] = ()


@dataclass(slots=True)
class OffsetFetchResponsePartitions:
    partition_index: Annotated[int, since(INT32, 8)] = 0
    committed_offset: Annotated[int, since(INT64, 8)] = 0
    committed_leader_epoch: Annotated[int, since(INT32, 8, ignorable=True)] = -1
    metadata: Annotated[str | None, since(STRING, 8, nullable=True)] = ""
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 8)] = ErrorCode.NONE


@dataclass(slots=True)
class OffsetFetchResponseTopics:
    name: Annotated[TopicName, between(STRING, 8, 9, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[OffsetFetchResponsePartitions], since(array(OffsetFetchResponsePartitions), 8)] = ()


@dataclass(slots=True)
class OffsetFetchResponseGroup:
    group_id: Annotated[GroupId, since(STRING, 8)] = GroupId("")
    topics: Annotated[Sequence[OffsetFetchResponseTopics], since(array(OffsetFetchResponseTopics), 8)] = ()
    error_code: Annotated[ErrorCode, since(ERROR_CODE, 8)] = ErrorCode.NONE


@dataclass(slots=True)
class OffsetFetchResponse:
    API_KEY: ClassVar = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar = range(1, 11)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: Annotated[int, since(INT32, 3, ignorable=True)] = 0
    topics: Annotated[Sequence[OffsetFetchResponseTopic], between(array(OffsetFetchResponseTopic), 1, 7)] = ()
    error_code: Annotated[ErrorCode, between(ERROR_CODE, 2, 7, ignorable=True)] = ErrorCode.NONE
    groups: Annotated[Sequence[OffsetFetchResponseGroup], since(array(OffsetFetchResponseGroup), 8)] = ()
