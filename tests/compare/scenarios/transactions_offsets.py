"""TxnOffsetCommit: offsets that count when their transaction is committed."""

from protocol.messages.txn_offset_commit import TxnOffsetCommitRequestPartition
from tests.compare.client import Client
from tests.compare.scenarios.transactions_init import STRANGE_PID
from tests.compare.script import Script, scenario

VERSIONS = range(6)


def show(client: Client, topic: str) -> None:
    """What is committed, and whether it is stable."""
    for version in (7, 9):
        client.fetch_offsets({topic: [0, 1]}, version=version)
        client.fetch_offsets({topic: [0, 1]}, require_stable=True, version=version)
    client.fetch_offsets(None)
    client.fetch_offsets(None, require_stable=True)


@scenario("transactions")
def offsets_of_a_transaction_count_when_it_is_committed(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for version in VERSIONS:
        for is_commit in (True, False):
            a.add_offsets(version=version if version < 5 else 4)
            offset = 10 * version + is_commit
            a.commit_in_txn({topic: {0: offset}}, version=version)
            a.fetch_offsets({topic: [0]})
            a.fetch_offsets({topic: [0]}, require_stable=True)
            a.end(is_commit, version=min(version, 5))
            a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario("transactions")
def pending_offsets_are_unstable(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.commit_in_txn({topic: {0: 5}})
    show(a, topic)
    a.describe()
    a.list_groups()
    a.commit_simply(topic, {1: 3})
    show(a, topic)
    a.commit_in_txn({topic: {1: 4}})
    show(a, topic)
    a.commit_txn()
    show(a, topic)


@scenario("transactions")
def offsets_add_their_group_to_the_transaction(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for version in range(5):
        a.commit_in_txn({topic: {0: 1}}, version=version)
    a.describe_txn()
    a.commit_in_txn({topic: {0: 1}}, version=5)
    a.describe_txn()
    for version in range(5):
        a.commit_in_txn({topic: {0: 2}}, version=version)
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario("transactions")
def offsets_name_the_producer_of_the_transactional_id(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.init()
    for adds in (False, True):
        if adds:
            a.add_offsets()
        for version in VERSIONS:
            both = {topic: {0: 1, 1: 2}}
            a.commit_in_txn(both, txn="", version=version)
            a.commit_in_txn(both, txn=f"{script.name}.unknown", version=version)
            a.commit_in_txn(both, pid=STRANGE_PID, version=version)
            a.commit_in_txn(both, epoch=0, version=version)
            a.commit_in_txn(both, epoch=5, version=version)
            a.commit_in_txn({}, epoch=0, version=version)
    a.fetch_offsets({topic: [0]}, require_stable=True)
    a.describe_txn()


@scenario("transactions")
def offsets_of_a_transaction_are_of_topics_that_exist(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    nowhere = f"{script.name}.nowhere"
    for version in VERSIONS:
        a.commit_in_txn({nowhere: {0: 1}}, version=version)
        a.commit_in_txn({topic: {0: 1, 7: 1}, nowhere: {0: 1}}, version=version)
        a.commit_in_txn({topic: {0: 1}}, group_id="", version=version)
    a.describe_txn()
    a.add_offsets()
    long_text = TxnOffsetCommitRequestPartition(0, 1, -1, "x" * 4097)
    fine_text = TxnOffsetCommitRequestPartition(0, 1, 3, "text")
    no_text = TxnOffsetCommitRequestPartition(0, 1, 3, None)
    for version in (0, 2, 4, 5):
        for partition in (long_text, fine_text, no_text):
            a.commit_in_txn({topic: {0: partition}}, version=version)
    a.commit_in_txn({topic: {0: -1}})
    a.commit_txn()
    a.fetch_offsets({topic: [0]})


@scenario("transactions")
def members_commit_in_a_transaction(script: Script) -> None:
    topic = script.topic()
    a, m = script.clients("a", "m")
    a.init()
    a.commit_in_txn({topic: {0: 1}}, generation_id=0)
    a.commit_in_txn({topic: {0: 1}}, member_id="stranger")
    a.commit_in_txn({topic: {0: 1}}, instance_id="i", member_id="stranger")
    m.enter()
    for version in (3, 4, 5):
        a.commit_in_txn({topic: {0: 2}}, generation_id=1, member_id=m.member_id, version=version)
    m.sync({m: b"x"})
    member = m.member_id
    for version in (3, 4, 5):
        a.commit_in_txn({topic: {0: 2}}, generation_id=1, member_id=member, version=version)
        a.commit_in_txn({topic: {0: 2}}, generation_id=0, member_id=member, version=version)
        a.commit_in_txn({topic: {0: 2}}, generation_id=2, member_id=member, version=version)
        a.commit_in_txn({topic: {0: 2}}, generation_id=-1, member_id=member, version=version)
        a.commit_in_txn({topic: {0: 2}}, generation_id=1, member_id="", version=version)
        a.commit_in_txn({topic: {0: 2}}, generation_id=1, member_id="stranger", version=version)
        a.commit_in_txn(
            {topic: {0: 2}}, generation_id=1, member_id=member, instance_id="i", version=version
        )
    a.commit_in_txn({topic: {0: 3}})
    a.commit_in_txn({topic: {0: 3}}, version=0)
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario("transactions")
def static_members_commit_in_a_transaction(script: Script) -> None:
    topic = script.topic()
    a, m = script.clients("a", "m")
    a.init()
    m.join(instance_id="im")
    m.sync({m: b"x"}, instance_id="im")
    for member_id in (m.member_id, "stranger", ""):
        for instance_id in ("im", "other", None):
            a.commit_in_txn(
                {topic: {0: 2}}, generation_id=1, member_id=member_id, instance_id=instance_id
            )
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario("transactions")
def consumers_commit_in_a_transaction(script: Script) -> None:
    topic = script.subscribed_topic()
    a, m = script.clients("a", "m")
    a.init()
    m.consumer_join(topic)
    member = m.consumer_id
    for version in (3, 4, 5):
        for epoch in (1, 0, 2, -1):
            a.commit_in_txn(
                {topic: {0: epoch}}, generation_id=epoch, member_id=member, version=version
            )
        a.commit_in_txn({topic: {0: 7}}, generation_id=1, member_id="stranger", version=version)
    a.commit_in_txn({topic: {0: 8}})
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario("transactions")
def the_last_offset_in_the_log_counts(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.commit_in_txn({topic: {0: 1}})
    a.commit_in_txn({topic: {0: 2}})
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)
    a.commit_in_txn({topic: {0: 3}})
    a.commit_simply(topic, {0: 4})
    a.fetch_offsets({topic: [0]}, require_stable=True)
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)
    a.commit_simply(topic, {0: 5})
    a.commit_in_txn({topic: {0: 6}})
    a.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario("transactions")
def two_transactions_commit_to_one_group(script: Script) -> None:
    topic = script.topic(partitions=2)
    a, b = script.clients("a", "b")
    first, second = f"{script.name}.1", f"{script.name}.2"
    a.init(txn=first)
    b.init(txn=second)
    a.commit_in_txn({topic: {0: 1, 1: 1}}, txn=first)
    b.commit_in_txn({topic: {0: 2}}, txn=second)
    show(a, topic)
    b.commit_txn(txn=second)
    show(a, topic)
    a.commit_txn(txn=first)
    show(a, topic)
    a.commit_in_txn({topic: {0: 3}}, txn=first)
    b.commit_in_txn({topic: {0: 4}}, txn=second)
    a.commit_txn(txn=first)
    show(a, topic)
    b.abort_txn(txn=second)
    show(a, topic)


@scenario("transactions")
def one_transaction_commits_to_two_groups(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    groups = [f"{script.name}.{number}" for number in range(4)]
    for number, group in enumerate(groups):
        a.commit_in_txn({topic: {0: number}}, group_id=group)
    for group in groups:
        a.fetch_offsets({topic: [0]}, group_id=group, require_stable=True)
    a.commit_txn()
    for group in groups:
        a.fetch_offsets({topic: [0]}, group_id=group, require_stable=True)


@scenario("transactions")
def a_group_with_pending_offsets_may_be_deleted(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.commit_in_txn({topic: {0: 1}})
    a.list_groups()
    a.delete_groups()
    a.describe()
    show(a, topic)
    a.commit_txn()
    a.describe()
    show(a, topic)
    a.commit_simply(topic, {0: 2})
    a.commit_in_txn({topic: {0: 3}})
    a.delete_groups()
    a.abort_txn()
    a.describe()
    show(a, topic)


@scenario("transactions")
def pending_offsets_may_be_deleted(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.commit_simply(topic, {0: 1})
    a.commit_in_txn({topic: {0: 2, 1: 2}})
    a.delete_offsets({topic: [0, 1]})
    show(a, topic)
    a.commit_txn()
    show(a, topic)


@scenario("transactions")
def a_fenced_producer_leaves_no_offsets(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init()
    a.commit_in_txn({topic: {0: 1}})
    b.init()
    a.fetch_offsets({topic: [0]}, require_stable=True)
    b.init()
    b.commit_in_txn({topic: {0: 2}})
    for version in (3, 4, 5):
        a.commit_in_txn({topic: {0: 3}}, version=version)
    b.commit_txn()
    a.fetch_offsets({topic: [0]}, require_stable=True)
