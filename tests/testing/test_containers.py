"""Container: what it asks of Testcontainers, which a stand-in notes. There is no Docker here."""

import importlib
import sys
from types import ModuleType

import pytest


class FakeContainer:
    """Notes what a container is configured with."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.bound: dict[int, int] = {}
        self.exposed: list[int] = []
        self.command: list[str] = []
        self.is_started = False

    def with_bind_ports(self, container: int, host: int) -> None:
        self.bound[container] = host

    def with_exposed_ports(self, *ports: int) -> None:
        self.exposed += ports

    def with_command(self, command: list[str]) -> None:
        self.command = command

    def get_container_host_ip(self) -> str:
        return "docker.lan"

    def get_exposed_port(self, port: int) -> int:
        return port + 1

    def start(self) -> None:
        self.is_started = True


def test_the_container_advertises_the_port_that_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    for name, content in {
        "testcontainers": {},
        "testcontainers.core": {},
        "testcontainers.core.container": {"DockerContainer": FakeContainer},
        "testcontainers.core.waiting_utils": {
            "wait_for_logs": lambda _container, text, timeout: waited.append(text)
        },
    }.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "rollcall.testing.containers", raising=False)
    containers = importlib.import_module("rollcall.testing.containers")

    container = containers.RollcallContainer("rollcall:test", group_max_size=2)
    container.start()

    port = container.bound[9092]
    assert container.bootstrap == f"127.0.0.1:{port}"
    assert container.admin == "docker.lan:9181"
    assert container.command[:5] == [
        "serve",
        "--listen",
        ":9092",
        "--advertise",
        f"127.0.0.1:{port}",
    ]
    assert "group.max.size=2" in container.command
    assert "group.initial.rebalance.delay.ms=0" in container.command
    assert container.is_started
    assert waited == ["rollcall ready:"]
    monkeypatch.delitem(sys.modules, "rollcall.testing.containers")
