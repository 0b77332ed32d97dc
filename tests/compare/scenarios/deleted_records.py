"""Deleted records: what DeleteRecords takes away, and what Fetch and ListOffsets say of it."""

from collections.abc import Mapping

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.names import OFFSETS_TOPIC, TopicName
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.script import Script, scenario


def delete_records(
    client: Client, topics: Mapping[str, Mapping[int, int]], version: int = 2
) -> None:
    named = [
        DeleteRecordsTopic(
            TopicName(name), [DeleteRecordsPartition(index, at) for index, at in of_topic.items()]
        )
        for name, of_topic in topics.items()
    ]
    client.ask(DeleteRecordsRequest(named, 10_000), version)


def written(script: Script, client: Client, partitions: int = 1, **configs: str) -> str:
    """A topic with four records in each partition."""
    topic = script.topic("t" + "".join(configs), partitions, **configs)
    for partition in range(partitions):
        for value in (b"1", b"2"):
            client.ask_produce({topic: {partition: a_batch(value, value, key=b"k")}})
    return topic


@scenario()
def records_are_deleted_up_to_an_offset(script: Script) -> None:
    a = script.client("a")
    topic = written(script, a, partitions=3)
    for version in range(3):
        delete_records(a, {topic: {0: 1 + version}}, version)
        a.read(topic, 1 + version)
        a.read(topic, version)
        a.list_offset(topic, -2)
    delete_records(a, {topic: {0: 1, 1: -1, 2: 4}})
    delete_records(a, {topic: {0: 5, 1: -2, 2: -1}})
    delete_records(a, {topic: {0: 2**62}})
    for partition in range(3):
        a.list_offset(topic, -2, partition=partition)
        a.list_offset(topic, -1, partition=partition)
    a.ask_produce({topic: {1: a_batch(b"new")}})
    a.read(topic, 4, partition=1)


@scenario()
def records_are_deleted_where_they_may_be(script: Script) -> None:
    a = script.client("a")
    compacted = written(script, a, cleanup_policy="compact")
    both = written(script, a, cleanup_policy="compact,delete", retention_ms="-1")
    nowhere = f"{script.name}.nowhere"
    for version in range(3):
        delete_records(a, {nowhere: {0: 1}, compacted: {0: 1}, both: {0: 1, 9: 1}}, version)
    delete_records(a, {OFFSETS_TOPIC: {0: 1, 99: 1}})
    delete_records(a, {"": {0: 1}, "not/a/name": {0: 0}})
    delete_records(a, {})
    delete_records(a, {both: {}})
