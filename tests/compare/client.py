"""Client of a scenario: the requests of a member, and what it remembers of the answers.

The defaults keep a scenario short: a client uses the member id and the generation that it was
given until it is given others. Everything can be passed explicitly, right or wrong. `version` is
always the last one unless the scenario is about another.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from protocol.messages import Request, Response
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicId,
    TopicName,
)
from tests.compare.consumer_client import ConsumerSteps
from tests.compare.producer_client import ProducerSteps
from tests.compare.wire import Wire

AnswerT = TypeVar("AnswerT")

LONG_MS: Final = 300_000
"""A timeout that never runs out in a scenario."""


def topics(*names: str) -> bytes:
    """A consumer's subscription (v0) to these topics, as its protocol metadata says it."""
    encoded = [name.encode() for name in names]
    parts = [struct.pack(">h", len(name)) + name for name in encoded]
    return struct.pack(">hi", 0, len(names)) + b"".join(parts) + struct.pack(">i", -1)


RANGE: Final = (("range", topics("t")),)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The answer that a client is owed; with a group when the request may be parked there."""

    response_class: type[Response]
    version: int
    group_id: GroupId | None
    is_deferred: bool = False
    """Only `Script.answers` asks for it: nothing tells when it leaves."""


class Steps(Protocol):
    """The script that a client belongs to: it carries out each step and writes the transcript."""

    group: GroupId
    given_ms: int

    def ask(self, client: "Client", request: Request, version: int) -> Response | None: ...

    def send(
        self, client: "Client", request: Request, version: int, group_id: GroupId
    ) -> Response | None: ...

    def ask_frame(
        self, client: "Client", what: str, frame: bytes, reads: type[Response] | None, version: int
    ) -> None: ...

    def closed_by(self, client: "Client", what: str, data: bytes) -> None: ...

    def say(self, client: "Client", request: Request, version: int) -> None: ...

    def vanish(self, client: "Client") -> None: ...

    def topic_id(self, name: str) -> TopicId: ...

    def until_ended(self, transactional_id: str) -> None: ...

    def until_aborted(self, transactional_id: str) -> None: ...

    def park(self, client: "Client", request: Request, version: int) -> None: ...

    def ask_aside(self, request: Request, version: int, expected: type[AnswerT]) -> AnswerT: ...


class Client(ConsumerSteps, ProducerSteps):
    def __init__(self, script: Steps, name: str, wire: Wire) -> None:
        self.script = script
        self.name = name
        self.wire = wire
        self.waiting: Waiting | None = None
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation_id = NO_GENERATION
        self.last: Response | None = None

    def learn(self, answer: Response) -> None:
        self.last = answer
        self.learn_producer(answer)
        if isinstance(answer, JoinGroupResponse):
            if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = answer.member_id
            if answer.error_code is ErrorCode.NONE:
                self.generation_id = answer.generation_id
        elif isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.member_id is not None:
            self.member_id = answer.member_id
            self.generation_id = GenerationId(answer.member_epoch)

    def ask(self, request: Request, version: int) -> Response | None:
        return self.script.ask(self, request, version)

    def ask_raw(
        self,
        api_key: int,
        version: int,
        body: bytes,
        reads: type[Response],
        reads_version: int,
    ) -> None:
        """Ask in a version that no codec knows; the answer is read in another one."""
        header = struct.pack(">hhih", api_key, version, 7, len(self.name)) + self.name.encode()
        what = f"api key {api_key} v{version}"
        self.script.ask_frame(self, what, header + body, reads, reads_version)

    def ask_frame(self, what: str, frame: bytes) -> None:
        """Send the inside of a frame; the answer, if there is one, is shown as bytes."""
        self.script.ask_frame(self, what, frame, None, 0)

    def say_bytes(self, what: str, data: bytes) -> None:
        self.script.closed_by(self, what, data)

    def say_unanswered(self, request: Request, version: int) -> None:
        """Send what is never answered (acks=0)."""
        self.script.say(self, request, version)
        self.waiting = None

    def park(self, request: Request, version: int) -> None:
        """Send what the broker answers only after other steps; `Script.answers` waits for it."""
        self.script.park(self, request, version)

    def disconnect(self) -> None:
        self.script.vanish(self)

    def join(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
        session_ms: int = LONG_MS,
        rebalance_ms: int = LONG_MS,
        protocol_type: str = "consumer",
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        reason: str | None = None,
        version: int = 9,
        may_wait: bool = False,
    ) -> Response | None:
        """`may_wait`: the others decide when this is answered, so do not wait for it."""
        request = JoinGroupRequest(
            group_id=self._group(group_id),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
            member_id=self.member_id if member_id is None else MemberId(member_id),
            group_instance_id=_instance(instance_id),
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name, data) for name, data in protocols],
            reason=reason,
        )
        if may_wait:
            return self.script.send(self, request, version, request.group_id)
        return self.ask(request, version)

    def enter(self, **options: object) -> None:
        """Join in two steps: be told an id, then join with it. Options as for `join`."""
        self.join(**{**options, "may_wait": False})  # type: ignore[arg-type]
        self.join(**options)  # type: ignore[arg-type]

    def sync(
        self,
        assignments: Mapping["Client | str", bytes] | None = None,
        *,
        group_id: str | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
        generation_id: int | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        version: int = 5,
        may_wait: bool = False,
    ) -> Response | None:
        """`assignments` is what a leader hands out; other members give none."""
        request = SyncGroupRequest(
            group_id=self._group(group_id),
            generation_id=self._generation(generation_id),
            member_id=self.member_id if member_id is None else MemberId(member_id),
            group_instance_id=_instance(instance_id),
            protocol_type=protocol_type if version >= 5 else None,
            protocol_name=protocol_name if version >= 5 else None,
            assignments=[
                SyncGroupRequestAssignment(
                    member.member_id if isinstance(member, Client) else MemberId(member), assignment
                )
                for member, assignment in (assignments or {}).items()
            ],
        )
        if may_wait:
            return self.script.send(self, request, version, request.group_id)
        return self.ask(request, version)

    def beat(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
        generation_id: int | None = None,
        version: int = 4,
    ) -> Response | None:
        request = HeartbeatRequest(
            self._group(group_id),
            self._generation(generation_id),
            self.member_id if member_id is None else MemberId(member_id),
            _instance(instance_id),
        )
        return self.ask(request, version)

    def leave(
        self,
        *members: tuple[str, str | None],
        group_id: str | None = None,
        reason: str | None = None,
        version: int = 5,
    ) -> Response | None:
        """Leave as (member id, instance id) pairs; without any, leave for oneself."""
        leaving = members or ((self.member_id, None),)
        request = LeaveGroupRequest(group_id=self._group(group_id))
        if version < 3:
            request.member_id = MemberId(leaving[0][0])
        else:
            request.members = [
                MemberIdentity(MemberId(member_id), _instance(instance_id), reason)
                for member_id, instance_id in leaving
            ]
        return self.ask(request, version)

    def commit(
        self,
        topic: str,
        offsets: Mapping[int, int | OffsetCommitRequestPartition],
        *,
        group_id: str | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
        generation_id: int | None = None,
        retention_ms: int = -1,
        topic_id: TopicId | None = None,
        version: int = 9,
    ) -> Response | None:
        """Commit partition -> offset as a member; see `commit_simply`."""
        partitions = [
            OffsetCommitRequestPartition(partition, what) if isinstance(what, int) else what
            for partition, what in offsets.items()
        ]
        named = OffsetCommitRequestTopic(TopicName(topic), partitions=partitions)
        if topic_id is not None:
            named.topic_id = topic_id
        request = OffsetCommitRequest(
            self._group(group_id),
            self._generation(generation_id),
            self.member_id if member_id is None else MemberId(member_id),
            _instance(instance_id),
            retention_ms,
            [named],
        )
        return self.ask(request, version)

    def commit_simply(
        self,
        topic: str,
        offsets: Mapping[int, int | OffsetCommitRequestPartition],
        **options: object,
    ) -> Response | None:
        """Commit as one who is no member of anything."""
        return self.commit(
            topic,
            offsets,
            **{"member_id": "", "generation_id": NO_GENERATION, **options},  # type: ignore[arg-type]
        )

    def fetch_offsets(
        self,
        topics: Mapping[str, Sequence[int]] | None,
        *,
        group_id: str | None = None,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
        version: int = 9,
    ) -> Response | None:
        """Ask for topic -> partitions of one group; None for all that it has."""
        if version < 8:
            old = [OffsetFetchRequestTopic(TopicName(n), p) for n, p in (topics or {}).items()]
            request = OffsetFetchRequest(
                group_id=self._group(group_id),
                topics=None if topics is None else old,
                require_stable=require_stable,
            )
            return self.ask(request, version)
        new = [
            OffsetFetchRequestTopics(
                TopicName(name),
                self.script.topic_id(name) if version >= 10 else TopicId(int=0),
                partitions,
            )
            for name, partitions in (topics or {}).items()
        ]
        group = OffsetFetchRequestGroup(
            self._group(group_id),
            None if member_id is None else MemberId(member_id),
            member_epoch,
            None if topics is None else new,
        )
        return self.ask(OffsetFetchRequest(groups=[group], require_stable=require_stable), version)

    def offsets_aside(self, topics: Mapping[str, Sequence[int]]) -> list[int]:
        """What is committed now, asked on the control connection."""
        asked = [OffsetFetchRequestTopic(TopicName(n), p) for n, p in topics.items()]
        request = OffsetFetchRequest(group_id=self.script.group, topics=asked)
        answer = self.script.ask_aside(request, 5, OffsetFetchResponse)
        return [p.committed_offset for topic in answer.topics for p in topic.partitions]

    def delete_offsets(
        self, topics: Mapping[str, Sequence[int]], *, group_id: str | None = None
    ) -> Response | None:
        asked = [
            OffsetDeleteRequestTopic(
                TopicName(name), [OffsetDeleteRequestPartition(p) for p in partitions]
            )
            for name, partitions in topics.items()
        ]
        return self.ask(OffsetDeleteRequest(self._group(group_id), asked), 0)

    def describe(
        self, *group_ids: str, operations: bool = False, version: int = 6
    ) -> Response | None:
        groups = [GroupId(group_id) for group_id in group_ids] or [self.script.group]
        return self.ask(DescribeGroupsRequest(groups, operations), version)

    def list_groups(
        self, states: Sequence[str] = (), types: Sequence[str] = (), version: int = 5
    ) -> Response | None:
        return self.ask(ListGroupsRequest(states, types), version)

    def delete_groups(self, *group_ids: str, version: int = 2) -> Response | None:
        groups = [GroupId(group_id) for group_id in group_ids] or [self.script.group]
        return self.ask(DeleteGroupsRequest(groups), version)

    def _group(self, group_id: str | None) -> GroupId:
        return self.script.group if group_id is None else GroupId(group_id)

    def _generation(self, generation_id: int | None) -> GenerationId:
        return self.generation_id if generation_id is None else GenerationId(generation_id)


def _instance(instance_id: str | None) -> GroupInstanceId | None:
    return None if instance_id is None else GroupInstanceId(instance_id)
