"""Fixtures for all tests: the real daemon, as a process of its own."""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

# Before anything of the program is imported.
import tests.build  # noqa: F401  # isort: skip
import pytest
from hypothesis import HealthCheck, settings

from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.falsified import add_to_report

# A slow machine is no failure: property tests are bounded by their examples, not by the clock.
# The examples are the same in each run, so that a submission is judged by its own changes;
# `make long-properties` tries others.
settings.register_profile(
    "house",
    deadline=None,
    derandomize="RANDOM_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("house")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    add_to_report(report, call)
    return report


StartDaemon = Callable[..., Daemon]


def pytest_configure() -> None:
    """Daemons of the tests hear SIGHUP and SIGINT, also under nohup or in a shell's background."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of an `xdist_group` in one process: one Spark, one play of all scenarios.

    pytest-xdist 3.8 ends their ids with the group's name in a place where pytest 9.2 looks no more.
    """
    if not config.getoption("loadgroup", default=False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and not item.nodeid.endswith(f"@{mark.args[0]}"):
            named = f"{item.nodeid}@{mark.args[0]}"
            item._id = type(item._id).parse(named)


@pytest.fixture
def start_daemon(tmp_path: Path) -> Iterator[StartDaemon]:
    """`start_daemon({key: value, ...}, name=...)`: as many daemons as a test needs."""
    daemons: list[Daemon] = []

    def start(
        settings: Mapping[str, str] = TEST_SETTINGS,
        *,
        name: str = "node",
        listen: str | None = "127.0.0.1:0",
    ) -> Daemon:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        daemon = Daemon(folder, settings)
        daemon.listen = listen
        daemons.append(daemon)
        return daemon.start()

    yield start
    for daemon in daemons:
        daemon.close()


@pytest.fixture
def daemon(start_daemon: StartDaemon) -> Daemon:
    """One daemon with the defaults, except that a first rebalance does not wait."""
    return start_daemon()
