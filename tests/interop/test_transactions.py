"""Transactions with real clients: librdkafka, aiokafka, kafka-python, also over a kill -9."""

import asyncio
import uuid
from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from tests.broker.daemon import Daemon

TOPIC = "orders"
WAIT_S = 60.0

pytestmark = pytest.mark.timeout(300)


def given_topics(daemon: Daemon, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        made.result(WAIT_S)


def producer(daemon: Daemon, transactional_id: str, **settings: object) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 1,
            **settings,
        }
    )
    made.init_transactions(WAIT_S)
    return made


def send(sender: Producer, topic: str, values: Sequence[str], partition: int = 0) -> None:
    for value in values:
        sender.produce(topic, value.encode(), partition=partition)
    assert sender.flush(WAIT_S) == 0


def read(daemon: Daemon, topic: str, isolation: str = "read_committed") -> list[str]:
    """Everything up to the end of both partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": f"reader-{uuid.uuid4()}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    found: list[str] = []
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(2)])
        ended: set[int] = set()
        while len(ended) < 2:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"read {found} and no more"
            fault = message.error()
            if fault is None:
                found.append(_value(message))
            else:
                assert fault.code() == KafkaError._PARTITION_EOF, fault
                ended.add(message.partition())
    finally:
        consumer.close()
    return found


def _value(message: Message) -> str:
    value = message.value()
    assert isinstance(value, bytes)
    return value.decode()


def test_librdkafka_commits_and_aborts(daemon: Daemon) -> None:
    given_topics(daemon, TOPIC)
    sender = producer(daemon, "rdkafka")
    for number in range(5):
        sender.begin_transaction()
        send(sender, TOPIC, [f"{number}-a"], 0)
        send(sender, TOPIC, [f"{number}-b"], 1)
        if number % 2:
            sender.abort_transaction(WAIT_S)
        else:
            sender.commit_transaction(WAIT_S)
    assert sorted(read(daemon, TOPIC)) == ["0-a", "0-b", "2-a", "2-b", "4-a", "4-b"]
    assert len(read(daemon, TOPIC, "read_uncommitted")) == 10


def test_a_second_producer_of_an_id_fences_the_first(daemon: Daemon) -> None:
    given_topics(daemon, TOPIC)
    zombie = producer(daemon, "same")
    zombie.begin_transaction()
    send(zombie, TOPIC, ["lost"])
    successor = producer(daemon, "same")
    successor.begin_transaction()
    send(successor, TOPIC, ["kept"])
    successor.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(WAIT_S)
    assert refused.value.args[0].fatal()
    assert read(daemon, TOPIC) == ["kept"]


def test_kafka_python_commits_and_aborts(daemon: Daemon) -> None:
    given_topics(daemon, TOPIC)
    sender = KafkaProducer(bootstrap_servers=daemon.bootstrap, transactional_id="python")
    sender.init_transactions()
    for number in range(4):
        sender.begin_transaction()
        sender.send(TOPIC, f"{number}".encode(), partition=0).get(WAIT_S)
        (sender.abort_transaction if number % 2 else sender.commit_transaction)()
    sender.close()
    assert read(daemon, TOPIC) == ["0", "2"]


def test_aiokafka_commits_and_aborts(daemon: Daemon) -> None:
    given_topics(daemon, TOPIC)

    async def run() -> None:
        sender = AIOKafkaProducer(bootstrap_servers=daemon.bootstrap, transactional_id="aio")
        await sender.start()
        try:
            for number in range(4):
                await sender.begin_transaction()
                await sender.send_and_wait(TOPIC, f"{number}".encode(), partition=0)
                if number % 2:
                    await sender.abort_transaction()
                else:
                    await sender.commit_transaction()
        finally:
            await sender.stop()

    asyncio.run(run())
    assert read(daemon, TOPIC) == ["0", "2"]


def test_an_open_transaction_goes_on_after_kill_9(daemon: Daemon) -> None:
    given_topics(daemon, TOPIC)
    sender = producer(daemon, "survivor")
    sender.begin_transaction()
    send(sender, TOPIC, ["before"])
    daemon.kill()
    daemon.start()
    send(sender, TOPIC, ["after"])
    sender.commit_transaction(WAIT_S)
    assert read(daemon, TOPIC) == ["before", "after"]
