"""Now: an instant, read from a monotonic clock and a wall clock together.

The core gets a `Now` with every turn and reads no clock itself, so a test or the simulator moves
time by passing another one.
"""

from typing import NamedTuple


class Now(NamedTuple):
    """`mono_ms` for every deadline; `wall_ms` (Unix epoch) for what is written down or shown."""

    mono_ms: int
    wall_ms: int
