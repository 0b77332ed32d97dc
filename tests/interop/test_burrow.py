"""Burrow: the lag monitor reads `__consumer_offsets` and evaluates the groups correctly.

Burrow up to 1.9.4 knows commits of the versions 0, 1 and 3 and groups of 0 to 3, and passes over
whatever else it meets; `rollcall.offsets.value.version=3` is for it. What it would make of our
records is checked by its rules, written down here from what it does. With ROLLCALL_BURROW=PATH, the
path of a Burrow binary, the real one is run against the daemon; without, that test is skipped.
"""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.interop.conftest import create_topic, produce
from tests.interop.offsets_givens import consume_all
from tests.interop.offsets_log import Cursor, records_of

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "rollcall.offsets.value.version": "3"}
PARTITIONS = 4
COMMITTED = {0: 5, 1: 5, 2: 3}  # of ten messages in each partition; the last has no commit


@dataclass
class Seen:
    """What Burrow would know of one group."""

    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    owners: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    passed_over: list[str] = field(default_factory=list)


def seen_by_burrow(data_dir: Path) -> dict[str, Seen]:
    """Every record in log order, by Burrow's rules."""
    groups: dict[str, Seen] = {}
    for key, value in records_of(data_dir):
        kind = key.take("h")
        if kind in (0, 1):
            _commit(groups.setdefault(key.string() or "", Seen()), key, value)
        elif kind == 2:
            _group(groups, key.string() or "", value)
    return groups


def _commit(seen: Seen, key: Cursor, value: Cursor | None) -> None:
    partition = (key.string() or "", key.take("i"))
    if value is None:
        return  # tombstones of commits are passed over: the group's own tells enough
    version = value.take("h")
    if version not in (0, 1, 3):
        seen.passed_over.append(f"value version {version}")
        return
    offset = value.take("q")
    if version == 3:
        value.take("i")  # leader epoch
    value.string()
    value.take("q")  # commit time
    seen.offsets[partition] = offset


def _group(groups: dict[str, Seen], group: str, value: Cursor | None) -> None:
    if value is None:
        groups.pop(group, None)
        return
    seen = groups.setdefault(group, Seen())
    version = value.take("h")
    if version > 3:
        seen.passed_over.append(f"metadata version {version}")
        return
    if value.string() != "consumer":
        return
    value.take("i")  # generation
    value.string(), value.string()  # protocol, leader
    if version >= 2:
        value.take("q")
    members = value.take("i")
    if not members:
        seen.owners.clear()
    for _ in range(members):
        value.string()  # member id
        if version == 3:
            value.string()  # instance id
        client_id, host = value.string() or "", value.string() or ""
        if version >= 1:
            value.take("i")
        value.take("i")
        value.blob("i")  # subscription
        assignment = Cursor(value.blob("i") or b"")
        if not assignment.data:
            continue
        assignment.take("h")
        for _ in range(assignment.take("i")):
            topic = assignment.string() or ""
            for _ in range(assignment.take("i")):
                seen.owners[topic, assignment.take("i")] = (host, client_id)


@contextmanager
def member_that_lags(daemon: Daemon) -> Iterator[None]:
    """A live member that has committed less than there is."""
    create_topic(daemon.bootstrap, "orders", PARTITIONS)
    produce(daemon.bootstrap, "orders", PARTITIONS, range(10 * PARTITIONS))
    assigned: list[object] = []
    consumer = Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": "billing",
            "client.id": "billing-app",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"], on_assign=lambda _, partitions: assigned.extend(partitions))
    deadline = time.monotonic() + TIMEOUT_S
    while not assigned:
        assert time.monotonic() < deadline, "it is assigned nothing"
        consumer.poll(0.1)
    consumer.commit(
        offsets=[TopicPartition("orders", n, offset) for n, offset in COMMITTED.items()],
        asynchronous=False,
    )
    try:
        yield
    finally:
        consumer.close()


