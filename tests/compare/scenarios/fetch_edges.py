"""Fetch at its edges: odd epochs, offsets, limits, isolation levels, partitions named twice."""

from collections.abc import Sequence

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.names import TopicName
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.script import Script, scenario

MEBIBYTE = 1 << 20


def fetch(
    client: Client,
    topic: str,
    partitions: Sequence[FetchPartition],
    *,
    isolation: int = 0,
    max_bytes: int = MEBIBYTE,
    replica_id: int = -1,
    version: int = 12,
) -> None:
    """One fetch that does not wait."""
    request = FetchRequest(
        replica_id=replica_id,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(TopicName(topic), partitions=partitions)],
    )
    client.ask(request, version)


def at(
    offset: int,
    *,
    index: int = 0,
    leader_epoch: int = -1,
    last_epoch: int = -1,
    max_bytes: int = MEBIBYTE,
) -> FetchPartition:
    return FetchPartition(index, leader_epoch, offset, last_epoch, partition_max_bytes=max_bytes)


def topic_of_three(script: Script, client: Client) -> str:
    topic = script.topic(partitions=2)
    for _ in range(3):
        client.ask_produce({topic: {0: a_batch(b"x")}})
    return topic


@scenario()
def every_negative_epoch_of_a_fetch_is_none(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    for epoch in (0, -1, -2, -(2**31)):
        fetch(a, topic, [at(2, leader_epoch=epoch)])
        fetch(a, topic, [at(2, last_epoch=epoch)])
        fetch(a, topic, [at(3, last_epoch=epoch)])


@scenario()
def offsets_outside_the_log(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    for offset in (-1, -2, 3, 4, 2**62):
        fetch(a, topic, [at(offset)])
        fetch(a, topic, [at(offset, last_epoch=0)])


@scenario()
def an_unknown_isolation_level(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    for level in (0, 1, 2, -1):
        for version in (4, 12):
            fetch(a, topic, [at(3), at(0, index=1)], isolation=level, version=version)
        asked = ListOffsetsTopic(TopicName(topic), [ListOffsetsPartition(0, timestamp=-1)])
        a.ask(ListOffsetsRequest(-1, level, [asked]), 8)


@scenario()
def limits_of_nothing(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    fetch(a, topic, [at(0, max_bytes=0)])
    fetch(a, topic, [at(0), at(0, index=1)], max_bytes=0)
    fetch(a, topic, [at(1, max_bytes=1), at(0, index=1)])


@scenario()
def a_partition_that_is_named_twice(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    fetch(a, topic, [at(0), at(0, index=1), at(9)])
    fetch(a, topic, [at(9), at(2)])


@scenario()
def partitions_that_nobody_has(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    fetch(a, topic, [at(0, index=-1), at(0, index=7), at(3)])
    fetch(a, "", [at(0)])
    fetch(a, "not/a/name", [at(0)])
    fetch(a, topic, [])


@scenario()
def replicas_that_are_no_brokers(script: Script) -> None:
    a = script.client("a")
    topic = topic_of_three(script, a)
    for replica_id in (-1, -2, -3):
        fetch(a, topic, [at(2)], replica_id=replica_id)
