"""Errors of the test tools: what a test is told when something cannot be done."""


class RollcallError(Exception):
    """All errors of `rollcall.testing`."""


class DaemonDied(RollcallError):
    """The daemon has ended, or did not start; the message has the last lines of its log."""


class NotPossible(RollcallError):
    """The question is right, and the daemon or the group is not in the state for it."""


class WrongQuestion(RollcallError, ValueError):
    """An unknown name (of an API, error, group, member, state, property), or a wrong value."""


class WaitTimedOut(RollcallError, TimeoutError):
    """What a test waited for has not come; the message says how things are instead."""
