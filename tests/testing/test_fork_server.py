"""Fork server: whatever ends a test run, no process and no folder is left of it."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rollcall.testing.fork_server import FOLDER_PREFIX
from testing.fork_server import LEFT_OVER_S, remove_left_over

WAIT_S = 60.0

RUN = """
import sys
from rollcall.testing import ForkServer
server = ForkServer()
daemons = [server.start(), server.start()]
print(server._process.pid, daemons[0].pid, daemons[1].pid, daemons[0].folder.parent, flush=True)
sys.stdin.read()
"""


def test_a_killed_test_run_leaves_nothing() -> None:
    run, (server, first, second), folder = started()

    run.kill()
    run.wait()

    until(lambda: not any(map(is_running, (server, first, second))))
    until(lambda: not folder.exists())


def test_a_killed_fork_server_leaves_no_daemon() -> None:
    run, (server, first, second), folder = started()

    os.kill(server, signal.SIGKILL)

    until(lambda: not any(map(is_running, (first, second))))
    run.communicate(b"")  # an end without close()
    remove_left_over(folder.parent)
    assert folder.exists(), "it is younger than LEFT_OVER_S"
    age(folder)
    remove_left_over(folder.parent)
    until(lambda: not folder.exists())  # another run may have begun to remove it


def test_the_folder_of_a_live_run_is_no_leftover(tmp_path: Path) -> None:
    live, other = tmp_path / f"{FOLDER_PREFIX}live", tmp_path / "other"
    for folder in (live, other):
        folder.mkdir()
        age(folder)
    lock = os.open(live, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)

    remove_left_over(tmp_path)
    assert live.exists()
    os.close(lock)
    remove_left_over(tmp_path)

    assert not live.exists()
    assert other.exists()


def started() -> "tuple[subprocess.Popen[bytes], list[int], Path]":
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert run.stdout is not None
    *pids, folder = run.stdout.readline().split()
    if not pids:
        pytest.fail("no daemon was started")
    return run, [int(pid) for pid in pids], Path(folder.decode())


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(is_so: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def age(folder: Path) -> None:
    old_s = time.time() - 2 * LEFT_OVER_S
    os.utime(folder, (old_s, old_s))
