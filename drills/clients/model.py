"""Client model: a consumer of Rollcall's own, request by request, for both group protocols.

It does what Kafka's consumer does and nothing cleverer: it joins, syncs, beats, fetches, commits,
and rejoins when an answer says so. It needs no library, so every drill runs with it.
"""

import time
from collections.abc import Mapping
from typing import Final
from uuid import uuid4

from client.wire import BrokenWire, ClientWire, R, connect_wire
from drills.broker_calls import (
    CallRefused,
    TopicLayout,
    fetch_offsets,
    find_group_coordinator,
    topic_layout,
)
from drills.clients.interface import (
    CONSUMER_PROTOCOL,
    POLL_S,
    ClientSettings,
    DrillClient,
    OwnershipCallbacks,
)
from drills.clients.stop import stopping
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    read_assignment,
    write_assignment,
    write_subscription,
)
from protocol.messages import Request
from protocol.messages.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatTopicPartitions,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
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
    GenerationId,
    GroupId,
    MemberId,
    TopicName,
)
from storage.batch.record_batch import InvalidBatch, iter_batches

JOIN_VERSION: Final = 9
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
LEAVE_VERSION: Final = 5
COMMIT_VERSION: Final = 8
CONSUMER_COMMIT_VERSION: Final = 9
CONSUMER_HEARTBEAT_VERSION: Final = 1
FETCH_VERSION: Final = 12
PROTOCOL_NAME: Final = "range"
PAUSE_S: Final = 0.05
_ANSWER_WITHIN_S: Final = 15.0
FETCH_BYTES_MAX: Final = 1 << 20

_RETRIED: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class CommitRefused(Exception):
    """The coordinator's error code."""


class _EndOfDrill(Exception):
    """The member is to stop while it waits for an answer."""


