"""Plain numbers: histograms, long turns by kind, and what the garbage collector costs."""

import gc

import pytest

from broker.observe import stats
from broker.observe.stats import LONG_TURN_S, PEAK_WINDOW_S, Histogram, Turns


def test_a_bound_counts_what_is_not_above_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for amount in (1.0, 1.5, 2.0, 2.5):
        histogram.add(amount)
    assert histogram.counts == [1, 2, 1]
    assert histogram.total == 7.0


def test_short_turns_are_not_told_of() -> None:
    turns = Turns()
    turns.took("Heartbeat", LONG_TURN_S / 2)
    assert "Heartbeat" not in turns.long
    turns.took("Heartbeat", LONG_TURN_S)
    turns.took("Heartbeat", LONG_TURN_S * 3)
    turns.took("Heartbeat", LONG_TURN_S * 2)
    assert turns.long["Heartbeat"] == 3
    assert turns.longest()["Heartbeat"] == LONG_TURN_S * 3


def test_a_peak_is_forgotten_after_one_to_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(stats, "perf_counter", lambda: now)
    turns = Turns()
    turns.took("scrape", 1.0)
    now += PEAK_WINDOW_S
    turns.took("scrape", 0.5)
    assert turns.longest()["scrape"] == 1.0
    now += PEAK_WINDOW_S
    assert turns.longest()["scrape"] == 0.5
    now += PEAK_WINDOW_S
    assert turns.longest()["scrape"] == 0.0
    turns.took("scrape", 2.0)
    now += 5 * PEAK_WINDOW_S
    assert turns.longest()["scrape"] == 0.0
    assert turns.long["scrape"] == 3


def test_the_collector_is_watched_and_left_alone_again() -> None:
    turns, before = Turns(), len(gc.callbacks)
    turns.watch_collector()
    gc.collect()
    turns.leave_collector()
    assert sum(turns.gc_pauses.counts) >= 1
    count = sum(turns.gc_pauses.counts)
    gc.collect()
    assert sum(turns.gc_pauses.counts) == count
    assert len(gc.callbacks) == before
    turns.leave_collector()  # twice does no harm
