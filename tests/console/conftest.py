"""Fixtures: one daemon with known traffic for tests that only read, and the daemon's own loop."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop

from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.console.live import FLUSHES, Samples, at, total, until, with_traffic


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="package")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A member that lags, a group without members, a known rebalance."""
    daemon = Daemon(
        tmp_path_factory.mktemp("busy"),
        {**TEST_SETTINGS, "rollcall.lag.interval.ms": "100"},
    ).start()
    try:
        with_traffic(daemon)
        yield daemon
    finally:
        daemon.close()


@pytest.fixture(scope="package")
def shown(busy: Daemon) -> Samples:
    """Once both groups were sampled, the first lag in seconds is known, and the journal rests.

    What a scrape shows was read one after the other: a sample of the lag that is written meanwhile
    may count in one number and not yet in the next.
    """
    seconds = at("group_coordinator_lag_seconds", group="billing", topic="orders", partition="0")
    flushed: list[float] = []

    def is_sampled(found: Samples) -> bool:
        nonlocal flushed
        before, flushed = flushed, [found[at(name)] for name in FLUSHES]
        groups = total(found, "group_coordinator_groups_by_lag_verdict")
        return seconds in found and groups == 2 and flushed == before

    return until(busy, is_sampled)
