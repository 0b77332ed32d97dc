"""Ticker: no deadline is lost, whatever is added, cancelled or served, and however the clock goes.

A loop in virtual time, and parts whose deadlines are those of a coordinator (`NextDeadline`). After
each step the timer must be set for the nearest deadline that is left, or earlier.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.loop.clock import STALL_MS, SystemClock
from broker.loop.ticker import EARLIEST_S, Ticker
from seams.next_deadline import NextDeadline
from seams.now import Now

ROUNDING_S = 0.002  # the clock is read in whole milliseconds
DELAYS_MS = st.sampled_from((-5, 0, 1, 2, 10, 300, 3_000))
PARTS = st.integers(0, 2)


class Handle:
    def __init__(self, when_s: float, callback: Callable[..., object], args: tuple[object, ...]):
        self.when_s = when_s
        self.callback = callback
        self.args = args
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class VirtualLoop:
    """`time` is the machine's; a pass runs what was ready when it began, as asyncio's does."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000
        self.ready: deque[Handle] = deque()
        self.timers: list[tuple[float, int, Handle]] = []
        self.count = 0

    def time(self) -> float:
        return self.now_ns / 1e9

    def call_soon(self, callback: Callable[..., object], *args: object) -> Handle:
        handle = Handle(self.time(), callback, args)
        self.ready.append(handle)
        return handle

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Handle:
        return self.call_at(self.time() + delay_s, callback, *args)

    def call_at(self, when_s: float, callback: Callable[..., object], *args: object) -> Handle:
        self.count += 1
        handle = Handle(when_s, callback, args)
        heappush(self.timers, (when_s, self.count, handle))
        return handle

    def run_pass(self) -> None:
        while self.timers and self.timers[0][0] <= self.time():
            self.ready.append(heappop(self.timers)[2])
        for _ in range(len(self.ready)):
            handle = self.ready.popleft()
            if not handle.is_cancelled:
                handle.callback(*handle.args)

    def run_ready(self) -> None:
        self.run_pass()
        while self.ready:
            self.run_pass()


class Part:
    """Entries with deadlines; a tick serves those that are due, and an entry may add another."""

    def __init__(self) -> None:
        self.next = NextDeadline()
        self.watch_deadline = self.next.watch
        self.entries: dict[int, tuple[int, int | None]] = {}  # (deadline, delay of what it adds)
        self.count = 0
        self.fails = False

    @property
    def next_deadline_ms(self) -> int | None:
        return self.next.at_ms

    @property
    def nearest_ms(self) -> int | None:
        return min((deadline_ms for deadline_ms, _ in self.entries.values()), default=None)

    def add(self, deadline_ms: int, adds_ms: int | None) -> None:
        self.count += 1
        self.entries[self.count] = deadline_ms, adds_ms
        self.next.lower(deadline_ms)

    def tick(self, now: Now) -> None:
        if self.fails:
            self.fails = False
            raise ZeroDivisionError
        self.next.at_ms = None
        for number in [n for n, entry in self.entries.items() if entry[0] <= now.mono_ms]:
            adds_ms = self.entries.pop(number)[1]
            if adds_ms is not None:
                self.add(now.mono_ms + adds_ms, None)
        nearest_ms = self.nearest_ms
        if nearest_ms is not None:
            self.next.lower(nearest_ms)


class TickerModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.clock = SystemClock(lambda: self.loop.now_ns, lambda: self.loop.now_ns)
        self.parts = [Part() for _ in range(3)]
        self.faults = 0
        self.ticker = Ticker(self.loop, self.clock, self._on_fault)  # type: ignore[arg-type]
        self.ticker.start(self.parts)
        self.loop.run_ready()

    def _on_fault(self, error: Exception) -> None:
        assert isinstance(error, ZeroDivisionError)
        self.faults += 1

    @rule(
        of=PARTS, delay_ms=DELAYS_MS, adds_ms=st.none() | DELAYS_MS, passes=st.sampled_from((0, 9))
    )
    def add(self, of: int, delay_ms: int, adds_ms: int | None, passes: int) -> None:
        """With no pass after it, the next step comes in the same turn of the loop."""
        self.parts[of].add(self.clock.now().mono_ms + delay_ms, adds_ms)
        for _ in range(passes):
            self.loop.run_pass()

    @rule(of=PARTS, data=st.data())
    def cancel(self, of: int, data: st.DataObject) -> None:
        """The ticker is not told."""
        entries = self.parts[of].entries
        if entries:
            del entries[data.draw(st.sampled_from(sorted(entries)))]

    @rule(ns=st.sampled_from((100_000, 999_999, 1_000_000, 7_300_000, 200_000_000)))
    def passes_of_time(self, ns: int) -> None:
        self.loop.now_ns += ns
        self.loop.run_ready()

    @rule(ns=st.sampled_from((400_000, 1_000_000, 20_000_000)))
    def one_pass(self, ns: int) -> None:
        """What follows happens between a timer and its tick."""
        self.loop.now_ns += ns
        self.loop.run_pass()

    @rule()
    def stall(self) -> None:
        self.loop.now_ns += (STALL_MS + 700) * 1_000_000
        self.loop.run_ready()

    @rule(ahead_ms=st.sampled_from((1, 50, 4_000)))
    def jump(self, ahead_ms: int) -> None:
        self.clock.jump(ahead_ms)
        self.ticker.tick_after_jump()

    @rule(of=PARTS)
    def fail_once(self, of: int) -> None:
        self.parts[of].fails = True

    @invariant()
    def the_timer_is_set_in_time(self) -> None:
        if self.loop.ready:
            return  # in the middle of a turn
        now_ms = self.clock.now().mono_ms
        nearest_ms = min(
            (p.nearest_ms for p in self.parts if p.nearest_ms is not None), default=None
        )
        if nearest_ms is None:
            return
        timer = self.ticker._timer
        assert timer is not None, "a deadline is lost"
        assert isinstance(timer, Handle)
        assert not timer.is_cancelled
        wait_s = timer.when_s - self.loop.time()
        earliest_s = max(EARLIEST_S, self.ticker._earliest_s)
        assert wait_s <= max((nearest_ms - now_ms) / 1000, earliest_s) + ROUNDING_S


TestTicker = TickerModel.TestCase
TestTicker.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
