"""Broker calls: what the drill itself asks the cluster for: topics, leaders, offsets, a write.

Any server that speaks Kafka's protocol answers these versions, from Kafka 2.5 on to Rollcall.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from client.wire import BrokenWire, ClientWire, connect_wire
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ErrorCode, GroupId, TopicId, TopicName
from storage.batch.record_batch import encode_batch

_METADATA_VERSION: Final = 12
OFFSET_FETCH_VERSION: Final = 7
FIND_VERSION: Final = 3
PRODUCE_VERSION: Final = 8
CREATE_VERSION: Final = 5
DELETE_TOPICS_VERSION: Final = 5
DELETE_GROUPS_VERSION: Final = 2
PRODUCE_TIMEOUT_S: Final = 5.0
_ALL_REPLICAS: Final = -1
_DEFAULT_REPLICAS: Final = -1
_PAUSE_S: Final = 0.05


class CallRefused(Exception):
    """The server answers with an error code."""

    def __init__(self, call: str, error_code: ErrorCode) -> None:
        super().__init__(f"{call} is answered {error_code.name}")
        self.error_code = error_code


class TopicLayout:
    """Who leads the partitions of a topic: addresses by partition, and the topic's id."""

    def __init__(self, answer: MetadataResponse, topic: str) -> None:
        """Raises CallRefused while the topic, or the leader of a partition, is not known."""
        addresses = {b.node_id: f"{b.host}:{b.port}" for b in answer.brokers}
        found = next(t for t in answer.topics if t.name == topic)
        errors = [found.error_code, *(p.error_code for p in found.partitions)]
        wrong = [error for error in errors if error is not ErrorCode.NONE]
        if wrong:
            raise CallRefused("Metadata", wrong[0])
        self.topic_id: TopicId = found.topic_id
        self.leaders = {p.partition_index: addresses[p.leader_id] for p in found.partitions}


def topic_layout(wire: ClientWire, topic: str) -> TopicLayout:
    """Raises BrokenWire, CallRefused."""
    asked = [MetadataRequestTopic(name=TopicName(topic))]
    request = MetadataRequest(asked, allow_auto_topic_creation=False)
    answer = wire.ask(request, MetadataResponse, _METADATA_VERSION)
    return TopicLayout(answer, topic)


def find_group_coordinator(wire: ClientWire, group: str) -> str:
    """Its address. Raises BrokenWire, CallRefused."""
    answer = wire.ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse, FIND_VERSION)
    if answer.error_code is not ErrorCode.NONE:
        raise CallRefused("FindCoordinator", answer.error_code)
    return f"{answer.host}:{answer.port}"


def fetch_offsets(
    wire: ClientWire, group: str, topic: str, partitions: Iterable[int]
) -> dict[int, int]:
    """The committed offset of each partition, -1: none. Raises BrokenWire, CallRefused."""
    asked = [OffsetFetchRequestTopic(TopicName(topic), [*partitions])]
    request = OffsetFetchRequest(group_id=GroupId(group), topics=asked)
    answer = wire.ask(request, OffsetFetchResponse, OFFSET_FETCH_VERSION)
    rows = [p for named in answer.topics for p in named.partitions]
    for error_code in (answer.error_code, *(row.error_code for row in rows)):
        if error_code is not ErrorCode.NONE:
            raise CallRefused("OffsetFetch", error_code)
    return {row.partition_index: row.committed_offset for row in rows}


def answered_offsets(answer: OffsetFetchResponse) -> list[tuple[int, int]]:
    """(partition, committed offset, -1: none) of an answer in any version, where there is no error.

    A member asks for its own group and the one topic of the drill.
    """
    rows: list[OffsetFetchResponsePartition | OffsetFetchResponsePartitions] = []
    if answer.error_code is ErrorCode.NONE:
        rows += [row for topic in answer.topics for row in topic.partitions]
    for group in answer.groups:
        if group.error_code is ErrorCode.NONE:
            rows += [row for named in group.topics for row in named.partitions]
    return [
        (row.partition_index, row.committed_offset)
        for row in rows
        if row.error_code is ErrorCode.NONE
    ]


def create_drill_topic(wire: ClientWire, topic: str, partitions: int, timeout_s: float) -> None:
    """Returns when each partition has a leader. Raises BrokenWire, CallRefused."""
    new = CreatableTopic(TopicName(topic), partitions, _DEFAULT_REPLICAS)
    answer = wire.ask(CreateTopicsRequest([new]), CreateTopicsResponse, CREATE_VERSION)
    (created,) = answer.topics
    if created.error_code is not ErrorCode.NONE:
        raise CallRefused("CreateTopics", created.error_code)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            topic_layout(wire, topic)
        except CallRefused:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def await_coordinator(wire: ClientWire, group: str, timeout_s: float) -> str:
    """The group's coordinator, once there is one. A new Kafka creates its offsets topic for it."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return find_group_coordinator(wire, group)
        except CallRefused:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)


def delete_drill_topic(wire: ClientWire, topic: str, group: str) -> None:
    """And the group, whose members must be gone. Raises BrokenWire."""
    wire.ask(
        DeleteTopicsRequest(topic_names=[TopicName(topic)], timeout_ms=10_000),
        DeleteTopicsResponse,
        DELETE_TOPICS_VERSION,
    )
    coordinator = connect_wire(find_group_coordinator(wire, group), "rollcall-drill")
    try:
        coordinator.ask(
            DeleteGroupsRequest([GroupId(group)]), DeleteGroupsResponse, DELETE_GROUPS_VERSION
        )
    finally:
        coordinator.close()


class RecordWriter:
    """Writes records with acks=all, over one connection to each leader."""

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._leaders: Mapping[int, str] = {}
        self._wires: dict[str, ClientWire] = {}

    def write(self, partition: int, values: list[bytes]) -> int:
        """The offset of the first record. Raises BrokenWire, CallRefused: it may be written."""
        try:
            return self._write(partition, values)
        except (BrokenWire, CallRefused):
            self.close()
            raise

    def _write(self, partition: int, values: list[bytes]) -> int:
        if not self._leaders:
            self._leaders = topic_layout(self._wire(self._address), self._topic).leaders
        batch = encode_batch([(b"", value) for value in values], 0, time.time_ns() // 1_000_000)
        data = [PartitionProduceData(partition, batch)]
        request = ProduceRequest(
            acks=_ALL_REPLICAS,
            timeout_ms=int(PRODUCE_TIMEOUT_S * 1000),
            topic_data=[TopicProduceData(TopicName(self._topic), partition_data=data)],
        )
        wire = self._wire(self._leaders[partition])
        answer = wire.ask(request, ProduceResponse, PRODUCE_VERSION)
        (row,) = (row for named in answer.responses for row in named.partition_responses)
        if row.error_code is not ErrorCode.NONE:
            raise CallRefused("Produce", row.error_code)
        return row.base_offset

    def _wire(self, address: str) -> ClientWire:
        if address not in self._wires:
            self._wires[address] = connect_wire(address, "rollcall-drill", PRODUCE_TIMEOUT_S)
        return self._wires[address]

    def close(self) -> None:
        self._leaders = {}
        while self._wires:
            self._wires.popitem()[1].close()
