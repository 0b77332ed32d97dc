"""Exit codes: what the number means, the same for every command, and the errors that end with one.

0: done. 1: done, and problems were found, or the operation was refused or failed: there are
verdicts, damage was found, the target has groups already, the disk failed. 2: wrong usage or wrong
input (no such group, folder or file), or no daemon answers. So a script can tell "no" from
"unknown".

An error that an operator sees is an `OperatorError`: one line and a code. The groups of commands
(cli/groups.py) are the only place that handles them.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from seams.operator_error import OperationFailed, OperatorError, WrongInput

DONE: Final = 0
PROBLEMS: Final = OperationFailed.exit_code
WRONG: Final = WrongInput.exit_code
INTERRUPTED: Final = 130
"""By Ctrl-C: as a shell reports SIGINT."""

_OF_THE_INPUT: Final = frozenset(
    (
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EACCES,
        errno.EPERM,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EINVAL,
    )
)
"""Faults of the path that was given; others are the disk's."""


class CommandFailed(click.ClickException):
    """An operator error, as click reports it."""

    def __init__(self, error: OperatorError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code  # type: ignore[misc]  # its own, as click reads it


def of_disk(failed: OSError) -> OperatorError:
    """One line, and the code: a path that is wrong, or a disk that fails."""
    said = f"{failed.filename or 'disk'}: {failed.strerror or failed}"
    return WrongInput(said) if failed.errno in _OF_THE_INPUT else OperationFailed(said)


@contextmanager
def operator_errors(*, opens_logs: bool) -> Iterator[None]:
    """Around a command: each error of its operator ends it with one line and an exit code.

    `opens_logs`: the errors of storage/ are an operator's too. A closed pipe is left to run().
    """
    try:
        yield
    except OperatorError as error:
        raise CommandFailed(error) from None
    except OSError as failed:
        if failed.errno == errno.EPIPE:
            raise
        raise CommandFailed(of_disk(failed)) from None
    except Exception as fault:
        known = _of_storage(fault) if opens_logs else None
        if known is None:
            raise
        raise CommandFailed(known) from None


def _of_storage(fault: Exception) -> OperatorError | None:
    """The error of the layer that knows no commands; None for a defect."""
    from storage.api import Corrupt, LogClosed
    from storage.data_dir import DataDirRefused
    from storage.log.segment_swap import SwapRefused

    match fault:
        case DataDirRefused():
            return WrongInput(str(fault))
        case Corrupt() | LogClosed() | SwapRefused():
            return OperationFailed(str(fault))
        case _:
            return None
