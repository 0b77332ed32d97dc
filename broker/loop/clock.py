"""Clock: monotonic and wall time for the cores; monotonic time excludes the daemon's own stalls.

A daemon that was stopped (SIGSTOP, a suspended machine, an overloaded host) has read no request. If
that time counted, every session would be over when it runs again, though each member did its part.
So `now` is called at least every CLOCK_READ_MS (the ticker does that): a gap far above it is a
stall, and its length is taken off all deadlines at once. Wall time is only recorded and shown: when
it jumps, no deadline moves.
"""

from collections.abc import Callable
from time import monotonic_ns, time_ns
from types import BuiltinFunctionType
from typing import Final, Protocol

from mypy_extensions import mypyc_attr

from protocol.compiled_codec import function_in_c
from seams.now import Now

CLOCK_READ_MS: Final = 500
STALL_MS: Final = 3 * CLOCK_READ_MS

_new: Final = tuple.__new__
_MACHINE_CLOCK_IN_C: Final = function_in_c("MachineClock")


class MachineClock(Protocol):
    """Of native/machine_clock.pxi: the usual reading, in a third of the time."""

    last_read_ms: int
    stalled_ms: int

    def now(self) -> Now | None:
        """None if the last reading was more than STALL_MS ago."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SystemClock:
    """The only reader of the machine's clocks for the cores. Virtual time is a subclass."""

    __slots__ = (
        "_jumped_ns",
        "_last_read_ms",
        "_machine",
        "_mono_ns",
        "_stalled_ms",
        "_wall_ns",
        "on_stall",
    )

    def __init__(
        self, mono_ns: Callable[[], int] = monotonic_ns, wall_ns: Callable[[], int] = time_ns
    ) -> None:
        self._mono_ns = mono_ns
        self._wall_ns = wall_ns
        self._last_read_ms = mono_ns() // 1_000_000
        self._machine: MachineClock | None = None
        # Not if another clock stands in the place of these functions, as in tests of stored files.
        are_builtin = isinstance(mono_ns, BuiltinFunctionType) and isinstance(
            wall_ns, BuiltinFunctionType
        )
        if _MACHINE_CLOCK_IN_C is not None and are_builtin:
            self._machine = _MACHINE_CLOCK_IN_C(Now, STALL_MS)
        self._stalled_ms = 0
        self._jumped_ns = 0
        self.on_stall: Callable[[int], None] | None = None

    @property
    def stalled_ms(self) -> int:
        """How long all stalls since the start took together."""
        return self._stalled_ms

    def now(self) -> Now:
        if self._machine is not None:
            now = self._machine.now()
            if now is not None:
                return now
        return self._now()

    def _now(self) -> Now:
        machine_ms = self._mono_ns() // 1_000_000
        if self._machine is not None:
            self._last_read_ms = self._machine.last_read_ms
        if machine_ms - self._last_read_ms > STALL_MS:
            self._stalled(machine_ms - self._last_read_ms - CLOCK_READ_MS)
        self._read_at(machine_ms)
        # Past the NamedTuple's own __new__, which costs twice as much: one is made for each turn.
        return _new(Now, (machine_ms - self._stalled_ms, self._wall_ns() // 1_000_000))

    def jump(self, ahead_ms: int) -> None:
        """Monotonic and wall time jump ahead, and run on from there. For tests (testing/)."""
        self.now()  # a stall until here stays one
        if ahead_ms and not self._jumped_ns:  # until then no reading pays for it
            self._machine = None
            mono_ns, wall_ns = self._mono_ns, self._wall_ns
            self._mono_ns = lambda: mono_ns() + self._jumped_ns
            self._wall_ns = lambda: wall_ns() + self._jumped_ns
        self._jumped_ns += ahead_ms * 1_000_000
        self.skip_gap()

    def skip_gap(self) -> None:
        """Begin here: the time before (imports, recovery) was no stall."""
        self._read_at(self._mono_ns() // 1_000_000)

    def _read_at(self, machine_ms: int) -> None:
        self._last_read_ms = machine_ms
        if self._machine is not None:
            self._machine.last_read_ms = machine_ms
            self._machine.stalled_ms = self._stalled_ms

    def _stalled(self, stalled_ms: int) -> None:
        self._stalled_ms += stalled_ms
        if self.on_stall is not None:
            self.on_stall(stalled_ms)
