"""Plain numbers: histograms, long turns by kind, and what the garbage collector costs."""

import gc

import pytest

from broker.observe import stats
from broker.observe.stats import LONG_TURN_S, PEAK_WINDOW_S, Histogram, LoopStalls


def test_a_bound_counts_what_is_not_above_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for amount in (1.0, 1.5, 2.0, 2.5):
        histogram.add(amount)
    assert histogram.counts == [1, 2, 1]
    assert histogram.total == 7.0


def test_short_turns_are_not_recorded() -> None:
    stalls = LoopStalls()
    stalls.record("Heartbeat", LONG_TURN_S / 2)
    assert "Heartbeat" not in stalls.long
    stalls.record("Heartbeat", LONG_TURN_S)
    stalls.record("Heartbeat", LONG_TURN_S * 3)
    stalls.record("Heartbeat", LONG_TURN_S * 2)
    assert stalls.long["Heartbeat"] == 3
    assert stalls.longest()["Heartbeat"] == LONG_TURN_S * 3


def test_a_peak_is_forgotten_after_one_to_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(stats, "perf_counter", lambda: now)
    stalls = LoopStalls()
    stalls.record("scrape", 1.0)
    now += PEAK_WINDOW_S
    stalls.record("scrape", 0.5)
    assert stalls.longest()["scrape"] == 1.0
    now += PEAK_WINDOW_S
    assert stalls.longest()["scrape"] == 0.5
    now += PEAK_WINDOW_S
    assert stalls.longest()["scrape"] == 0.0
    stalls.record("scrape", 2.0)
    now += 5 * PEAK_WINDOW_S
    assert stalls.longest()["scrape"] == 0.0
    assert stalls.long["scrape"] == 3


def test_the_collector_is_watched_and_left_alone_again() -> None:
    stalls, before = LoopStalls(), len(gc.callbacks)
    stalls.watch_gc()
    gc.collect()
    stalls.unwatch_gc()
    assert sum(stalls.gc_pauses.counts) >= 1
    count = sum(stalls.gc_pauses.counts)
    gc.collect()
    assert sum(stalls.gc_pauses.counts) == count
    assert len(gc.callbacks) == before
    stalls.unwatch_gc()  # twice does no harm
