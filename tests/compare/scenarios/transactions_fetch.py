"""Fetch and ListOffsets: isolation levels, the last stable offset, aborted transactions."""

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.names import TopicName
from tests.compare.batches import AT_MS, a_batch
from tests.compare.client import Client
from tests.compare.producer_client import READ_COMMITTED, READ_UNCOMMITTED
from tests.compare.script import Script, scenario


def transactional(script: Script, *names: str) -> list[Client]:
    """Producers of ids of their own."""
    clients = [script.client(name) for name in names]
    for client in clients:
        client.init(txn=f"{script.name}.{client.name}")
    return clients


def send(client: Client, topic: str, *values: bytes) -> None:
    client.send_records(topic, *values, txn=f"{client.script.group}.{client.name}")


def end(client: Client, commit: bool) -> None:
    client.end(commit, txn=f"{client.script.group}.{client.name}")


def delete_up_to(client: Client, topic: str, partition: int, offset: int) -> None:
    named = DeleteRecordsTopic(TopicName(topic), [DeleteRecordsPartition(partition, offset)])
    client.ask(DeleteRecordsRequest([named], 10_000), 2)


def read_all(client: Client, topic: str, offsets: range) -> None:
    for offset in offsets:
        client.read(topic, offset, isolation=READ_COMMITTED)
    client.read(topic, isolation=READ_UNCOMMITTED)


@scenario("transactions")
def an_open_transaction_is_invisible(script: Script) -> None:
    topic = script.topic()
    (a,) = transactional(script, "a")
    a.ask_produce({topic: {0: a_batch(b"plain", at_ms=script.given_ms)}})
    send(a, topic, b"1")
    send(a, topic, b"2", b"3")
    for version in range(4, 19):
        a.read(topic, version=version)
        a.read(topic, 1, version=version)
        a.read(topic, isolation=READ_UNCOMMITTED, version=version)
    a.ask_produce({topic: {0: a_batch(b"plain", at_ms=script.given_ms)}})
    for offset in range(7):
        a.read(topic, offset)
    end(a, commit=True)
    read_all(a, topic, range(8))


@scenario("transactions")
def aborted_transactions_are_listed(script: Script) -> None:
    topic = script.topic()
    (a,) = transactional(script, "a")
    for is_commit in (True, False, True, False):
        send(a, topic, b"1", b"2")
        end(a, is_commit)
    for version in (4, 11, 12, 13, 18):
        a.read(topic, version=version)
    read_all(a, topic, range(13))
    a.read(topic, isolation=9)


@scenario("transactions")
def transactions_of_many_producers_overlap(script: Script) -> None:
    topic = script.topic()
    a, b, c = transactional(script, "a", "b", "c")
    send(a, topic, b"a1")
    send(b, topic, b"b1")
    send(c, topic, b"c1")
    end(b, commit=False)
    read_all(a, topic, range(5))
    send(b, topic, b"b2")
    end(a, commit=False)
    read_all(a, topic, range(7))
    send(a, topic, b"a2")
    end(c, commit=True)
    read_all(a, topic, range(9))
    end(a, commit=False)
    end(b, commit=True)
    read_all(a, topic, range(12))
    a.describe_producers({topic: [0]})


@scenario("transactions")
def a_fetch_of_few_bytes_lists_what_it_returns(script: Script) -> None:
    topic = script.topic()
    a, b = transactional(script, "a", "b")
    send(a, topic, b"a1")
    send(b, topic, b"b1")
    end(a, commit=False)
    send(a, topic, b"a2")
    end(b, commit=False)
    end(a, commit=False)
    for offset in range(6):
        a.read(topic, offset, max_bytes=1)


@scenario("transactions")
def offsets_are_listed_by_isolation(script: Script) -> None:
    topic = script.topic()
    a, b = transactional(script, "a", "b")

    def show_offsets() -> None:
        for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
            for timestamp in (-1, -2, -3, 0, script.given_ms, script.given_ms + 10**9):
                a.list_offset(topic, timestamp, isolation=isolation, version=7)

    show_offsets()
    send(a, topic, b"1")
    show_offsets()
    a.ask_produce({topic: {0: a_batch(b"plain", at_ms=script.given_ms)}})
    send(b, topic, b"2")
    end(a, commit=True)
    show_offsets()
    for version in range(2, 12):
        a.list_offset(topic, version=version)
    end(b, commit=False)
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        for timestamp in (-1, -2, 0):
            a.list_offset(topic, timestamp, isolation=isolation)


@scenario("transactions")
def a_fetch_waits_for_the_end_of_a_transaction(script: Script) -> None:
    topic = script.topic()
    a, b = transactional(script, "a", "b")
    reader = script.client("reader")
    send(a, topic, b"1")
    request = reader.fetch_request({topic: {0: 0}})
    request.isolation_level, request.max_wait_ms, request.min_bytes = READ_COMMITTED, 60_000, 1
    reader.park(request, 12)
    send(b, topic, b"2")
    a.ask_produce({topic: {0: a_batch(b"plain", at_ms=script.given_ms)}})
    end(b, commit=True)
    end(a, commit=False)
    script.answers(reader)


@scenario("transactions")
def a_fetch_behind_the_last_stable_offset_waits_in_vain(script: Script) -> None:
    topic = script.topic()
    (a,) = transactional(script, "a")
    reader = script.client("reader")
    send(a, topic, b"1")
    for offset in (0, 1):
        request = reader.fetch_request({topic: {0: offset}})
        request.isolation_level, request.max_wait_ms, request.min_bytes = READ_COMMITTED, 300, 1
        reader.ask(request, 12)
    request = reader.fetch_request({topic: {0: 2}})
    request.isolation_level, request.max_wait_ms, request.min_bytes = READ_COMMITTED, 60_000, 1
    reader.ask(request, 12)


@scenario("transactions")
def deleted_records_end_no_transaction(script: Script) -> None:
    topic = script.topic()
    (a,) = transactional(script, "a")
    for number in range(3):
        send(a, topic, b"%d" % number)
    delete_up_to(a, topic, 0, 2)
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        a.read(topic, 2, isolation=isolation)
        a.list_offset(topic, isolation=isolation)
        a.list_offset(topic, -2, isolation=isolation)
    a.describe_producers({topic: [0]})
    end(a, commit=False)
    a.read(topic, 2)
    a.read(topic, 3)
    a.describe_producers({topic: [0]})


@scenario("transactions")
def a_marker_of_old_records_is_in_the_next_segment(script: Script) -> None:
    topic = script.topic(retention_ms="-1")
    a = script.client("a")
    a.init()
    a.send_records(topic, b"1", at_ms=AT_MS)
    a.send_records(topic, b"2", at_ms=AT_MS)
    a.abort_txn()
    a.send_records(topic, b"3")
    a.commit_txn()
    for offset in range(6):
        a.read(topic, offset)
