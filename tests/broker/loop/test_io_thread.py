"""The I/O thread: order, results, faults, and the end."""

import asyncio
from threading import Event, get_ident

from broker.loop.io_thread import IoThread, IoThreads


async def test_results_come_back_in_order_on_the_loops_thread() -> None:
    loop = asyncio.get_running_loop()
    thread = IoThread(loop, "test-io", _no_fault)
    handed_back: list[tuple[object, int]] = []
    worked_in: set[int] = set()

    def work(number: int) -> int:
        worked_in.add(get_ident())
        if number == 3:
            raise OSError("the disk")
        return number

    for number in range(6):
        thread.submit(
            lambda number=number: work(number),
            lambda result: handed_back.append((result, get_ident())),
        )
    await thread.close()

    results = [result for result, _ in handed_back]
    assert [type(r) if isinstance(r, Exception) else r for r in results] == [0, 1, 2, OSError, 4, 5]
    assert {ident for _, ident in handed_back} == {get_ident()}
    assert get_ident() not in worked_in
    assert thread.pending == 0


async def test_a_callback_that_fails_does_not_stop_the_others() -> None:
    faults: list[Exception] = []
    handed_back: list[object] = []
    thread = IoThread(asyncio.get_running_loop(), "test-io", faults.append)

    def fail(_: object) -> None:
        raise ValueError("a bug")

    thread.submit(lambda: 1, fail)
    thread.submit(lambda: 2, handed_back.append)
    await thread.close()

    assert handed_back == [2]
    assert [str(fault) for fault in faults] == ["a bug"]


async def test_work_submitted_by_a_callback_runs_too() -> None:
    done = asyncio.Event()
    thread = IoThread(asyncio.get_running_loop(), "test-io", _no_fault)
    thread.submit(lambda: 1, lambda _: thread.submit(lambda: 2, lambda _: done.set()))
    await asyncio.wait_for(done.wait(), 10)
    await thread.close()


async def test_a_stop_does_not_wait_for_ever_for_a_disk_that_hangs() -> None:
    goes_on = Event()
    threads = IoThreads(asyncio.get_running_loop(), _no_fault)
    handed_back: list[object] = []
    threads.appender.submit(lambda: goes_on.wait(60), handed_back.append)
    assert not await threads.wait_idle(0.01)
    assert not await threads.close(0.01)
    goes_on.set()
    assert await threads.close(60)
    assert handed_back == [True]


async def test_wait_idle_includes_the_work_that_work_gives_to_others() -> None:
    threads = IoThreads(asyncio.get_running_loop(), _no_fault)
    handed_back: list[object] = []
    threads.checker.submit(
        lambda: 1, lambda _: threads.appender.submit(lambda: 2, handed_back.append)
    )
    assert await threads.wait_idle(60)
    assert handed_back == [2]
    assert await threads.close(60)


def _no_fault(error: Exception) -> None:
    raise error
