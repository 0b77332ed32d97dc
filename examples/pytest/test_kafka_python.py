"""Tests of a consumer with kafka-python: reading, a member that dies, a failing commit.

Run with `pytest examples/pytest`: nothing else has to be started.
"""

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import CommitFailedError

TOPIC, GROUP = "orders", "billing"

POLL_MS = 60_000
"""kafka-python 3.0 loses its membership if a poll ends in the middle of a rebalance. So a poll has
time enough, and each test has a record that ends it."""


@pytest.fixture
def producer(rollcall):
    rollcall.create_topic(TOPIC)
    producer = KafkaProducer(bootstrap_servers=rollcall.bootstrap)
    producer.send(TOPIC, b"order 1").get(60)
    yield producer
    producer.close()


@pytest.fixture
def consumer(rollcall, producer):
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=rollcall.bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=45_000,
        heartbeat_interval_ms=100,
    )
    assert read(consumer) == [b"order 1"]
    rollcall.wait(GROUP, state="Stable", members=1)
    yield consumer
    consumer.close()


def read(consumer):
    batches = consumer.poll(timeout_ms=POLL_MS)
    return [record.value for records in batches.values() for record in records]


def test_it_reads_what_is_produced(producer, consumer):
    producer.send(TOPIC, b"order 2").get(60)

    assert read(consumer) == [b"order 2"]


def test_a_member_that_died_joins_again_and_reads_from_its_last_commit(rollcall, consumer):
    (before,) = rollcall.group(GROUP).members

    rollcall.expire(GROUP, before.member_id)
    assert rollcall.group(GROUP).state == "Empty"

    assert read(consumer) == [b"order 1"]  # nothing was committed
    (after,) = rollcall.wait(GROUP, state="Stable", members=1).members
    assert after.member_id != before.member_id


def test_a_commit_of_a_member_that_is_gone_fails(rollcall, consumer):
    rollcall.fail_next("OffsetCommit", "UNKNOWN_MEMBER_ID")

    with pytest.raises(CommitFailedError):
        consumer.commit({TopicPartition(TOPIC, 0): OffsetAndMetadata(1, "", -1)})