class ModelClient:
    """What both protocols share: connections, fetches, commits."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._group = GroupId(settings.group)
        self._topic = TopicName(settings.topic)
        self._wires: dict[str, ClientWire] = {}
        self._coordinator = ""
        self._layout: TopicLayout | None = None
        self._positions: dict[int, int] = {}
        self._is_placed = False  # whether positions were asked since the last assignment
        self._last_beat_s = 0.0
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation = NO_GENERATION
        self.owned: list[int] = []

    def subscribe(self, ownership: OwnershipCallbacks) -> None:
        self._ownership = ownership

    def poll(self) -> dict[int, list[int]]:
        try:
            self._take_part()
            return self._fetch() if self.owned else self._idle()
        except _EndOfDrill:
            return {}
        except (BrokenWire, CallRefused):
            self._hang_up()
            stopping.wait(PAUSE_S)
            return {}

    def _idle(self) -> dict[int, list[int]]:
        stopping.wait(PAUSE_S)
        return {}

    def _take_part(self) -> None:
        """Join, beat, rejoin: whatever is due."""
        raise NotImplementedError

    def _lose_membership(self, error_code: ErrorCode) -> None:
        raise NotImplementedError

    # --- connections

    def _wire(self, address: str) -> ClientWire:
        if address not in self._wires:
            client_id = self._settings.client_id
            self._wires[address] = connect_wire(address, client_id, _ANSWER_WITHIN_S)
        return self._wires[address]

    def _hang_up(self) -> None:
        self._coordinator, self._layout = "", None
        while self._wires:
            self._wires.popitem()[1].close()

    def _group_wire(self) -> ClientWire:
        """A connection of its own, as a fetch may wait on the other: named by its use."""
        if not self._coordinator:
            wire = self._wire(self._settings.bootstrap)
            self._coordinator = find_group_coordinator(wire, self._group)
        key = f"group {self._coordinator}"
        if key not in self._wires:
            client_id = self._settings.client_id
            self._wires[key] = connect_wire(self._coordinator, client_id, _ANSWER_WITHIN_S)
        return self._wires[key]

    def _ask_group(self, request: Request, answer: type[R], version: int) -> R:
        """The answer, however long it takes. Raises BrokenWire, _EndOfDrill."""
        wire = self._group_wire()
        wire.send(request, version)
        while not wire.has_answer(0.1):
            if stopping.is_set():
                wire.close()
                self._hang_up()
                raise _EndOfDrill
        return wire.receive(answer)

    # --- records and offsets

    def _place(self) -> None:
        """Where to begin in what is owned."""
        if self._is_placed:
            return
        missing = [p for p in self.owned if p not in self._positions]
        if missing:
            found = fetch_offsets(self._group_wire(), self._group, self._topic, missing)
            self._positions.update({p: max(offset, 0) for p, offset in found.items()})
        self._is_placed = True

    def _fetch(self) -> dict[int, list[int]]:
        self._place()
        if self._layout is None:
            self._layout = topic_layout(self._wire(self._settings.bootstrap), self._topic)
        by_leader: dict[str, list[int]] = {}
        for partition in self.owned:
            by_leader.setdefault(self._layout.leaders[partition], []).append(partition)
        read: dict[int, list[int]] = {}
        for leader, partitions in by_leader.items():
            rows = [
                FetchPartition(
                    p, fetch_offset=self._positions[p], partition_max_bytes=FETCH_BYTES_MAX
                )
                for p in partitions
            ]
            request = FetchRequest(
                max_wait_ms=int(POLL_S * 1000 / len(by_leader)),
                min_bytes=1,
                max_bytes=FETCH_BYTES_MAX,
                topics=[FetchTopic(topic=self._topic, partitions=rows)],
            )
            answer = self._wire(leader).ask(request, FetchResponse, FETCH_VERSION)
            self._read(answer, read)
        return read

    def _read(self, answer: FetchResponse, read: dict[int, list[int]]) -> None:
        for row in (row for topic in answer.responses for row in topic.partitions):
            if row.error_code is not ErrorCode.NONE:
                raise CallRefused("Fetch", row.error_code)
            partition = row.partition_index
            position = self._positions[partition]
            offsets: list[int] = []
            try:
                for _, header in iter_batches(row.records or b""):
                    offsets += range(max(header.base_offset, position), header.next_offset)
            except InvalidBatch:
                pass  # the last one was cut at the limit of bytes
            if offsets:
                read[partition] = offsets
                self._positions[partition] = offsets[-1] + 1

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Raises CommitRefused, BrokenWire."""
        rows = [OffsetCommitRequestPartition(p, offset) for p, offset in offsets.items()]
        request = OffsetCommitRequest(
            self._group,
            self.generation,
            self.member_id,
            topics=[OffsetCommitRequestTopic(self._topic, partitions=rows)],
        )
        is_new = self._settings.protocol == CONSUMER_PROTOCOL
        version = CONSUMER_COMMIT_VERSION if is_new else COMMIT_VERSION
        try:
            answer = self._ask_group(request, OffsetCommitResponse, version)
        except (BrokenWire, CallRefused):
            self._hang_up()
            raise
        except _EndOfDrill:
            raise CommitRefused("the drill ended before the answer") from None
        codes = {p.error_code for topic in answer.topics for p in topic.partitions}
        for error_code in codes - {ErrorCode.NONE}:
            self._lose_membership(error_code)
            raise CommitRefused(error_code.name)

    # --- ownership

    def _own(self, partitions: list[int], gone: list[int], new: list[int]) -> None:
        for partition in gone:
            self._positions.pop(partition, None)
        if gone:
            self._ownership.revoked(gone)
        self.owned = partitions
        self._is_placed = False
        if new:
            self._ownership.assigned(new)

    def _drop_all(self) -> None:
        self._own([], self.owned, [])


