"""Migration in the history: groups that move between the two protocols, with clients of both."""

import pytest

from history.causes import Cause, End
from history.consumer_entries import GroupConvertedEntry
from history.entries import MemberAddedEntry, RebalanceBegunEntry, RebalanceEndedEntry
from tests.coordinator.migration.test_rolling_migration import RollingGroup, there_and_back
from tests.history.history_world import HistoryWorld


def rolling_group(seed: int) -> tuple[RollingGroup, HistoryWorld]:
    rolling, world = RollingGroup(seed), HistoryWorld()
    world.given_topics(t=7)
    rolling.world = world
    return rolling, world


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
def test_rebalances_are_whole_across_conversions(seed: int, *, is_static: bool) -> None:
    rolling, world = rolling_group(seed)
    for number in range(3):
        rolling.start_classic(f"i{number}" if is_static else None)
    there_and_back(rolling)
    up, down = [entry for entry in world.history if isinstance(entry, GroupConvertedEntry)]
    assert (up.from_type, up.to_type) == ("classic", "consumer")
    assert (down.from_type, down.to_type) == ("consumer", "classic")
    running = None
    for entry in world.history:
        if isinstance(entry, RebalanceBegunEntry):
            assert running is None
            running = entry
        elif isinstance(entry, RebalanceEndedEntry):
            assert running is not None
            assert entry.rebalance.began_at_ms == running.at_ms
            assert entry.rebalance.group_type == running.group_type
            assert entry.rebalance.end in (End.STABLE, End.EMPTY, End.OVERTAKEN)
            running = None
    assert running is None
    assert world.last.end in (End.STABLE, End.KEPT)
    assert {rebalance.group_type for rebalance in world.rebalances()} == {"", "consumer"}


def test_an_upgrade_names_the_member_that_came_with_the_new_protocol() -> None:
    rolling, world = rolling_group(0)
    rolling.start_classic()
    rolling.start_classic()
    rolling.run_until_stable()
    recorded = len(world.history)
    rolling.start_consumer()
    rolling.run_until_stable()
    converted, added, begun, *_ = world.history[recorded:]
    assert isinstance(converted, GroupConvertedEntry)
    assert converted.members == 2
    assert isinstance(added, MemberAddedEntry)
    assert (added.member.client_id, added.protocol) == ("consumer3", "consumer")
    assert isinstance(begun, RebalanceBegunEntry)
    assert (begun.cause, begun.members, begun.generation) == (
        Cause.MEMBER_JOINED,
        2,
        converted.generation,
    )
    rebalance = world.last
    assert (rebalance.group_type, rebalance.members_after) == ("consumer", 3)
    assert rebalance.partitions_moved == 2


def test_a_downgrade_names_the_member_that_left_last() -> None:
    rolling, world = rolling_group(0)
    rolling.start_consumer()
    rolling.start_classic()
    rolling.run_until_stable()
    recorded = len(world.history)
    rolling.stop(rolling.clients[0])
    rolling.run_until_stable()
    (begun,) = [e for e in world.history[recorded:] if isinstance(e, RebalanceBegunEntry)]
    assert (begun.group_type, begun.cause) == ("", Cause.MEMBER_LEFT)
    assert begun.trigger is not None
    assert begun.trigger.client_id == "consumer1"
    assert world.last.end is End.STABLE
