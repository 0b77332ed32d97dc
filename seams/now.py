"""What is an instant? Two clocks read together: one that never jumps, one that people read.

The core is handed a `Now` with every turn and never asks a clock itself, so a test or the simulator
moves time by passing another one.
"""

from typing import NamedTuple


class Now(NamedTuple):
    """`mono_ms` for every deadline; `wall_ms` (Unix epoch) for what is written down or shown."""

    mono_ms: int
    wall_ms: int
