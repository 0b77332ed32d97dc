"""InitProducerId: the id and epoch of a transactional producer, its retries, and fencing."""

from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.names import CoordinatorType
from tests.compare.client import Client
from tests.compare.script import Script, scenario

INT16_MAX = 32767
STRANGE_PID = 4_000_000
"""A producer id that no broker has given."""


def try_old_producer(client: Client, topic: str) -> None:
    """What a producer hears that is no longer the newest one of its id."""
    for version in range(4):
        client.add({topic: [0]}, version=version)
    for version in range(5):
        client.add_offsets(version=version)
    for version in range(6):
        client.commit_txn(version=version)
        client.abort_txn(version=version)
    for version in (9, 11, 12):
        client.send_records(topic, version=version)
    for version in (3, 4, 5):
        client.commit_in_txn({topic: {0: 1}}, version=version)
    for version in (3, 4, 5):
        client.init_again(version=version)


@scenario("transactions")
def a_transactional_id_has_a_coordinator(script: Script) -> None:
    a = script.client("a")
    for version in range(1, 7):
        request = FindCoordinatorRequest(key_type=CoordinatorType.TRANSACTION)
        if version < 4:
            request.key = script.name
        else:
            request.coordinator_keys = [script.name, "", "another"]
        a.ask(request, version)
    a.ask(FindCoordinatorRequest("", key_type=CoordinatorType.TRANSACTION), 3)


@scenario("transactions")
def a_producer_starts_in_every_version(script: Script) -> None:
    a = script.client("a")
    for version in range(6):
        a.init(version=version)
        a.describe_txn()
    for version in (3, 4, 5):
        a.init_again(version=version)


@scenario("transactions")
def every_transactional_id_has_its_producer(script: Script) -> None:
    a, b = script.clients("a", "b")
    a.init(txn=f"{script.name}.1")
    b.init(txn=f"{script.name}.2")
    a.init(txn=f"{script.name}.1")
    b.init_idempotent()
    a.describe_txn(f"{script.name}.1", f"{script.name}.2")


@scenario("transactions")
def a_producer_that_goes_on_has_the_next_epoch(script: Script) -> None:
    a = script.client("a")
    a.init()
    a.init_again()
    a.init_again(epoch=0)
    a.init_again(epoch=0)
    a.init_again(epoch=1)
    a.init_again(epoch=0, version=3)
    a.init_again(epoch=0, version=4)
    a.init_again(epoch=0, version=5)
    a.init_again(epoch=1)
    a.init()
    a.init_again(epoch=2)
    a.describe_txn()


@scenario("transactions")
def a_producer_must_know_its_id_and_epoch(script: Script) -> None:
    a = script.client("a")
    a.init()
    pid = a.producer_id
    for version in (3, 4, 5):
        a.init(pid=STRANGE_PID, epoch=0, version=version)
        a.init(pid=pid, epoch=5, version=version)
        a.init(pid=pid, epoch=-1, version=version)
        a.init(pid=-1, epoch=0, version=version)
        a.init(pid=pid, epoch=INT16_MAX, version=version)
        a.init(pid=pid, epoch=INT16_MAX - 1, version=version)
        a.init(pid=-2, epoch=0, version=version)
        a.init(pid=pid, epoch=-2, version=version)
    a.describe_txn()


@scenario("transactions")
def an_unknown_transactional_id_takes_no_epoch(script: Script) -> None:
    a = script.client("a")
    a.init(pid=STRANGE_PID, epoch=7)
    a.init(txn=f"{script.name}.2", pid=STRANGE_PID + 1, epoch=INT16_MAX - 1)
    a.describe_txn(script.name, f"{script.name}.2")


@scenario("transactions")
def the_timeout_of_transactions_is_limited(script: Script) -> None:
    a = script.client("a")
    for timeout_ms in (0, -1, 900_001, 2**31 - 1, -(2**31)):
        a.init(timeout_ms=timeout_ms)
    a.describe_txn()
    for timeout_ms in (1, 900_000):
        a.init(timeout_ms=timeout_ms)
        a.describe_txn()
    a.init_again(timeout_ms=900_001)
    a.init_again(timeout_ms=5000)
    a.describe_txn()


@scenario("transactions")
def an_empty_transactional_id_is_none(script: Script) -> None:
    a = script.client("a")
    for version in range(6):
        a.init(txn="", version=version)
    a.init(txn="", timeout_ms=0)
    a.init(txn="", pid=1)


@scenario("transactions")
def a_new_producer_fences_an_idle_one(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init()
    b.init()
    try_old_producer(a, topic)
    b.send_records(topic)
    b.commit_txn()
    b.read(topic)


@scenario("transactions")
def a_new_producer_aborts_the_transaction_of_the_old_one(script: Script) -> None:
    topic = script.topic(partitions=2)
    a, b = script.clients("a", "b")
    a.init()
    a.send_records(topic, b"old")
    b.init()
    b.describe_txn()
    b.read(topic)
    b.read(topic, isolation=0)
    b.describe_producers({topic: [0, 1]})
    b.init()
    b.send_records(topic, b"new")
    try_old_producer(a, topic)
    b.commit_txn()
    b.read(topic)
    b.describe_txn()


@scenario("transactions")
def a_new_producer_aborts_a_transaction_of_the_first_version(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init(version=1)
    a.add({topic: [0]}, version=1)
    a.send_records(topic, b"old", version=9)
    b.init(version=1)
    b.init(version=1)
    b.add({topic: [0]}, version=1)
    b.send_records(topic, b"new", version=9)
    b.abort_txn(version=1)
    b.read(topic)
    b.read(topic, isolation=0)
    b.describe_producers({topic: [0]})


@scenario("transactions")
def a_producer_that_goes_on_aborts_its_own_transaction(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    a.init_again()
    a.describe_txn()
    a.init_again()
    a.describe_txn()
    a.send_records(topic)
    a.commit_txn()
    a.read(topic)


@scenario("transactions")
def a_producer_that_goes_on_aborts_an_empty_transaction(script: Script) -> None:
    a = script.client("a")
    a.init(version=3)
    a.add({})
    a.describe_txn()
    a.init_again(version=3)
    a.describe_txn()
    a.init_again(version=3)
    a.init(version=3)


@scenario("transactions")
def a_producer_that_was_fenced_in_a_transaction_does_not_go_on(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init()
    a.send_records(topic)
    b.init()
    b.init()
    a.init_again(version=3)
    a.init_again(version=4)
    a.init_again(epoch=1)
    b.init_again()


@scenario("transactions")
def a_producer_goes_on_after_each_end(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in (4, 5):
        for is_commit in (True, False):
            a.init()
            a.add({topic: [0]})
            a.end(is_commit, version=version)
            a.init_again()
            a.describe_txn()
