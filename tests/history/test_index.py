"""Memory holds the last rebalances, within its limits, and never lets go of one that runs."""

from history.events import (
    Cause,
    End,
    GroupDeleted,
    GroupLoaded,
    MemberJoined,
    Rebalance,
    RebalanceBegan,
    RebalanceEnded,
)
from history.index import HistoryIndex, IndexLimits


def ended(group_id: str, generation: int) -> RebalanceEnded:
    return RebalanceEnded(
        group_id,
        generation,
        Rebalance(
            Cause.MEMBER_LEFT,
            0,
            end=End.STABLE,
            generation_before=generation - 1,
            generation_after=generation,
        ),
    )


def generations(index: HistoryIndex, group_id: str) -> list[int | None]:
    return [one.generation_after for one in index.rebalances(group_id)]


def test_the_newest_comes_first_and_the_oldest_goes() -> None:
    index = HistoryIndex(IndexLimits(rebalances_per_group=3))
    for generation in range(1, 6):
        index.apply(ended("g", generation))
        index.check()
    assert generations(index, "g") == [5, 4, 3]
    assert index.kept == 3


def test_groups_that_were_touched_long_ago_go_first_but_not_what_runs() -> None:
    index = HistoryIndex(IndexLimits(rebalances_per_group=10, rebalances=4))
    index.apply(ended("old", 1))
    index.apply(RebalanceBegan("old", 5, generation=1))
    for generation in (1, 2):
        index.apply(ended("middle", generation))
        index.apply(ended("new", generation))
    index.check()
    assert [one.end for one in index.rebalances("old")] == [End.RUNNING]
    assert generations(index, "middle") == [2, 1]
    for generation in (3, 4, 5, 6):
        index.apply(ended("new", generation))
    assert generations(index, "middle") == []
    assert generations(index, "new") == [6, 5, 4, 3]
    assert index.running("old") is not None


def test_what_is_no_rebalance_takes_no_place() -> None:
    index = HistoryIndex(IndexLimits())
    index.apply(MemberJoined("g", 0))
    index.apply(GroupDeleted("h", 0))
    assert list(index.groups()) == []
    assert index.rebalances("g") == []
    assert index.running("g") is None


def test_a_story_that_begins_in_the_middle() -> None:
    """Retention, or the reading of a tail, may have taken the beginning."""
    index = HistoryIndex(IndexLimits())
    index.apply(GroupLoaded("g", 3, generation=7, members=2))
    index.apply(ended("g", 8))
    assert generations(index, "g") == [8, 7]


def test_clear() -> None:
    index = HistoryIndex(IndexLimits())
    index.apply(ended("g", 8))
    index.clear()
    index.check()
    assert index.rebalances("g") == []
