"""Serving: when the admin port is served, and what happens if it cannot be."""

import asyncio
from typing import cast

import pytest

from broker import main
from broker.daemon import Daemon
from broker.main import console_after
from broker.net.sockets import Bound
from broker.observe.events import PartFailed


class Shell:
    """What the console is given of a daemon, and the console that it opens."""

    def __init__(self) -> None:
        self.reported: list[object] = []
        self.is_open = False
        self.fault: Exception | None = None

    def observer(self, event: object) -> None:
        self.reported.append(event)

    async def open_console(self, daemon: Daemon, admin: Bound) -> "Shell":
        if self.fault is not None:
            raise self.fault
        self.is_open = True
        return self

    async def close(self) -> None:
        self.is_open = False


async def opened(shell: Shell, loading: asyncio.Future[None]) -> bool:
    console = await console_after(
        loading, cast("Daemon", shell), cast("Bound", object()), shell.open_console
    )
    return console is not None


@pytest.fixture
async def loading() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def test_the_console_opens_once_the_load_is_over(
    loading: asyncio.Future[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "CONSOLE_WAITS_S", None)
    shell = Shell()
    opening = asyncio.ensure_future(opened(shell, loading))
    await asyncio.sleep(0)
    assert not shell.is_open

    loading.set_result(None)

    assert await opening


async def test_a_long_load_is_not_waited_for(
    loading: asyncio.Future[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "CONSOLE_WAITS_S", 0)

    assert await opened(Shell(), loading)
    assert not loading.done()


async def test_a_load_that_failed_has_a_console_to_say_so(loading: asyncio.Future[None]) -> None:
    loading.set_exception(OSError("gone"))

    assert await opened(Shell(), loading)
    assert isinstance(loading.exception(), OSError)


async def test_a_daemon_that_is_stopped_in_its_load_opens_none(
    loading: asyncio.Future[None],
) -> None:
    loading.cancel()
    shell = Shell()

    assert not await opened(shell, loading)
    assert not shell.is_open


async def test_a_console_that_fails_is_reported_and_the_daemon_continues(
    loading: asyncio.Future[None],
) -> None:
    loading.set_result(None)
    shell = Shell()
    shell.fault = ImportError("no such library")

    assert not await opened(shell, loading)
    assert shell.reported == [PartFailed("console", shell.fault)]
