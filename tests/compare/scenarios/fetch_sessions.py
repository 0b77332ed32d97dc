"""Fetch sessions (KIP-227): a fetch that names only what has changed."""

from collections.abc import Mapping, Sequence

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.fetch import FetchResponse, ForgottenTopic
from protocol.names import TopicName
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.producer_client import BY_ID
from tests.compare.script import Script, scenario

NEW = 0
NONE = -1
"""The epochs of a fetch that is not incremental: with a new session, or with none."""

INT32_MAX = 2**31 - 1


def fetch(
    client: Client,
    offsets: Mapping[str, Mapping[int, int]],
    session: int,
    epoch: int,
    *,
    forget: Mapping[str, Sequence[int]] | None = None,
    version: int = 12,
    max_bytes: int = 1_000_000,
    wait_ms: int = 0,
) -> int:
    """One fetch; returns the session that the answer names."""
    request = client.fetch_request(offsets, version=version)
    request.session_id, request.session_epoch = session, epoch
    request.max_bytes, request.max_wait_ms = max_bytes, wait_ms
    request.min_bytes = 1 if wait_ms else 0
    request.forgotten_topics_data = [
        ForgottenTopic(
            TopicName("" if version >= BY_ID else topic),
            client.script.topic_id(topic) if version >= BY_ID else ForgottenTopic().topic_id,
            partitions,
        )
        for topic, partitions in (forget or {}).items()
    ]
    answer = client.ask(request, version)
    assert isinstance(answer, FetchResponse)
    return answer.session_id


def write(client: Client, topic: str, partition: int = 0, value: bytes = b"x") -> None:
    client.ask_produce({topic: {partition: a_batch(value)}})


@scenario()
def a_session_names_what_has_changed(script: Script) -> None:
    topic = script.topic(partitions=3)
    a, w = script.clients("a", "w")
    all_of_it = {topic: {0: 0, 1: 0, 2: 0}}
    session = fetch(a, all_of_it, 0, NEW)
    fetch(a, {}, session, 1)
    write(w, topic, 1)
    fetch(a, {}, session, 2)
    fetch(a, {}, session, 3)
    fetch(a, {topic: {1: 1}}, session, 4)
    fetch(a, {}, session, 5)
    write(w, topic, 0)
    write(w, topic, 2)
    fetch(a, {topic: {1: 0}}, session, 6)
    fetch(a, {topic: {0: 1, 1: 1, 2: 1}}, session, 7)
    fetch(a, {}, session, 8)


