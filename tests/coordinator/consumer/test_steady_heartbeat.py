"""The fast path of a heartbeat: it answers as the long way does, and leaves no trace."""

import pytest
from msgspec.structs import replace

from coordinator.consumer.commands import ConsumerHeartbeat
from coordinator.consumer.decide.heartbeat import decide_heartbeat
from coordinator.consumer.decide.steady_heartbeat import is_steady
from coordinator.consumer.events import ConsumerSessionExtended
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.names import ErrorCode, GroupId, GroupInstanceId, MemberId, TopicName
from tests.consumer_client import ConsumerClient, until_stable
from tests.world import Token, World

BEAT = ConsumerGroupHeartbeatRequest(GroupId("g"), MemberId("a"), 2)


@pytest.fixture
def world() -> World:
    world = World()
    world.given_topics(t=4)
    a = ConsumerClient(world, "a", instance_id="i", rack_id="r", assignor="range")
    a.join()
    until_stable(a)
    return world


def steady(world: World, request: ConsumerGroupHeartbeatRequest, client_id: str = "a") -> bool:
    context = world.coordinator._context.consumer
    return is_steady(world.consumer_group(), request, Token(1, client_id), world.now, context)


@pytest.mark.parametrize(
    "request_",
    [
        BEAT,
        replace(BEAT, instance_id=GroupInstanceId("i")),
        replace(BEAT, rack_id="r"),
        replace(BEAT, server_assignor="range"),
        replace(BEAT, topic_partitions=[HeartbeatTopicPartitions()]),
    ],
)
def test_it_answers_as_the_long_way(world: World, request_: ConsumerGroupHeartbeatRequest) -> None:
    assert steady(world, request_)
    token = Token(1, "a")
    context = world.coordinator._context.consumer
    command = ConsumerHeartbeat(GroupId("g"), request_, token)
    outcome = decide_heartbeat(world.consumer_group(), command, world.now, context)
    assert [type(event) for event in outcome.events] == [ConsumerSessionExtended]
    assert not outcome.records

    seen, stored = len(world.events), len(world.log.batches)
    asked = world.ask(request_, version=1, client_id="a")
    assert asked.beaten == outcome.replies[0].response
    assert (len(world.events), len(world.log.batches)) == (seen, stored)


def test_it_extends_the_session(world: World) -> None:
    world.advance(10_000)
    world.ask(BEAT, version=1, client_id="a")
    member = world.consumer_group().members[MemberId("a")]
    assert member.session_deadline_ms == world.now.mono_ms + 45_000


@pytest.mark.parametrize(
    "request_",
    [
        replace(BEAT, member_id=MemberId("b")),
        replace(BEAT, member_epoch=1),
        replace(BEAT, member_epoch=3),
        replace(BEAT, member_epoch=0),
        replace(BEAT, member_epoch=-1),
        replace(BEAT, member_epoch=-2),
        replace(BEAT, instance_id=GroupInstanceId("j")),
        replace(BEAT, rack_id="s"),
        replace(BEAT, server_assignor="uniform"),
        replace(BEAT, rebalance_timeout_ms=1),
        replace(BEAT, subscribed_topic_names=[TopicName("t")]),
        replace(BEAT, subscribed_topic_regex=""),
    ],
)
def test_what_says_something_new_takes_the_long_way(
    world: World, request_: ConsumerGroupHeartbeatRequest
) -> None:
    assert not steady(world, request_)


def test_an_assignor_that_is_not_configured_any_more_is_refused(world: World) -> None:
    del world.assignors["range"]
    request = replace(BEAT, server_assignor="range")
    assert not steady(world, request)
    asked = world.ask(request, version=1, client_id="a")
    assert asked.error is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_new_client_id_takes_the_long_way(world: World) -> None:
    assert not steady(world, BEAT, "other")


def test_a_group_that_has_something_to_do_takes_the_long_way(world: World) -> None:
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    assert not steady(world, BEAT)
    world.ask(BEAT, version=1, client_id="a")
    assert steady(world, BEAT)
    ConsumerClient(world, "b").join()
    assert not steady(world, BEAT)


@pytest.mark.pure
def test_a_bug_fails_the_request_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr("coordinator.consumer.steady_session.is_steady", broken)
    with pytest.raises(ZeroDivisionError):
        world.ask(BEAT, version=1, client_id="a")
    assert world.consumer_group().members
