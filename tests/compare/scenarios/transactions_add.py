"""AddPartitionsToTxn and AddOffsetsToTxn: what a transaction covers."""

from collections.abc import Mapping, Sequence

from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.names import OFFSETS_TOPIC, ProducerId, TopicName
from tests.compare.client import Client
from tests.compare.scenarios.transactions_init import STRANGE_PID
from tests.compare.script import Script, scenario


def transaction_of(
    client: Client,
    topics: Mapping[str, Sequence[int]],
    *,
    txn: str | None = None,
    pid: int | None = None,
    epoch: int | None = None,
    verify: bool = False,
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        client.script.group if txn is None else txn,
        client.producer_id if pid is None else ProducerId(pid),
        client.producer_epoch if epoch is None else epoch,
        verify,
        [AddPartitionsToTxnTopic(TopicName(name), indexes) for name, indexes in topics.items()],
    )


def add_all(client: Client, *added: AddPartitionsToTxnTransaction, version: int = 5) -> None:
    client.ask(AddPartitionsToTxnRequest(transactions=added), version)


@scenario("transactions")
def partitions_are_added_in_every_version(script: Script) -> None:
    first, second = script.topic("one", partitions=3), script.topic("two")
    a = script.client("a")
    a.init()
    for version in range(4):
        a.add({first: [0], second: [0]}, version=version)
        a.add({first: [0]}, version=version)
        a.add({first: [1, 2]}, version=version)
        a.describe_txn()
        a.commit_txn(version=3)
        a.describe_txn()


@scenario("transactions")
def a_partition_is_added_twice_in_one_request(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.add({topic: [1, 0, 1]})
    a.describe_txn()


@scenario("transactions")
def partitions_are_added_to_what_there_is(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    nowhere = f"{script.name}.nowhere"
    for version in range(4):
        a.add({topic: [0], nowhere: [0]}, version=version)
        a.add({topic: [0, 7]}, version=version)
        a.add({topic: [0], OFFSETS_TOPIC: [0]}, version=version)
        a.add({topic: [0], "__transaction_state": [0], nowhere: [1]}, version=version)
        a.add({topic: [-1], "": [0], "not/a/name": [0]}, version=version)
    a.describe_txn()


@scenario("transactions")
def partitions_are_added_by_the_producer_of_the_id(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for version in range(4):
        a.add({topic: [0]}, txn="", version=version)
        a.add({topic: [0]}, txn=f"{script.name}.unknown", version=version)
        a.add({topic: [0]}, pid=STRANGE_PID, version=version)
        a.add({topic: [0]}, pid=-1, version=version)
        a.add({topic: [0]}, epoch=1, version=version)
        a.add({topic: [0]}, epoch=-1, version=version)
        a.add({topic: [0]}, pid=STRANGE_PID, epoch=9, version=version)
    a.describe_txn()
    a.add({topic: [0]})
    for version in range(4):
        a.add({topic: [0]}, pid=STRANGE_PID, version=version)
        a.add({topic: [0]}, epoch=1, version=version)
    a.describe_txn()


@scenario("transactions")
def a_transaction_may_have_no_partitions(script: Script) -> None:
    a = script.client("a")
    a.add({})
    a.init()
    a.add({})
    a.describe_txn()
    a.add({}, epoch=5)
    a.commit_txn(version=3)
    a.describe_txn()
    a.add({}, version=0)
    a.describe_txn()
    a.abort_txn()
    a.describe_txn()


@scenario("transactions")
def partitions_are_added_after_each_end(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for is_commit in (True, False):
        for version in (3, 5):
            a.add({topic: [0]})
            a.add({topic: [1]})
            a.describe_txn()
            a.end(is_commit, version=version)
            a.describe_txn()
            a.describe_producers({topic: [0, 1]})


@scenario("transactions")
def brokers_verify_partitions(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for version in (4, 5):
        for txn in (None, f"{script.name}.unknown"):
            add_all(a, transaction_of(a, {topic: [0, 1]}, txn=txn, verify=True), version=version)
    a.describe_txn()
    a.add({topic: [1]})
    for version in (4, 5):
        add_all(a, transaction_of(a, {topic: [0, 1]}, verify=True), version=version)
        add_all(a, transaction_of(a, {topic: [1]}, pid=STRANGE_PID, verify=True), version=version)
        for epoch in (1, -1):
            add_all(a, transaction_of(a, {topic: [1]}, epoch=epoch, verify=True), version=version)
    a.describe_txn()
    a.abort_txn()
    add_all(a, transaction_of(a, {topic: [1]}, verify=True))


@scenario("transactions")
def brokers_add_partitions(script: Script) -> None:
    topic = script.topic(partitions=3)
    a, b = script.clients("a", "b")
    a.init()
    b.init(txn=f"{script.name}.b")
    of_b = transaction_of(b, {topic: [1, 2]}, txn=f"{script.name}.b")
    add_all(a, transaction_of(a, {topic: [0]}), of_b)
    a.describe_txn(script.name, f"{script.name}.b")
    add_all(a, transaction_of(a, {topic: [0]}, epoch=9), of_b, version=4)
    add_all(a, transaction_of(a, {topic: [0]}, txn=""), of_b)
    add_all(a, transaction_of(a, {topic: [0]}, pid=STRANGE_PID))
    add_all(a, transaction_of(a, {f"{script.name}.nowhere": [0], topic: [0]}))
    add_all(a, transaction_of(a, {}), version=4)
    a.describe_txn(script.name, f"{script.name}.b")
    a.commit_txn()
    b.abort_txn(txn=f"{script.name}.b")


@scenario("transactions")
def offsets_are_added_in_every_version(script: Script) -> None:
    a = script.client("a")
    a.init()
    for version in range(5):
        a.add_offsets(version=version)
        a.add_offsets(version=version)
        a.describe_txn()
        a.commit_txn(version=3)


@scenario("transactions")
def offsets_are_added_by_the_producer_of_the_id(script: Script) -> None:
    a = script.client("a")
    a.init()
    for version in range(5):
        a.add_offsets(txn="", version=version)
        a.add_offsets(txn=f"{script.name}.unknown", version=version)
        a.add_offsets(pid=STRANGE_PID, version=version)
        a.add_offsets(epoch=1, version=version)
        a.add_offsets(epoch=-1, version=version)
    a.describe_txn()
    a.add_offsets(group_id="")
    a.abort_txn()
