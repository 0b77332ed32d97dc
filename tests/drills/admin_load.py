"""Admin load: are topics, their records and producer ids after a kill what clients were told?

An `Operator` creates, deletes, grows and fills topics and asks for producer ids, one request at a
time, driven by a `Crowd` like a member. What was answered holds after the next start; of the one
request that was cut off either outcome is right, but a whole one. A `Restless` member rejoins its
group now and then, so that some kills come during a rebalance.
"""

import random
import time
from dataclasses import dataclass, field

from protocol.messages import Response
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ErrorCode, TopicName
from storage.api import Record
from storage.batch.record_batch import encode_batch
from tests.compare.wire import Wire
from tests.drills.crowd import Place, RawMember

PREFIX = "admin-"
TOPICS_MAX = 6
CREATE, DELETE, GROW, INIT, PRODUCE, METADATA, OFFSETS = 7, 6, 3, 4, 9, 12, 7
LATEST = -1


@dataclass
class Filled:
    """A topic as clients saw it: its partitions' log ends."""

    ends: list[int]


@dataclass
class Asked:
    """The request that is not answered yet."""

    kind: str
    name: str = ""
    count: int = 0  # of partitions, or the partition that is written to
    records: int = 0


@dataclass
class Confirmed:
    topics: dict[str, Filled] = field(default_factory=dict)
    producer_ids: set[int] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=dict)


