"""Member: one request at a time over a socket: joins, syncs, heartbeats, commits."""

import asyncio

from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GenerationId,
    GroupId,
    MemberId,
    TopicName,
)
from tests.broker.shell import WAIT_S, Client

ASSIGNMENT = b"what the leader says"


async def make_topic(client: Client, name: str = "t") -> None:
    """Ask for its metadata until it is there: the daemon creates it on request."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TopicName(name))])
    answer = await client.call(request)
    assert isinstance(answer, MetadataResponse)
    async with asyncio.timeout(WAIT_S):
        while answer.topics[0].error_code is not ErrorCode.NONE:
            answer = await client.call(request)
            assert isinstance(answer, MetadataResponse)


class Member:
    """`enter` takes the two-step join and the sync; everything else is one request."""

    def __init__(
        self, client: Client, group_id: str = "g", session_timeout_ms: int = 60_000
    ) -> None:
        self.client = client
        self.group_id = GroupId(group_id)
        self.session_timeout_ms = session_timeout_ms
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation_id = GenerationId(-1)

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )

    async def get_id(self) -> None:
        """The first half of a join: be told a member id."""
        answer = await self.client.call(self.join_request())
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
        self.member_id = answer.member_id

    async def join(self) -> JoinGroupResponse:
        if not self.member_id:
            await self.get_id()
        answer = await self.client.call(self.join_request())
        assert isinstance(answer, JoinGroupResponse)
        self.generation_id = answer.generation_id
        return answer

    async def sync(self) -> SyncGroupResponse:
        """As the leader, who assigns to itself alone."""
        answer = await self.client.call(
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequestAssignment(self.member_id, ASSIGNMENT)],
            )
        )
        assert isinstance(answer, SyncGroupResponse)
        return answer

    async def enter(self) -> None:
        """Join and sync, alone in the group."""
        assert (await self.join()).error_code is ErrorCode.NONE
        assert (await self.sync()).assignment == ASSIGNMENT

    def beat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(self.group_id, self.generation_id, self.member_id)

    async def beat(self) -> ErrorCode:
        answer = await self.client.call(self.beat_request())
        assert isinstance(answer, HeartbeatResponse)
        return answer.error_code

    def commit_request(self, offset: int, topic: str = "t") -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=TopicName(topic),
                    partitions=[OffsetCommitRequestPartition(0, committed_offset=offset)],
                )
            ],
        )

    async def commit(self, offset: int, topic: str = "t") -> ErrorCode:
        answer = await self.client.call(self.commit_request(offset, topic), 9)
        assert isinstance(answer, OffsetCommitResponse)
        return answer.topics[0].partitions[0].error_code

    async def committed(self) -> int:
        """The group's offset of the one partition that these tests commit; -1 without one."""
        answer = await self.client.call(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group_id, topics=None)]), 9
        )
        assert isinstance(answer, OffsetFetchResponse)
        (group,) = answer.groups
        assert group.error_code is ErrorCode.NONE
        return group.topics[0].partitions[0].committed_offset if group.topics else -1


def as_other(member: Member, client: Client) -> Member:
    """The same member on another connection: it reconnected."""
    other = Member(client, member.group_id, member.session_timeout_ms)
    other.member_id, other.generation_id = MemberId(member.member_id), member.generation_id
    return other
