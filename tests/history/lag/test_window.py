"""A partition's window: which status Burrow's rules give, and how rates come about."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history.lag.model import (
    LagNote,
    LagRates,
    LagStatus,
    Reading,
    catch_up_seconds,
    catch_up_state,
    group_status,
)
from history.lag.window import (
    LagWindow,
    LogEnds,
    SampledCommit,
    WindowLimits,
    evaluate_window,
    lag_rates,
)

MINUTE = 60_000
START = 1_700_000_000_000
FULL = WindowLimits(commits=4, window_ms=4 * MINUTE)


def window(offsets_and_lags: Sequence[tuple[int, int]], every_ms: int = MINUTE) -> LagWindow:
    """Commits in even steps; the lag now is the last one's."""
    made = LagWindow()
    for n, (offset, lag) in enumerate(offsets_and_lags):
        made.see(
            Reading("t", 0, offset, START + n * every_ms, 0, offset + lag), START + n * every_ms, 4
        )
    return made


def last_ms(made: LagWindow) -> int:
    return list(made.commits())[-1].committed_at_ms


def status(made: LagWindow, silent_ms: int = 1_000, ends: LogEnds | None = None) -> LagStatus:
    return evaluate_window(made, ends, last_ms(made) + silent_ms, FULL)


def test_no_lag_now_is_ok_whatever_was_before() -> None:
    made = window([(10, 5), (9, 5), (9, 5), (9, 5)])
    made.see(Reading("t", 0, 9, START + 3 * MINUTE, 0, 9), START + 4 * MINUTE, 4)
    assert evaluate_window(made, None, START + 99 * MINUTE, FULL) is LagStatus.OK


def test_it_commits_and_its_lag_shrinks_somewhere() -> None:
    assert status(window([(10, 5), (20, 6), (30, 5), (40, 9)])) is LagStatus.OK


def test_it_commits_and_its_lag_never_shrinks() -> None:
    assert status(window([(10, 5), (20, 5), (30, 6), (40, 9)])) is LagStatus.WARN


def test_a_lag_of_zero_within_the_window_is_ok() -> None:
    assert status(window([(10, 0), (20, 5), (30, 6), (40, 9)])) is LagStatus.OK


def test_commits_of_one_offset_are_a_stall() -> None:
    assert status(window([(10, 5), (10, 6), (10, 7), (10, 9)])) is LagStatus.STALL


def test_a_silence_longer_than_the_window_is_a_stop() -> None:
    made = window([(10, 5), (20, 4), (30, 3), (40, 2)])
    assert status(made, silent_ms=3 * MINUTE) is LagStatus.OK  # exactly as long as it spans
    assert status(made, silent_ms=3 * MINUTE + 1) is LagStatus.STOP


def test_a_consumer_that_was_at_the_end_a_moment_ago_has_not_stopped() -> None:
    made = window([(10, 0), (20, 0), (30, 0), (40, 2)])
    ends = LogEnds()
    ends.see(START + 10 * MINUTE, 40, 4)
    ends.see(START + 11 * MINUTE, 42, 4)
    assert status(made, 8 * MINUTE, ends) is LagStatus.OK
    for n in range(4):
        ends.see(START + (12 + n) * MINUTE, 42, 4)
    assert status(made, 12 * MINUTE, ends) is LagStatus.STOP


def test_going_back_is_a_rewind_until_it_is_made_up_for() -> None:
    assert status(window([(10, 5), (20, 5), (3, 22), (9, 16)])) is LagStatus.REWIND
    assert status(window([(10, 5), (3, 5), (9, 3), (10, 2)])) is LagStatus.OK


def test_a_rewind_counts_though_the_lag_was_zero_before() -> None:
    assert status(window([(10, 0), (20, 0), (3, 17)])) is LagStatus.REWIND


def test_before_the_window_is_full_little_is_said() -> None:
    assert status(window([(10, 5)])) is LagStatus.OK
    assert status(window([(10, 5), (10, 6), (10, 7)])) is LagStatus.OK
    assert status(window([(10, 5)]), FULL.window_ms) is LagStatus.OK
    assert status(window([(10, 5)]), FULL.window_ms + 1) is LagStatus.STOP


