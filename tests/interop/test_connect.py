"""Kafka Connect, distributed: two workers copy a file through a topic into a file."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.interop.kafka_apps import (
    CONNECT_DISTRIBUTED,
    LONG_ONLY,
    App,
    given_server,
    running,
    wait_until,
    write_properties,
)
from tests.ports import held_ports

pytestmark = LONG_ONLY

TOPIC = "lines"


class Worker:
    """One Connect worker, and its REST interface."""

    def __init__(self, bootstrap: str, folder: Path, protocol: str, port: int) -> None:
        config = write_properties(
            folder / f"worker-{port}.properties",
            bootstrap_servers=bootstrap,
            group_id="copiers",
            key_converter="org.apache.kafka.connect.storage.StringConverter",
            value_converter="org.apache.kafka.connect.storage.StringConverter",
            config_storage_topic="connect-configs",
            offset_storage_topic="connect-offsets",
            status_storage_topic="connect-status",
            config_storage_replication_factor=1,
            offset_storage_replication_factor=1,
            status_storage_replication_factor=1,
            offset_storage_partitions=3,
            offset_flush_interval_ms=500,
            connect_protocol=protocol,
            scheduled_rebalance_max_delay_ms=500,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
            listeners=f"http://127.0.0.1:{port}",
            plugin_discovery="only_scan",
        )
        self._url = f"http://127.0.0.1:{port}"
        self.app = App(CONNECT_DISTRIBUTED, folder / f"worker-{port}.log", config)
        self.worker_id = f"127.0.0.1:{port}"

    def get(self, path: str) -> object:
        """None while it does not answer."""
        try:
            with urllib.request.urlopen(self._url + path, timeout=30) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError):
            return None

    def put_config(self, name: str, config: Mapping[str, str]) -> bool:
        request = urllib.request.Request(
            f"{self._url}/connectors/{name}/config",
            data=json.dumps(config).encode(),
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bool(answer.status in (200, 201))
        except (urllib.error.URLError, OSError):
            return False  # the group rebalances

    def running_tasks(self, *names: str) -> list[str]:
        """The worker of each running task; empty if one of the connectors has none."""
        workers: list[str] = []
        for name in names:
            status = self.get(f"/connectors/{name}/status")
            if not isinstance(status, dict):
                return []
            tasks = [t["worker_id"] for t in status["tasks"] if t["state"] == "RUNNING"]
            if not tasks:
                return []
            workers += tasks
        return workers


@pytest.mark.parametrize("protocol", ["sessioned", "compatible", "eager"])
def test_two_workers_copy_a_file(tmp_path: Path, protocol: str) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.touch()
    with given_server(tmp_path, {}) as server, held_ports(2) as ports:
        workers = [Worker(server.bootstrap, tmp_path, protocol, port) for port in ports]
        apps = [worker.app for worker in workers]
        with running(*apps):
            for worker in workers:
                wait_until("the workers", lambda w=worker: w.get("/connectors") is not None, *apps)
            configs = {
                "reader": {
                    "connector.class": "FileStreamSource",
                    "file": str(source),
                    "topic": TOPIC,
                },
                "writer": {
                    "connector.class": "FileStreamSink",
                    "file": str(target),
                    "topics": TOPIC,
                },
            }
            for name, config in configs.items():
                wait_until(
                    f"connector {name}",
                    lambda n=name, c=config: workers[0].put_config(n, c),
                    *apps,
                )
            lines = [f"line {n}\n" for n in range(100)]
            append(source, lines)
            wait_until("the copy", lambda: copied(target) == lines, *apps)

            wait_until(
                "running tasks",
                lambda: len(workers[0].running_tasks("reader", "writer")) == len(configs),
                *apps,
            )
            owners = set(workers[0].running_tasks("reader", "writer"))
            gone = workers[1] if workers[1].worker_id in owners else workers[0]
            left = workers[1 - workers.index(gone)]
            gone.app.kill()
            more = [f"line {n}\n" for n in range(100, 200)]
            append(source, more)
            wait_until(
                "the copy by the worker that is left",
                lambda: set(copied(target)) == set(lines + more),
                left.app,
            )


def append(path: Path, lines: list[str]) -> None:
    with path.open("a") as file:
        file.writelines(lines)


def copied(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True) if path.exists() else []
