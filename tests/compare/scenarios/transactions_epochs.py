"""Epochs at their end: a producer that has used all of them gets another id.

The epoch can only be raised one by one, so these scenarios take a minute and are not part of the
tests of every day; see `Scenario.is_slow`.
"""

from concurrent.futures import ThreadPoolExecutor

from tests.compare.client import Client
from tests.compare.scenarios.transactions_admin import listed
from tests.compare.script import Script, scenario

LAST_EPOCH = 32766
"""The last epoch that a producer uses: the one after it is for the marker that fences it."""

IDS = ("second", "first", "idle", "fenced", "goes_on", "empty")


def raised(script: Script) -> dict[str, Client]:
    """A producer in its last epoch for each of these transactional ids."""
    clients = {name: script.client(name) for name in IDS}
    with ThreadPoolExecutor(len(IDS)) as pool:
        list(pool.map(lambda name: script.raise_epoch(f"{script.name}.{name}", LAST_EPOCH), IDS))
    for name, client in clients.items():
        answer = script.transaction(f"{script.name}.{name}")
        client.producer_id, client.producer_epoch = answer.producer_id, answer.producer_epoch
        client.describe_txn(f"{script.name}.{name}")
    return clients


@scenario("transactions", is_slow=True)
def a_producer_without_a_next_epoch_has_another_id(script: Script) -> None:
    topic = script.topic()
    clients = raised(script)
    second, first, idle = clients["second"], clients["first"], clients["idle"]
    end_by_the_second_version(script, second, topic)
    end_by_the_first_version(script, first, topic)
    idle.init_again(txn=f"{script.name}.idle")
    idle.init_again(txn=f"{script.name}.idle")
    fence(script, clients["fenced"], topic)
    go_on(script, clients["goes_on"], topic)
    empty = clients["empty"]
    empty.abort_txn(txn=f"{script.name}.empty")
    empty.commit_txn(txn=f"{script.name}.empty")
    listed(idle)
    idle.read(topic)
    idle.describe_producers({topic: [0]})


def end_by_the_second_version(script: Script, client: Client, topic: str) -> None:
    txn = f"{script.name}.second"
    old = client.producer_id
    client.send_records(topic, txn=txn)
    client.commit_txn(txn=txn)
    client.commit_txn(txn=txn, pid=old, epoch=LAST_EPOCH)
    client.abort_txn(txn=txn, pid=old, epoch=LAST_EPOCH)
    client.commit_txn(txn=txn, pid=old, epoch=LAST_EPOCH + 1)
    client.send_records(topic, txn=txn, pid=old, epoch=LAST_EPOCH, sequence=1)
    client.send_records(topic, txn=txn, pid=old, epoch=LAST_EPOCH + 1, sequence=0)
    client.describe_txn(txn)
    client.init(txn=txn, pid=old, epoch=LAST_EPOCH)
    client.init(txn=txn, pid=old, epoch=LAST_EPOCH)
    client.init(txn=txn, pid=old, epoch=LAST_EPOCH - 1)
    client.send_records(topic, txn=txn)
    client.abort_txn(txn=txn)
    client.describe_txn(txn)


def end_by_the_first_version(script: Script, client: Client, topic: str) -> None:
    txn = f"{script.name}.first"
    client.add({topic: [0]}, txn=txn)
    client.send_records(topic, txn=txn, version=11)
    client.abort_txn(txn=txn, version=4)
    client.abort_txn(txn=txn, version=4)
    client.describe_txn(txn)
    old = client.producer_id
    client.init(txn=txn)
    client.init(txn=txn, pid=old, epoch=LAST_EPOCH)
    client.describe_txn(txn)


def fence(script: Script, client: Client, topic: str) -> None:
    txn = f"{script.name}.fenced"
    other = script.client("other")
    client.send_records(topic, txn=txn)
    other.init(txn=txn)
    other.describe_txn(txn)
    other.init(txn=txn)
    client.commit_txn(txn=txn)
    client.init_again(txn=txn)
    other.send_records(topic, txn=txn)
    other.commit_txn(txn=txn)


def go_on(script: Script, client: Client, topic: str) -> None:
    txn = f"{script.name}.goes_on"
    client.send_records(topic, txn=txn)
    client.init_again(txn=txn)
    client.describe_txn(txn)
    client.init_again(txn=txn)
    client.describe_txn(txn)
