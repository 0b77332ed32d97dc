"""I/O throttle: log.cleaner.io.max.bytes.per.second as an average; no limit, no wait."""

import pytest

from broker.background.io_throttle import IoThrottle


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.paused: list[float] = []

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.now += seconds


@pytest.mark.parametrize("piece", [1, 700, 100_000])
def test_the_average_stays_at_the_limit(piece: int) -> None:
    time = Time()
    throttle = IoThrottle(10_000, clock=lambda: time.now, pause=time.pause)
    done = 0
    while done < 200_000:
        throttle(piece)
        done += piece
        time.now += piece / 1_000_000  # the disk is a hundred times faster than that
    assert done / (time.now - 100.0) == pytest.approx(10_000, rel=0.05)


def test_who_is_slower_than_the_limit_never_waits() -> None:
    time = Time()
    throttle = IoThrottle(10_000, clock=lambda: time.now, pause=time.pause)
    for _ in range(100):
        time.now += 1
        throttle(9_000)
    assert time.paused == []


def test_without_a_limit_no_call_waits() -> None:
    time = Time()
    throttle = IoThrottle(1.7976931348623157e308, clock=lambda: time.now, pause=time.pause)
    for _ in range(10):
        throttle(1 << 40)
    assert time.paused == []
