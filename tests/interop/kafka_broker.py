"""Kafka broker: a real Apache Kafka 4.3.1, one node, run from the pinned jars.

Formats a log directory, starts in some four seconds, and stops cleanly by SIGTERM. Its ports are
free ones of the moment.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.kafka_tools import KafkaTools
from tests.ports import held_ports

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_WITHIN_S = 90.0
STOP_WITHIN_S = 60.0


class KafkaBroker:
    """`start` and `stop` as often as wanted; `log_dir` is its to write while it runs."""

    def __init__(self, tools: KafkaTools, folder: Path, **properties: object) -> None:
        self._tools = tools
        self._folder = folder
        self._properties = {name.replace("_", "."): value for name, value in properties.items()}
        self._process: subprocess.Popen[bytes] | None = None
        self.log_dir = folder / "data"
        self.bootstrap = ""
        folder.mkdir(parents=True)

    def start(self) -> "KafkaBroker":
        with held_ports(2) as (port, controller_port):
            self._start(port, controller_port)
        return self

    def _start(self, port: int, controller_port: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        config = self._write_config(port, controller_port)
        if not (self.log_dir / "meta.properties").exists():
            formatted = self._tools.run(
                "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config
            )
            assert formatted.exit_code == 0, formatted.out + formatted.err
        log = self._folder / "broker.log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                self._tools.command("kafka.Kafka", config, level="info"),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_WITHIN_S
        while b"Kafka Server started" not in log.read_bytes():
            assert self._process.poll() is None, log.read_text()[-4_000:]
            assert time.monotonic() < deadline, log.read_text()[-4_000:]
            time.sleep(0.1)

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        finally:
            process.kill()
            process.wait()

    def _write_config(self, port: int, controller_port: int) -> Path:
        properties = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": self.log_dir,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            **self._properties,
        }
        path = self._folder / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return path


@contextmanager
def kafka_broker(tools: KafkaTools, folder: Path, **properties: object) -> Iterator[KafkaBroker]:
    """Started; stopped at the end, whatever happens."""
    broker = KafkaBroker(tools, folder, **properties)
    try:
        yield broker.start()
    finally:
        broker.stop()


def is_wanted() -> bool:
    """The long form, with every kind of group and hundreds of them."""
    return os.environ.get("OFFSETS_ROUND_TRIP", "") not in ("", "0")
