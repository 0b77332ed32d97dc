"""Exit codes: what the number means, the same for every command.

0: done. 1: done, and the answer is bad news, or a refusal: there are verdicts, damage was found,
the target has groups already, the disk failed. 2: wrong usage or wrong input (no such group, folder
or file), or no daemon answers. So a script can tell "no" from "unknown".
"""

import errno
from typing import Final

import click

DONE: Final = 0
BAD_NEWS: Final = 1
WRONG: Final = 2
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


class BadNews(click.ClickException):
    """What was found forbids it, or it failed."""

    exit_code = BAD_NEWS


class WrongInput(click.ClickException):
    """The command is well formed, but what it names is not there, or cannot be read as such."""

    exit_code = WRONG


def of_disk(failed: OSError) -> click.ClickException:
    """One line, and the code: a path that is wrong, or a disk that fails."""
    said = f"{failed.filename or 'disk'}: {failed.strerror or failed}"
    return WrongInput(said) if failed.errno in _OF_THE_INPUT else BadNews(said)
