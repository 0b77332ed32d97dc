"""Kafka's tools on consumer groups: what they list, describe, reset and delete.

Against the daemon alone; and with CONSUMER_TRANSFER=1 every command against a real Kafka and the
daemon, which have the same group.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import (
    CONSUMER_GROUPS,
    GROUPS,
    KafkaTools,
    require_kafka_tools,
)
from tests.interop.raw_consumer import RawConsumer, reconcile_all

ROLLCALL = Path(sys.executable).with_name("rollcall")
HEARTBEATS_EVERY_S = 2.0

QUERIES = (
    (CONSUMER_GROUPS, "--list"),
    (CONSUMER_GROUPS, "--list", "--state"),
    (CONSUMER_GROUPS, "--list", "--type"),
    (CONSUMER_GROUPS, "--list", "--type", "consumer"),
    (CONSUMER_GROUPS, "--list", "--state", "Empty"),
    (CONSUMER_GROUPS, "--list", "--state", "Reconciling", "--type", "consumer"),
    (CONSUMER_GROUPS, "--describe", "--group", "g"),
    (CONSUMER_GROUPS, "--describe", "--group", "g", "--members"),
    (CONSUMER_GROUPS, "--describe", "--group", "g", "--members", "--verbose"),
    (CONSUMER_GROUPS, "--describe", "--group", "g", "--state"),
    (CONSUMER_GROUPS, "--describe", "--group", "g", "--state", "--verbose"),
    (CONSUMER_GROUPS, "--describe", "--group", "g", "--offsets", "--verbose"),
    (CONSUMER_GROUPS, "--describe", "--all-groups", "--state"),
    (CONSUMER_GROUPS, "--describe", "--group", "absent"),
    (CONSUMER_GROUPS, "--describe", "--group", "empty", "--members"),
    (GROUPS, "--list"),
    (GROUPS, "--list", "--consumer"),
    (GROUPS, "--list", "--group-type", "consumer"),
    (GROUPS, "--list", "--protocol", "consumer"),
)
CHANGES = (
    ("--reset-offsets", "--group", "g", "--topic", "orders", "--to-earliest", "--execute"),
    ("--delete-offsets", "--group", "g", "--topic", "orders"),
    ("--delete-offsets", "--group", "g", "--topic", "other"),
    ("--delete", "--group", "g"),
    ("--reset-offsets", "--group", "empty", "--topic", "orders", "--to-offset", "2", "--dry-run"),
    ("--reset-offsets", "--group", "empty", "--topic", "orders", "--to-offset", "2", "--execute"),
    ("--delete-offsets", "--group", "empty", "--topic", "orders"),
    ("--delete", "--group", "empty"),
    ("--delete", "--group", "absent"),
    ("--list",),
)
COMMANDS = (*QUERIES, *((CONSUMER_GROUPS, *change) for change in CHANGES))


@pytest.fixture(scope="module")
def kafka_tools() -> KafkaTools:
    return require_kafka_tools()


def given_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic("orders", 3, 1), NewTopic("other", 1, 1)]
    for created in admin.create_topics(new).values():
        created.result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(30):
        producer.produce("orders", f"m{number}", partition=number % 3)
    assert producer.flush(60) == 0


def given_groups(bootstrap: str) -> list[RawConsumer]:
    """`g` with two members, which are returned; `empty` had one."""
    first = RawConsumer(bootstrap, "g", "m-1", topics=("orders",), instance_id="i-1")
    second = RawConsumer(bootstrap, "g", "m-2", regex="ord.*")
    reconcile_all(first)
    reconcile_all(first, second)
    gone = RawConsumer(bootstrap, "empty", "m-3", topics=("orders",))
    reconcile_all(gone)
    gone.commit("orders", {0: 1})
    gone.leave()
    for member, offset in ((first, 3), (second, 4)):
        (partitions,) = member.owned.values()
        member.commit("orders", dict.fromkeys(partitions, offset))
    first.commit("other", {0: 0})
    return [first, second]


@contextmanager
def heartbeats(members: Sequence[RawConsumer]) -> Iterator[None]:
    """They stay members meanwhile."""
    done = threading.Event()

    def send() -> None:
        while not done.wait(HEARTBEATS_EVERY_S):
            for member in members:
                member.heartbeat()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        done.set()
        sender.join()


def test_a_consumer_group_is_listed_described_and_not_deleted_with_members(
    daemon: Daemon, kafka_tools: KafkaTools
) -> None:
    given_topics(daemon.bootstrap)
    members = given_groups(daemon.bootstrap)

    def tool(main_class: str, *arguments: str) -> list[list[str]]:
        """The words of each line."""
        done = kafka_tools.run(main_class, "--bootstrap-server", daemon.bootstrap, *arguments)
        assert done.exit_code == 0, done.err
        return [line.split() for line in done.out.splitlines() if line]

    with heartbeats(members):
        listed = tool(GROUPS, "--list")
        described = tool(CONSUMER_GROUPS, "--describe", "--group", "g", "--members", "--verbose")
        offsets = tool(CONSUMER_GROUPS, "--describe", "--group", "g")
        state = tool(CONSUMER_GROUPS, "--describe", "--group", "g", "--state")
        refused = tool(CONSUMER_GROUPS, "--delete", "--group", "g")
        deleted = tool(CONSUMER_GROUPS, "--delete", "--group", "empty")

    assert ["g", "Consumer", "consumer"] in listed
    assert ["empty", "Consumer", "consumer"] in listed
    first, second = members
    assert described[1:] == [
        ["g", "m-1", "i-1", "/127.0.0.1", "raw", "2", *([str(first.epoch), "orders:0,1"] * 2)],
        ["g", "m-2", "/127.0.0.1", "raw", "1", *([str(second.epoch), "orders:2"] * 2)],
    ]
    assert sorted(offsets[1:]) == [
        ["g", "orders", "0", "3", "10", "7", "m-1", "/127.0.0.1", "raw"],
        ["g", "orders", "1", "3", "10", "7", "m-1", "/127.0.0.1", "raw"],
        ["g", "orders", "2", "4", "10", "6", "m-2", "/127.0.0.1", "raw"],
        ["g", "other", "0", "0", "0", "0", "-", "-", "-"],
    ]
    assert state[1][-3:] == ["uniform", "Stable", "2"]
    assert "org.apache.kafka.common.errors.GroupNotEmptyException:" in refused[1]
    assert deleted[0][-2:] == ["was", "successful."]


@pytest.mark.skipif(
    os.environ.get("CONSUMER_TRANSFER", "") in ("", "0"), reason="CONSUMER_TRANSFER is not set"
)
def test_every_command_prints_what_it_prints_of_a_kafka(
    tmp_path: Path, kafka_tools: KafkaTools, start_daemon: StartDaemon
) -> None:
    with kafka_broker(kafka_tools, tmp_path / "kafka") as kafka:
        given_topics(kafka.bootstrap)
        members = given_groups(kafka.bootstrap)
        kafka.stop()
        shutil.copytree(kafka.log_dir, tmp_path / "copy")
        kafka.start()
        of_kafka = printed(kafka_tools, kafka.bootstrap, members)
        kafka.stop()
    daemon = start_daemon()
    daemon.stop()
    for folder in (*(tmp_path / "copy").glob("orders-*"), *(tmp_path / "copy").glob("other-*")):
        shutil.copytree(folder, daemon.data_dir / folder.name)
    where = ("--from", tmp_path / "copy", "--data-dir", daemon.data_dir)
    command = [ROLLCALL, "offsets", "import", *where, "--keep-topic-ids"]
    subprocess.run(command, check=True, timeout=120)
    daemon.start()

    of_rollcall = printed(kafka_tools, daemon.bootstrap, members)

    assert of_rollcall == of_kafka


def printed(
    tools: KafkaTools, bootstrap: str, members: Sequence[RawConsumer]
) -> list[tuple[str, list[str]]]:
    """Each command, and the lines of its output: widths of columns and the order of rows differ."""
    found = []
    for member in members:
        member.address = bootstrap
    with heartbeats(members):
        for main_class, *arguments in COMMANDS:
            done = tools.run(main_class, "--bootstrap-server", bootstrap, *arguments)
            text = f"{done.out}\n{done.err}\nexit code {done.exit_code}"
            text = text.replace(bootstrap, "ADDRESS").replace("localhost", "127.0.0.1")
            lines = sorted(re.sub(r" +", " ", line).strip() for line in text.splitlines())
            found.append((" ".join(arguments), lines))
    return found
