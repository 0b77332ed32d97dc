"""Assignment thread: work runs beside the loop, and its result comes back with the time."""

import asyncio
import threading

from broker.loop.assignment_thread import AssignmentThread, stopwatch_ms
from broker.loop.clock import SystemClock
from seams.now import Now


async def make(faults: list[Exception]) -> AssignmentThread:
    return AssignmentThread(asyncio.get_running_loop(), SystemClock(), faults.append)


async def test_work_runs_in_another_thread_and_ends_on_the_loop() -> None:
    faults: list[Exception] = []
    thread = await make(faults)
    begun, may_end = threading.Event(), threading.Event()
    results: list[tuple[object, Now, int]] = []

    def work() -> int:
        begun.set()
        assert may_end.wait(10)
        return threading.get_ident()

    before = SystemClock().now()
    thread.submit(work, lambda result, now: results.append((result, now, threading.get_ident())))
    await asyncio.to_thread(begun.wait, 10)
    assert not results  # the loop runs meanwhile
    may_end.set()
    await thread.close()
    [(worker, now, ender)] = results
    assert worker != threading.get_ident() == ender
    assert now >= before
    assert not faults


async def test_what_was_raised_is_the_result() -> None:
    thread = await make([])
    results: list[object] = []
    thread.submit(lambda: 1 // 0, lambda result, _now: results.append(result))
    await thread.close()
    [failure] = results
    assert isinstance(failure, ZeroDivisionError)


async def test_a_fault_of_the_callback_is_reported() -> None:
    faults: list[Exception] = []
    thread = await make(faults)

    def done(_result: object, _now: Now) -> None:
        raise KeyError

    thread.submit(lambda: 1, done)
    await thread.close()
    assert [type(fault) for fault in faults] == [KeyError]


async def test_there_is_no_thread_without_work() -> None:
    before = threading.active_count()
    thread = await make([])
    assert threading.active_count() == before
    await thread.close()


def test_the_stopwatch_goes_on() -> None:
    assert 0 <= stopwatch_ms() <= stopwatch_ms()