def test_burrows_rules_find_offsets_and_owners_in_our_log(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(SETTINGS)
    with member_that_lags(daemon):
        seen = seen_by_burrow(daemon.data_dir)["billing"]
    assert seen.passed_over == []
    assert seen.offsets == {("orders", n): offset for n, offset in COMMITTED.items()}
    owner = ("/127.0.0.1", "billing-app")
    assert seen.owners == {("orders", n): owner for n in range(PARTITIONS)}

    assert seen_by_burrow(daemon.data_dir)["billing"].owners == {}  # it has left
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.delete_consumer_groups(["billing"])["billing"].result(60)
    assert "billing" not in seen_by_burrow(daemon.data_dir)


def test_without_the_key_it_would_see_no_commit(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    with member_that_lags(daemon):
        seen = seen_by_burrow(daemon.data_dir)["billing"]
    assert seen.offsets == {}
    assert set(seen.passed_over) == {"value version 4"}


# ---------------------------------------------------------------- the real one

CONFIGURATION = """
[general]
pidfile="{folder}/burrow.pid"
[logging]
filename="{folder}/burrow.log"
[client-profile.rollcall]
client-id="burrow"
kafka-version="2.0.0"
[cluster.local]
class-name="kafka"
servers=["{bootstrap}"]
client-profile="rollcall"
topic-refresh=1
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=["{bootstrap}"]
client-profile="rollcall"
[httpserver.default]
address="127.0.0.1:{port}"
[storage.default]
class-name="inmemory"
min-distance=1
"""


TIMEOUT_S = 60  # how long a fact is waited for; Burrow looks every second


def until(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not fact():
        assert time.monotonic() < deadline, "Burrow did not come to see it"
        time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Burrow:
    """Its HTTP API, for one cluster."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/v3/kafka/local"

    def ask(self, path: str) -> dict | None:
        """None while it does not know, or does not listen yet."""
        try:
            with urllib.request.urlopen(f"{self._address}/{path}", timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError):
            return None

    def groups(self) -> list[str]:
        answer = self.ask("consumer")
        assert answer is not None
        groups: list[str] = answer["consumers"]
        return groups

    def status(self, group: str) -> dict | None:
        answer = self.ask(f"consumer/{group}/lag")
        return None if answer is None else answer["status"]

    def lags(self, group: str) -> dict[int, int]:
        status = self.status(group) or {"partitions": []}
        parts = status["partitions"]
        return {
            partition["partition"]: partition["current_lag"]
            for partition in parts
            if partition["end"] is not None
        }


@pytest.fixture
def burrow_binary() -> Path:
    named = os.environ.get("ROLLCALL_BURROW")
    if not named:
        pytest.skip("ROLLCALL_BURROW does not name a Burrow binary")
    return Path(named)


@contextmanager
def burrow(binary: Path, folder: Path, bootstrap: str) -> Iterator[Burrow]:
    port = free_port()
    folder.mkdir()
    text = CONFIGURATION.format(folder=folder, bootstrap=bootstrap, port=port)
    (folder / "burrow.toml").write_text(text)
    with (
        (folder / "output").open("wb") as output,
        subprocess.Popen(
            [binary, "-config-dir", folder], stdout=output, stderr=output, cwd=folder
        ) as process,
    ):
        try:
            yield Burrow(port)
        finally:
            process.terminate()
            process.wait(60)


def test_the_real_burrow_shows_our_groups_lag(
    start_daemon: StartDaemon, tmp_path: Path, burrow_binary: Path
) -> None:
    daemon = start_daemon(SETTINGS)
    lags = {n: 10 - offset for n, offset in COMMITTED.items()}
    with ExitStack() as stack:
        member = stack.enter_context(ExitStack())
        member.enter_context(member_that_lags(daemon))
        # It passes over commits for topics that it has not heard of: so they were there before.
        monitor = stack.enter_context(burrow(burrow_binary, tmp_path / "burrow", daemon.bootstrap))
        until(lambda: monitor.lags("billing") == lags)
        status = monitor.status("billing")
        assert status is not None
        assert status["totallag"] == sum(lags.values())
        owners = {
            (partition["owner"], partition["client_id"]) for partition in status["partitions"]
        }
        assert owners == {("/127.0.0.1", "billing-app")}

        # Who commits no more though there is lag has stopped; who has read it all is well.
        until(lambda: (monitor.status("billing") or {})["status"] == "ERR")
        consume_all(daemon.bootstrap, "reader", "orders", 10 * PARTITIONS)
        until(lambda: monitor.lags("reader") == dict.fromkeys(range(PARTITIONS), 0))
        status = monitor.status("reader")
        assert status is not None
        assert (status["status"], status["totallag"]) == ("OK", 0)

        # More messages are more lag.
        produce(daemon.bootstrap, "orders", PARTITIONS, range(PARTITIONS))
        until(lambda: monitor.lags("billing") == {n: lag + 1 for n, lag in lags.items()})
        member.close()

        # After a kill and a restart it goes on.
        daemon.kill()
        daemon.start()
        produce(daemon.bootstrap, "orders", PARTITIONS, range(PARTITIONS))
        until(lambda: monitor.lags("billing") == {n: lag + 2 for n, lag in lags.items()})

        # A deleted group is forgotten.
        admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
        admin.delete_consumer_groups(["billing"])["billing"].result(60)
        until(lambda: "billing" not in monitor.groups())
