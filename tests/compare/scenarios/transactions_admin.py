"""Transactions of administrators: described, listed, and ended by markers."""

from collections.abc import Sequence

from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from protocol.names import OFFSETS_TOPIC, ProducerId, TopicName
from tests.compare.client import Client
from tests.compare.scenarios.transactions_init import STRANGE_PID
from tests.compare.script import Script, scenario


def listed(
    client: Client,
    *,
    states: Sequence[str] = (),
    pids: Sequence[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
    version: int = 2,
) -> None:
    request = ListTransactionsRequest(list(states), [ProducerId(pid) for pid in pids])
    if version >= 1:
        request.duration_filter = longer_than_ms
    if version >= 2:
        request.transactional_id_pattern = pattern
    client.ask(request, version)


def mark(
    client: Client,
    topic: str,
    *partitions: int,
    pid: int | None = None,
    epoch: int | None = None,
    is_commit: bool = False,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> None:
    marker = WritableTxnMarker(
        client.producer_id if pid is None else ProducerId(pid),
        client.producer_epoch if epoch is None else epoch,
        is_commit,
        [WritableTxnMarkerTopic(TopicName(topic), partitions)],
        coordinator_epoch,
    )
    if version >= 2:
        marker.transaction_version = transaction_version
    client.ask(WriteTxnMarkersRequest([marker]), version)


def in_four_states(script: Script) -> Client:
    """Transactional ids `~.empty`, `~.ongoing`, `~.commit` and `~.abort`."""
    topic = script.topic()
    a = script.client("a")
    for name in ("empty", "ongoing", "commit", "abort"):
        a.init(txn=f"{script.name}.{name}")
        if name != "empty":
            a.add({topic: [0]}, txn=f"{script.name}.{name}")
        if name in ("commit", "abort"):
            a.end(name == "commit", txn=f"{script.name}.{name}")
    return a


@scenario("transactions")
def transactions_are_described(script: Script) -> None:
    a = in_four_states(script)
    ids = [f"{script.name}.{name}" for name in ("empty", "ongoing", "commit", "abort", "none")]
    a.describe_txn(*ids)
    a.describe_txn("", ids[0], ids[0])
    a.ask(DescribeTransactionsRequest(()), 0)


@scenario("transactions")
def transactions_are_listed_by_state(script: Script) -> None:
    a = in_four_states(script)
    for version in range(3):
        listed(a, version=version)
    for states in (
        ["Ongoing"], ["Empty", "CompleteAbort"], ["PrepareCommit"], ["PrepareAbort"], ["Dead"],
        ["PrepareEpochFence"], ["ongoing"], ["nothing", "Ongoing"], [""], ["CompleteCommit"] * 2,
    ):  # fmt: skip
        listed(a, states=states)


@scenario("transactions")
def transactions_are_listed_by_producer(script: Script) -> None:
    a = in_four_states(script)
    for version in range(3):
        listed(a, pids=[a.producer_id], version=version)
    listed(a, pids=[STRANGE_PID])
    listed(a, pids=[STRANGE_PID, a.producer_id], states=["CompleteAbort"])
    listed(a, pids=[a.producer_id], states=["Ongoing"])
    listed(a, pids=[-1])


@scenario("transactions")
def transactions_are_listed_by_duration(script: Script) -> None:
    a = in_four_states(script)
    script.pause_ms(5)
    for version in (1, 2):
        for longer_than_ms in (0, 3_600_000, -1, -5, 2**63 - 1):
            listed(a, longer_than_ms=longer_than_ms, version=version)
    listed(a, longer_than_ms=0, states=["Empty"])


@scenario("transactions")
def transactions_are_listed_by_pattern(script: Script) -> None:
    a = in_four_states(script)
    for pattern in (
        ".*", "", f"{script.name}.empty", f"{script.name}", ".*o.*", ".*\\.(empty|abort)",
        "(?i).*EMPTY", "[", "*", ".*(?!commit)", "\\Q" + script.name + "\\E.*", ".*\\p{Lower}",
    ):  # fmt: skip
        listed(a, pattern=pattern)
    listed(a, pattern=".*o.*", states=["Empty", "Ongoing"])
    listed(a, pattern="[", states=["nothing"])


@scenario("transactions")
def producers_are_described(script: Script) -> None:
    topic = script.topic(partitions=2)
    a, b = script.clients("a", "b")
    a.init()
    b.init_idempotent()
    a.describe_producers({topic: [0]})
    a.send_records(topic, b"1", b"2")
    b.send_records(topic, b"3", is_transactional=False)
    a.describe_producers({topic: [1, 0, 0], f"{script.name}.nowhere": [0]})
    a.commit_txn()
    a.describe_producers({topic: [0, 7, -1]})
    a.describe_producers({"": [0], "not/a/name": [0]})
    a.describe_producers({})
    a.describe_producers({topic: []})


@scenario("transactions")
def producers_of_offsets_are_described(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for is_commit in (True, False):
        a.commit_in_txn({topic: {0: 5}})
        a.describe_producers({OFFSETS_TOPIC: [0, 1, 2, 9]})
        a.end(is_commit)
        a.describe_producers({OFFSETS_TOPIC: [0, 1, 2]})
    a.describe_producers({"__transaction_state": [0]})


@scenario("transactions")
def a_hanging_transaction_is_aborted(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init()
    a.send_records(topic)
    a.describe_producers({topic: [0]})
    mark(a, topic, 0, coordinator_epoch=-1)
    a.read(topic)
    a.describe_producers({topic: [0]})
    a.describe_txn()
    a.send_records(topic)
    b.read(topic)
    a.commit_txn()
    a.describe_txn()
    b.read(topic)


@scenario("transactions")
def markers_go_where_the_partition_is(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for version in (1, 2):
        mark(a, topic, 0, 7, -1, version=version)
        mark(a, f"{script.name}.nowhere", 0, version=version)
        mark(a, "", 0, version=version)
        mark(a, "not/a/name", 0, version=version)
        a.ask(WriteTxnMarkersRequest([]), version)
    mark(a, topic, 1, pid=STRANGE_PID, epoch=3)
    a.read(topic)
    a.read(topic, partition=1)
    a.describe_producers({topic: [0, 1]})


@scenario("transactions")
def markers_have_the_epoch_of_their_coordinator(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    mark(a, topic, 0, coordinator_epoch=3)
    for coordinator_epoch in (2, -1, 3, 4):
        mark(a, topic, 0, coordinator_epoch=coordinator_epoch)
    a.describe_producers({topic: [0]})
    a.read(topic)


@scenario("transactions")
def markers_have_the_epoch_of_their_producer(script: Script) -> None:
    topic = script.topic(partitions=4)
    a = script.client("a")
    a.init_idempotent()
    for partition, transaction_version in enumerate((0, 1, 2)):
        a.send_records(topic, is_transactional=False, epoch=4, partition=partition)
        for epoch in (3, 4, 4, 5, 4):
            mark(a, topic, partition, epoch=epoch, transaction_version=transaction_version)
        mark(a, topic, partition, epoch=32767, transaction_version=transaction_version)
        mark(a, topic, partition, epoch=32767, transaction_version=transaction_version)
        a.describe_producers({topic: [partition]})
        a.read(topic, partition=partition)
    a.send_records(topic, is_transactional=False, epoch=4, partition=3)
    for epoch in (3, 4, 5):
        mark(a, topic, 3, epoch=epoch, version=1)


@scenario("transactions")
def a_marker_ends_only_its_own_transaction(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.send_records(topic)
    for transaction_version in (0, 1, 2):
        mark(a, topic, 0, epoch=0, transaction_version=transaction_version, is_commit=True)
        a.describe_producers({topic: [0]})
        a.send_records(topic, partition=0)
    mark(a, topic, 0, epoch=a.producer_epoch + 3, transaction_version=2)
    a.describe_producers({topic: [0]})
    a.read(topic)
    a.send_records(topic, partition=0)


@scenario("transactions")
def markers_are_answered_by_producer(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    named = [WritableTxnMarkerTopic(TopicName(topic), [0, 1])]
    markers = [
        WritableTxnMarker(ProducerId(STRANGE_PID), 0, False, named, 0),
        WritableTxnMarker(ProducerId(STRANGE_PID + 1), 2, True, named, 0),
    ]
    for version in (1, 2):
        a.ask(WriteTxnMarkersRequest(markers), version)
    a.read(topic)


@scenario("transactions")
def a_marker_ends_the_offsets_of_a_transaction(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.commit_in_txn({topic: {0: 5}})
    for partition in range(3):
        mark(a, OFFSETS_TOPIC, partition, is_commit=True)
    a.fetch_offsets({topic: [0]}, require_stable=True)
    a.abort_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)
