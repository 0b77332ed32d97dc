"""Kafka's applications: Streams' word count, Connect and MirrorMaker, run against a port.

The jars of kafka_apps.lock are brought as those of kafka_tools.py are. An application is a process
with a log file; its own programs are unmodified, so that their logs tell what they think of us.
`make long-apps` runs the tests (KAFKA_APPS=1). With KAFKA_APPS=kafka they run against a real Kafka,
to see whether a test expects what Kafka does.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Final, Protocol

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.broker.daemon import Daemon
from tests.interop.java_runtime import OLDEST, find_java
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import CACHE, NoKafkaTools, bring_jars, require_kafka_tools

LOCK: Final = Path(__file__).with_name("kafka_apps.lock")
WANTED: Final = os.environ.get("KAFKA_APPS", "")
LONG_ONLY = pytest.mark.skipif(WANTED in ("", "0"), reason="KAFKA_APPS is not set")

WORD_COUNT: Final = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
CONNECT_DISTRIBUTED: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
MIRROR_MAKER: Final = "org.apache.kafka.connect.mirror.MirrorMaker"

WAIT_S: Final = 180.0


class Server(Protocol):
    """A Rollcall or a Kafka."""

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> object: ...


@cache
def app_jars() -> tuple[Path, ...]:
    """The jars, or a skipped test that says what is missing."""
    try:
        return bring_jars(LOCK, CACHE)
    except NoKafkaTools as missing:
        pytest.skip(f"Kafka's applications cannot be run here: {missing}")


class App:
    """One running application."""

    def __init__(self, main_class: str, log: Path, *arguments: str | Path) -> None:
        java = find_java()
        if java is None:
            pytest.skip(f"no Java {OLDEST} or later")
        self._command = [
            str(java),
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xshare:auto",
            "-Xmx256m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
            "-cp",
            os.pathsep.join(map(str, app_jars())),
            main_class,
            *map(str, arguments),
        ]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "App":
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
        return self

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def warnings(self) -> list[str]:
        """Its warnings and errors."""
        lines = self._log.read_text(errors="replace").splitlines()
        return [line for line in lines if " WARN " in line or " ERROR " in line]


@contextmanager
def running(*apps: App) -> Iterator[None]:
    """All started; all stopped at the end, whatever happens."""
    with ExitStack() as stack:
        for app in apps:
            stack.callback(app.stop)
            app.start()
        yield


@contextmanager
def given_server(folder: Path, settings: Mapping[str, str]) -> Iterator[Server]:
    """The server that the tests are about: a Rollcall, or a Kafka where that was asked for."""
    if WANTED == "kafka":
        properties = {name.replace(".", "_"): value for name, value in settings.items()}
        with kafka_broker(require_kafka_tools(), folder / "kafka", **properties) as broker:
            yield broker
        return
    daemon = Daemon(folder, {"group.initial.rebalance.delay.ms": "0", **settings})
    try:
        yield daemon.start()
    finally:
        daemon.close()


def write_properties(path: Path, **properties: object) -> Path:
    """A Java properties file; an underscore in a name stands for a dot."""
    lines = (f"{name.replace('_', '.')}={value}\n" for name, value in properties.items())
    path.write_text("".join(lines))
    return path


def wait_until(what: str, holds: Callable[[], bool], *apps: App) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        for app in apps:
            assert app.is_running, "\n".join(app.warnings()[-30:])
        if time.monotonic() > deadline:
            heard = [line for app in apps for line in app.warnings()[-15:]]
            raise AssertionError("\n".join([f"waited in vain for {what}", *heard]))
        time.sleep(0.2)


def produce(bootstrap: str, topic: str, *values: str) -> None:
    """Returns when every one is acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0, "messages were not acknowledged"


class Reader:
    """Everything of a topic that a read_committed consumer sees, from the beginning."""

    def __init__(self, bootstrap: str, topic: str, *, isolation: str = "read_committed") -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"reader-of-{topic}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": isolation,
            }
        )
        self._topic = topic
        self._is_assigned = False
        self.records: list[tuple[bytes | None, bytes | None]] = []

    def read(self) -> list[tuple[bytes | None, bytes | None]]:
        """All until now. Partitions that come later are not seen."""
        if not self._is_assigned:
            found = self._consumer.list_topics(self._topic, timeout=30).topics[self._topic]
            if found.error is not None or not found.partitions:
                return self.records
            self._consumer.assign([TopicPartition(self._topic, n, 0) for n in found.partitions])
            self._is_assigned = True
        while (message := self._consumer.poll(0.3)) is not None:
            error = message.error()
            if error is None:
                self.records.append((message.key(), message.value()))
            else:
                assert error.retriable() or error.code() in (
                    KafkaError._ALL_BROKERS_DOWN,
                    KafkaError._TRANSPORT,
                ), error
        return self.records

    def values(self) -> list[str]:
        return [(value or b"").decode() for _, value in self.read()]

    def close(self) -> None:
        self._consumer.close()
