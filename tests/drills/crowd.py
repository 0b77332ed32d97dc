"""Members as sockets: what they were answered before a crash and after it.

A `RawMember` speaks the group protocol by the rules that every client library follows, one request
at a time, and remembers what it was told: generations, their members, acknowledged commits. It can
be asked step by step. A `Crowd` drives several of them from one thread until they agree, over lost
connections and restarts of the coordinator.
"""

import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto

from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from protocol.messages import Request, Response
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
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
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
    GenerationId,
    GroupId,
    MemberId,
    TopicName,
)
from tests.compare.wire import Closed, Wire

TIMEOUT_S = 60  # before a test gives up; not a measure of anything
PROTOCOL = "range"

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, COMMIT_VERSION, FETCH_VERSION = 9, 5, 4, 8, 5

AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Place(Enum):
    OUTSIDE = auto()  # the next request is a JoinGroup
    JOINED = auto()  # a SyncGroup
    INSIDE = auto()  # a Heartbeat, or a commit


def commit_request(
    group: str,
    topic: str,
    offsets: dict[int, int],
    generation: GenerationId = NO_GENERATION,
    member_id: MemberId = UNKNOWN_MEMBER_ID,
) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(p, offset) for p, offset in offsets.items()]
    named = OffsetCommitRequestTopic(TopicName(topic), partitions=rows)
    return OffsetCommitRequest(GroupId(group), generation, member_id, topics=[named])


def committed_offsets(port: int, group: str, topic: str, partitions: Sequence[int]) -> list[int]:
    """What the coordinator says, once it has loaded the group."""
    wire = Wire(port, "asker")
    asked = [OffsetFetchRequestTopic(TopicName(topic), partitions)]
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        wire.send(OffsetFetchRequest(group_id=GroupId(group), topics=asked), FETCH_VERSION)
        answer = wire.receive(OffsetFetchResponse, FETCH_VERSION)
        assert isinstance(answer, OffsetFetchResponse)
        if answer.error_code not in AGAIN:
            assert answer.error_code is ErrorCode.NONE
            break
        assert time.monotonic() < deadline, f"{group} is answered {answer.error_code!r} forever"
    wire.close()
    return [partition.committed_offset for named in answer.topics for partition in named.partitions]


class RawMember:
    """One member; `partition` is what it commits for, one offset further each time."""

    def __init__(
        self,
        name: str,
        group: str,
        topic: str,
        partition: int,
        *,
        session_timeout_ms: int = 30_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.name = name
        self.group = GroupId(group)
        self.topic = topic
        self.partition = partition
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation = NO_GENERATION
        self.place = Place.OUTSIDE
        self.wire: Wire | None = None
        self.asked: tuple[type[Response], int] | None = None
        self.led: list[tuple[GenerationId, frozenset[MemberId]]] = []
        self.errors: list[ErrorCode] = []
        self.sent_offset = 0
        self.acknowledged_offset = 0
        self._roster: Sequence[MemberId] = ()
        self._beats_next = True

    # ------------------------------------------------------------ step by step

    def connect(self, port: int) -> None:
        self.wire = Wire(port, self.name)
        self.asked = None

    def disconnect(self) -> None:
        if self.wire is not None:
            self.wire.close()
        self.wire = self.asked = None

    def ask(self, request: Request, response_class: type[Response], version: int) -> Response:
        """Send and wait for the answer, without taking it to heart. Raises Closed."""
        assert self.wire is not None
        self.wire.send(request, version)
        return self.wire.receive(response_class, version)

    def beat(self) -> ErrorCode:
        answer = self.ask(self._heartbeat(), HeartbeatResponse, HEARTBEAT_VERSION)
        assert isinstance(answer, HeartbeatResponse)
        return answer.error_code

    def send_commits_and_heartbeat(self, commits: int) -> None:
        """All at once, without waiting for the answers."""
        assert self.wire is not None
        frames = b""
        for _ in range(commits):
            self.sent_offset += 1
            frames += self.wire.framed(self._commit(), COMMIT_VERSION)
        self.wire.send_bytes(frames + self.wire.framed(self._heartbeat(), HEARTBEAT_VERSION))

    def send_join(self) -> None:
        """Without waiting: the others decide when it is answered."""
        self._send(self._join(), JoinGroupResponse, JOIN_VERSION)

    def has_answer(self) -> bool:
        return self.wire is not None and self.asked is not None and self.wire.has_answer()

    # ------------------------------------------------------------ by itself

    def act(self) -> None:
        """Send what comes next, unless an answer is still to come."""
        if self.wire is None or self.asked is not None:
            return
        match self.place:
            case Place.OUTSIDE:
                self.send_join()
            case Place.JOINED:
                self._send(self._sync(), SyncGroupResponse, SYNC_VERSION)
            case Place.INSIDE if self._beats_next:
                self._beats_next = False
                self._send(self._heartbeat(), HeartbeatResponse, HEARTBEAT_VERSION)
            case Place.INSIDE:
                self._beats_next = True
                self.sent_offset += 1
                self._send(self._commit(), OffsetCommitResponse, COMMIT_VERSION)

    def hear(self) -> None:
        """Take the answer that is there. Raises Closed."""
        assert self.wire is not None
        assert self.asked is not None
        response_class, version = self.asked
        answer = self.wire.receive(response_class, version)
        self.asked = None
        match answer:
            case JoinGroupResponse():
                self._hear_join(answer)
            case SyncGroupResponse():
                self._obey(answer.error_code, Place.INSIDE)
            case HeartbeatResponse():
                self._obey(answer.error_code, self.place)
            case OffsetCommitResponse():
                (error_code,) = {p.error_code for t in answer.topics for p in t.partitions}
                if error_code is ErrorCode.NONE:
                    self.acknowledged_offset = self.sent_offset
                self._obey(error_code, self.place)

    def _hear_join(self, answer: JoinGroupResponse) -> None:
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return
        if answer.error_code is ErrorCode.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self._roster = [member.member_id for member in answer.members]
            if answer.leader == answer.member_id:
                self.led.append((answer.generation_id, frozenset(self._roster)))
        self._obey(answer.error_code, Place.JOINED)

    def _obey(self, error_code: ErrorCode, otherwise: Place) -> None:
        """What a client does about an error: ask again, join again, or start over."""
        if error_code is ErrorCode.NONE:
            self.place = otherwise
        elif error_code not in AGAIN:
            self.errors.append(error_code)
            if error_code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = UNKNOWN_MEMBER_ID
            self.place = Place.OUTSIDE

    def _send(self, request: Request, response_class: type[Response], version: int) -> None:
        assert self.wire is not None
        self.asked = (response_class, version)
        self.wire.send(request, version)

    def _join(self) -> JoinGroupRequest:
        subscription = ConsumerProtocolSubscription(topics=[TopicName(self.topic)])
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(PROTOCOL, write_subscription(subscription))],
        )

    def _sync(self) -> SyncGroupRequest:
        """A leader gives its n-th member partition n."""
        assignments = [
            SyncGroupRequestAssignment(
                member_id,
                write_assignment(
                    ConsumerProtocolAssignment([TopicPartitions(TopicName(self.topic), [n])])
                ),
            )
            for n, member_id in enumerate(self._roster)
        ]
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=assignments,
        )

    def _commit(self) -> OffsetCommitRequest:
        offsets = {self.partition: self.sent_offset}
        return commit_request(self.group, self.topic, offsets, self.generation, self.member_id)

    def _heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(self.group, self.generation, self.member_id)


