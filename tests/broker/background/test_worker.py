"""The worker process: what it answers, what becomes of a job whose process dies, and when it ends.

Real processes; whatever is waited for is a fact: an answer, an end of file, a pid that is gone.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from broker.background.jobs import (
    SELF_TEST,
    URGENT_JOB,
    WORKER_JOBS,
    Arguments,
    read_message,
    run_worker_job,
    write_message,
)
from broker.background.worker import JobFailed, WorkerProcess
from storage.disk import RealDisk
from tests.broker.shell import WAIT_S


@pytest_asyncio.fixture
async def worker() -> AsyncIterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    await worker.stop()


def gone(pid: int) -> bool:
    """Reaped: not even a zombie is left."""
    return not Path(f"/proc/{pid}").exists()


def ended(pid: int) -> bool:
    """Dead with all its threads, whether or not somebody has reaped it.

    Of a process with threads /proc shows a zombie while some still run: no parent can reap it yet.
    """
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return True


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not fact():  # noqa: ASYNC110 - neither the kernel nor a thread sets an event
            await asyncio.sleep(0.01)


async def begun(worker: WorkerProcess) -> int:
    await until(lambda: worker.pid is not None)
    assert worker.pid is not None
    return worker.pid


async def test_a_job_is_done_in_another_process_of_lower_priority(worker: WorkerProcess) -> None:
    assert worker.pid is None, "no process before there is a job"
    result = await worker.run(SELF_TEST, {"size": 2**40, "name": "x", "raw": b"\x00\xff"})
    assert result["pid"] == worker.pid != os.getpid()
    assert result["nice"] == min(os.nice(0) + 10, 19)
    urgent = await worker.run(SELF_TEST, {URGENT_JOB: True})
    assert urgent["nice"] == os.nice(0), "it catches up with the daemon's own priority"
    assert (result["size"], result["name"], result["raw"]) == (2**40, "x", b"\x00\xff")


async def test_one_process_does_one_job_after_the_other(worker: WorkerProcess) -> None:
    results = await asyncio.gather(*(worker.run(SELF_TEST, {"n": n}) for n in range(20)))
    assert [result["n"] for result in results] == list(range(20))
    assert len({result["pid"] for result in results}) == 1


async def test_an_exception_of_a_job_is_reported_by_kind_and_reason(worker: WorkerProcess) -> None:
    with pytest.raises(JobFailed, match="self-test: ValueError: no such thing") as failed:
        await worker.run(SELF_TEST, {"fail": "no such thing"})
    assert (failed.value.kind, failed.value.reason) == ("ValueError", "no such thing")
    assert "jobs.py" in failed.value.trace
    pid = worker.pid
    assert (await worker.run(SELF_TEST, {}))["pid"] == pid, "a failed job ends no process"


async def test_a_job_that_is_not_there_fails(worker: WorkerProcess) -> None:
    with pytest.raises(JobFailed, match="KeyError"):
        await worker.run("no-such-job", {})


async def test_arguments_that_no_pipe_carries_are_refused(worker: WorkerProcess) -> None:
    with pytest.raises(JobFailed, match="TypeError"):
        await worker.run(SELF_TEST, {"it": object()})
    with pytest.raises(JobFailed, match="ValueError"):
        await worker.run(SELF_TEST, {"it": bytes(65 << 20)})
    assert await worker.run(SELF_TEST, {})


async def test_a_process_that_dies_fails_its_job_and_the_next_one_gets_another(
    worker: WorkerProcess,
) -> None:
    first = await worker.run(SELF_TEST, {})
    failing = asyncio.create_task(worker.run(SELF_TEST, {"exit": 3}))
    following = asyncio.create_task(worker.run(SELF_TEST, {}))
    with pytest.raises(JobFailed, match="ended with exit code 3"):
        await failing
    assert (await following)["pid"] != first["pid"]


async def test_a_process_that_is_killed_fails_its_job(worker: WorkerProcess) -> None:
    job = asyncio.create_task(worker.run(SELF_TEST, {"wait": True}))
    os.kill(await begun(worker), signal.SIGKILL)
    with pytest.raises(JobFailed, match="ended by SIGKILL"):
        await job


async def test_a_process_that_died_while_idle_fails_nothing(worker: WorkerProcess) -> None:
    first = await worker.run(SELF_TEST, {})
    pid = first["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: ended(pid))
    assert (await worker.run(SELF_TEST, {}))["pid"] != pid


async def test_who_cancels_a_job_ends_its_process(worker: WorkerProcess) -> None:
    job = asyncio.create_task(worker.run(SELF_TEST, {"wait": True}))
    pid = await begun(worker)
    following = asyncio.create_task(worker.run(SELF_TEST, {}))
    await asyncio.sleep(0)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert gone(pid), "it was reaped before the cancellation was answered"
    assert (await following)["pid"] != pid


async def test_who_cancels_a_waiting_job_leaves_the_running_one_alone(
    worker: WorkerProcess,
) -> None:
    running = asyncio.create_task(worker.run(SELF_TEST, {"wait": True}))
    pid = await begun(worker)
    waiting = asyncio.create_task(worker.run(SELF_TEST, {}))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not running.done()
    assert not ended(pid)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_stop_ends_the_job_that_runs_and_those_that_wait() -> None:
    worker = WorkerProcess()
    running = asyncio.create_task(worker.run(SELF_TEST, {"wait": True}))
    pid = await begun(worker)
    waiting = asyncio.create_task(worker.run(SELF_TEST, {}))
    await asyncio.sleep(0)
    await worker.stop()
    assert gone(pid)
    for job in (running, waiting):
        with pytest.raises(JobFailed):
            await job
    with pytest.raises(JobFailed, match="stopping"):
        await worker.run(SELF_TEST, {})


async def test_a_stop_without_a_process_is_nothing() -> None:
    await WorkerProcess().stop()


async def test_an_idle_process_is_let_go_and_another_comes_with_the_next_job() -> None:
    worker = WorkerProcess(idle_s=0)
    pid = (await worker.run(SELF_TEST, {}))["pid"]
    await until(lambda: worker.pid is None)
    assert isinstance(pid, int)
    assert gone(pid)
    assert (await worker.run(SELF_TEST, {}))["pid"] != pid
    await worker.stop()


def test_the_process_ends_with_its_stdin_in_the_middle_of_a_job() -> None:
    """As after a `kill -9` of the daemon, whose end of the pipe the kernel then closes."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "broker.background.jobs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        write_message(process.stdin, {"job": SELF_TEST, "arguments": {}})
        assert read_message(process.stdout) is not None
        write_message(process.stdin, {"job": SELF_TEST, "arguments": {"wait": True}})
        process.stdin.close()
        assert process.stdout.read() == b"", "it ends without an answer"
    assert process.returncode == 0


def test_a_job_runs_where_it_is_called_as_well() -> None:
    result: Arguments = run_worker_job(RealDisk(), SELF_TEST, {"n": 1})
    assert (result["n"], result["pid"]) == (1, os.getpid())
    assert SELF_TEST in WORKER_JOBS


def test_the_worker_starts_with_next_to_nothing() -> None:
    """It is started while clients are served: no event loop, no coordinator, no protocol."""
    program = "import sys, broker.background.jobs; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert not {"asyncio", "coordinator", "protocol", "uvloop", "structlog"} & set(output.split())
