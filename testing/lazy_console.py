"""Lazy console: the admin port of a test's daemon, opened by its first connection.

Few tests ask it for anything, and its HTTP library takes longer to import than a daemon to start.
"""

import asyncio

from broker.daemon import Daemon
from broker.main import RunningConsole
from broker.net.sockets import Bound
from console.start import open_console


class LazyConsole:
    """A console to come. What has connected before it is open is answered then."""

    def __init__(self, daemon: Daemon, admin: Bound) -> None:
        self._daemon = daemon
        self._admin = admin
        self._opening: asyncio.Task[RunningConsole] | None = None
        for sock in admin.sockets:
            daemon.loop.add_reader(sock.fileno(), self._open)

    async def close(self) -> None:
        self._stop_listening()
        if self._opening is not None:
            await (await self._opening).close()

    def _open(self) -> None:
        self._stop_listening()
        self._opening = self._daemon.loop.create_task(open_console(self._daemon, self._admin))

    def _stop_listening(self) -> None:
        for sock in self._admin.sockets:
            self._daemon.loop.remove_reader(sock.fileno())


async def open_lazily(daemon: Daemon, admin: Bound) -> RunningConsole:
    """In the place of `open_console`."""
    return LazyConsole(daemon, admin)
