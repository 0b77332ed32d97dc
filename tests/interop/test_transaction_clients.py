"""Transactions with each client library: commit, abort, offsets, and what read_committed finds.

`make test` runs the libraries of the virtual environment, `make long-transaction-clients`
(TRANSACTION_CLIENTS=1) also Java, franz-go, sarama and kafkajs. With TRANSACTION_CLIENTS=kafka they
run against a real Kafka. A session's warnings are compared with those that it has there.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaAdminClient

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.go_programs import ROOT, go_program
from tests.interop.kafka_apps import produce
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import require_kafka_tools

WANTED = os.environ.get("TRANSACTION_CLIENTS", "")
LONG = WANTED not in ("", "0")
SESSIONS = Path(__file__).with_name("sessions")
PYTHON_LIBRARIES = ("confluent", "aiokafka", "kafka-python")
LIBRARIES = (*PYTHON_LIBRARIES, "java", "franz-go", "sarama", "kafkajs")

SOURCE = ("c1", "c2", "c3")
EXPECTED = ["a1", "a2", "a3", *SOURCE]
TIMEOUT_S = 240

_numbers = count(1)

EXPECTED_WARNINGS = {  # against a Kafka too
    "confluent": re.compile(r"GETPID.*load in progress: retrying"),  # while its topic is created
    "sarama": re.compile(r"."),  # its logger has no levels
    "kafkajs": re.compile(
        r"KafkaJS v2.0.0 switched default partitioner|TimeoutNegativeWarning|--trace-warnings"
        r"|another concurrent operation on the same transaction"  # until the last one is complete
    ),
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all sessions."""
    folder = tmp_path_factory.mktemp("server")
    with _server(folder) as address:
        yield address


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    if WANTED == "kafka":
        with kafka_broker(require_kafka_tools(), folder / "kafka") as broker:
            yield broker.bootstrap
        return
    daemon = Daemon(folder)
    try:
        yield daemon.start().bootstrap
    finally:
        daemon.close()


def command(library: str) -> list[str]:
    if library in PYTHON_LIBRARIES:
        return [sys.executable, str(SESSIONS / "python_clients.py"), library]
    if library == "java":
        tools = require_kafka_tools()
        jvm = tools.java.resolve().parents[1] / "lib" / "server" / "libjvm.so"
        jars = os.pathsep.join(map(str, tools.jars))
        return [sys.executable, str(SESSIONS / "java_client.py"), str(jvm), jars]
    if library == "kafkajs":
        return ["node", str(kafkajs_folder() / "main.js")]
    return [str(go_program(SESSIONS / "go_clients")), library]


def kafkajs_folder() -> Path:
    """With the modules that its lock names, from npm; or a skipped test."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm in PATH")
    folder = ROOT / ".cache" / "kafkajs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "main.js"):
        shutil.copy(SESSIONS / "kafkajs" / name, folder)
    if not (folder / "node_modules" / "kafkajs").exists():
        installed = subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if installed.returncode:
            pytest.skip(f"npm could not install kafkajs: {installed.stderr[-300:]}")
    return folder


@pytest.mark.parametrize("library", LIBRARIES if LONG else PYTHON_LIBRARIES)
def test_commit_abort_and_offsets(bootstrap: str, library: str) -> None:
    number = next(_numbers)
    source, target, group = f"source-{number}", f"target-{number}", f"group-{number}"
    for topic in (source, target):
        create_topic(bootstrap, topic, 1)
    produce(bootstrap, source, *SOURCE)
    done = subprocess.run(
        [*command(library), bootstrap, source, target, group, f"id-{number}"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.split() == EXPECTED, done.stderr[-3_000:]
    expected = EXPECTED_WARNINGS.get(library)
    warned = [
        line
        for line in done.stderr.splitlines()
        if line.strip() and (expected is None or not expected.search(line))
    ]
    assert warned == []
    assert committed_offset(bootstrap, group, source) == len(SOURCE)
    assert "b1" in everything(bootstrap, target)


def test_kafka_python_takes_it_for_a_kafka_4_3(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    found = admin._manager.broker_version
    admin.close()
    assert tuple(found) == (4, 3)


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    return int(found.offset)


def everything(bootstrap: str, topic: str) -> list[str]:
    """What a read_uncommitted consumer finds."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reads-everything",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        values.append(message.value().decode())
    consumer.close()
    return values
