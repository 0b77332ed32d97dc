"""Reports of a member process: what it saw, as lines for the test; and how it is stopped.

One JSON object a line on stdout, with the time, by which a test orders the lines of several
processes; SIGTERM.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

stopping = threading.Event()
_polling = False


class Stopped(BaseException):
    """SIGTERM came in the middle of a poll."""


def say(event: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"event": event, "at_ns": time.time_ns(), **facts}) + "\n")
    sys.stdout.flush()


def stop_on_sigterm() -> None:
    signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(*_: object) -> None:
    stopping.set()
    if _polling:
        raise Stopped


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends what is done here at once, rather than when it has yielded something."""
    global _polling  # noqa: PLW0603 - a signal handler can be told in no other way
    _polling = True
    try:
        yield
    except Stopped:
        pass
    finally:
        _polling = False
