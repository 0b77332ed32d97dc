"""Stop: how the end of the drill reaches a member program, even in the middle of a long poll."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

stopping = threading.Event()
_in_poll = False


class PollStopped(BaseException):
    """The end came in the middle of a poll."""


@contextmanager
def interruptible() -> Iterator[None]:
    """What is done here ends at once when the member has to stop."""
    global _in_poll  # noqa: PLW0603  a signal handler has no other way to know
    _in_poll = True
    try:
        yield
    except PollStopped:
        pass
    finally:
        _in_poll = False


def stop_with_stdin() -> None:
    """From now on a line on stdin, or its end, stops the member."""
    signal.signal(signal.SIGTERM, _on_stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the drill ends its children
    threading.Thread(target=_await_stop, daemon=True).start()


def _on_stop(*_: object) -> None:
    stopping.set()
    if _in_poll:
        raise PollStopped


def _await_stop() -> None:
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGTERM)  # this process's own
