"""Container: the image of Rollcall for tests that use Testcontainers (needs Docker).

    with RollcallContainer("rollcall:0.1.0") as rollcall:
        ...                     # clients connect to rollcall.bootstrap

For tests that need the image itself. It has no clock that jumps and no faults: the fixtures have
those. Build the image with `docker build -t rollcall:0.1.0 .`

UNTESTED against Docker: the project is developed where there is none. Tests check what it asks of
Testcontainers. Needs the package `testcontainers` 4.
"""

import socket
from typing import Final, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs

from rollcall import __version__
from rollcall.testing.fork_server import PropertyValue, as_properties

CONTAINER_START_S: Final = 60.0
CLIENT_PORT: Final = 9092
ADMIN_PORT: Final = 9180


class RollcallContainer(DockerContainer):  # type: ignore[misc]  # it has no types
    """One daemon in a container; properties as `rollcall_factory` takes them."""

    def __init__(self, image: str = f"rollcall:{__version__}", **properties: PropertyValue) -> None:
        super().__init__(image)
        # Clients are told the address to connect to, so the port has to be known before the start.
        self._port = _free_port()
        self.with_bind_ports(CLIENT_PORT, self._port)
        self.with_exposed_ports(ADMIN_PORT)
        self.with_command(self._command(as_properties(properties)))

    def _command(self, properties: dict[str, str]) -> list[str]:
        command = ["serve", "--listen", f":{CLIENT_PORT}"]
        command += ["--advertise", f"127.0.0.1:{self._port}", "--admin", f":{ADMIN_PORT}"]
        written = {"group.initial.rebalance.delay.ms": "0", **properties}
        for name, value in written.items():
            command += ["--set", f"{name}={value}"]
        return command

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def admin(self) -> str:
        """HOST:PORT of the admin port."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(ADMIN_PORT)}"

    def start(self) -> Self:
        """Returns when it serves clients."""
        super().start()
        wait_for_logs(self, "rollcall ready:", timeout=CONTAINER_START_S)
        return self


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
