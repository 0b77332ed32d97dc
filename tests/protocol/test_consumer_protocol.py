"""Subscriptions and assignments: ours against an independent codec's, and what is not one."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.compiler import reader
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    read_subscription_topics,
    write_assignment,
    write_subscription,
)
from protocol.names import GenerationId, TopicName
from protocol.primitives import Malformed
from tests.protocol.samples import sample
from tests.protocol.test_against_kafka_python import their_class, to_kafka_python

FULL = ConsumerProtocolSubscription(
    (TopicName("t1"), TopicName("t2")),
    b"user",
    (TopicPartitions(TopicName("t1"), (0, 1)),),
    GenerationId(4),
    "rack-a",
)


@pytest.mark.parametrize("version", range(4))
def test_what_another_codec_writes_is_the_same(version: int) -> None:
    random = Random(version)
    for _ in range(5):
        subscription = sample(ConsumerProtocolSubscription, version, random)
        assignment = sample(ConsumerProtocolAssignment, version, random)

        assert write_subscription(subscription, version) == write_with_kafka_python(
            subscription, version
        )
        assert write_assignment(assignment, version) == write_with_kafka_python(assignment, version)
        assert read_subscription(write_with_kafka_python(subscription, version)) == subscription
        assert read_assignment(write_with_kafka_python(assignment, version)) == assignment
        assert (
            read_subscription_topics(write_with_kafka_python(subscription, version))
            == subscription.topics
        )


def write_with_kafka_python(value: Any, version: int) -> bytes:
    cls = their_class(type(value).__name__)
    body: bytes = cls.encode(to_kafka_python(value, cls, version), version=version)
    return version.to_bytes(2, "big") + body


def test_a_newer_version_is_read_as_our_newest() -> None:
    newer = b"\x00\x09" + write_subscription(FULL)[2:] + b"what v9 appends"

    assert read_subscription(newer) == FULL
    assert read_subscription_topics(newer) == ("t1", "t2")


def test_an_older_version_lacks_what_came_later() -> None:
    assert read_subscription(write_subscription(FULL, 1)) == ConsumerProtocolSubscription(
        FULL.topics, FULL.user_data, FULL.owned_partitions
    )


@pytest.mark.parametrize(
    "raw", [b"", b"\x00", b"\x00\x00", b"\x00\x00\x00\x00\x00\x05", b"sticky", b"\x00" * 7]
)
def test_other_bytes_have_no_topics(raw: bytes) -> None:
    assert read_subscription_topics(raw) is None
    with pytest.raises(Malformed):
        read_subscription(raw)


def test_a_negative_version_is_malformed() -> None:
    with pytest.raises(Malformed, match="ConsumerProtocolAssignment v-1"):
        read_assignment(b"\xff\xff" + bytes(8))


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_made_up_bytes_do_no_harm(raw: bytes) -> None:
    topics = read_subscription_topics(raw)

    assert topics is None or all(isinstance(topic, str) for topic in topics)


def test_the_topics_are_those_of_the_oldest_version() -> None:
    raw = write_subscription(FULL)
    oldest = reader(ConsumerProtocolSubscription, 0)(raw, 2, len(raw))

    assert read_subscription_topics(raw) == oldest.topics