class Operator(RawMember):
    """Every answer counts as an acknowledged commit: so a `Crowd` waits for its requests too."""

    def __init__(self, seed: str) -> None:
        super().__init__("operator", "no-group", "no-topic", 0)
        self.place = Place.INSIDE
        self.confirmed = Confirmed()
        self.request: Asked | None = None
        self._dice = random.Random(seed)
        self._made = 0

    def act(self) -> None:
        if self.wire is None or self.asked is not None:
            return
        self.sent_offset += 1
        names = sorted(self.confirmed.topics)
        kind = self._dice.choice(
            ("create", "create", "delete", "grow", "ids", "produce", "produce", "produce")
        )
        if not names or (kind == "create" and len(names) < TOPICS_MAX):
            # A name that was free for long, or one that has just become so.
            self._made += self._dice.random() < 0.5 or f"{PREFIX}{self._made}" in names
            self._create(f"{PREFIX}{self._made}", self._dice.randint(1, 3))
        elif kind == "delete" or kind == "create":
            self._delete(self._dice.choice(names))
        elif kind == "grow":
            self._grow(self._dice.choice(names))
        elif kind == "ids":
            self.request = Asked("ids")
            self._send(InitProducerIdRequest(None), InitProducerIdResponse, INIT)
        else:
            self._produce(self._dice.choice(names))

    def _create(self, name: str, count: int) -> None:
        self.request = Asked("create", name, count)
        topic = CreatableTopic(TopicName(name), count, 1)
        self._send(CreateTopicsRequest([topic]), CreateTopicsResponse, CREATE)

    def _delete(self, name: str) -> None:
        self.request = Asked("delete", name)
        topic = DeleteTopicState(TopicName(name))
        self._send(DeleteTopicsRequest([topic], timeout_ms=60_000), DeleteTopicsResponse, DELETE)

    def _grow(self, name: str) -> None:
        count = len(self.confirmed.topics[name].ends) + 1
        self.request = Asked("grow", name, count)
        topic = CreatePartitionsTopic(TopicName(name), count, None)
        request = CreatePartitionsRequest([topic], timeout_ms=60_000)
        self._send(request, CreatePartitionsResponse, GROW)

    def _produce(self, name: str) -> None:
        partition = self._dice.randrange(len(self.confirmed.topics[name].ends))
        count = self._dice.randint(1, 20)
        self.request = Asked("produce", name, partition, count)
        now_ms = time.time_ns() // 1_000_000
        value = bytes(self._dice.choice((10, 500)))
        batch = encode_batch(
            [Record(b"k", value)] * count, 0, now_ms, producer_id=-1, base_sequence=-1
        )
        rows = [PartitionProduceData(partition, batch)]
        topic = TopicProduceData(TopicName(name), partition_data=rows)
        self._send(ProduceRequest(None, -1, 60_000, [topic]), ProduceResponse, PRODUCE)

    def hear(self) -> None:
        assert self.wire is not None
        assert self.asked is not None
        response_class, version = self.asked
        answer = self.wire.receive(response_class, version)
        self.asked = None
        asked, self.request = self.request, None
        assert asked is not None
        error_code = self._obeyed(asked, answer)
        if error_code is not ErrorCode.NONE:
            self.errors.append(error_code)
            return
        self.acknowledged_offset = self.sent_offset
        self.confirmed.done[asked.kind] = self.confirmed.done.get(asked.kind, 0) + 1

    def _obeyed(self, asked: Asked, answer: Response) -> ErrorCode:
        """Remember what was answered; with which error."""
        topics = self.confirmed.topics
        match answer:
            case CreateTopicsResponse():
                error_code = answer.topics[0].error_code
                if error_code is ErrorCode.NONE:
                    topics[asked.name] = Filled([0] * asked.count)
            case DeleteTopicsResponse():
                error_code = answer.responses[0].error_code
                if error_code is ErrorCode.NONE:
                    del topics[asked.name]
            case CreatePartitionsResponse():
                error_code = answer.results[0].error_code
                if error_code is ErrorCode.NONE:
                    topics[asked.name].ends.append(0)
            case InitProducerIdResponse():
                error_code = answer.error_code
                if error_code is ErrorCode.NONE:
                    assert answer.producer_id not in self.confirmed.producer_ids, "given out twice"
                    self.confirmed.producer_ids.add(answer.producer_id)
            case ProduceResponse():
                (partition,) = answer.responses[0].partition_responses
                error_code = partition.error_code
                if error_code is ErrorCode.NONE:
                    ends = topics[asked.name].ends
                    assert partition.base_offset == ends[asked.count], "not the next offset"
                    ends[asked.count] += asked.records
            case _:
                raise AssertionError(answer)
        return error_code

    def check(self, port: int) -> None:
        """After a start: everything is as it was told, and what was cut off is whole or not."""
        wire = Wire(port, "checker")
        wire.send(MetadataRequest(topics=None), METADATA)
        metadata = wire.receive(MetadataResponse, METADATA)
        assert isinstance(metadata, MetadataResponse)
        counts = {
            topic.name: len(topic.partitions)
            for topic in metadata.topics
            if topic.name is not None and topic.name.startswith(PREFIX)
        }
        self._resolve_request(counts)
        expected_counts = {name: len(filled.ends) for name, filled in self.confirmed.topics.items()}
        assert counts == expected_counts
        for name, filled in self.confirmed.topics.items():
            ends = self._ends(wire, name, len(filled.ends))
            for partition, (end, least) in enumerate(zip(ends, filled.ends, strict=True)):
                most = least + self._doubted(name, partition)
                assert end in (least, most), f"{name}-{partition}: {end}, told of {least}"
            filled.ends = ends
        self.request = None
        wire.close()

    def _resolve_request(self, counts: dict[TopicName, int]) -> None:
        """What became of the one request that was not answered."""
        asked, topics = self.request, self.confirmed.topics
        if asked is None:
            return
        name = TopicName(asked.name)
        if asked.kind == "create" and name in counts:
            assert counts[name] == asked.count, "half of a topic"
            topics[asked.name] = Filled([0] * asked.count)
        elif asked.kind == "delete" and name not in counts:
            del topics[asked.name]
        elif asked.kind == "grow" and counts.get(name) == asked.count:
            topics[asked.name].ends.append(0)

    def _doubted(self, name: str, partition: int) -> int:
        asked = self.request
        if asked is None or asked.kind != "produce":
            return 0
        return asked.records if (asked.name, asked.count) == (name, partition) else 0

    def _ends(self, wire: Wire, name: str, count: int) -> list[int]:
        rows = [ListOffsetsPartition(partition, timestamp=LATEST) for partition in range(count)]
        topic = ListOffsetsTopic(TopicName(name), rows)
        wire.send(ListOffsetsRequest(-1, topics=[topic]), OFFSETS)
        answer = wire.receive(ListOffsetsResponse, OFFSETS)
        assert isinstance(answer, ListOffsetsResponse)
        found = sorted(answer.topics[0].partitions, key=lambda partition: partition.partition_index)
        assert [partition.error_code for partition in found] == [ErrorCode.NONE] * count, name
        return [partition.offset for partition in found]


class Restless(RawMember):
    """Rejoins now and then although nobody asked it to."""

    REJOINS_ONE_IN = 40

    def __init__(self, name: str, group: str, topic: str, partition: int, seed: str) -> None:
        super().__init__(name, group, topic, partition)
        self._dice = random.Random(f"{seed}-{name}")

    def act(self) -> None:
        is_free = self.wire is not None and self.asked is None and self.place is Place.INSIDE
        if is_free and not self._dice.randrange(self.REJOINS_ONE_IN):
            self.place = Place.OUTSIDE
        super().act()