class Crowd:
    """Drives its members; a connection that is lost is made again as soon as that is possible."""

    def __init__(self, port: int, members: Sequence[RawMember]) -> None:
        self.port = port
        self.members = list(members)

    def go_on_until(self, fact: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not fact():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self}"
            for member in self.members:
                self._drive(member)
            wires = [m.wire for m in self.members if m.wire is not None]
            select.select(wires, [], [], 0.02)

    def complete_rebalance(self) -> GenerationId:
        """Until all are in one generation, and each has heard that it is; which one."""
        heard = {member.name: 0 for member in self.members}

        def agreed() -> bool:
            if len({member.generation for member in self.members}) > 1:
                return False
            return all(
                member.place is Place.INSIDE and member.acknowledged_offset > heard[member.name]
                for member in self.members
            )

        for member in self.members:
            heard[member.name] = member.sent_offset
        self.go_on_until(agreed, "one generation with all")
        return self.members[0].generation

    def commit(self, times: int) -> None:
        """Until so many more commits are acknowledged, of all together."""
        enough = self._acknowledged() + times
        self.go_on_until(lambda: self._acknowledged() >= enough, f"{times} commits")

    def _acknowledged(self) -> int:
        return sum(member.acknowledged_offset for member in self.members)

    def finish(self) -> None:
        """Let each commit once more, and then send nothing: no answer is to come any more."""
        before = {member.name: member.acknowledged_offset for member in self.members}
        self.go_on_until(
            lambda: all(m.acknowledged_offset > before[m.name] for m in self.members),
            "a commit by each",
        )
        for member in self.members:
            if member.asked is not None:
                member.hear()

    def hear_the_last(self) -> None:
        """The coordinator is gone: take what it still sent, and hang up."""
        for member in self.members:
            with suppress(Closed):
                if member.has_answer():
                    member.hear()
            member.disconnect()

    def _drive(self, member: RawMember) -> None:
        try:
            if member.wire is None:
                member.connect(self.port)
            if member.has_answer():
                member.hear()
            member.act()
        except (Closed, OSError):
            member.disconnect()

    def __str__(self) -> str:
        return ", ".join(
            f"{m.name} {m.place.name} in {m.generation} as {m.member_id!r} after {m.errors}"
            for m in self.members
        )


def same_members_in_each_generation(members: Sequence[RawMember]) -> None:
    """No generation was ever given to leaders with two different sets of members."""
    rosters: dict[GenerationId, frozenset[MemberId]] = {}
    for member in members:
        for generation, roster in member.led:
            assert rosters.setdefault(generation, roster) == roster, (
                f"generation {generation} twice"
            )
