"""What time is it? For the core: a monotonic clock that stands still while the daemon was deaf.

A daemon that was stopped (SIGSTOP, a suspended machine, a host out of breath) has heard nobody.
If that time counted, every session would be over when it wakes, though each member did its part;
so it does not count. `now` is called at least every PULSE_MS while all is well (the ticker sees
to it), so a gap far above that is a stall, and its length is taken off all deadlines at once.
The wall clock is only written down and shown: when it jumps, no deadline moves.
"""

from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Final

from seams.now import Now

PULSE_MS: Final = 500
STALL_MS: Final = 3 * PULSE_MS

_new: Final = tuple.__new__


class SystemClock:
    """The only reader of the machine's clocks below the shell; see the module's text."""

    __slots__ = ("_heard_ms", "_mono_ns", "_stalled_ms", "_wall_ns", "on_stall")

    def __init__(
        self, mono_ns: Callable[[], int] = monotonic_ns, wall_ns: Callable[[], int] = time_ns
    ) -> None:
        self._mono_ns = mono_ns
        self._wall_ns = wall_ns
        self._heard_ms = mono_ns() // 1_000_000
        self._stalled_ms = 0
        self.on_stall: Callable[[int], None] | None = None

    @property
    def stalled_ms(self) -> int:
        """How long the daemon was deaf since its start, all stalls together."""
        return self._stalled_ms

    def now(self) -> Now:
        machine_ms = self._mono_ns() // 1_000_000
        if machine_ms - self._heard_ms > STALL_MS:
            self._stalled(machine_ms - self._heard_ms - PULSE_MS)
        self._heard_ms = machine_ms
        # Past the NamedTuple's own __new__, which costs twice as much: one is made for each turn.
        return _new(Now, (machine_ms - self._stalled_ms, self._wall_ns() // 1_000_000))

    def forget_gap(self) -> None:
        """Start listening now: what came before (imports, recovery) was no stall."""
        self._heard_ms = self._mono_ns() // 1_000_000

    def _stalled(self, stalled_ms: int) -> None:
        self._stalled_ms += stalled_ms
        if self.on_stall is not None:
            self.on_stall(stalled_ms)