@scenario()
def sessions_are_in_every_version(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    write(a, topic)
    for version in range(4, 7):
        a.ask(a.fetch_request({topic: {0: 0}}, version=version), version)
    for version in range(7, 19):
        session = fetch(a, {topic: {0: 0, 1: 0}}, 0, NEW, version=version)
        fetch(a, {}, session, 1, version=version)
        fetch(a, {topic: {0: 1}}, session, 2, version=version)
        fetch(a, {}, session, 3, forget={topic: [0]}, version=version)
        fetch(a, {}, session, NONE, version=version)


@scenario()
def a_fetch_without_a_session(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    write(a, topic)
    fetch(a, {topic: {0: 0}}, 0, NONE)
    fetch(a, {topic: {0: 0}}, 5, NONE)
    fetch(a, {}, 0, NEW)
    fetch(a, {}, 0, NONE)
    session = fetch(a, {topic: {0: 0}}, 0, NEW)
    fetch(a, {topic: {0: 0}}, session, NONE)
    fetch(a, {}, session, 1)
    session = fetch(a, {topic: {0: 0}}, 0, NEW)
    second = fetch(a, {topic: {0: 1}}, session, NEW)
    fetch(a, {}, session, 1)
    fetch(a, {}, second, 1)


@scenario()
def a_session_counts_its_requests(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    write(a, topic)
    session = fetch(a, {topic: {0: 0}}, 0, NEW)
    for epoch in (0 + 2, 5, INT32_MAX):
        fetch(a, {}, session, epoch)
    fetch(a, {}, session, 1)
    fetch(a, {}, session, 1)
    fetch(b, {}, session, 2)
    fetch(a, {}, session, 3)
    for unknown in (0, 5, -5, 2**30):
        fetch(a, {topic: {0: 0}}, unknown, 1)
    fetch(a, {}, session, -2)
    fetch(a, {}, session, 4)


@scenario()
def a_session_forgets_partitions(script: Script) -> None:
    topic, other = script.topic(partitions=3), script.topic("other")
    a = script.client("a")
    for partition in range(3):
        write(a, topic, partition)
    session = fetch(a, {topic: {0: 0, 1: 0, 2: 0}, other: {0: 0}}, 0, NEW)
    fetch(a, {}, session, 1, forget={topic: [1]})
    fetch(a, {topic: {1: 0}}, session, 2, forget={topic: [0, 7], f"{script.name}.nowhere": [0]})
    fetch(a, {topic: {2: 1}}, session, 3, forget={topic: [2]})
    fetch(a, {}, session, 4)
    fetch(a, {}, session, 5, forget={topic: [1], other: [0]})
    fetch(a, {}, session, 6, forget={topic: [0, 1, 2]})
    fetch(a, {}, session, 7)
    session = fetch(a, {topic: {0: 0}}, 0, NEW)
    fetch(a, {}, session, 1, forget={topic: [0]})
    fetch(a, {}, session, 2)


@scenario()
def a_session_has_errors_each_time(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    write(a, topic)
    nowhere = f"{script.name}.nowhere"
    session = fetch(a, {topic: {0: 1, 9: 0}, nowhere: {0: 0}}, 0, NEW)
    fetch(a, {}, session, 1)
    fetch(a, {topic: {0: 5}}, session, 2)
    fetch(a, {}, session, 3)
    fetch(a, {topic: {0: 1}}, session, 4)
    fetch(a, {}, session, 5)
    fetch(a, {topic: {0: -1}}, session, 6)


@scenario()
def a_session_is_of_names_or_of_ids(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    write(a, topic)
    named = fetch(a, {topic: {0: 0}}, 0, NEW, version=12)
    by_id = fetch(a, {topic: {0: 0}}, 0, NEW, version=13)
    fetch(a, {}, named, 1, version=13)
    fetch(a, {topic: {0: 0}}, named, 1, version=13)
    fetch(a, {}, by_id, 1, version=12)
    fetch(a, {topic: {0: 0}}, by_id, 1, version=12)
    fetch(a, {}, named, 1, version=7)
    fetch(a, {}, by_id, 1, version=18)


@scenario()
def a_session_has_the_start_of_a_log(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for value in (b"1", b"2", b"3"):
        write(a, topic, value=value)
    session = fetch(a, {topic: {0: 3}}, 0, NEW)
    fetch(a, {}, session, 1)
    partition = DeleteRecordsPartition(0, 2)
    a.ask(DeleteRecordsRequest([DeleteRecordsTopic(TopicName(topic), [partition])], 10_000), 2)
    fetch(a, {}, session, 2)
    fetch(a, {}, session, 3)


@scenario()
def a_session_gives_each_partition_its_turn(script: Script) -> None:
    topic = script.topic(partitions=3)
    a = script.client("a")
    for partition in range(3):
        for number in range(3):
            write(a, topic, partition, b"%d-%d" % (partition, number))
    session = fetch(a, {topic: {0: 0, 1: 0, 2: 0}}, 0, NEW, max_bytes=1)
    for epoch in range(1, 6):
        fetch(a, {}, session, epoch, max_bytes=1)
    fetch(a, {topic: {1: 1}}, session, 6, max_bytes=1)
    fetch(a, {}, session, 7, max_bytes=1)


@scenario()
def a_topic_of_a_session_is_deleted(script: Script) -> None:
    topic, gone = script.topic(), script.topic("gone")
    a = script.client("a")
    write(a, topic)
    named = fetch(a, {topic: {0: 1}, gone: {0: 0}}, 0, NEW)
    by_id = fetch(a, {topic: {0: 1}, gone: {0: 0}}, 0, NEW, version=16)
    a.ask(DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000), 5)
    script.until_no_topic(gone)
    for epoch in (1, 2):
        fetch(a, {}, named, epoch)
        fetch(a, {}, by_id, epoch, version=16)


@scenario()
def a_session_waits_for_records(script: Script) -> None:
    topic = script.topic(partitions=2)
    a, w = script.clients("a", "w")
    session = fetch(a, {topic: {0: 0, 1: 0}}, 0, NEW, wait_ms=100)
    fetch(a, {}, session, 1, wait_ms=100)
    request = a.fetch_request({})
    request.session_id, request.session_epoch = session, 2
    request.max_wait_ms, request.min_bytes = 60_000, 1
    a.park(request, 12)
    write(w, topic, 1)
    script.answers(a)
    fetch(a, {topic: {1: 1}}, session, 3)
    fetch(a, {}, session, 4)
