"""EndTxn: the decision in every state, and the same decision again."""

from collections.abc import Iterator

from protocol.messages.delete_topics import DeleteTopicsRequest
from tests.compare.client import Client
from tests.compare.scenarios.transactions_init import STRANGE_PID
from tests.compare.script import Script, scenario

FIRST_VERSION = 4
"""The last version of EndTxn before a transaction has an epoch of its own."""


def in_each_state(topic: str, a: Client, version: int) -> Iterator[str]:
    """A transactional id in each state that lasts."""
    a.init()
    yield "Empty"
    a.add({topic: [0]})
    yield "Ongoing"
    for is_commit in (True, False):
        a.init()
        a.add({topic: [0]})
        a.end(is_commit, version=version)
        yield "CompleteCommit" if is_commit else "CompleteAbort"


@scenario("transactions")
def a_transaction_is_ended_in_every_version(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for version in range(6):
        for is_commit in (True, False):
            a.add({topic: [0, 1]})
            a.send_records(topic, b"%d" % version)
            a.end(is_commit, version=version)
            a.describe_txn()
    a.read(topic)
    a.read(topic, partition=1)
    a.describe_producers({topic: [0, 1]})


@scenario("transactions")
def the_first_version_decides_again_in_every_state(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in (0, 1, 2, FIRST_VERSION):
        for is_commit in (True, False):
            for state in in_each_state(topic, a, version):
                script.note(state)
                a.end(is_commit, version=version)
                a.end(is_commit, version=version)
                a.end(not is_commit, version=version)
                a.describe_txn()


@scenario("transactions")
def the_second_version_decides_again_in_every_state(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for is_commit in (True, False):
        for state in in_each_state(topic, a, 5):
            script.note(state)
            for behind in (1, 0, -1, 2):
                a.end(is_commit, epoch=a.producer_epoch - behind)
                a.describe_txn()


@scenario("transactions")
def a_lost_answer_is_asked_for_again(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for is_commit in (True, False):
        a.send_records(topic)
        before = a.producer_epoch
        a.end(is_commit)
        a.end(is_commit, epoch=before)
        a.end(is_commit, epoch=before)
        a.end(not is_commit, epoch=before)
        a.send_records(topic)
        a.end(is_commit, epoch=before)
        a.end(is_commit)
        a.end(is_commit, epoch=before)
    a.read(topic)


@scenario("transactions")
def the_versions_decide_in_turn(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    a.commit_txn(version=4)
    a.commit_txn(version=5)
    a.add({topic: [0]})
    a.send_records(topic, version=11)
    a.abort_txn(version=5)
    a.abort_txn(version=4)
    a.abort_txn(version=4, epoch=a.producer_epoch - 1)
    a.describe_txn()
    a.add({topic: [0]})
    a.send_records(topic, version=11)
    a.commit_txn(version=4)
    a.send_records(topic)
    a.describe_txn()
    a.abort_txn(version=4)
    a.describe_txn()
    a.read(topic)


@scenario("transactions")
def an_older_producer_repeats_the_end_of_a_first_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.init()
    a.add({topic: [0]})
    a.commit_txn(version=4)
    a.commit_txn(epoch=a.producer_epoch - 1)


@scenario("transactions")
def a_transaction_is_ended_by_the_producer_of_the_id(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.init()
    for adds in (False, True):
        if adds:
            a.add({topic: [0]})
        for version in range(6):
            a.commit_txn(txn="", version=version)
            a.commit_txn(txn=f"{script.name}.unknown", version=version)
            a.commit_txn(pid=STRANGE_PID, version=version)
            a.abort_txn(pid=-1, version=version)
            a.commit_txn(epoch=0, version=version)
            a.abort_txn(epoch=0, version=version)
            a.abort_txn(epoch=9, version=version)
            a.abort_txn(epoch=-1, version=version)
        a.describe_txn()


@scenario("transactions")
def an_abort_without_a_transaction_counts(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.abort_txn()
    a.describe_txn()
    a.abort_txn()
    a.abort_txn(epoch=a.producer_epoch - 1)
    a.commit_txn()
    a.send_records(topic)
    a.commit_txn()
    a.abort_txn()
    a.describe_txn()
    a.describe_producers({topic: [0]})
    a.read(topic)


@scenario("transactions")
def a_transaction_outlives_its_topics(script: Script) -> None:
    kept, gone = script.topic("kept"), script.topic("gone", partitions=2)
    a = script.client("a")
    a.init()
    for topic in (kept, gone):
        a.send_records(topic)
    a.ask(DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000), 5)
    script.until_no_topic(gone)
    a.describe_txn()
    a.send_records(gone)
    a.commit_txn()
    a.describe_txn()
    a.read(kept)


@scenario("transactions")
def a_transaction_marks_partitions_without_records(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for version in (4, 5):
        for is_commit in (True, False):
            a.add({topic: [0, 1]})
            a.send_records(topic, partition=1)
            a.end(is_commit, version=version)
    a.read(topic)
    a.read(topic, partition=1)
    a.describe_producers({topic: [0, 1]})
