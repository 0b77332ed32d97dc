"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch: enough of a log for groups to work on."""

from uuid import UUID

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.names import OFFSETS_TOPIC, ErrorCode, ProducerId, TopicId, TopicName
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.script import Script, scenario

STRANGE_ID = UUID("11111111-2222-4333-8444-555555555555")
NO_ID = UUID(int=0)


def produce(
    client: Client,
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    topic_id: TopicId = NO_ID,
    version: int = 12,
) -> None:
    data = PartitionProduceData(partition, records)
    named = TopicProduceData(TopicName(topic), topic_id, [data])
    client.ask(ProduceRequest(None, acks, 10_000, [named]), version)


def fetch(
    client: Client,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    topic_id: TopicId = NO_ID,
    leader_epoch: int = -1,
    max_bytes: int = 1_000_000,
    partition_max_bytes: int = 1_000_000,
    version: int = 12,
) -> None:
    asked = FetchPartition(partition, leader_epoch, offset, partition_max_bytes=partition_max_bytes)
    client.ask(
        FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            topics=[FetchTopic(TopicName(topic), topic_id, [asked])],
        ),
        version,
    )


def list_offsets(
    client: Client,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    leader_epoch: int = -1,
    isolation: int = 0,
    version: int = 11,
) -> None:
    asked = ListOffsetsPartition(partition, leader_epoch, timestamp)
    named = ListOffsetsTopic(TopicName(topic), [asked])
    client.ask(ListOffsetsRequest(-1, isolation, [named], 10_000), version)


@scenario()
def records_are_produced_in_every_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in range(3, 13):
        produce(a, topic, a_batch(b"one", b"two"), version=version)
    produce(a, "", a_batch(b"three"), topic_id=script.topic_id(topic), version=13)
    produce(a, topic, a_batch(b"four"), acks=1)
    fetch(a, topic, 20)


