"""Entry point: the first lines of the `rollcall` process; cli/commands.py does the rest.

Imports nothing but what the interpreter has loaded already: until the signals are taken care of, a
Ctrl-C would print a traceback, and what a handler raises during an import may be lost.
"""

import gc
import os
import signal
import sys
from types import FrameType
from typing import Final

_INTERRUPTED: Final = 130  # as a shell reports SIGINT
START_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """Run the command and leave with its exit code."""
    is_daemon = sys.argv[1:2] == ["serve"]
    if is_daemon:
        leave_at_signals()
        gc.disable()  # as cli/start.py does, before the first import
    else:
        signal.signal(signal.SIGINT, _interrupted)
    _open_standard_streams()
    if sys.stdout is None and not is_daemon:  # the daemon warns of it and serves
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
    if is_daemon:
        from rollcall.lean_imports import import_without

        import_without("typing_extensions", "msgspec")  # a hundredth of a start
        from cli.start import serve_at_once

        exit_code = serve_at_once(sys.argv[2:])
        if exit_code is not None:
            sys.exit(exit_code)
    from cli.commands import run

    if not is_daemon:  # a command cleans up after itself
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(run())


def leave_at_signals() -> None:
    """Until the daemon listens to them itself: nobody was promised anything, so it just leaves.

    A handler that raises would be lost in some imports and callbacks, so this one ends the process.
    What the start has written by then is what a kill would leave: the next start goes on from it.
    """
    for number in START_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _leave)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    os._exit(_INTERRUPTED)


def _open_standard_streams() -> None:
    """What the parent closed (`>&-`) leads nowhere: or the next file opened would be stdout."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
