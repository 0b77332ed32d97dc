"""Time in the shell: a stall of our own ends no session, and what has arrived is heard first."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from broker.loop.clock import CLOCK_READ_MS, STALL_MS, SystemClock
from broker.loop.ticker import Ticker
from seams.next_deadline import unwatched
from seams.now import Now

Run = Callable[[Coroutine[None, None, None]], None]


class Machine:
    """The machine's own clocks, moved by hand."""

    def __init__(self) -> None:
        self.mono_ms = 1_000_000
        self.wall_ms = 1_700_000_000_000

    def clock(self) -> SystemClock:
        return SystemClock(lambda: self.mono_ms * 1_000_000, lambda: self.wall_ms * 1_000_000)


def test_a_clock_that_jumps_runs_on_from_there() -> None:
    """Thousands of jumps, as of a test that lets days pass, cost a reading no more than one."""
    machine = Machine()
    clock = machine.clock()
    before = clock.now()

    for _ in range(5_000):
        clock.jump(60_000)
    machine.mono_ms += 7
    machine.wall_ms += 7

    jumped_ms = 5_000 * 60_000 + 7
    assert clock.now() == Now(before.mono_ms + jumped_ms, before.wall_ms + jumped_ms)
    assert clock.stalled_ms == 0


def test_time_passes_while_the_daemon_listens() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    for _ in range(100):
        machine.mono_ms += CLOCK_READ_MS
        machine.wall_ms += CLOCK_READ_MS
        now = clock.now()
    assert now == Now(before.mono_ms + 100 * CLOCK_READ_MS, before.wall_ms + 100 * CLOCK_READ_MS)
    assert clock.stalled_ms == 0


def test_a_stall_does_not_count_against_anybody() -> None:
    machine = Machine()
    clock = machine.clock()
    stalls: list[int] = []
    clock.on_stall = stalls.append
    before = clock.now()

    machine.mono_ms += 60_000
    after = clock.now()

    # What may have passed between two pulses counts, the rest does not.
    assert after.mono_ms - before.mono_ms == CLOCK_READ_MS
    assert stalls == [60_000 - CLOCK_READ_MS]
    assert clock.stalled_ms == 60_000 - CLOCK_READ_MS
    machine.mono_ms += 10
    assert clock.now().mono_ms - after.mono_ms == 10


def test_a_short_delay_is_no_stall() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.mono_ms += STALL_MS
    assert clock.now().mono_ms - before.mono_ms == STALL_MS


def test_a_jump_of_the_wall_clock_moves_no_deadline() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.wall_ms -= 86_400_000
    machine.mono_ms += 5
    assert clock.now() == Now(before.mono_ms + 5, before.wall_ms - 86_400_000)


def test_the_reading_in_c_is_the_same_and_leaves_stalls_to_python() -> None:
    clock = SystemClock()
    machine = clock._machine
    if machine is None:
        pytest.skip("the sources read the clocks in Python")
    earliest = Now(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)
    now = clock.now()
    assert type(now) is Now
    assert earliest.mono_ms <= now.mono_ms <= time.monotonic_ns() // 1_000_000
    assert earliest.wall_ms <= now.wall_ms <= time.time_ns() // 1_000_000
    stalls: list[int] = []
    clock.on_stall = stalls.append

    machine.last_read_ms -= 60_000
    after = clock.now()

    assert stalls == [clock.stalled_ms]
    assert clock.stalled_ms >= 60_000 - CLOCK_READ_MS
    assert clock.stalled_ms == machine.stalled_ms
    assert after.mono_ms < now.mono_ms + 60_000
    assert clock.now().mono_ms >= after.mono_ms
    assert len(stalls) == 1

    clock.jump(5_000)
    assert clock.now().mono_ms >= after.mono_ms + 5_000
    assert clock.stalled_ms == stalls[0]


class Part:
    """Something with one deadline."""

    def __init__(self, deadline_ms: int | None) -> None:
        self.next_deadline_ms = deadline_ms
        self.ticked_at: list[int] = []
        self.ticked = asyncio.Event()
        self.error: Exception | None = None
        self.on_tick: Callable[[], None] | None = None
        self.on_earlier: Callable[[], None] = unwatched

    def watch_deadline(self, on_earlier: Callable[[], None]) -> None:
        self.on_earlier = on_earlier

    def tick(self, now: Now) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.next_deadline_ms = None
        self.ticked_at.append(now.mono_ms)
        if self.on_tick is not None:
            self.on_tick()
        self.ticked.set()


