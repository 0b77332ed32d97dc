"""OffsetFetch (api key 9): which positions did this group commit?

Version notes: v2 null topics mean all, and an error of the group's own; v3 throttle_time_ms; v5
committed_leader_epoch; v6 flexible; v7 require_stable (KIP-447); v8 many groups in one request, the
single-group fields leave; v9 member_id and member_epoch (KIP-848); v10 topics by id.

So the same facts come in two shapes. Up to v7 `OffsetFetchRequestTopic` and its answer; since v8
`OffsetFetchRequestGroup` with `OffsetFetchRequestTopics`, spelled by Kafka with a plural s.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Protocol

import msgspec

from protocol.names import ZERO_TOPIC_ID, ApiKey, ErrorCode, GroupId, MemberId, TopicId, TopicName
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    Struct,
    array,
    between,
    nullable,
    since,
    until,
)


class OffsetFetchRequestTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partition_indexes: Annotated[Sequence[int], array(INT32)] = ()


class OffsetFetchRequestTopics(Struct):
    name: Annotated[TopicName, until(STRING, 9, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    partition_indexes: Annotated[Sequence[int], array(INT32)] = ()


class OffsetFetchRequestGroup(Struct):
    group_id: Annotated[GroupId, STRING] = GroupId("")
    member_id: Annotated[MemberId | None, since(STRING, 9, nullable=True, ignorable=True)] = None
    member_epoch: Annotated[int, since(INT32, 9, ignorable=True)] = -1
    topics: Annotated[
        Sequence[OffsetFetchRequestTopics] | None, nullable(array(OffsetFetchRequestTopics))
    ] = ()


class OffsetFetchRequest(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar = range(1, 11)
    FLEXIBLE_SINCE: ClassVar = 6

    group_id: Annotated[GroupId, until(STRING, 7)] = GroupId("")
    topics: Annotated[
        Sequence[OffsetFetchRequestTopic] | None,
        until(array(OffsetFetchRequestTopic), 7, nullable=2),
    ] = ()
    groups: Annotated[
        Sequence[OffsetFetchRequestGroup], since(array(OffsetFetchRequestGroup), 8)
    ] = ()
    require_stable: Annotated[bool, since(BOOL, 7)] = False


class OffsetFetchResponsePartition(Struct):
    partition_index: Annotated[int, INT32] = 0
    committed_offset: Annotated[int, INT64] = 0
    committed_leader_epoch: Annotated[int, since(INT32, 5, ignorable=True)] = -1
    metadata: Annotated[str | None, nullable(STRING)] = ""
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class OffsetFetchResponseTopic(Struct):
    name: Annotated[TopicName, STRING] = TopicName("")
    partitions: Annotated[
        Sequence[OffsetFetchResponsePartition], array(OffsetFetchResponsePartition)
    ] = ()


class OffsetFetchResponsePartitions(Struct):
    partition_index: Annotated[int, INT32] = 0
    committed_offset: Annotated[int, INT64] = 0
    committed_leader_epoch: Annotated[int, INT32] = -1
    metadata: Annotated[str | None, nullable(STRING)] = ""
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class Commit(Protocol):
    """What an answer says of a committed offset."""

    @property
    def committed_offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def metadata(self) -> str: ...


def _answer(index: int, commit: Commit | None) -> OffsetFetchResponsePartitions:
    if commit is None:
        return OffsetFetchResponsePartitions(index, -1, -1, "")
    return OffsetFetchResponsePartitions(
        index, commit.committed_offset, commit.leader_epoch, commit.metadata
    )


class CommittedPartitions(msgspec.Struct, gc=False, eq=False):  # noqa: PLW1641 - it is no key
    """In place of a list of `OffsetFetchResponsePartitions` without errors; each is made when it is
    looked at. The compiled codec makes none: it writes what the commits say.

    Equal to a list of them. A commit of None: nothing was committed.
    """

    indexes: Sequence[int]
    commits: Sequence[Commit | None]

    def __len__(self) -> int:
        return len(self.indexes)

    def __iter__(self) -> Iterator[OffsetFetchResponsePartitions]:
        return map(_answer, self.indexes, self.commits)

    def __getitem__(self, place: Any) -> Any:
        return [*self][place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | tuple | CommittedPartitions) and [*self] == [*other]


class OffsetFetchResponseTopics(Struct):
    name: Annotated[TopicName, until(STRING, 9, ignorable=True)] = TopicName("")
    topic_id: Annotated[TopicId, since(UUID, 10, ignorable=True)] = ZERO_TOPIC_ID
    partitions: Annotated[
        Sequence[OffsetFetchResponsePartitions], array(OffsetFetchResponsePartitions)
    ] = ()


class OffsetFetchResponseGroup(Struct):
    group_id: Annotated[GroupId, STRING] = GroupId("")
    topics: Annotated[Sequence[OffsetFetchResponseTopics], array(OffsetFetchResponseTopics)] = ()
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE


class OffsetFetchResponse(Message):
    API_KEY: ClassVar = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar = range(1, 11)
    FLEXIBLE_SINCE: ClassVar = 6

    throttle_time_ms: Annotated[int, since(INT32, 3, ignorable=True)] = 0
    topics: Annotated[
        Sequence[OffsetFetchResponseTopic], until(array(OffsetFetchResponseTopic), 7)
    ] = ()
    error_code: Annotated[ErrorCode, between(ERROR_CODE, 2, 7, ignorable=True)] = ErrorCode.NONE
    groups: Annotated[
        Sequence[OffsetFetchResponseGroup], since(array(OffsetFetchResponseGroup), 8)
    ] = ()
