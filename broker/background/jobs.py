"""Worker jobs: work that is too heavy for the daemon's process, and the process that does it.

A job is a plain function over a disk with plain arguments (what msgpack can carry), so tests and
the simulator call it directly. `WORKER_JOBS` names them. Each imports its modules when it is
called: the worker process starts with few imports. `run_worker` is all that the process runs:
requests from stdin, answers to stdout, each a length and a msgpack map. `worker.py` is the other
end of the two pipes.

The worker does one job at a time, in a thread of low priority unless the job is urgent. (Where a
thread has no priority of its own, all jobs have the low one from the first of them on.) Another
thread reads stdin. When stdin ends,
the process ends, in the middle of a job too: it outlives neither a stop of the daemon nor its
`kill -9`. Every job must therefore leave only files that a start removes.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from struct import Struct
from typing import IO, Final

import msgpack

from storage.disk import Disk, RealDisk

Arguments = dict[str, object]
WorkerJob = Callable[[Disk, Arguments], Arguments]

LENGTH: Final = Struct(">I")
MAX_MESSAGE_BYTES: Final = 64 << 20
"""Arguments are names and numbers, results are on the disk: a larger message is a mistake."""

NICENESS: Final = 10
"""The daemon's two threads have priority; this work has no deadline."""

URGENT_JOB: Final = "urgent"
"""The argument of a job that runs with the daemon's own priority."""

SELF_TEST: Final = "self-test"
TAKE_SNAPSHOT: Final = "fold"
"""Of a partition of the offsets topic; see snapshot_job.py. The name is part of log lines."""
CLEAN_LOG: Final = "clean-log"


def _self_test(_disk: Disk, arguments: Arguments) -> Arguments:
    """Echo the arguments; `fail` raises it, `exit` ends the process."""
    if "fail" in arguments:
        raise ValueError(str(arguments["fail"]))
    if "exit" in arguments:
        os._exit(int(str(arguments["exit"])))
    if "wait" in arguments:
        threading.Event().wait()
    return {**arguments, "nice": os.nice(0), "pid": os.getpid()}


def _clean_log(disk: Disk, arguments: Arguments) -> Arguments:
    """A cleaner's pass: `pass` as Pass.to_message has it, and how fast it may be."""
    from broker.background.io_throttle import IoThrottle
    from storage.cleaner.cleaner_pass import run_pass
    from storage.cleaner.messages import Pass

    message, rate = arguments["pass"], arguments["io_max_bytes_per_second"]
    assert isinstance(message, dict)
    assert isinstance(rate, float)
    return run_pass(disk, Pass.from_message(message), IoThrottle(rate)).to_message()


def _take_snapshot(disk: Disk, arguments: Arguments) -> Arguments:
    from broker.background.snapshot_job import take_snapshot

    return take_snapshot(disk, arguments)


WORKER_JOBS: Final[Mapping[str, WorkerJob]] = {
    SELF_TEST: _self_test,
    TAKE_SNAPSHOT: _take_snapshot,
    CLEAN_LOG: _clean_log,
}


def run_worker_job(disk: Disk, job: str, arguments: Arguments) -> Arguments:
    """What the worker process does for one request; KeyError for a job that is not there."""
    return WORKER_JOBS[job](disk, arguments)


def write_message(pipe: IO[bytes], message: Mapping[str, object]) -> None:
    """ValueError or TypeError if it is more, or other, than a message may hold."""
    content: bytes = msgpack.packb(message)
    if len(content) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {len(content)} bytes; {MAX_MESSAGE_BYTES} are the most")
    pipe.write(LENGTH.pack(len(content)) + content)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Arguments | None:
    """The next message; None where the pipe ends, in the middle of one too."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    content = pipe.read(length)
    if len(content) < length:
        return None
    message: Arguments = msgpack.unpackb(content, strict_map_key=False)
    return message


def run_worker() -> None:
    """The worker process, until its stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the daemon
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not become an answer
    requests: SimpleQueue[Arguments] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), name="listen", daemon=True).start()
    disk = RealDisk()
    while True:
        write_message(answers, _in_priority(disk, requests.get()))


def _listen(requests: "SimpleQueue[Arguments]") -> None:
    while (request := read_message(sys.stdin.buffer)) is not None:
        requests.put(request)
    os._exit(0)  # in the middle of a job too: nothing reads its result


def _in_priority(disk: Disk, request: Arguments) -> Arguments:
    arguments = request.get("arguments")
    if isinstance(arguments, dict) and arguments.get(URGENT_JOB):
        return _answer(disk, request)
    found: list[Arguments] = []

    def run() -> None:
        os.nice(NICENESS)
        found.append(_answer(disk, request))

    thread = threading.Thread(target=run, name="background")
    thread.start()
    thread.join()
    return found[0]


def _answer(disk: Disk, request: Arguments) -> Arguments:
    try:
        arguments = request["arguments"]
        assert isinstance(arguments, dict)
        return {"result": run_worker_job(disk, str(request["job"]), arguments)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the daemon logs it
        trace = "".join(traceback.format_exception(error))
        return {"kind": type(error).__name__, "reason": str(error), "trace": trace}


if __name__ == "__main__":
    run_worker()
