"""Guarded start: runs a command that the kernel kills when the drill that started it is gone.

`python -m drills.guarded PARENT_PID COMMAND...`: a drill that is killed itself leaves no daemon and
no stopped client behind. Linux only; elsewhere the command just runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit(1)  # it was gone before
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