def test_a_consumer_that_commits_rarely_has_not_stopped_between_two_commits() -> None:
    made = window([(10, 5), (20, 4)], every_ms=10 * MINUTE)
    assert status(made, 20 * MINUTE) is LagStatus.OK
    assert status(made, 20 * MINUTE + 1) is LagStatus.STOP


def test_a_partition_without_a_commit_is_ok_and_without_a_lag() -> None:
    made = LagWindow()
    assert not made.see(Reading("t", 0, None, None, 0, 100), START, 4)
    assert (made.lag, evaluate_window(made, None, START + 99 * MINUTE, FULL)) == (
        None,
        LagStatus.OK,
    )


@pytest.mark.parametrize(
    ("reading", "lag", "note"),
    [
        (Reading("t", 0, 40, 1, 0, 100), 60, LagNote.NONE),
        (Reading("t", 0, 100, 1, 0, 100), 0, LagNote.NONE),
        (Reading("t", 0, 120, 1, 0, 100), 0, LagNote.BEYOND_END),
        (Reading("t", 0, 40, 1, 50, 100), 60, LagNote.LOST),
        (Reading("t", 0, 50, 1, 50, 100), 50, LagNote.NONE),
        (Reading("t", 0, None, None, 0, 100), None, LagNote.NO_COMMIT),
        (Reading("t", 0, 40, 1, None, None), None, LagNote.NO_PARTITION),
        (Reading("t", 0, 40, 1, 0, 100, recreated=True), None, LagNote.RECREATED),
    ],
)
def test_what_a_reading_means(reading: Reading, lag: int | None, note: LagNote) -> None:
    assert (reading.lag, reading.note) == (lag, note)


def test_the_same_commit_is_kept_once_and_the_oldest_goes_first() -> None:
    made = window([(n, 5) for n in range(9)])
    assert [commit.committed_offset for commit in made.commits()] == [5, 6, 7, 8]
    again = Reading("t", 0, 8, last_ms(made), 0, 50)
    assert not made.see(again, START + 99 * MINUTE, 4)
    assert len(made) == 4
    assert made.lag == 42


def test_since_when_there_is_lag_and_when_the_offset_moved() -> None:
    made = window([(10, 0), (10, 3), (10, 4)])
    assert made.moved_at_ms == START
    assert made.lagging_since_ms == START + MINUTE
    made.see(Reading("t", 0, 14, START + 3 * MINUTE, 0, 14), START + 3 * MINUTE, 4)
    assert (made.moved_at_ms, made.lagging_since_ms) == (START + 3 * MINUTE, 0)


def test_what_was_restored_stands_before_what_was_seen_since() -> None:
    made = window([(30, 5)])
    kept = [SampledCommit(START - n * MINUTE, 10 + n, 1) for n in (3, 2, 1)]
    made.restore([*kept, SampledCommit(START, 30, 5)], 4)
    assert [commit.committed_offset for commit in made.commits()] == [13, 12, 11, 30]
    assert made.moved_at_ms == START


def test_samples_are_restored_in_any_order_and_once() -> None:
    kept = [SampledCommit(START + n * MINUTE, 10 + n, 1) for n in range(4)]
    made = LagWindow()
    for part in (kept[1:2], kept[2:3], kept, kept[3:]):
        made.restore(part, 4)
    assert list(made.commits()) == kept


# ------------------------------------------------------------ rates


def test_rates_are_over_the_windows_time() -> None:
    made = window([(0, 60), (60, 60), (120, 60), (180, 60)])
    ends = LogEnds()
    for n in range(4):
        ends.see(START + n * MINUTE, 60 + 120 * n, 5)
    now_ms = START + 3 * MINUTE
    reading = Reading("t", 0, 180, now_ms, 0, 420)
    assert lag_rates(made, ends, reading, now_ms, FULL)[:2] == (1.0, 2.0)
    # Within a shorter time only what is in it counts.
    assert lag_rates(made, ends, reading, now_ms, WindowLimits(4, MINUTE))[:2] == (1.0, 2.0)


