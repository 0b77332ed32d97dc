"""The epoch of a heartbeat: who is fenced, and what a lost answer costs."""

import pytest

from coordinator.consumer.events import ConsumerMemberFenced
from protocol.names import ErrorCode
from tests.consumer_client import ConsumerClient, until_stable
from tests.world import World


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(t=4)
    return world


def test_an_unknown_group(world: World) -> None:
    answer = world.heartbeat_consumer("g", "a", 3).beaten
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Consumer group g not found."
    answer = world.heartbeat_consumer("g", "a", -1).beaten
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g not found."


def test_an_unknown_member(world: World) -> None:
    ConsumerClient(world, "a").join()
    for epoch in (2, -1):
        answer = world.heartbeat_consumer("g", "b", epoch).beaten
        assert answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID
        assert answer.error_message == "Member b is not a member of group g."


def test_an_epoch_of_the_future_is_fenced(world: World) -> None:
    ConsumerClient(world, "a").join()
    answer = world.heartbeat_consumer("g", "a", 3).beaten

    assert answer.error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert answer.error_message == (
        "The consumer group member has a greater member epoch (3) than the one known by the group"
        " coordinator (2). The member must abandon all its partitions and rejoin."
    )
    [fenced] = world.events_of(ConsumerMemberFenced)
    assert (fenced.member_id, fenced.received_epoch, fenced.member_epoch) == ("a", 3, 2)


def test_the_epoch_before_is_accepted_from_who_owns_no_more_than_it_may(world: World) -> None:
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    b.join()
    until_stable(a, b)
    assert a.epoch == 3
    kept = a.owned["t"]

    for owned, error_code in (
        (None, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"t": range(4)}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"other": [0]}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"t": kept}, ErrorCode.NONE),
        ({"t": list(kept)[:1]}, ErrorCode.NONE),
        ({}, ErrorCode.NONE),
    ):
        answer = world.heartbeat_consumer("g", "a", 2, owned=owned).beaten
        assert answer.error_code is error_code, owned
    assert answer.member_epoch == 3
    assert world.heartbeat_consumer("g", "a", 1, owned={}).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_heartbeat_changes_nothing(world: World) -> None:
    ConsumerClient(world, "a").join()
    stored, deadline_ms = len(world.log.batches), _deadline_ms(world)
    world.advance(1_000)
    world.heartbeat_consumer("g", "a", 9, topics=("x",))

    assert len(world.log.batches) == stored
    assert _deadline_ms(world) == deadline_ms
    assert world.consumer_group().members["a"].metadata.subscribed_topic_names == ("t",)


def _deadline_ms(world: World) -> int:
    return world.consumer_group().members["a"].session_deadline_ms  # type: ignore[index]
