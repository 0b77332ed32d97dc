"""Tests of a consumer with confluent-kafka (librdkafka): a timeout, a rebalance, a failing commit.

Run with `pytest examples/pytest`: nothing else has to be started.
"""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

TOPIC, GROUP = "orders", "billing"


class Billing:
    """The code under test: it reads orders, and commits each one when it is done with it."""

    def __init__(self, bootstrap, name="billing-1"):
        self.lost = []
        self.owned = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 100,
                "log_level": 0,
            }
        )
        self.consumer.subscribe([TOPIC], on_assign=self._assigned, on_lost=self._lost)

    def _assigned(self, _, partitions):
        self.owned += [each.partition for each in partitions]

    def _lost(self, _, partitions):
        self.lost += [each.partition for each in partitions]

    def poll(self):
        message = self.consumer.poll(0.01)
        return None if message is None or message.error() else message.value()

    def done(self, offset):
        position = TopicPartition(TOPIC, 0, offset)
        self.consumer.commit(offsets=[position], asynchronous=False)

    def close(self):
        self.consumer.close()


@pytest.fixture
def billing(rollcall):
    rollcall.create_topic(TOPIC)
    app = Billing(rollcall.bootstrap)
    until(lambda: app.poll() or app.owned)
    rollcall.wait(GROUP, state="Stable", members=1)
    yield app
    app.close()


def until(is_so):
    for _ in range(6_000):  # of 10 ms, the timeout of a poll
        if is_so():
            return
    pytest.fail("it did not happen within a minute")


def test_it_reads_what_is_produced(rollcall, billing):
    producer = Producer({"bootstrap.servers": rollcall.bootstrap})
    producer.produce(TOPIC, b"order 1")
    producer.flush()

    until(lambda: billing.poll() == b"order 1")


def test_it_notices_that_it_was_thought_dead_and_comes_back(rollcall, billing):
    rollcall.advance(46)  # more than session.timeout.ms, which is 45 s

    until(lambda: billing.poll() or billing.lost)

    assert billing.lost == [0]
    until(lambda: billing.poll() or len(billing.owned) == 2)
    rollcall.wait(GROUP, state="Stable", members=1)


def test_a_commit_in_a_rebalance_fails_once_and_then_succeeds(rollcall, billing):
    rollcall.fail_next("OffsetCommit", "REBALANCE_IN_PROGRESS")

    with pytest.raises(KafkaException) as failed:
        billing.done(1)

    assert failed.value.args[0].code() == KafkaError.REBALANCE_IN_PROGRESS
    billing.done(1)