def test_a_consumer_that_stopped_long_ago_consumes_nothing() -> None:
    made = window([(0, 60), (60, 60)])
    assert made.consumed_per_second(START + 99 * MINUTE, 4 * MINUTE) == 0.0


def test_one_moment_gives_no_rate() -> None:
    assert window([(0, 60)]).consumed_per_second(START + 1, 4 * MINUTE) is None
    ends = LogEnds()
    assert ends.produced_per_second(START, 5, MINUTE) is None
    ends.see(START, 5, 4)
    assert ends.produced_per_second(START, 5, MINUTE) is None
    assert ends.produced_per_second(START + 2_000, 7, MINUTE) == 1.0


@pytest.mark.parametrize(
    ("lag", "both", "seconds"),
    [
        (100, LagRates(15.0, 5.0), 10.0),
        (100, LagRates(15.0, 20.0, 10.0), 100 / 15),  # a small lag: of less than ten seconds
        (100, LagRates(15.0, 20.0, 0.0, recovers=True), 100 / 15),
        (100, LagRates(15.0, 20.0, 5.0), None),
        (100, LagRates(0.0, 0.0, 10.0), None),
        (100, LagRates(5.0, 5.0), None),
        (100, LagRates(5.0, 6.0), None),
        (100, LagRates(None, 6.0), None),
        (0, LagRates(None, None), 0.0),
        (None, LagRates(15.0, 5.0), None),
    ],
)
def test_the_time_to_catch_up(lag: int | None, both: LagRates, seconds: float | None) -> None:
    assert catch_up_seconds(lag, both, catch_up_state(lag, both)) == seconds
    nobody = catch_up_state(lag, both, has_readers=False)
    assert catch_up_seconds(lag, both, nobody) == (0.0 if lag == 0 else None)


def test_when_a_record_was_appended_is_estimated_from_the_ends() -> None:
    ends = LogEnds()
    ends.see(START, 100, 4)
    ends.see(START + 1_000, 100, 4)
    ends.see(START + 2_000, 200, 4)
    assert ends.appended_at_ms(99) is None  # before all that was seen
    assert ends.appended_at_ms(100) == START + 1_000
    assert ends.appended_at_ms(150) == START + 1_500
    assert ends.appended_at_ms(200) is None  # there is no such record yet


def test_a_truncated_log_starts_a_new_series() -> None:
    ends = LogEnds()
    ends.see(START, 100, 4)
    ends.see(START + 1_000, 7, 4)
    assert (len(ends), ends.lowest, ends.newest) == (1, 7, (START + 1_000, 7))
    ends.see(START + 500, 8, 4)  # a clock that went back
    assert len(ends) == 1


def test_a_group_is_as_bad_as_its_worst_partition() -> None:
    assert group_status([]) is LagStatus.OK
    assert group_status([LagStatus.OK, LagStatus.WARN]) is LagStatus.WARN
    for bad in (LagStatus.STOP, LagStatus.STALL, LagStatus.REWIND):
        assert group_status([LagStatus.OK, bad, LagStatus.WARN]) is LagStatus.ERR


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(-50, 200), st.integers(-2_000, 200_000)),
        max_size=60,
    ),
    st.integers(0, 400_000),
)
def test_whatever_is_read_nothing_is_negative_and_windows_are_bounded(
    steps: list[tuple[int, int, int]], later_ms: int
) -> None:
    made, ends, now_ms = LagWindow(), LogEnds(), START
    for offset, lag, pause_ms in steps:
        now_ms += pause_ms
        reading = Reading("t", 0, offset, now_ms - 5, 0, offset + lag)
        made.see(reading, now_ms, 4)
        ends.see(now_ms, max(offset + lag, 0), 5)
        assert made.lag is not None
        assert made.lag >= 0
        assert len(made) <= 4
        assert len(ends) <= 5
        both = lag_rates(made, ends, reading, now_ms + later_ms, FULL)
        assert both.consumed is None or both.consumed >= 0
        assert both.produced is None or both.produced >= 0
        seconds = catch_up_seconds(made.lag, both, catch_up_state(made.lag, both))
        assert seconds is None or seconds >= 0
        assert evaluate_window(made, ends, now_ms, FULL) in LagStatus