class ClassicModelClient(ModelClient):
    """Eager rebalances, and the range assignor when it leads."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings)
        self._is_inside = False

    def _take_part(self) -> None:
        if not self._is_inside:
            self._join()
            return
        interval_s = self._settings.heartbeat_interval_ms / 1000
        if time.monotonic() - self._last_beat_s >= interval_s:
            request = HeartbeatRequest(self._group, self.generation, self.member_id)
            answer = self._ask_group(request, HeartbeatResponse, HEARTBEAT_VERSION)
            self._last_beat_s = time.monotonic()
            self._lose_membership(answer.error_code)

    def _lose_membership(self, error_code: ErrorCode) -> None:
        """What an error means for it: to join again, as a new member if it is not known."""
        if error_code is ErrorCode.NONE:
            return
        if error_code in _RETRIED:
            raise CallRefused("the coordinator", error_code)
        if error_code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = UNKNOWN_MEMBER_ID
        self._is_inside = False

    def _join(self) -> None:
        self._drop_all()
        answer = self._ask_group(self._join_request(), JoinGroupResponse, JOIN_VERSION)
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return
        if answer.error_code is not ErrorCode.NONE:
            self._refused(answer.error_code)
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self._sync(answer)

    def _refused(self, error_code: ErrorCode) -> None:
        if error_code is ErrorCode.INVALID_SESSION_TIMEOUT:
            limits = "group.min.session.timeout.ms and group.max.session.timeout.ms"
            raise SystemExit(f"session_timeout_ms is outside of the server's {limits}")
        self._lose_membership(error_code)

    def _join_request(self) -> JoinGroupRequest:
        subscription = write_subscription(ConsumerProtocolSubscription([self._topic]))
        return JoinGroupRequest(
            self._group,
            self._settings.session_timeout_ms,
            self._settings.rebalance_timeout_ms,
            self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(PROTOCOL_NAME, subscription)],
        )

    def _sync(self, joined: JoinGroupResponse) -> None:
        request = SyncGroupRequest(
            self._group,
            self.generation,
            self.member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL_NAME,
            assignments=self._assignments([member.member_id for member in joined.members]),
        )
        answer = self._ask_group(request, SyncGroupResponse, SYNC_VERSION)
        if answer.error_code is not ErrorCode.NONE:
            self._lose_membership(answer.error_code)
            return
        self._is_inside = True
        self._last_beat_s = time.monotonic()
        assigned = read_assignment(answer.assignment).assigned_partitions
        partitions = sorted(p for topic in assigned for p in topic.partitions)
        self._own(partitions, [], partitions)

    def _assignments(self, members: list[MemberId]) -> list[SyncGroupRequestAssignment]:
        """As the range assignor does. Without members it does not lead."""
        if not members:
            return []
        size, larger = divmod(self._settings.partitions, len(members))
        assignments, begin = [], 0
        for number, member_id in enumerate(sorted(members)):
            end = begin + size + (number < larger)
            share = [TopicPartitions(self._topic, [*range(begin, end)])]
            encoded = write_assignment(ConsumerProtocolAssignment(share))
            assignments.append(SyncGroupRequestAssignment(member_id, encoded))
            begin = end
        return assignments

    def close(self) -> None:
        if not self.member_id:
            return
        request = LeaveGroupRequest(self._group, members=[MemberIdentity(self.member_id)])
        try:
            self._group_wire().ask(request, LeaveGroupResponse, LEAVE_VERSION)
        except (BrokenWire, CallRefused):
            return


class ConsumerModelClient(ModelClient):
    """The consumer group protocol (KIP-848): the server assigns, the member reconciles."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings)
        self.member_id = MemberId(str(uuid4()))
        self.generation = GenerationId(JOIN_EPOCH)
        self._interval_s = 0.0
        self._is_changed = False  # what it owns is to be reported at once

    def _take_part(self) -> None:
        due = time.monotonic() - self._last_beat_s >= self._interval_s
        if not due and not self._is_changed:
            return
        self._is_changed = False
        answer = self._ask_group(
            self._beat(), ConsumerGroupHeartbeatResponse, CONSUMER_HEARTBEAT_VERSION
        )
        self._last_beat_s = time.monotonic()
        if answer.error_code is not ErrorCode.NONE:
            self._lose_membership(answer.error_code)
            return
        self.generation = GenerationId(answer.member_epoch)
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            target = sorted(p for topic in topics for p in topic.partitions)
            gone = [p for p in self.owned if p not in target]
            new = [p for p in target if p not in self.owned]
            self._is_changed = bool(gone or new)
            self._own(target, gone, new)

    def _beat(self) -> ConsumerGroupHeartbeatRequest:
        if self._layout is None:
            self._layout = topic_layout(self._wire(self._settings.bootstrap), self._topic)
        owned = [HeartbeatTopicPartitions(self._layout.topic_id, self.owned)] if self.owned else []
        return ConsumerGroupHeartbeatRequest(
            self._group,
            self.member_id,
            self.generation,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            subscribed_topic_names=[self._topic],
            topic_partitions=owned,
        )

    def _lose_membership(self, error_code: ErrorCode) -> None:
        if error_code in _RETRIED:
            raise CallRefused("the coordinator", error_code)
        if error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self._drop_all()
            self.generation = GenerationId(JOIN_EPOCH)
        elif error_code is ErrorCode.STALE_MEMBER_EPOCH:
            self._is_changed = True  # a heartbeat brings the new epoch
        else:
            raise SystemExit(f"the coordinator refuses the member: {error_code.name}")

    def close(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            self._group, self.member_id, LEAVE_EPOCH, topic_partitions=None
        )
        try:
            self._group_wire().ask(
                request, ConsumerGroupHeartbeatResponse, CONSUMER_HEARTBEAT_VERSION
            )
        except (BrokenWire, CallRefused):
            return


def open_client(settings: ClientSettings) -> DrillClient:
    if settings.protocol == CONSUMER_PROTOCOL:
        return ConsumerModelClient(settings)
    return ClassicModelClient(settings)
