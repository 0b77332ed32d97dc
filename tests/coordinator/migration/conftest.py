"""Migration givens: groups to begin a migration with."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from protocol.messages.join_group import JoinGroupResponse
from protocol.names import TopicName
from tests.world import World

VERSION: Final = 3


@pytest.fixture
def world() -> World:
    """One topic with four partitions."""
    world = World()
    world.given_topics(t=4)
    return world


def subscribed(
    *topics: str,
    owned: Mapping[str, Sequence[int]] | None = None,
    rack_id: str | None = None,
    version: int = VERSION,
) -> bytes:
    """A subscription as a member sends it."""
    listed = [TopicPartitions(TopicName(t), partitions) for t, partitions in (owned or {}).items()]
    return write_subscription(
        ConsumerProtocolSubscription(
            topics=[TopicName(topic) for topic in topics],
            owned_partitions=listed,
            rack_id=rack_id,
        ),
        version,
    )


def assigned(
    topic: str = "t",
    partitions: Sequence[int] = (),
    user_data: bytes | None = None,
    version: int = VERSION,
) -> bytes:
    """An assignment as a leader makes it."""
    listed = [TopicPartitions(TopicName(topic), partitions)] if partitions else []
    return write_assignment(ConsumerProtocolAssignment(listed, user_data), version)


def given_classic_group(
    world: World, *assignments: bytes, protocol_name: str = "range", **offer: object
) -> list[JoinGroupResponse]:
    """A Stable classic group, generation 1, with a member for each of these assignments."""
    offered = {"protocols": ((protocol_name, subscribed("t")),), **offer}
    answers = world.given_joined(members=len(assignments), **offered)
    by_member = {
        answer.member_id: assignment
        for answer, assignment in zip(answers, assignments, strict=True)
    }
    for answer in reversed(answers):
        world.sync(
            "g",
            answer.member_id,
            answer.generation_id,
            assignments=by_member if answer is answers[0] else None,
            protocol_type=answer.protocol_type,
            protocol_name=protocol_name,
        )
    return answers