@scenario()
def records_that_nobody_waits_for_are_not_answered(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.say_unanswered(
        ProduceRequest(
            None, 0, 10_000, [TopicProduceData(topic, NO_ID, [PartitionProduceData(0, a_batch())])]
        ),
        9,
    )
    list_offsets(a, topic, -1)


@scenario()
def records_go_only_where_there_is_a_partition(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in (3, 8, 9, 12):
        produce(a, f"{script.group}.nowhere", a_batch(b"x"), version=version)
        produce(a, topic, a_batch(b"x"), partition=9, version=version)
    produce(a, "", a_batch(b"x"), topic_id=STRANGE_ID, version=13)
    produce(a, "", a_batch(b"x"), version=13)
    produce(a, "not/a/name", a_batch(b"x"))
    produce(a, OFFSETS_TOPIC, a_batch(b"x"))


@scenario()
def records_must_be_sound(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    good = a_batch(b"some value")
    bad_crc = good[:-1] + bytes([good[-1] ^ 1])
    old_magic = good[:16] + b"\x01" + good[17:]
    for version in (3, 9, 12):
        produce(a, topic, bad_crc, version=version)
        produce(a, topic, b"", version=version)
        produce(a, topic, good, acks=2, version=version)
    produce(a, topic, good[:-3])
    produce(a, topic, good + b"abc")
    produce(a, topic, good + good)
    produce(a, topic, old_magic)
    list_offsets(a, topic, -1)


@scenario()
def a_compacted_topic_takes_records_with_keys_only(script: Script) -> None:
    topic = script.topic(cleanup_policy="compact")
    a = script.client("a")
    produce(a, topic, a_batch(b"x"))
    produce(a, topic, a_batch(b"x", key=b"k"))
    produce(a, topic, a_batch(b"x"), version=7)


@scenario()
def records_are_limited_in_size(script: Script) -> None:
    topic = script.topic(max_message_bytes="200")
    a = script.client("a")
    produce(a, topic, a_batch(b"x" * 300))
    produce(a, topic, a_batch(b"x" * 100))


@scenario()
def a_topic_asks_for_more_replicas_than_there_are(script: Script) -> None:
    a = script.client("a")
    topic = script.topic(min_insync_replicas="2")
    for acks in (-1, 1):
        produce(a, topic, a_batch(b"x"), acks=acks)
        produce(a, topic, a_batch(b"x"), acks=acks, version=3)


@scenario()
def records_are_fetched_in_every_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    produce(a, topic, a_batch(b"one", b"two"))
    produce(a, topic, a_batch(b"three"))
    for version in range(4, 13):
        fetch(a, topic, 0, version=version)
        fetch(a, topic, 3, version=version)
    for version in range(13, 19):
        fetch(a, "", 1, topic_id=script.topic_id(topic), version=version)
        fetch(a, "", 3, topic_id=script.topic_id(topic), version=version)


@scenario()
def a_fetch_may_ask_for_what_is_not_there(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    produce(a, topic, a_batch(b"one", b"two"))
    for version in (4, 11, 12):
        fetch(a, topic, 3, version=version)
        fetch(a, topic, -1, version=version)
        fetch(a, topic, 0, partition=9, version=version)
        fetch(a, f"{script.group}.nowhere", 0, version=version)
    fetch(a, "", 0, topic_id=STRANGE_ID, version=13)
    fetch(a, "", 0, version=13)
    fetch(a, "", 0, topic_id=script.topic_id(topic), partition=9, version=13)
    fetch(a, topic, 0, leader_epoch=0)
    fetch(a, topic, 0, leader_epoch=9)
    a.ask(FetchRequest(max_wait_ms=0), 12)


@scenario()
def a_fetch_limits_its_bytes(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for value in (b"one", b"two", b"three"):
        produce(a, topic, a_batch(value))
    fetch(a, topic, 0, max_bytes=1)
    fetch(a, topic, 1, partition_max_bytes=1)
    fetch(a, topic, 0, partition_max_bytes=150)
    fetch(a, topic, 0, max_bytes=150)


@scenario()
def offsets_are_listed_in_every_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    produce(a, topic, a_batch(b"one", b"two", at_ms=1_000))
    produce(a, topic, a_batch(b"three", at_ms=5_000))
    for version in range(1, 12):
        for timestamp in (-1, -2, 0, 1_000, 1_001, 5_000, 5_001):
            list_offsets(a, topic, timestamp, version=version)
    for version in (7, 8, 11):
        list_offsets(a, topic, -3, version=version)


@scenario()
def offsets_of_what_is_not_there(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for timestamp in (-1, -2, -3, 0, 5):
        list_offsets(a, topic, timestamp)
    for version in (1, 4, 11):
        list_offsets(a, topic, -1, partition=9, version=version)
        list_offsets(a, f"{script.group}.nowhere", -1, version=version)
    list_offsets(a, topic, -1, leader_epoch=0)
    list_offsets(a, topic, -1, leader_epoch=9)
    list_offsets(a, topic, -1, isolation=1)
    for strange in (-3, -4, -5, -6, -7):
        list_offsets(a, topic, strange, version=6)
        list_offsets(a, topic, strange, version=11)
    twice = [ListOffsetsPartition(0, -1, -1), ListOffsetsPartition(0, -1, -2)]
    a.ask(ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, twice)]), 6)


@scenario()
def the_end_of_an_epoch_is_told(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    produce(a, topic, a_batch(b"one", b"two"))
    for version in range(2, 5):
        for current, asked in ((-1, 0), (0, 0), (9, 0), (-1, 5), (-1, -1)):
            partition = OffsetForLeaderPartition(0, current, asked)
            named = (OffsetForLeaderTopic(topic, (partition,)),)
            a.ask(OffsetForLeaderEpochRequest(-1, named), version)
    nowhere = (
        OffsetForLeaderTopic(TopicName(f"{topic}.x"), (OffsetForLeaderPartition(0, -1, 0),)),
    )
    a.ask(OffsetForLeaderEpochRequest(-1, nowhere), 4)


@scenario()
def a_producer_is_given_an_id(script: Script) -> None:
    a = script.client("a")
    script.until("producer ids are at hand", lambda: has_producer_ids(script))
    for version in range(6):
        a.ask(InitProducerIdRequest(None, 60_000), version)
    a.ask(InitProducerIdRequest(None, -1), 5)
    a.ask(InitProducerIdRequest("", 60_000), 5)
    a.ask(InitProducerIdRequest(None, 60_000, ProducerId(5), 3), 5)


def has_producer_ids(script: Script) -> bool:
    """A fresh Kafka has to ask its controller for a block of them first."""
    answer = script.ask_aside(InitProducerIdRequest(None, 60_000), 4, InitProducerIdResponse)
    return answer.error_code is ErrorCode.NONE
