"""Produce: verification, implicit adds, errors by version, sequences, duplicates, epochs."""

from protocol.names import OFFSETS_TOPIC
from tests.compare.batches import CONTROL, TRANSACTIONAL, Producer, a_batch
from tests.compare.client import Client
from tests.compare.scenarios.transactions_init import STRANGE_PID
from tests.compare.script import Script, scenario

VERSIONS = range(3, 14)
INT32_MAX = 2**31 - 1


def idempotent(client: Client, topic: str, sequence: int, *values: bytes, **options: int) -> None:
    client.send_records(
        topic,
        *values,
        is_transactional=False,
        sequence=sequence,
        **options,  # type: ignore[arg-type]
    )


@scenario("transactions")
def records_of_a_transaction_are_taken_in_every_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for version in VERSIONS:
        a.add({topic: [0]})
        a.send_records(topic, b"1", b"2", version=version)
        a.send_records(topic, b"3", version=version)
        a.commit_txn(version=3)
    a.read(topic)


@scenario("transactions")
def records_of_no_transaction_are_verified(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init()
    for version in range(3, 12):
        a.send_records(topic, version=version)
    a.add({topic: [1]})
    for version in range(3, 12):
        a.send_records(topic, version=version)
    a.describe_txn()
    a.send_records(topic, partition=1, version=11)
    a.commit_txn(version=3)
    for version in (3, 9, 10, 11):
        a.send_records(topic, partition=1, version=version)
    a.list_offset(topic, partition=1)


@scenario("transactions")
def records_add_their_partition(script: Script) -> None:
    first, second = script.topic("one", partitions=2), script.topic("two")
    a = script.client("a")
    a.init()
    for version in (12, 13):
        a.send_records(first, version=version)
        a.describe_txn()
        a.send_records(first, partition=1, version=version)
        a.send_records(second, version=version)
        a.send_records(second, version=version)
        a.describe_txn()
        a.commit_txn()
        a.describe_txn()
    a.send_records(first)
    a.describe_txn()
    a.abort_txn()


@scenario("transactions")
def records_name_the_producer_of_the_transactional_id(script: Script) -> None:
    topic = script.topic(partitions=16)
    a = script.client("a")
    a.init()
    a.init()
    partition = 0
    for adds in (False, True):
        for version in (9, 10, 11, 12, 13):
            if adds:
                a.add({topic: [partition]})
            a.send_records(topic, partition=partition, txn=None, version=version)
            a.send_records(topic, partition=partition, txn="", version=version)
            unknown = f"{script.name}.unknown"
            a.send_records(topic, partition=partition, txn=unknown, version=version)
            a.send_records(topic, partition=partition, pid=STRANGE_PID, version=version)
            a.send_records(topic, partition=partition, epoch=0, version=version)
            partition += 1
    a.describe_txn()


@scenario("transactions")
def an_open_transaction_is_not_verified_again(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    for version in (9, 11, 12):
        a.send_records(topic, txn=f"{script.name}.unknown", version=version)
        a.send_records(topic, txn="", version=version)
        a.send_records(topic, txn=None, version=version)
    a.commit_txn()
    a.read(topic)


@scenario("transactions")
def one_request_has_one_transactional_producer(script: Script) -> None:
    topic = script.topic(partitions=4)
    a, b = script.clients("a", "b")
    a.init()
    b.init(txn=f"{script.name}.b")
    of_a = Producer(a.producer_id, a.producer_epoch, 0, TRANSACTIONAL)
    of_b = Producer(b.producer_id, b.producer_epoch, 0, TRANSACTIONAL)
    other_epoch = Producer(a.producer_id, a.producer_epoch + 1, 0, TRANSACTIONAL)
    now = script.given_ms
    for version in (9, 11, 12, 13):
        for other in (of_b, other_epoch):
            batches = {0: a_batch(producer=of_a, at_ms=now), 1: a_batch(producer=other, at_ms=now)}
            a.ask_produce({topic: batches}, txn=script.name, version=version)
    plain = a_batch(b"plain", at_ms=now)
    mixed = {2: a_batch(producer=of_a, at_ms=now), 3: plain}
    a.ask_produce({topic: mixed}, txn=script.name)
    a.ask_produce({topic: {3: plain}}, txn=script.name)
    a.describe_txn()
    a.commit_txn()
    a.read(topic, partition=2)
    a.read(topic, partition=3)


@scenario("transactions")
def records_of_a_producer_follow_each_other(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init_idempotent()
    for version in VERSIONS:
        a.send_records(topic, b"1", b"2", is_transactional=False, version=version)
    end = a.sequences[topic, 0]
    for version in (9, 12):
        for sequence in (end + 1, end - 1, end - 3, 0, INT32_MAX, end + 5):
            idempotent(a, topic, sequence, b"x", version=version)
    idempotent(a, topic, end, b"next")
    a.describe_producers({topic: [0]})
    a.read(topic)


@scenario("transactions")
def five_batches_of_a_producer_are_known_again(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init_idempotent()
    for number in range(7):
        idempotent(a, topic, 2 * number, b"%d" % number, b"-")
    for number in (6, 5, 4, 3, 2, 1, 0):
        idempotent(a, topic, 2 * number, b"%d" % number, b"-")
    idempotent(a, topic, 12, b"6")
    idempotent(a, topic, 13, b"-")
    idempotent(a, topic, 10, b"5", b"-", b"6", b"-")
    idempotent(a, topic, 11, b"-", b"6")
    idempotent(a, topic, 12, b"other", b"bytes")
    idempotent(a, topic, 13, b"-", b"7")
    idempotent(a, topic, 12, b"6", b"-", b"7")
    a.describe_producers({topic: [0]})
    a.list_offset(topic)


@scenario("transactions")
def a_known_batch_has_the_time_of_the_first_one(script: Script) -> None:
    topic = script.topic(message_timestamp_type="LogAppendTime")
    a = script.client("a")
    a.init_idempotent()
    idempotent(a, topic, 0)
    idempotent(a, topic, 0)
    a.describe_producers({topic: [0]})


@scenario("transactions")
def sequences_begin_again_after_the_last_one(script: Script) -> None:
    topic = script.topic(partitions=3)
    a = script.client("a")
    a.init_idempotent()
    idempotent(a, topic, INT32_MAX - 1, b"1", b"2", b"3")
    idempotent(a, topic, 1, b"4")
    idempotent(a, topic, INT32_MAX - 1, b"1", b"2", b"3")
    idempotent(a, topic, 2, b"5")
    idempotent(a, topic, INT32_MAX, b"1", partition=1)
    idempotent(a, topic, 1, b"2", partition=1)
    idempotent(a, topic, 0, b"2", partition=1)
    idempotent(a, topic, INT32_MAX, b"1", partition=1)
    idempotent(a, topic, INT32_MAX, b"1", b"2", partition=2)
    idempotent(a, topic, 0, b"2", partition=2)
    idempotent(a, topic, 1, b"3", partition=2)
    a.describe_producers({topic: [0, 1, 2]})
    a.read(topic)


@scenario("transactions")
def a_producer_without_state_may_begin_anywhere(script: Script) -> None:
    topic = script.topic(partitions=8)
    a, t = script.clients("a", "t")
    a.init_idempotent()
    idempotent(a, topic, 17)
    idempotent(a, topic, 17)
    idempotent(a, topic, 0)
    idempotent(a, topic, 18)
    idempotent(a, topic, 5, partition=1, pid=STRANGE_PID, epoch=3)
    idempotent(a, topic, 6, partition=1, pid=STRANGE_PID, epoch=3)
    t.init()
    for partition, version in enumerate((9, 10, 11, 12, 13), 2):
        t.add({topic: [partition]})
        t.send_records(topic, partition=partition, sequence=4, version=version)
        t.send_records(topic, partition=partition, sequence=5, version=version)
        t.send_records(topic, partition=partition, sequence=0, version=version)
    t.commit_txn()
    a.describe_producers({topic: list(range(8))})


@scenario("transactions")
def the_epoch_of_a_producer_does_not_go_back(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    a.init_idempotent()
    idempotent(a, topic, 0, epoch=3)
    for version in (9, 12):
        idempotent(a, topic, 1, epoch=2, version=version)
        idempotent(a, topic, 0, epoch=2, version=version)
        idempotent(a, topic, 1, epoch=4, version=version)
    idempotent(a, topic, 0, epoch=4)
    idempotent(a, topic, 0, epoch=4)
    idempotent(a, topic, 0, epoch=3)
    idempotent(a, topic, 1, epoch=4)
    idempotent(a, topic, 0, epoch=32767)
    idempotent(a, topic, 1, epoch=32767)
    idempotent(a, topic, 0, epoch=0, partition=1)
    a.describe_producers({topic: [0, 1]})
    a.read(topic)


@scenario("transactions")
def a_producer_and_its_epoch_go_together(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init_idempotent()
    for version in (9, 12):
        idempotent(a, topic, -1, version=version)
        idempotent(a, topic, -2, version=version)
        idempotent(a, topic, 0, epoch=-1, version=version)
        idempotent(a, topic, 0, pid=-1, version=version)
        idempotent(a, topic, -1, pid=-1, epoch=-1, version=version)
        idempotent(a, topic, 5, pid=-1, epoch=-1, version=version)
        idempotent(a, topic, 0, pid=-2, epoch=0, version=version)
    a.read(topic)


@scenario("transactions")
def clients_write_no_markers(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    for attributes in (CONTROL, CONTROL | TRANSACTIONAL):
        for sequence in (-1, 1):
            producer = Producer(a.producer_id, a.producer_epoch, sequence, attributes)
            marker = a_batch(
                b"\x00\x00\x00\x00\x00\x00", key=b"\x00\x00\x00\x01", producer=producer,
                at_ms=script.given_ms,
            )  # fmt: skip
            a.ask_produce({topic: {0: marker}}, txn=script.name)
    a.commit_txn()
    a.read(topic)


@scenario("transactions")
def transactional_records_need_a_producer(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    nobodys = a_batch(b"x", producer=Producer(attributes=TRANSACTIONAL), at_ms=script.given_ms)
    for version in (9, 11, 12):
        a.ask_produce({topic: {0: nobodys}}, txn=script.name, version=version)
    a.commit_txn()


@scenario("transactions")
def an_open_transaction_takes_no_other_records_of_its_producer(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic)
    for version in (9, 12):
        idempotent(a, topic, 1, version=version)
        idempotent(a, topic, 0, version=version)
    a.commit_txn()
    idempotent(a, topic, 0)
    idempotent(a, topic, 1)
    a.send_records(topic, sequence=2)
    a.abort_txn()
    a.read(topic)


@scenario("transactions")
def sequences_go_on_in_the_first_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.add({topic: [0]})
    a.send_records(topic, b"1", version=11)
    a.send_records(topic, b"2", version=11)
    a.commit_txn(version=4)
    a.send_records(topic, b"2", sequence=1, version=11)
    a.send_records(topic, b"2", sequence=1, version=9)
    a.add({topic: [0]})
    a.send_records(topic, b"2", sequence=1, version=11)
    a.send_records(topic, b"0", sequence=0, version=11)
    a.send_records(topic, b"4", sequence=3, version=11)
    a.send_records(topic, b"3", sequence=2, version=11)
    a.abort_txn(version=4)
    a.describe_producers({topic: [0]})
    a.read(topic)


@scenario("transactions")
def sequences_begin_again_in_the_second_version(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.send_records(topic, b"1")
    a.send_records(topic, b"2")
    a.commit_txn()
    before = a.producer_epoch - 1
    a.send_records(topic, b"2", sequence=1, epoch=before)
    a.send_records(topic, b"3", sequence=2, epoch=before)
    a.send_records(topic, b"3", sequence=2)
    a.send_records(topic, b"1", sequence=0)
    a.send_records(topic, b"1", sequence=0)
    a.send_records(topic, b"2", sequence=1)
    a.abort_txn()
    a.describe_producers({topic: [0]})
    a.read(topic)


@scenario("transactions")
def a_transaction_goes_from_one_version_to_the_other(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    a.add({topic: [0]})
    a.send_records(topic, b"1", version=11)
    a.commit_txn(version=4)
    a.send_records(topic, b"2", sequence=1)
    a.describe_txn()
    a.commit_txn(version=5)
    a.add({topic: [0]})
    a.send_records(topic, b"3", sequence=0, version=11)
    a.abort_txn(version=4)
    a.send_records(topic, b"4", sequence=1)
    a.abort_txn(version=5)
    a.describe_producers({topic: [0]})
    a.read(topic)


@scenario("transactions")
def refused_records_leave_their_partition_in_the_transaction(script: Script) -> None:
    topic, compacted = script.topic(partitions=2), script.topic("c", cleanup_policy="compact")
    a = script.client("a")
    a.init()
    a.send_records(topic, sequence=7)
    a.describe_txn()
    a.send_records(compacted)
    a.send_records(compacted, key=b"k")
    a.describe_txn()
    a.commit_txn()
    a.read(topic)
    a.read(compacted)
    a.describe_producers({topic: [0], compacted: [0]})


@scenario("transactions")
def a_transaction_needs_its_partitions(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    a.init()
    for version in (9, 11, 12):
        a.send_records(f"{script.name}.nowhere", version=version)
        a.send_records(topic, partition=7, version=version)
    a.describe_txn()


@scenario("transactions")
def topics_of_coordinators_take_no_records(script: Script) -> None:
    a = script.client("a")
    a.init()
    for version in (9, 11, 12):
        a.send_records(OFFSETS_TOPIC, version=version)
        a.send_records("__transaction_state", version=version)
    a.describe_txn()


@scenario("transactions")
def some_partitions_of_a_request_are_refused(script: Script) -> None:
    topic = script.topic(partitions=3)
    a = script.client("a")
    a.init()
    now = script.given_ms

    def batch(sequence: int) -> bytes:
        producer = Producer(a.producer_id, a.producer_epoch, sequence, TRANSACTIONAL)
        return a_batch(producer=producer, at_ms=now)

    a.ask_produce({topic: {0: batch(0), 1: batch(3), 7: batch(0)}}, txn=script.name)
    a.ask_produce({topic: {0: batch(1), 1: batch(0), 2: batch(0)}}, txn=script.name, version=11)
    a.describe_txn()
    a.abort_txn()
    a.read(topic)


@scenario("transactions")
def records_that_nobody_waits_for_close_the_connection_if_refused(script: Script) -> None:
    topic = script.topic(partitions=2)
    a, b = script.clients("a", "b")
    a.init_idempotent()
    producer = Producer(a.producer_id, a.producer_epoch, 0)
    batch = a_batch(producer=producer, at_ms=script.given_ms)
    a.say_unanswered(a.produce_request({topic: {0: batch}}, acks=0), 12)
    a.list_offset(topic)
    wrong = a_batch(producer=producer._replace(sequence=4), at_ms=script.given_ms)
    b.ask_produce({topic: {0: wrong}}, acks=0)
    a.list_offset(topic)


@scenario("transactions")
def broken_records_are_no_part_of_a_sequence(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    producer = Producer(STRANGE_PID, 0, 0)
    good = a_batch(producer=producer)
    for version in (9, 12):
        a.ask_produce({topic: {0: good[:-1] + b"\x01"}}, version=version)
        a.ask_produce({topic: {0: good[:-5]}}, version=version)
    a.ask_produce({topic: {0: good}})
    a.describe_producers({topic: [0]})
