"""Subscriptions: read from consumers' metadata, unknown where it cannot be read."""

import pytest

from coordinator.classic.subscriptions import (
    subscribed_topics,
    topics_of_subscription,
)
from protocol.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from protocol.names import GroupState, TopicName
from tests.coordinator.offset_givens import AUDIT, ORDERS, given_group


def a_subscription(*topics: str, version: int = 3) -> bytes:
    wanted = ConsumerProtocolSubscription(tuple(map(TopicName, topics)), b"user data")
    return write_subscription(wanted, version)


@pytest.mark.parametrize("version", ConsumerProtocolSubscription.VERSIONS)
def test_the_topics_are_read_from_every_version(version: int) -> None:
    assert topics_of_subscription(a_subscription("a", "b", version=version)) == ("a", "b")


@pytest.mark.parametrize(
    "subscription",
    [
        b"",
        b"\x00",
        b"\x00\x00",
        b"\x00\x00\x00\x00\x00\x02\x00\x01a",  # a topic is missing
        a_subscription("a", version=0)[:-1],  # the user data breaks off
        b"\xff\xff" + a_subscription("a", version=0)[2:],  # a negative version
        b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff",  # null topics
    ],
)
def test_bytes_that_are_no_subscription_say_nothing(subscription: bytes) -> None:
    assert topics_of_subscription(subscription) is None


def test_a_version_of_the_future_is_read_by_what_all_versions_share() -> None:
    future = b"\x00\x63" + a_subscription("a", version=3)[2:] + b"more"

    assert topics_of_subscription(future) == ("a",)


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "subscriptions", "expected"),
    [
        (
            "consumer",
            "range",
            [a_subscription("a", "b"), a_subscription("b", "c")],
            {"a", "b", "c"},
        ),
        ("consumer", "range", [a_subscription()], frozenset()),
        ("consumer", "range", [a_subscription("a"), b"?"], None),
        ("consumer", None, [], frozenset()),
        ("consumer", None, [a_subscription("a")], None),
        ("connect", "sessioned", [a_subscription("a")], None),
        (None, None, [], None),
    ],
)
def test_a_group_subscribes_to_what_its_members_do_together(
    protocol_type: str | None,
    protocol_name: str | None,
    subscriptions: list[bytes],
    expected: set[str] | None,
) -> None:
    assert subscribed_topics(protocol_type, protocol_name, subscriptions) == expected


@pytest.mark.parametrize(
    ("kind", "subscribed", "expected"),
    [
        ("consumer", frozenset({"orders"}), True),
        ("consumer", frozenset({"audit"}), False),
        ("consumer", None, True),
        ("connect", None, False),
    ],
)
def test_consumers_that_cannot_be_asked_are_taken_to_read_everything(
    kind: str, subscribed: frozenset[str] | None, expected: bool
) -> None:
    group = given_group(GroupState.STABLE, kind, subscribed)
    assert group.is_subscribed_to(ORDERS) is expected


def test_a_simple_group_subscribes_to_nothing() -> None:
    assert not given_group(GroupState.EMPTY, None, None).is_subscribed_to(AUDIT)
