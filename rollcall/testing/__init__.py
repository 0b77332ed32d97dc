"""Test tools: a daemon of its own for each test, and time under the test's control.

With pytest the fixtures `rollcall`, `rollcall_session` and `rollcall_factory` are there as soon as
the package is installed. Without it:

    with ForkServer() as server:
        daemon = server.start(group_max_size=5)
        ...                     # clients connect to daemon.bootstrap

docs/pytest.md.
"""

from rollcall.testing.daemon import GroupDescription, GroupMember, Hold, Rollcall
from rollcall.testing.errors import (
    DaemonDied,
    NotPossible,
    RollcallError,
    WaitTimedOut,
    WrongQuestion,
)
from rollcall.testing.fork_server import TEST_PROPERTIES, ForkServer, PropertyValue

__all__ = [
    "TEST_PROPERTIES",
    "DaemonDied",
    "ForkServer",
    "GroupDescription",
    "GroupMember",
    "Hold",
    "NotPossible",
    "PropertyValue",
    "Rollcall",
    "RollcallError",
    "WaitTimedOut",
    "WrongQuestion",
]
