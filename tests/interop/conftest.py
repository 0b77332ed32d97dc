"""Fixtures for tests with real clients: one daemon for many groups, and topics for them to read."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.daemon import Daemon

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",  # a member's death is to be noticed soon
}

GivenTopic = Callable[..., str]


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """For tests that do not touch the daemon itself: each has its own topic and group."""
    daemon = Daemon(tmp_path_factory.mktemp("shared"), SETTINGS)
    daemon.start()
    yield daemon
    daemon.close()


_numbers = itertools.count(1)


@pytest.fixture
def given_topic(shared_daemon: Daemon) -> GivenTopic:
    """`given_topic(partitions, messages)`: a new topic's name; the messages fill it in turn."""

    def create(partitions: int, messages: int = 0) -> str:
        topic = f"topic-{next(_numbers)}"
        create_topic(shared_daemon.bootstrap, topic, partitions)
        produce(shared_daemon.bootstrap, topic, partitions, range(messages))
        return topic

    return create


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for_good = {"retention.ms": "-1"}  # `produce` gives its messages times of long ago
    new = NewTopic(topic, num_partitions=partitions, config=for_good)
    admin.create_topics([new])[topic].result(60)


FIRST_TIMESTAMP_MS = 1_700_000_000_000
"""The n-th message that `produce` writes is n seconds younger than the first."""


def produce(bootstrap: str, topic: str, partitions: int, numbers: range) -> None:
    """Message n goes to partition n % partitions; returns when every one is acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    for n in numbers:
        producer.produce(
            topic,
            f"message {n}",
            partition=n % partitions,
            timestamp=FIRST_TIMESTAMP_MS + n * 1_000,
        )
    assert producer.flush(60) == 0, "messages were not acknowledged"
