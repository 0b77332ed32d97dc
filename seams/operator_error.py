"""Operator error: an error that ends a command with one line for the operator and an exit code.

The message names the place, what is wrong, and where it helps what to do. `WrongInput` and
`OperationFailed` differ in the exit code; a module has a subclass of its own where a caller tells
the cases apart. cli/exits.py turns the errors of storage/ and the system into these. An exception
that is none of them is a defect and keeps its traceback.
"""

from typing import ClassVar


class OperatorError(Exception):
    """The message is one line."""

    exit_code: ClassVar[int]


class WrongInput(OperatorError):
    """What the command names is not there, cannot be read as such, or nobody answers there."""

    exit_code = 2


class OperationFailed(OperatorError):
    """The input is right; what was found forbids the operation, or it failed on the way."""

    exit_code = 1
