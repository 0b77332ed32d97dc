"""Ticker: one timer for the nearest deadline of all parts, and a steady reading of the clock.

A part calls back when a deadline of it becomes earlier (`watch_deadline`). Nearly every heartbeat
and commit moves deadlines only to a later time, so that it costs nothing here. A timer that is set
too early finds nothing to do, and is set again.

A due tick never runs straight from the timer: the loop first polls all its sockets once, and has
all turns that wait by then. A heartbeat that has arrived but was not read yet is older than the
tick and must be handled before a session expires; after a stall that is every heartbeat. The clock
is read every CLOCK_READ_MS, so that it notices stalls (clock.py), and each reading measures how
late the loop runs.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final, Protocol

from broker.loop.clock import CLOCK_READ_MS, SystemClock
from broker.observe.stats import Histogram, LoopStalls
from seams.now import Now

EARLIEST_S: Final = 0.001  # Deadlines are in ms: nothing is due sooner than that.
LAG_BUCKETS_S: Final[tuple[float, ...]] = (
    0.001,
    0.002_5,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    5.0,
)
AFTER_FAULT_S: Final = 0.1  # A tick that fails must not spin: its deadline may still be due.


class Ticking(Protocol):
    """A part with deadlines of its own: the coordinator, the data plane, the server."""

    @property
    def next_deadline_ms(self) -> int | None: ...

    def tick(self, now: Now) -> None: ...

    def watch_deadline(self, on_earlier: Callable[[], None]) -> None:
        """`on_earlier` is called whenever `next_deadline_ms` may have become earlier."""


class Backlog(Protocol):
    """Turns of connections that do not fit into one pass of the loop: the server has them."""

    turns_resumed: int

    @property
    def turns_postponed(self) -> int: ...


class Ticker:
    """Not started until `start`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: SystemClock,
        on_fault: Callable[[Exception], None],
        stalls: LoopStalls | None = None,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._parts: tuple[Ticking, ...] = ()
        self._on_fault = on_fault
        self._earliest_s = EARLIEST_S
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms: int | None = None  # What the timer, or the pass under way, will serve.
        self._reading: asyncio.TimerHandle | None = None
        self._reading_due = 0.0
        self._running = False
        self._is_arm_scheduled = False
        self.backlog: Backlog | None = None  # set by build.py
        self.stalls = stalls or LoopStalls()
        self.lag_seconds = 0.0  # How late the last reading of the clock was.
        self.lag_seconds_max = 0.0
        self.lags = Histogram(LAG_BUCKETS_S)
        self.ticks = 0

    def start(self, parts: Sequence[Ticking]) -> None:
        self._parts = tuple(parts)
        for part in parts:
            part.watch_deadline(self.arm_soon)
        self._running = True
        self._clock.skip_gap()
        self._reading_due = self._loop.time()
        self._read_clock()
        self.arm()

    def stop(self) -> None:
        self._running = False
        for timer in (self._timer, self._reading):
            if timer is not None:
                timer.cancel()
        self._timer = self._reading = self._armed_ms = None

    @property
    def next_deadline_ms(self) -> int | None:
        """The nearest of all parts."""
        nearest_ms: int | None = None
        for part in self._parts:
            deadline_ms = part.next_deadline_ms
            if deadline_ms is not None and (nearest_ms is None or deadline_ms < nearest_ms):
                nearest_ms = deadline_ms
        return nearest_ms

    def tick_after_jump(self) -> None:
        """The clock has jumped: do what is due now, and set the timer by the new time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tick()

    def arm(self) -> None:
        """Set the timer to the nearest deadline; cheap when it is set already."""
        nearest_ms = self.next_deadline_ms
        if nearest_ms is None or not self._running:
            return
        if self._armed_ms is not None and self._armed_ms <= nearest_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = nearest_ms
        wait_s = (nearest_ms - self._clock.now().mono_ms) / 1000
        self._timer = self._loop.call_later(max(wait_s, self._earliest_s), self._due)

    def arm_soon(self) -> None:
        """The same, once for all turns of this pass of the loop."""
        if not self._is_arm_scheduled:
            self._is_arm_scheduled = True
            self._loop.call_soon(self._arm_now)

    def _arm_now(self) -> None:
        self._is_arm_scheduled = False
        self.arm()

    def _due(self) -> None:
        self._timer = None
        # Twice: what is scheduled now may run before the sockets are polled, what is scheduled from
        # there cannot.
        self._loop.call_soon(self._loop.call_soon, self._polled)

    def _polled(self) -> None:
        backlog = self.backlog
        if backlog is None or not backlog.turns_postponed:
            self._tick()
        else:
            self._tick_after(backlog, backlog.turns_resumed + backlog.turns_postponed, -1)

    def _tick_after(self, backlog: Backlog, turns: int, resumed: int) -> None:
        """When so many turns were resumed: those that came later than the tick do not count.

        At once if none was since the last look: each pass resumes at least one.
        """
        if resumed < backlog.turns_resumed < turns and self._running:
            self._loop.call_soon(self._tick_after, backlog, turns, backlog.turns_resumed)
        else:
            self._tick()

    def _tick(self) -> None:
        if not self._running:
            return
        self.ticks += 1
        now = self._clock.now()
        self._earliest_s = EARLIEST_S
        began_s = perf_counter()
        for part in self._parts:
            deadline_ms = part.next_deadline_ms
            if deadline_ms is None or deadline_ms > now.mono_ms:
                continue
            try:
                part.tick(now)
            except Exception as error:  # noqa: BLE001 - one part's fault must not stop the others
                self._earliest_s = AFTER_FAULT_S
                self._on_fault(error)
            ended_s = perf_counter()
            self.stalls.record(f"tick of {type(part).__name__}", ended_s - began_s)
            began_s = ended_s
        self._armed_ms = None
        self.arm()

    def _read_clock(self) -> None:
        self._clock.now()
        now_s = self._loop.time()
        self.lag_seconds = max(now_s - self._reading_due, 0.0)
        self.lag_seconds_max = max(self.lag_seconds, self.lag_seconds_max)
        self.lags.add(self.lag_seconds)
        self._reading_due = now_s + CLOCK_READ_MS / 1000
        if self._running:
            self._reading = self._loop.call_at(self._reading_due, self._read_clock)
