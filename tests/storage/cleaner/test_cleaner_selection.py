"""Cleaner selection: which part of a log may be cleaned, and which log needs it most."""

import pytest
from msgspec.structs import replace

from storage.api import LogSettings
from storage.cleaner.selection import (
    CleanableRange,
    DirtyRatio,
    SegmentSummary,
    cleanable_range,
    dirty_ratio_of,
    filthiest,
    summarize_segments,
)
from tests.storage.cleaner.rig import SETTINGS, Partition
from tests.storage.rig import NOW_MS

# Four sealed segments of ten offsets and 100 bytes, a minute apart; the active one begins at 40.
MINUTE = 60_000
SEGMENTS = [
    SegmentSummary(base, 100, NOW_MS - (5 - n) * MINUTE, NOW_MS - (4 - n) * MINUTE)
    for n, base in enumerate((0, 10, 20, 30, 40))
]


def found(
    settings: LogSettings = SETTINGS,
    *,
    checkpoint: int | None = None,
    log_start: int = 0,
    stable_to: int = 45,
    segments: list[SegmentSummary] = SEGMENTS,
) -> CleanableRange:
    return cleanable_range(
        segments,
        settings,
        checkpoint=checkpoint,
        log_start=log_start,
        log_end=45,
        stable_to=stable_to,
        now_ms=NOW_MS,
    )


def test_without_a_checkpoint_everything_sealed_is_dirty() -> None:
    assert found() == CleanableRange(0, 40)


def test_dirty_begins_where_the_last_pass_has_ended() -> None:
    assert found(checkpoint=20) == CleanableRange(20, 40)
    assert found(checkpoint=25) == CleanableRange(25, 40)
    assert found(checkpoint=40) == CleanableRange(40, 40)
    assert found(checkpoint=45) == CleanableRange(45, 45), "nothing new"


def test_an_impossible_checkpoint_is_reset_to_the_log_start_and_reported() -> None:
    below = found(checkpoint=3, log_start=12)
    assert below[:2] == (12, 40)
    assert below.reset_because == "the checkpointed offset 3 is below the log start 12"
    above = found(checkpoint=46)
    assert above[:2] == (0, 40)
    assert above.reset_because == "the checkpointed offset 46 is above the log end 45"


@pytest.mark.parametrize(("stable_to", "end"), [(45, 40), (40, 40), (39, 30), (20, 20), (19, 10)])
def test_what_the_journal_may_write_again_is_not_touched(stable_to: int, end: int) -> None:
    assert found(stable_to=stable_to).first_uncleanable == end


def test_what_is_not_stable_at_all_leaves_nothing_to_clean() -> None:
    assert found(stable_to=5) == CleanableRange(0, 0)
    assert found(stable_to=15, checkpoint=20) == CleanableRange(20, 20)


def test_a_segment_with_a_young_record_and_all_after_it_wait() -> None:
    # The greatest timestamps are 4, 3, 2, 1 minutes old.
    for lag_minutes, end in ((5, 0), (4.5, 0), (3.5, 10), (1.5, 30), (0.5, 40), (0, 40)):
        settings = replace(SETTINGS, min_compaction_lag_ms=int(lag_minutes * MINUTE))
        assert found(settings).first_uncleanable == end, lag_minutes
    exactly = replace(SETTINGS, min_compaction_lag_ms=2 * MINUTE)
    assert found(exactly).first_uncleanable == 30, "strictly younger"


def test_a_clean_segment_with_a_young_record_holds_up_nothing() -> None:
    settings = replace(SETTINGS, min_compaction_lag_ms=MINUTE + 1)
    mixed = [SEGMENTS[0]._replace(max_timestamp=NOW_MS), *SEGMENTS[1:]]
    assert found(settings, segments=mixed, checkpoint=10) == CleanableRange(10, 30)


@pytest.mark.parametrize(
    ("most", "end"), [(-1, 0), (1_000, 0), (500, 0), (499, 10), (250, 30), (100, 40), (0, 40)]
)
def test_the_lag_protects_so_many_bytes_of_the_end_and_no_more(most: int, end: int) -> None:
    settings = replace(
        SETTINGS, min_compaction_lag_ms=60 * MINUTE, min_compaction_lag_max_bytes=most
    )
    assert found(settings).first_uncleanable == end


def test_a_log_without_segments_has_nothing_to_clean() -> None:
    assert found(segments=[]) == CleanableRange(0, 0)


# How dirty.


def dirty(
    settings: LogSettings = SETTINGS, *, checkpoint: int | None = None, stable_to: int = 45
) -> DirtyRatio:
    about = found(settings, checkpoint=checkpoint, stable_to=stable_to)
    return dirty_ratio_of(SEGMENTS, about, settings, NOW_MS)


def test_bytes_are_counted_in_whole_segments() -> None:
    assert dirty()[:2] == (0, 400)
    assert dirty(checkpoint=10)[:2] == (100, 300)
    assert dirty(checkpoint=10, stable_to=30)[:2] == (100, 200)
    assert dirty(checkpoint=40)[:2] == (400, 0)
    assert dirty(checkpoint=15)[:2] == (200, 300), "partly clean counts on both sides, as in Kafka"


def test_the_ratio_is_of_what_is_sealed() -> None:
    assert dirty(checkpoint=30).ratio == 0.25
    assert DirtyRatio(0, 0, 0).ratio == 0.0


def test_enough_is_strictly_more_than_the_ratio() -> None:
    half = replace(SETTINGS, min_cleanable_dirty_ratio=0.5)
    assert not DirtyRatio(100, 100, 0).is_enough(half)
    assert DirtyRatio(100, 101, 0).is_enough(half)
    assert not DirtyRatio(0, 0, 0).is_enough(replace(SETTINGS, min_cleanable_dirty_ratio=0.0))


def test_an_overdue_record_is_enough_whatever_the_ratio() -> None:
    lazy = replace(SETTINGS, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=4 * MINUTE + 1)
    assert dirty(lazy).delay_ms == MINUTE - 1
    assert dirty(lazy).is_enough(lazy)
    assert dirty(lazy, checkpoint=10).delay_ms == 0, "that one is clean by now"
    assert not dirty(lazy, checkpoint=10).is_enough(lazy)
    assert not DirtyRatio(100, 0, 5).is_enough(lazy), "there must be something to clean"


def test_the_log_with_the_highest_dirty_ratio_is_first() -> None:
    some, more = (DirtyRatio(10, 20, 0), SETTINGS), (DirtyRatio(10, 30, 0), SETTINGS)
    assert filthiest([some, more, some]) == 1
    assert filthiest([(DirtyRatio(30, 10, 0), SETTINGS)]) is None
    assert filthiest([]) is None
    eager = (DirtyRatio(90, 10, 0), replace(SETTINGS, min_cleanable_dirty_ratio=0.05))
    assert filthiest([eager]) == 0
    assert filthiest([eager, some]) == 1


def test_the_facts_are_the_logs() -> None:
    log = Partition(settings=replace(SETTINGS, max_compaction_lag_ms=5))
    log.write(at=NOW_MS, a=1)
    log.write(at=NOW_MS + 7, b=1)
    log.roll()
    size = log.log.size_bytes
    assert summarize_segments(log.log) == [
        SegmentSummary(0, size, NOW_MS, NOW_MS + 7),
        SegmentSummary(2, 0, -1, -1),
    ]