def _on_fault(error: Exception) -> None:
    raise AssertionError from error


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_bytes_that_have_arrived_are_read_before_a_tick_that_is_due(run: Run) -> None:
    order: list[str] = []
    member, our_member = socket.socketpair()
    other, our_other = socket.socketpair()

    class Member(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            order.append("heard")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        part = Part(None)
        part.on_tick = lambda: order.append("ticked")
        ticker = Ticker(loop, clock, _on_fault)

        class Other(asyncio.Protocol):
            def data_received(self, data: bytes) -> None:
                # The loop is stuck here until after a deadline; meanwhile the member speaks.
                part.next_deadline_ms = clock.now().mono_ms + 5
                ticker.arm()
                time.sleep(0.02)
                member.sendall(b"beat")

        for protocol, sock in ((Member, our_member), (Other, our_other)):
            await loop.create_connection(protocol, sock=sock)
        ticker.start([part])
        other.sendall(b"anything")
        await asyncio.wait_for(part.ticked.wait(), 60)
        ticker.stop()
        assert order == ["heard", "ticked"]

    with member, other:
        run(scenario())


async def test_every_deadline_is_served_and_none_too_early() -> None:
    clock = SystemClock()
    start_ms = clock.now().mono_ms
    late, soon = Part(start_ms + 60), Part(start_ms + 20)
    ticker = Ticker(asyncio.get_running_loop(), clock, _on_fault)
    ticker.start([late, soon])
    await asyncio.wait_for(soon.ticked.wait(), 60)
    assert soon.ticked_at[0] >= start_ms + 20
    await asyncio.wait_for(late.ticked.wait(), 60)
    assert late.ticked_at[0] >= start_ms + 60
    ticker.stop()


async def test_a_deadline_that_comes_nearer_is_armed_again() -> None:
    clock = SystemClock()
    part = Part(clock.now().mono_ms + 3_600_000)
    ticker = Ticker(asyncio.get_running_loop(), clock, _on_fault)
    ticker.start([part])
    part.next_deadline_ms = clock.now().mono_ms + 5
    part.on_earlier()
    await asyncio.wait_for(part.ticked.wait(), 60)
    ticker.stop()


async def test_a_part_that_fails_stops_neither_the_others_nor_time() -> None:
    clock = SystemClock()
    faults: list[Exception] = []
    bad, good = Part(clock.now().mono_ms), Part(clock.now().mono_ms)
    bad.error = ZeroDivisionError()
    ticker = Ticker(asyncio.get_running_loop(), clock, faults.append)
    ticker.start([bad, good])
    await asyncio.wait_for(good.ticked.wait(), 60)
    await asyncio.wait_for(bad.ticked.wait(), 60)
    assert [type(fault) for fault in faults] == [ZeroDivisionError]
    ticker.stop()


class Backlog:
    """Forty turns that wait, of which each pass of the loop resumes one, and one more arrives."""

    def __init__(self) -> None:
        self.turns_resumed = 1_000
        self.asked_at: list[int] = []  # how many were resumed by then

    @property
    def turns_postponed(self) -> int:
        self.asked_at.append(self.turns_resumed)
        return 40

    def resume_one(self) -> None:
        self.turns_resumed += 1
        asyncio.get_running_loop().call_soon(self.resume_one)


async def test_a_tick_comes_after_the_turns_that_wait_by_then() -> None:
    clock = SystemClock()
    part = Part(clock.now().mono_ms)
    ticker = Ticker(asyncio.get_running_loop(), clock, _on_fault)
    backlog = ticker.backlog = Backlog()
    resumed: list[int] = []
    part.on_tick = lambda: resumed.append(backlog.turns_resumed)
    ticker.start([part])
    backlog.resume_one()
    await asyncio.wait_for(part.ticked.wait(), 60)
    ticker.stop()
    assert 40 <= resumed[0] - backlog.asked_at[0] <= 45


async def test_turns_that_nobody_resumes_do_not_keep_a_tick_away() -> None:
    clock = SystemClock()
    part = Part(clock.now().mono_ms)
    ticker = Ticker(asyncio.get_running_loop(), clock, _on_fault)
    ticker.backlog = Backlog()
    ticker.start([part])
    await asyncio.wait_for(part.ticked.wait(), 60)
    ticker.stop()
