"""Generation numbers: after the greatest one they begin again at 1, before and after a crash."""

import pytest

from coordinator.classic.generations import LAST_GENERATION, is_later, next_generation
from coordinator.records import group_metadata_record
from protocol.names import ErrorCode, GenerationId, GroupId, GroupState
from tests.world import World, kafka_settings


@pytest.mark.parametrize(
    ("newest", "following"), [(0, 1), (1, 2), (LAST_GENERATION - 1, LAST_GENERATION)]
)
def test_generations_count_up(newest: int, following: int) -> None:
    assert next_generation(GenerationId(newest)) == following


def test_after_the_last_generation_comes_the_first() -> None:
    assert next_generation(LAST_GENERATION) == 1
    assert is_later(GenerationId(1), than=LAST_GENERATION)
    assert not is_later(LAST_GENERATION, than=GenerationId(1))
    assert not is_later(LAST_GENERATION, than=LAST_GENERATION)
    assert is_later(LAST_GENERATION, than=GenerationId(LAST_GENERATION - 3))


@pytest.mark.parametrize("recorded", [True, False])
def test_a_group_in_its_last_generation_goes_on_with_the_first(recorded: bool) -> None:
    """Kafka goes on with a negative one, whose members are taken for no members."""
    world = World(kafka_settings(generation_records=recorded))
    record = group_metadata_record(
        GroupId("g"),
        protocol_type="consumer",
        generation_id=LAST_GENERATION,
        protocol_name=None,
        leader_id=None,
        state_since_ms=1,
        members=(),
    )
    world.log.append([record], 1)
    world.log.store()
    world.crash()
    (leader,) = world.given_joined("g", members=1)
    assert leader.generation_id == 1

    # Known after a crash, as any generation is.
    world.crash()
    group = world.group()
    if recorded:
        assert (group.state, group.generation_id) == (GroupState.COMPLETING_REBALANCE, 1)
        assert world.sync("g", leader.member_id, 1).error is ErrorCode.NONE
        world.crash()
        assert (world.group().state, world.group().newest_generation_id) == (GroupState.STABLE, 1)
        assert world.commit("g", leader.member_id, 1) is ErrorCode.NONE
        world.leave("g", leader.member_id)
        assert world.group().generation_id == 2
