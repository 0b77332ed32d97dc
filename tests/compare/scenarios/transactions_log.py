"""Log of transactions: time-outs, expiry, restarts, and the records that stay."""

from tests.compare.scenarios.data_plane import has_producer_ids
from tests.compare.script import Script, scenario

SHORT_LIVES = "transactions with short lives"
RESTARTS = "transactions and restarts"


@scenario(SHORT_LIVES)
def a_transaction_of_the_second_version_times_out(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init(timeout_ms=400)
    a.send_records(topic)
    script.until_transaction("CompleteAbort")
    a.describe_txn()
    a.read(topic)
    a.send_records(topic)
    a.commit_in_txn({topic: {0: 1}})
    a.add({topic: [0]})
    a.commit_txn(version=4)
    a.commit_txn()
    a.describe_producers({topic: [0]})
    a.abort_txn()
    a.send_records(topic)
    a.commit_txn()
    a.read(topic)


@scenario(SHORT_LIVES)
def a_producer_goes_on_after_a_timeout(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    for version in (9, 12):
        a.init(timeout_ms=400)
        a.add({topic: [0]})
        a.send_records(topic, version=version)
        script.until_transaction("CompleteAbort")
        a.init_again()
        a.describe_txn()


@scenario(SHORT_LIVES)
def an_old_producer_after_a_timeout(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init(timeout_ms=400)
    a.send_records(topic)
    script.until_transaction("CompleteAbort")
    for version in range(4):
        a.add({topic: [0]}, version=version)
    for version in (9, 11, 12):
        a.send_records(topic, version=version)
    a.init(version=0)


@scenario(SHORT_LIVES)
def a_transactional_id_expires(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    b.init(txn=f"{script.name}.open")
    b.add({topic: [0]}, txn=f"{script.name}.open")
    a.init()
    a.send_records(topic)
    a.commit_txn()
    script.until("the id has expired", lambda: bool(script.transaction(script.name).error_code))
    a.describe_txn(script.name, f"{script.name}.open")
    a.add({topic: [0]})
    a.commit_txn()
    a.commit_txn(version=3)
    a.send_records(topic)
    a.commit_in_txn({topic: {0: 1}})
    before = a.producer_id
    a.init_again()
    assert a.producer_id != before
    a.send_records(topic)
    a.abort_txn()


@scenario("transactions")
def the_log_of_a_transaction_of_the_first_version(script: Script) -> None:
    first, second = script.topic("one", partitions=2), script.topic("two")
    a = script.client("a")
    a.init(timeout_ms=12_345)
    for is_commit in (True, False):
        a.add({first: [0]})
        a.add({first: [0]})
        a.add({second: [0]})
        a.add({first: [1]}, version=1)
        a.add_offsets()
        a.send_records(first, version=9)
        a.commit_in_txn({first: {0: 3}}, version=3)
        a.end(is_commit, version=4)
    a.init()
    a.init_again()


@scenario("transactions")
def the_log_of_a_transaction_of_the_second_version(script: Script) -> None:
    first, second = script.topic("one", partitions=2), script.topic("two")
    a = script.client("a")
    a.init(timeout_ms=12_345)
    for is_commit in (True, False):
        a.send_records(first)
        a.send_records(first, partition=1)
        a.send_records(second)
        a.send_records(second)
        a.commit_in_txn({first: {0: 3, 1: 4}})
        a.commit_in_txn({first: {0: 5}})
        a.end(is_commit)
    a.abort_txn()
    a.init()


@scenario("transactions")
def the_log_of_both_versions(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.send_records(topic)
    a.add({topic: [1]})
    a.commit_txn()
    a.add({topic: [0]})
    a.send_records(topic, partition=1)
    a.abort_txn(version=4)
    a.add({})
    a.commit_txn(version=4)
    a.add({})
    a.abort_txn()


@scenario("transactions")
def the_log_of_a_fenced_transaction(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init()
    a.send_records(topic)
    a.commit_in_txn({topic: {0: 3}})
    b.init()
    b.init()
    b.add({topic: [0]})
    a.init(version=1)
    a.init(version=1)


@scenario("transactions")
def the_log_of_aborted_transactions(script: Script) -> None:
    topic = script.topic()
    clients = script.clients("a", "b", "c")
    for client in clients:
        client.init(txn=f"{script.name}.{client.name}")
        client.send_records(topic, txn=f"{script.name}.{client.name}")
    for client in clients[1], clients[0], clients[2]:
        client.abort_txn(txn=f"{script.name}.{client.name}")
    a = clients[0]
    a.send_records(topic, txn=f"{script.name}.a")
    a.commit_txn(txn=f"{script.name}.a")


@scenario(RESTARTS)
def an_open_transaction_goes_on_after_a_restart(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    a.send_records(topic, b"1")
    a.send_records(topic, b"2")
    a.commit_in_txn({topic: {0: 3}})
    script.restart_broker()
    a.describe_txn()
    a.describe_producers({topic: [0]})
    a.read(topic)
    a.fetch_offsets({topic: [0]}, require_stable=True)
    a.send_records(topic, b"2", sequence=1)
    a.send_records(topic, b"4", sequence=3)
    a.send_records(topic, b"3", sequence=2)
    a.send_records(topic, partition=1)
    a.commit_txn()
    a.read(topic)
    a.fetch_offsets({topic: [0]}, require_stable=True)


@scenario(RESTARTS)
def the_last_epoch_is_forgotten_at_a_restart(script: Script) -> None:
    a = script.client("a")
    a.init()
    a.init_again()
    a.init_again(epoch=0)
    script.restart_broker()
    a.init_again(epoch=0)
    a.init_again(epoch=1)
    a.init_again(epoch=1)
    a.describe_txn()


@scenario(RESTARTS)
def a_lost_answer_is_asked_for_after_a_restart(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init(txn=f"{script.name}.a")
    b.init(txn=f"{script.name}.b")
    a.send_records(topic, txn=f"{script.name}.a")
    a.commit_txn(txn=f"{script.name}.a")
    b.add({topic: [0]}, txn=f"{script.name}.b")
    b.abort_txn(txn=f"{script.name}.b", version=4)
    script.restart_broker()
    a.commit_txn(txn=f"{script.name}.a", epoch=a.producer_epoch - 1)
    a.abort_txn(txn=f"{script.name}.a", epoch=a.producer_epoch - 1)
    b.abort_txn(txn=f"{script.name}.b", version=4)
    b.commit_txn(txn=f"{script.name}.b", version=4)
    a.describe_txn(f"{script.name}.a", f"{script.name}.b")
    a.read(topic)
    a.describe_producers({topic: [0]})


@scenario(RESTARTS)
def a_new_producer_fences_after_a_restart(script: Script) -> None:
    topic = script.topic()
    a, b = script.clients("a", "b")
    a.init()
    a.send_records(topic)
    script.restart_broker()
    b.init()
    b.init()
    a.send_records(topic)
    a.commit_txn()
    b.send_records(topic)
    b.commit_txn()
    b.read(topic)
    b.describe_producers({topic: [0]})


@scenario(RESTARTS)
def older_batches_are_not_known_after_a_restart(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init_idempotent()
    for number in range(7):
        a.send_records(topic, b"%d" % number, is_transactional=False)
    script.restart_broker()
    for sequence in (6, 5, 2):
        a.send_records(topic, b"again", is_transactional=False, sequence=sequence)


@scenario(RESTARTS)
def sequences_go_on_after_a_restart(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init_idempotent()
    for number in range(7):
        a.send_records(topic, b"%d" % number, is_transactional=False)
    script.restart_broker()
    a.describe_producers({topic: [0]})
    for sequence in (6, 8, 0):
        a.send_records(topic, b"again", is_transactional=False, sequence=sequence)
    a.send_records(topic, b"7", is_transactional=False, sequence=7)
    a.read(topic)
    script.until("producer ids are at hand", lambda: has_producer_ids(script))
    before = a.producer_id
    a.init_idempotent()
    assert a.producer_id != before
