"""Simulated consumers of known rates: what is said of their lag, at any moment of their lives?

A producer and a consumer run in steps of 100 ms; the book is sampled every 15 s, and asked in
between, as `rollcall lag` does. What is true is known from the rates.
"""

from collections.abc import Callable, Iterator

import pytest

from history.lag.model import CatchUp, GroupLag, PartitionLag, Reading
from history.lag.store import LagLimits, LagStore

STEP_MS = 100
SECOND = 1_000
MINUTE = 60 * SECOND
START = 1_700_000_000_000
LIMITS = LagLimits()

Rate = Callable[[int], float]
"""Records a second, at so many ms after the start."""


def steadily(rate: float) -> Rate:
    return lambda _: rate


class Life:
    """One partition's producer and its consumer."""

    def __init__(
        self, produced: Rate, consumed: Rate, *, commit_ms: int, lag: int = 0, ask_ms: int = 3_700
    ) -> None:
        self.produced, self.consumed = produced, consumed
        self.commit_ms, self.ask_ms = commit_ms, ask_ms
        self.end, self.position = 1_000.0 + lag, 1_000.0
        self.committed, self.committed_at_ms = 1_000, START
        self.book = LagStore(LIMITS)

    def reading(self, partition: int = 0) -> Reading:
        return Reading("t", partition, self.committed, self.committed_at_ms, 0, int(self.end))

    def ask(self, now_ms: int, state: str = "Stable") -> PartitionLag:
        has_readers = state == "Stable"
        (partition,) = self.book.group_partitions(
            "g", [self.reading()], {}, {}, now_ms, has_readers=has_readers
        )
        return partition

    def live(self, for_ms: int) -> Iterator[tuple[int, PartitionLag]]:
        """What is said, every few seconds: (ms after the start, answer)."""
        for at_ms in range(0, for_ms, STEP_MS):
            now_ms = START + at_ms
            self.end += self.produced(at_ms) * STEP_MS / 1000
            read = self.consumed(at_ms) * STEP_MS / 1000
            self.position = min(self.position + read, self.end)
            if read and at_ms % self.commit_ms == 0:
                self.committed, self.committed_at_ms = int(self.position), now_ms
            if at_ms % LIMITS.interval_ms == 0:
                self.book.add_readings("g", [self.reading()], now_ms)
                self.book.evaluate_windows("g", [self.reading()], {}, now_ms)
                self.book.end_group("g", {("t", 0)})
                self.book.end_round({"g"}, now_ms)
            if at_ms % self.ask_ms == 0:
                yield at_ms, self.ask(now_ms)

    def catch_up_states(self, for_ms: int, *, from_ms: int = 0) -> set[CatchUp]:
        return {lag.catch_up for at_ms, lag in self.live(for_ms) if at_ms >= from_ms and lag.lag}


@pytest.mark.parametrize("per_second", [0.1, 2, 20, 5_000])
@pytest.mark.parametrize("commit_ms", [SECOND, 5 * SECOND, 40 * SECOND])
def test_a_steady_consumer_keeps_up(per_second: float, commit_ms: int) -> None:
    life = Life(steadily(per_second), steadily(per_second * 2), commit_ms=commit_ms)
    said = [(at_ms, lag.catch_up) for at_ms, lag in life.live(15 * MINUTE) if lag.lag]
    assert {seen for _, seen in said} <= {CatchUp.KEEPS_UP, CatchUp.UNKNOWN}
    assert {seen for at_ms, seen in said if at_ms > 2 * MINUTE} <= {CatchUp.KEEPS_UP}


def test_a_small_constant_lag_keeps_up() -> None:
    """Twenty records a second, always two behind."""
    life = Life(steadily(20), steadily(20), commit_ms=SECOND, lag=2)
    seen = [lag for at_ms, lag in life.live(20 * MINUTE) if at_ms > MINUTE]
    assert len(seen) >= 120
    assert {lag.catch_up for lag in seen} == {CatchUp.KEEPS_UP}
    assert all(lag.catch_up_seconds is not None and lag.catch_up_seconds < 3 for lag in seen)


def test_a_large_constant_lag_is_never_read() -> None:
    life = Life(steadily(20), steadily(20), commit_ms=SECOND, lag=100_000)
    seen = [lag for at_ms, lag in life.live(10 * MINUTE) if at_ms > MINUTE]
    for lag in seen:  # both rates are the same, to the accuracy of a sample
        assert lag.catch_up_seconds is None or lag.catch_up_seconds > 10 * 3_600
    assert CatchUp.KEEPS_UP not in {lag.catch_up for lag in seen}


