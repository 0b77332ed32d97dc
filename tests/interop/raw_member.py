"""A member that no library would be: it joins, and then does only what the test says."""

import socket
from typing import Final

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    write_assignment,
    write_subscription,
)
from protocol.messages import Request, Response
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicName,
)

VERSIONS: Final = {ApiKey.JOIN_GROUP: 9, ApiKey.SYNC_GROUP: 5, ApiKey.LEAVE_GROUP: 5}
KEYS: Final = {
    JoinGroupRequest: ApiKey.JOIN_GROUP,
    SyncGroupRequest: ApiKey.SYNC_GROUP,
    LeaveGroupRequest: ApiKey.LEAVE_GROUP,
}


class RawMember:
    def __init__(
        self, address: str, group: str, client_id: str, topic: str, rebalance_timeout_ms: int
    ) -> None:
        self._address = address
        self._group = GroupId(group)
        self._client_id = client_id
        self._topic = TopicName(topic)
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._socket: socket.socket | None = None
        self.member_id = UNKNOWN_MEMBER_ID
        self.answer = JoinGroupResponse()

    def _send(self, request: Request) -> ApiKey:
        if self._socket is None:
            host, _, port = self._address.rpartition(":")
            self._socket = socket.create_connection((host, int(port)), timeout=60)
        api_key = KEYS[type(request)]
        header = RequestHeader(api_key, VERSIONS[api_key], 1, self._client_id)
        self._socket.sendall(encode_request(header, request))
        return api_key

    def _receive(self, api_key: ApiKey) -> Response:
        assert self._socket is not None
        frame = b""
        while len(frame) < 4 or len(frame) < 4 + int.from_bytes(frame[:4], "big"):
            piece = self._socket.recv(65_536)
            assert piece, "the daemon hung up"
            frame += piece
        _, response = decode_response(api_key, VERSIONS[api_key], frame, 4, len(frame))
        return response

    def hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # ------------------------------------------------------------ what it can do

    def _join_request(self) -> JoinGroupRequest:
        offer = write_subscription(ConsumerProtocolSubscription(topics=[self._topic]), 0)
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name, offer) for name in ("range", "roundrobin")],
        )

    def begin_join(self) -> None:
        """The id is given, the join is on its way."""
        if not self.member_id:
            given = self._receive(self._send(self._join_request()))
            assert isinstance(given, JoinGroupResponse)
            assert given.error_code is ErrorCode.MEMBER_ID_REQUIRED
            self.member_id = given.member_id
        self._send(self._join_request())

    def end_join(self) -> None:
        answer = self._receive(ApiKey.JOIN_GROUP)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code is ErrorCode.NONE, answer.error_code
        self.answer = answer

    def sync(self) -> None:
        """As a leader it assigns nothing to anybody."""
        empty = write_assignment(ConsumerProtocolAssignment(), 0)
        answer = self._receive(
            self._send(
                SyncGroupRequest(
                    group_id=self._group,
                    generation_id=self.answer.generation_id,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocol_name=self.answer.protocol_name,
                    assignments=[
                        SyncGroupRequestAssignment(member.member_id, empty)
                        for member in self.answer.members
                    ],
                )
            )
        )
        assert isinstance(answer, SyncGroupResponse)
        assert answer.error_code is ErrorCode.NONE, answer.error_code

    def enter(self) -> None:
        self.begin_join()
        self.end_join()
        self.sync()

    def leave(self, reason: str) -> None:
        self._leave(MemberIdentity(self.member_id, None, reason))

    def remove_instance(self, instance_id: str) -> None:
        """As an operator does, who knows no member ids."""
        self._leave(MemberIdentity(MemberId(""), GroupInstanceId(instance_id), None))

    def _leave(self, identity: MemberIdentity) -> None:
        answer = self._receive(self._send(LeaveGroupRequest(self._group, MemberId(""), [identity])))
        assert isinstance(answer, LeaveGroupResponse)
        assert [member.error_code for member in answer.members] == [ErrorCode.NONE]
