"""Exactly once: consume, transform, produce in transactions while the daemon is killed.

Two transformers of one group copy a topic. Whatever dies, a read_committed consumer of the target
sees each record of the source once, and in the order of its partition. `make test` has one kill
with librdkafka; `make long-exactly-once` (EXACTLY_ONCE=1) has more, with Java too.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.kafka_apps import Reader, wait_until
from tests.interop.kafka_tools import require_kafka_tools

LONG = os.environ.get("EXACTLY_ONCE", "") not in ("", "0")
LIBRARIES = ("confluent", "java") if LONG else ("confluent",)
KILLS = 8 if LONG else 1
RECORDS_PER_ROUND = 400
PARTITIONS = 3
SOURCE, TARGET = "source", "target"
SCRIPTS = Path(__file__).with_name("transformers")


class Transformer:
    """A process that is started again when it ends."""

    def __init__(self, library: str, daemon: Daemon, number: int, log: Path) -> None:
        arguments = [daemon.bootstrap, SOURCE, TARGET, "copiers", f"copier-{number}"]
        if library == "java":
            tools = require_kafka_tools()
            jvm = tools.java.resolve().parents[1] / "lib" / "server" / "libjvm.so"
            arguments = [str(jvm), os.pathsep.join(map(str, tools.jars)), *arguments]
        self._command = [sys.executable, str(SCRIPTS / f"{library}_transformer.py"), *arguments]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )

    def start_again_if_ended(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    @property
    def committed(self) -> int:
        """Transactions."""
        return sum(line.startswith("committed") for line in self.lines())


@contextmanager
def running(transformers: list[Transformer]) -> Iterator[None]:
    try:
        for transformer in transformers:
            transformer.start()
        yield
    finally:
        for transformer in transformers:
            transformer.stop()


def write(bootstrap: str, first: int) -> int:
    """A round of records; the number of the next one."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for n in range(first, first + RECORDS_PER_ROUND):
        producer.produce(SOURCE, str(n), partition=n % PARTITIONS)
    assert producer.flush(120) == 0, "records were not acknowledged"
    return first + RECORDS_PER_ROUND


def arrived(reader: Reader, transformers: list[Transformer], total: int) -> Callable[[], bool]:
    def holds() -> bool:
        for transformer in transformers:
            transformer.start_again_if_ended()
        return len(reader.read()) >= total

    return holds


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("flush", ["commit", "os"] if LONG else ["commit"])
def test_a_killed_daemon_loses_and_doubles_nothing(
    tmp_path: Path, library: str, flush: str, start_daemon: Callable[..., Daemon]
) -> None:
    seed = int(os.environ.get("EXACTLY_ONCE_SEED", "1"))
    chance = random.Random(seed)
    daemon = start_daemon(
        {
            "group.initial.rebalance.delay.ms": "0",
            "rollcall.flush": flush,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        }
    )
    for topic in (SOURCE, TARGET):
        create_topic(daemon.bootstrap, topic, PARTITIONS)
    transformers = [
        Transformer(library, daemon, n, tmp_path / f"transformer-{n}.log") for n in (1, 2)
    ]
    reader = Reader(daemon.bootstrap, TARGET)
    total = 0
    with running(transformers):
        for kill in range(KILLS):
            total = write(daemon.bootstrap, total)
            before = sum(transformer.committed for transformer in transformers)
            wait_until(
                "some transactions",
                lambda n=before: sum(t.committed for t in transformers) > n,
            )
            time.sleep(chance.random() / 2)  # at any moment of a transaction
            daemon.kill()
            if LONG and kill % 3 == 2:
                chance.choice(transformers).kill()
            daemon.start()
            for transformer in transformers:
                transformer.start_again_if_ended()
        wait_until("all records", arrived(reader, transformers, total))
    values = reader.values()
    reader.close()
    assert sorted(map(int, values)) == list(range(total)), f"seed {seed}"
    for number in range(PARTITIONS):
        of_one = [int(value) for value in values if int(value) % PARTITIONS == number]
        assert of_one == sorted(of_one), f"partition {number} is out of order, seed {seed}"