@pytest.mark.parametrize("commit_ms", [SECOND, 5 * SECOND, 20 * SECOND])
def test_bursts_that_are_read_are_no_falling_behind(commit_ms: int) -> None:
    """Every two minutes 6,000 records at once; reading them takes a minute."""
    life = Life(
        lambda at_ms: 60_000 if at_ms % (2 * MINUTE) == 0 else 0, steadily(100), commit_ms=commit_ms
    )
    seen = life.catch_up_states(30 * MINUTE, from_ms=5 * MINUTE)
    assert seen <= {CatchUp.KEEPS_UP, CatchUp.CATCHES_UP}


def test_a_consumer_that_stopped_is_said_to_within_a_minute() -> None:
    life = Life(steadily(20), lambda at_ms: 40 if at_ms < 5 * MINUTE else 0, commit_ms=SECOND)
    for at_ms, lag in life.live(15 * MINUTE):
        if 2 * MINUTE < at_ms < 5 * MINUTE:
            assert lag.catch_up in (CatchUp.KEEPS_UP, CatchUp.CAUGHT_UP)
        if at_ms > 6 * MINUTE:
            assert lag.catch_up is CatchUp.FALLS_BEHIND
            assert lag.catch_up_seconds is None


def test_a_consumer_that_slows_down_falls_behind() -> None:
    life = Life(steadily(50), lambda at_ms: 100 if at_ms < 5 * MINUTE else 25, commit_ms=SECOND)
    for at_ms, lag in life.live(20 * MINUTE):
        if 2 * MINUTE < at_ms < 5 * MINUTE:
            assert lag.catch_up in (CatchUp.KEEPS_UP, CatchUp.CAUGHT_UP)
        if at_ms > 8 * MINUTE:
            assert lag.catch_up is CatchUp.FALLS_BEHIND


@pytest.mark.parametrize("commit_ms", [SECOND, 5 * SECOND, 20 * SECOND])
def test_the_time_to_catch_up_is_the_true_one(commit_ms: int) -> None:
    """A hundred a second come, 300 are read: 60,000 behind is five minutes."""
    life = Life(steadily(100), steadily(300), commit_ms=commit_ms, lag=60_000)
    for at_ms, lag in life.live(4 * MINUTE):
        if at_ms < MINUTE:
            continue
        assert lag.catch_up is CatchUp.CATCHES_UP
        assert lag.lag is not None
        assert lag.catch_up_seconds == pytest.approx(lag.lag / 200, rel=0.15)


def test_rates_are_those_of_now_and_not_of_the_last_sample() -> None:
    """From the very second look on; between samples they do not sag."""
    life = Life(steadily(20), steadily(20), commit_ms=SECOND, lag=50_000)
    for at_ms, lag in life.live(10 * MINUTE):
        if at_ms > 20 * SECOND:
            assert lag.rates.consumed == pytest.approx(20, rel=0.08)
            assert lag.rates.produced == pytest.approx(20, rel=0.08)


def test_a_group_without_members_has_no_estimate() -> None:
    life = Life(steadily(0), lambda at_ms: 50 if at_ms < MINUTE else 0, commit_ms=SECOND, lag=3_310)
    *_, (at_ms, lag) = life.live(MINUTE + 10 * SECOND)
    assert lag.lag == pytest.approx(310, abs=50)
    assert lag.catch_up_seconds is not None
    empty = life.ask(START + at_ms, state="Empty")
    assert (empty.catch_up, empty.catch_up_seconds) == (CatchUp.NO_READERS, None)
    group = GroupLag.of("g", "Empty", START, [empty])
    assert (group.catch_up, group.catch_up_seconds) == (CatchUp.NO_READERS, None)


def test_one_partition_does_not_decide_for_the_group() -> None:
    good = Life(steadily(500), steadily(1_000), commit_ms=SECOND)
    bad = Life(steadily(1), steadily(0.1), commit_ms=SECOND, lag=10)
    partitions = []
    for life in (good, bad, good):
        *_, (_, lag) = life.live(5 * MINUTE)
        partitions.append(lag)
    assert partitions[1].catch_up is CatchUp.FALLS_BEHIND
    group = GroupLag.of("g", "Stable", START, partitions)
    assert group.catch_up is CatchUp.KEEPS_UP
    assert group.falling_behind == 1
    assert group.catch_up_seconds is not None
