"""A member by raw requests: what a client library sends, one at a time, as the test says."""

from typing import Final

from client.wire import connect_wire
from protocol.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicName,
)

SESSION_S: Final = 45.0
TOPIC: Final = TopicName("orders")


class RawMember:
    def __init__(
        self,
        bootstrap: str,
        group_id: str = "billing",
        *,
        client_id: str = "raw",
        session_s: float = SESSION_S,
        instance_id: str | None = None,
    ) -> None:
        self.wire = connect_wire(bootstrap, client_id)
        self.group_id = GroupId(group_id)
        self.instance_id = None if instance_id is None else GroupInstanceId(instance_id)
        self.member_id = MemberId(UNKNOWN_MEMBER_ID)
        self.generation_id = NO_GENERATION
        self._session_ms = round(session_s * 1000)
        self._is_leader = False

    def enter(self) -> "RawMember":
        """Join and sync alone."""
        self.join()
        assert self.sync() is ErrorCode.NONE
        return self

    def join(self) -> None:
        self.send_join()
        self.receive_join()

    def send_join(self) -> None:
        subscription = write_subscription(ConsumerProtocolSubscription(topics=[TOPIC]), 0)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=300_000,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", subscription)],
        )
        self.wire.send(request, 5)

    def receive_join(self) -> None:
        answer = self.wire.receive(JoinGroupResponse)
        self.member_id = answer.member_id
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.join()
            return
        assert answer.error_code is ErrorCode.NONE, answer
        self.generation_id = answer.generation_id
        self._is_leader = answer.leader == answer.member_id

    def receive_join_id(self) -> None:
        """The id for a new member; then it joins again, and does not wait for the answer."""
        answer = self.wire.receive(JoinGroupResponse)
        assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
        self.member_id = answer.member_id
        self.send_join()

    def sync(self) -> ErrorCode:
        self.send_sync()
        return self.receive_sync()

    def send_sync(self) -> None:
        request = SyncGroupRequest(
            self.group_id, self.generation_id, self.member_id, self.instance_id
        )
        if self._is_leader:
            request.assignments = [SyncGroupRequestAssignment(self.member_id, b"all")]
        self.wire.send(request, 3)

    def receive_sync(self) -> ErrorCode:
        return self.wire.receive(SyncGroupResponse).error_code

    def beat(self) -> ErrorCode:
        request = HeartbeatRequest(
            self.group_id, self.generation_id, self.member_id, self.instance_id
        )
        answer = self.wire.ask(request, HeartbeatResponse, 3)
        return answer.error_code

    def commit(self, *partitions: int) -> list[ErrorCode]:
        topic = OffsetCommitRequestTopic(
            TOPIC, partitions=[OffsetCommitRequestPartition(each, 7) for each in partitions]
        )
        request = OffsetCommitRequest(
            self.group_id, self.generation_id, self.member_id, topics=[topic]
        )
        answer = self.wire.ask(request, OffsetCommitResponse, 8)
        return [each.error_code for topic in answer.topics for each in topic.partitions]
