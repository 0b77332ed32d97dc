"""How does the daemon have heavy work done without its clients feeling it? In another process.

A pass of the log cleaner or the writing of a snapshot is seconds of pure Python: in a thread it
would hold the interpreter's lock, and every commit would wait for it (ADR 0007). So it runs in a
process with a lower priority, `broker/background/jobs.py`, which is started for the first job,
does one at a
time while others queue, and is let go after some idle time. A process that dies takes only the job
along that it was doing; the next one gets a new process. Whoever cancels a job, or stops, ends the
process: jobs cannot be interrupted in any other way, and leave nothing that a start minds.

A thread of its own talks to the process with plain blocking reads, and starts it there too: to
start one holds up whoever does it.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker.background.jobs import Arguments, read_message, write_message

IDLE_S: Final = 60.0
"""After so long without a job the process ends: some 15 MB that nobody needs."""

END_TIMEOUT_S: Final = 5.0
"""An idle process ends as soon as its stdin does; one that has not by then is killed."""


class JobFailed(Exception):
    """A job ended without a result. `kind` is the class of what it raised, "" if it just died."""

    def __init__(self, job: str, kind: str, reason: str, trace: str = "") -> None:
        super().__init__(f"{job}: {kind}: {reason}" if kind else f"{job}: {reason}")
        self.job = job
        self.kind = kind
        self.reason = reason
        self.trace = trace


class WorkerProcess:
    """The daemon's end. Made without a process; all methods belong to the event loop's thread."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker")
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._stopped = False
        # Between the loop, which may kill, and the thread, which starts and reaps: a process must
        # not be killed by a number that was given to another one meanwhile.
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._unwanted = False  # the job that runs, or starts, must not go on

    @property
    def pid(self) -> int | None:
        """The process that is there now; None if there is none."""
        process = self._process
        return None if process is None else process.pid

    async def run(self, job: str, arguments: Arguments) -> Arguments:
        """The job's result, after the jobs that were asked for before. Raises JobFailed.

        Cancelling it ends the process if the job has begun, and returns once it is dead: nothing
        is written by it any more.
        """
        async with self._turn:
            if self._stopped:
                raise JobFailed(job, "", "the daemon is stopping")
            if self._idle is not None:
                self._idle.cancel()
            self._unwanted = False
            loop = asyncio.get_running_loop()
            exchange = loop.run_in_executor(self._thread, self._exchange, job, arguments)
            try:
                return await asyncio.shield(exchange)
            except asyncio.CancelledError:
                self._kill()
                await asyncio.wait([exchange])
                exchange.exception()  # it was told to fail: nobody needs to hear of it
                raise
            finally:
                self._idle = loop.call_later(self._idle_s, self._let_go)

    async def stop(self) -> None:
        """End the process, in the middle of a job too; jobs fail from now on."""
        self._stopped = True
        self._kill()
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown(wait=False)

    def _let_go(self) -> None:
        if not self._turn.locked():
            self._thread.submit(self._end)

    def _kill(self) -> None:
        with self._guard:
            self._unwanted = True
            if self._process is not None:
                self._process.kill()

    # In the thread.

    def _exchange(self, job: str, arguments: Arguments) -> Arguments:
        if self._process is not None and self._process.poll() is not None:
            self._end()  # it died while nobody asked for anything
        process = self._process or self._start(job)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_message(process.stdin, {"job": job, "arguments": arguments})
        except (TypeError, ValueError) as fault:
            raise JobFailed(job, type(fault).__name__, str(fault)) from None
        except OSError:
            raise JobFailed(job, "", self._obituary()) from None
        answer = read_message(process.stdout)
        if answer is None:
            raise JobFailed(job, "", self._obituary())
        result = answer.get("result")
        if isinstance(result, dict):
            return result
        raise JobFailed(job, *(str(answer.get(key, "")) for key in ("kind", "reason", "trace")))

    def _start(self, job: str) -> "subprocess.Popen[bytes]":
        # -P: what lies in the working directory is not ours; PYTHONPATH: but what we found is.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-P", "-m", "broker.background.jobs"]
        with self._guard:
            if self._unwanted:
                raise JobFailed(job, "", "it was cancelled before it began")
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
                )
            except OSError as fault:
                raise JobFailed(job, "", f"the worker process does not start: {fault}") from None
            return self._process

    def _obituary(self) -> str:
        """How the process died, which has closed its end of a pipe."""
        exit_code = self._end()
        if exit_code is not None and exit_code < 0:
            return f"the worker process was ended by {signal.Signals(-exit_code).name}"
        return f"the worker process ended with exit code {exit_code}"

    def _end(self) -> int | None:
        """Let the process end and reap it; its exit code."""
        process = self._process
        if process is None:
            return None
        try:
            process.communicate(timeout=END_TIMEOUT_S)  # closes its stdin
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        except OSError:
            process.kill()
            process.wait()
        with self._guard:
            self._process = None
        return process.returncode
