"""Admin port start: the console is imported when somebody first connects to the admin port.

`cli/` hands `open_console` to broker/main.py, which calls it once clients are served. The HTTP
library takes as long to import as half of a start, and 15 MB; many a daemon is never asked. What
connects is answered as soon as the console is there, some 0.2 s later. The import runs in a thread.
"""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from broker.daemon import Daemon
from broker.net.sockets import Bound
from broker.observe.events import PartFailed
from console.since_start import SinceStart

if TYPE_CHECKING:
    from console.app import Console


class AdminPort:
    """The console to come, or the one that is open."""

    def __init__(self, daemon: Daemon, admin: Bound) -> None:
        self._daemon = daemon
        self._admin = admin
        self._since_start = SinceStart(daemon)
        self._opening: asyncio.Task[Console | None] | None = None
        for sock in admin.sockets:
            daemon.loop.add_reader(sock.fileno(), self._open)

    async def close(self) -> None:
        self._stop_listening()
        if self._opening is not None and (console := await self._opening) is not None:
            await console.close()

    def _open(self) -> None:
        """A connection waits in the kernel's queue."""
        self._stop_listening()
        self._opening = self._daemon.loop.create_task(self._serve())

    async def _serve(self) -> "Console | None":
        try:
            return await self._open_console()
        except Exception as error:  # noqa: BLE001 - whatever a library raises: clients are served
            self._daemon.observer(PartFailed("console", error))
            return None

    async def _open_console(self) -> "Console":
        await self._daemon.loop.run_in_executor(None, import_module, "console.app")
        from console.app import Console

        console = Console(self._daemon, self._since_start)
        await console.open(self._admin)
        return console

    def _stop_listening(self) -> None:
        for sock in self._admin.sockets:
            self._daemon.loop.remove_reader(sock.fileno())


async def open_console(daemon: Daemon, admin: Bound) -> AdminPort:
    """Serve the admin port; what was asked of it since it was bound is answered first."""
    return AdminPort(daemon, admin)
