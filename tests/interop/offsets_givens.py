"""A past for `__consumer_offsets`: commits by hand over one socket, and groups of real members."""

from confluent_kafka import Consumer

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
from protocol.names import ErrorCode, GenerationId, GroupId, TopicName
from tests.compare.wire import Wire

NOTE = "x" * 3_000
"""Metadata of almost the size that is allowed: logs grow, and roll, with few commits."""


def commit_by_hand(
    port: int, group: str, topic: str, offsets: range, *, partitions: int = 10, version: int = 9
) -> None:
    """One request for each offset, for all partitions; as a simple consumer, without a group."""
    wire = Wire(port, "by-hand")
    try:
        for offset in offsets:
            committed = [
                OffsetCommitRequestPartition(
                    partition,
                    offset,
                    committed_leader_epoch=0,
                    committed_metadata=f"at {offset} " + NOTE,
                )
                for partition in range(partitions)
            ]
            topics = (OffsetCommitRequestTopic(TopicName(topic), partitions=committed),)
            request = OffsetCommitRequest(GroupId(group), GenerationId(-1), topics=topics)
            wire.send(request, version)
            answer = wire.receive(OffsetCommitResponse, version)
            assert isinstance(answer, OffsetCommitResponse)
            assert {
                partition.error_code for each in answer.topics for partition in each.partitions
            } == {ErrorCode.NONE}
    finally:
        wire.close()


def fetch_by_hand(port: int, group: str, topic: str, partition: int) -> tuple[int, str | None]:
    """(offset, metadata) of one partition."""
    wire = Wire(port, "by-hand")
    try:
        topics = (OffsetFetchRequestTopic(TopicName(topic), (partition,)),)
        wire.send(OffsetFetchRequest(GroupId(group), topics), 5)
        answer = wire.receive(OffsetFetchResponse, 5)
        assert isinstance(answer, OffsetFetchResponse)
        assert answer.error_code is ErrorCode.NONE
        (found,) = answer.topics[0].partitions
        assert found.error_code is ErrorCode.NONE
        return found.committed_offset, found.metadata
    finally:
        wire.close()


def consume_all(
    bootstrap: str, group: str, topic: str, messages: int, *, instance: str | None = None
) -> None:
    """A member that reads everything, commits now and then, and leaves."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": f"{group}-app",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    read = 0
    while read < messages:
        message = consumer.poll(60)
        assert message is not None, f"{read} of {messages} were read"
        assert message.error() is None, message.error()
        read += 1
        if not read % 10:
            consumer.commit(asynchronous=False)
    consumer.close()
