"""Admin port start: imports the HTTP library after the clients' port is open.

`cli/` hands `open_console` to broker/main.py, which calls it once clients are served. Importing the
HTTP library takes longer than the rest of a start, so it happens here, in a thread.
"""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from broker.daemon import Daemon
from broker.net.sockets import Bound

if TYPE_CHECKING:
    from console.app import Console


async def open_console(daemon: Daemon, admin: Bound) -> "Console":
    """Serve the admin port; what was asked of it since it was bound is answered first."""
    await asyncio.get_running_loop().run_in_executor(None, import_module, "console.app")
    from console.app import Console

    console = Console(daemon)
    await console.open(admin)
    return console
