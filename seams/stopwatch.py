"""Stopwatch: how long a computation takes, for logs and metrics. No decision depends on it."""

from collections.abc import Callable

Stopwatch = Callable[[], int]
"""Milliseconds since some moment."""


def stopped() -> int:
    """For tests and the simulator: everything takes no time."""
    return 0
