"""Raw consumer: a member of the consumer group protocol, heartbeat by heartbeat, on a real port.

It keeps its member id and its epoch when the group moves to another broker, as no library does.
"""

import socket
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.messages import Request, Response
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatTopicPartitions,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.names import (
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicName,
)

MOVING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
TIMEOUT_S: Final = 60.0
PAUSE_S: Final = 0.1
REBALANCE_TIMEOUT_MS: Final = 60_000
VERSION: Final = 1
COMMIT_VERSION: Final = 9
FIND_VERSION: Final = 3


class RawConsumer:
    """`owned` is what it was assigned last: partitions by topic id."""

    def __init__(
        self,
        address: str,
        group: str,
        member_id: str,
        *,
        topics: tuple[str, ...] = (),
        regex: str | None = None,
        instance_id: str | None = None,
    ) -> None:
        self.address = address
        self.member_id = MemberId(member_id)
        self.epoch = JOIN_EPOCH
        self.owned: dict[UUID, list[int]] = {}
        self._group = GroupId(group)
        self._topics = [*map(TopicName, topics)]
        self._regex = regex
        self._instance_id = None if instance_id is None else GroupInstanceId(instance_id)

    def heartbeat(self) -> ConsumerGroupHeartbeatResponse:
        """All that it has to say, with the first one and each time."""
        owned = [HeartbeatTopicPartitions(*topic) for topic in self.owned.items()]
        request = ConsumerGroupHeartbeatRequest(
            self._group,
            self.member_id,
            self.epoch,
            self._instance_id,
            None,
            REBALANCE_TIMEOUT_MS,
            self._topics,
            self._regex,
            None,
            [] if self.epoch == JOIN_EPOCH else owned,
        )
        response = self._ask(request, VERSION, lambda answer: answer.error_code)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        assert response.error_code is ErrorCode.NONE, response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {
                topic.topic_id: [*topic.partitions]
                for topic in response.assignment.topic_partitions
            }
        return response

    def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(self._group, self.member_id, LEAVE_EPOCH)
        response = self._ask(request, VERSION, lambda answer: answer.error_code)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        assert response.error_code is ErrorCode.NONE, response

    def commit(self, topic: str, offsets: dict[int, int]) -> ErrorCode:
        partitions = [OffsetCommitRequestPartition(*place) for place in offsets.items()]
        request = OffsetCommitRequest(
            self._group,
            GenerationId(self.epoch),
            self.member_id,
            topics=[OffsetCommitRequestTopic(TopicName(topic), partitions=partitions)],
        )
        response = self._ask(
            request, COMMIT_VERSION, lambda answer: answer.topics[0].partitions[0].error_code
        )
        assert isinstance(response, OffsetCommitResponse)
        return response.topics[0].partitions[0].error_code

    def describe(self) -> DescribedConsumerGroup:
        """Its group, with members and lists in an order of its own."""
        request = ConsumerGroupDescribeRequest([self._group])
        response = self._ask(request, VERSION, lambda answer: answer.groups[0].error_code)
        return self._described(response)

    def describe_once(self) -> DescribedConsumerGroup:
        """The same, whether the broker has loaded it or not."""
        request = ConsumerGroupDescribeRequest([self._group])
        return self._described(self._answer(request, VERSION))

    def _described(self, response: Response) -> DescribedConsumerGroup:
        assert isinstance(response, ConsumerGroupDescribeResponse)
        (group,) = response.groups
        group.members = sorted(group.members, key=lambda member: member.member_id)
        for member in group.members:
            member.subscribed_topic_names = sorted(member.subscribed_topic_names)
            for assignment in (member.assignment, member.target_assignment):
                topics = assignment.topic_partitions
                assignment.topic_partitions = sorted(topics, key=lambda topic: topic.topic_name)
        return group

    def _ask(self, request: Request, version: int, error_of: Callable[..., ErrorCode]) -> Response:
        """The answer, once the broker has loaded the group."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            response = self._answer(request, version)
            if error_of(response) not in MOVING:
                return response
            assert time.monotonic() < deadline, response
            # A Kafka creates its offsets topic when it is asked for a coordinator.
            self._answer(FindCoordinatorRequest(key=self._group), FIND_VERSION)
            time.sleep(PAUSE_S)

    def _answer(self, request: Request, version: int) -> Response:
        host, _, port = self.address.rpartition(":")
        header = RequestHeader(request.API_KEY, version, 1, "raw")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(encode_request(header, request))
            frame = b""
            while len(frame) < 4 or len(frame) < 4 + int.from_bytes(frame[:4], "big"):
                piece = connection.recv(65_536)
                assert piece, "the broker closed the connection"
                frame += piece
        _, response = decode_response(request.API_KEY, version, frame, 4, len(frame))
        return response


def reconcile_all(*members: RawConsumer) -> None:
    """Heartbeats of all until nothing changes for a while."""
    deadline, quiet = time.monotonic() + TIMEOUT_S, 0
    while quiet < 12:  # the group may wait for group.consumer.assignment.interval.ms
        before = [(member.epoch, member.owned) for member in members]
        for member in members:
            member.heartbeat()
        quiet = quiet + 1 if before == [(m.epoch, m.owned) for m in members] else 0
        assert time.monotonic() < deadline, before
        time.sleep(PAUSE_S)
