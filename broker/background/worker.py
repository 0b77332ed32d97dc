"""Worker process: runs heavy jobs, so that clients do not wait for them.

A pass of the log cleaner or the writing of a snapshot is seconds of pure Python: in a thread it
would hold the interpreter's lock, and every commit would wait for it (ADR 0007). So it runs in a
process with a lower priority, `broker/background/jobs.py`. The process is started for the first
job, does one job at a time while others queue, and ends after some idle time. A process that dies
loses only the job that it was doing; the next job gets a new process. To cancel a job, or to stop,
ends the process: a job cannot be interrupted in any other way, and what it leaves is removed by the
next start.

A thread talks to the process with blocking reads, and starts it there too: starting a process
blocks its caller.
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
"""The process ends after this time without a job: it takes some 15 MB."""

END_TIMEOUT_S: Final = 5.0
"""An idle process ends when its stdin does; after this time it is killed."""


class JobFailed(Exception):
    """A job ended without a result. `kind` is its exception's class, "" if the process died."""

    def __init__(self, job: str, kind: str, reason: str, trace: str = "") -> None:
        super().__init__(f"{job}: {kind}: {reason}" if kind else f"{job}: {reason}")
        self.job = job
        self.kind = kind
        self.reason = reason
        self.trace = trace


class WorkerProcess:
    """The daemon's end. All public methods are called on the event loop."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker")
        self._lock = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._stopped = False
        # The loop may kill while the thread starts and reaps: a pid that the system has given to
        # another process meanwhile must not be killed.
        self._process_lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False  # the job that runs, or is about to start, must end

    @property
    def pid(self) -> int | None:
        """Of the current process; None if there is none."""
        process = self._process
        return None if process is None else process.pid

    async def run(self, job: str, arguments: Arguments) -> Arguments:
        """The job's result, after the jobs that were queued before. Raises JobFailed.

        To cancel it ends the process if the job has begun, and returns once the process is dead:
        it writes nothing any more.
        """
        async with self._lock:
            if self._stopped:
                raise JobFailed(job, "", "the daemon is stopping")
            if self._idle is not None:
                self._idle.cancel()
            self._is_cancelled = False
            loop = asyncio.get_running_loop()
            exchange = loop.run_in_executor(self._thread, self._exchange, job, arguments)
            try:
                return await asyncio.shield(exchange)
            except asyncio.CancelledError:
                self._kill()
                await asyncio.wait([exchange])
                exchange.exception()  # it was cancelled: its failure is expected
                raise
            finally:
                self._idle = loop.call_later(self._idle_s, self._end_when_idle)

    async def stop(self) -> None:
        """End the process, in the middle of a job too; jobs fail from now on."""
        self._stopped = True
        self._kill()
        async with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown(wait=False)

    def _end_when_idle(self) -> None:
        if not self._lock.locked():
            self._thread.submit(self._end)

    def _kill(self) -> None:
        with self._process_lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.kill()

    # In the thread.

    def _exchange(self, job: str, arguments: Arguments) -> Arguments:
        if self._process is not None and self._process.poll() is not None:
            self._end()  # it died while it was idle
        process = self._process or self._start(job)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_message(process.stdin, {"job": job, "arguments": arguments})
        except (TypeError, ValueError) as fault:
            raise JobFailed(job, type(fault).__name__, str(fault)) from None
        except OSError:
            raise JobFailed(job, "", self._exit_reason()) from None
        answer = read_message(process.stdout)
        if answer is None:
            raise JobFailed(job, "", self._exit_reason())
        result = answer.get("result")
        if isinstance(result, dict):
            return result
        raise JobFailed(job, *(str(answer.get(key, "")) for key in ("kind", "reason", "trace")))

    def _start(self, job: str) -> "subprocess.Popen[bytes]":
        # -P: modules in the working directory are not ours. PYTHONPATH: those that we import are.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-P", "-m", "broker.background.jobs"]
        with self._process_lock:
            if self._is_cancelled:
                raise JobFailed(job, "", "it was cancelled before it began")
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
                )
            except OSError as fault:
                raise JobFailed(job, "", f"the worker process does not start: {fault}") from None
            return self._process

    def _exit_reason(self) -> str:
        """Why the process has closed its end of a pipe."""
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
        with self._process_lock:
            self._process = None
        return process.returncode
