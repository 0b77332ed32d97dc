"""Pytest plugin: fixtures that give tests a daemon, and its groups in the report of a failure.

    rollcall            a daemon for one test
    rollcall_session    one for the whole run (for each process of pytest-xdist)
    rollcall_factory    called with properties, it makes as many as a test needs

Loaded with every test run of an environment that has Rollcall installed, so it imports nothing else
until a test asks for a daemon. docs/pytest.md.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rollcall.testing import ForkServer, Rollcall

    RollcallFactory = Callable[..., Rollcall]

_SINCE = pytest.StashKey[dict[int, int]]()
_OF_TEST = pytest.StashKey[list["Rollcall"]]()


@pytest.fixture(scope="session")
def _rollcall_server() -> Iterator["ForkServer"]:
    from rollcall.testing import ForkServer

    with ForkServer() as server:
        yield server


@pytest.fixture
def rollcall(
    _rollcall_server: "ForkServer", request: pytest.FixtureRequest
) -> Iterator["Rollcall"]:
    """A daemon of this test's own, with Kafka's defaults; see rollcall.testing.Rollcall."""
    with _rollcall_server.start() as daemon:
        _report_on(request.node, daemon, since_ms=0)
        yield daemon


@pytest.fixture(scope="session")
def rollcall_session(_rollcall_server: "ForkServer") -> Iterator["Rollcall"]:
    """One daemon for all tests of this process: give groups and topics names of their own."""
    with _rollcall_server.start() as daemon:
        yield daemon


@pytest.fixture
def rollcall_factory(
    _rollcall_server: "ForkServer", request: pytest.FixtureRequest
) -> Iterator["RollcallFactory"]:
    """`rollcall_factory(group_max_size=2)`: a daemon with these properties, until the test ends.

    Properties have underscores for their dots, or are given as a mapping with Kafka's names.
    """
    with ExitStack() as daemons:

        def start(*mapping: object, **properties: object) -> "Rollcall":
            daemon = _rollcall_server.start(*mapping, **properties)  # type: ignore[arg-type]  # it checks
            daemons.callback(daemon.close)
            _report_on(request.node, daemon, since_ms=0)
            return daemon

        yield start


def _report_on(node: pytest.Item, daemon: "Rollcall", since_ms: int) -> None:
    node.stash.setdefault(_OF_TEST, []).append(daemon)
    node.stash.setdefault(_SINCE, {})[id(daemon)] = since_ms


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Of the session's daemon the report has what happened since this test began."""
    daemon = getattr(item, "funcargs", {}).get("rollcall_session")
    if daemon is not None:
        from rollcall.testing import RollcallError

        try:
            _report_on(item, daemon, daemon.now_ms())
        except RollcallError:
            _report_on(item, daemon, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the groups of the test's daemons to the report of a failure."""
    report = yield
    if report.failed and call.when != "teardown":
        for daemon in item.stash.get(_OF_TEST, []):
            if not daemon.is_closed:
                since_ms = item.stash[_SINCE][id(daemon)]
                report.sections.append(
                    (f"rollcall {daemon.bootstrap}", _timeline(daemon, since_ms))
                )
    return report


def _timeline(daemon: "Rollcall", since_ms: int) -> str:
    from rollcall.testing import RollcallError

    try:
        return daemon.timeline(since_ms) or "There are no groups, and there were none."
    except RollcallError as error:
        return str(error)
