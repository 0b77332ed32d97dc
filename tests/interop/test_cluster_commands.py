"""`rollcall group` and `topic` at a real Kafka: they print and do what kafka-consumer-groups does.

With CLUSTER_COMMANDS=1 (`make long-cluster-commands`).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import CONSUMER_GROUPS, KafkaTools, require_kafka_tools

pytestmark = pytest.mark.skipif(
    os.environ.get("CLUSTER_COMMANDS", "") in ("", "0"), reason="CLUSTER_COMMANDS is not set"
)

ROLLCALL = Path(sys.executable).with_name("rollcall")
RECORDS = 10  # of each partition
WITHIN_S = 120.0


def run(bootstrap: str, *words: str, code: int = 0) -> str:
    environment = {**os.environ, "ROLLCALL_BOOTSTRAP": bootstrap}
    done = subprocess.run(
        [ROLLCALL, *words],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def rows(bootstrap: str, group: str) -> dict[tuple[str, str], tuple[str, ...]]:
    described = json.loads(run(bootstrap, "group", "describe", group, "--json"))
    return {
        (row["topic"], str(row["partition"])): tuple(
            "-" if row[key] is None else str(row[key])
            for key in ("current_offset", "log_end_offset", "lag", "member_id", "host", "client_id")
        )
        for row in described["offsets"]
    }


def kafkas_rows(
    tools: KafkaTools, bootstrap: str, group: str
) -> dict[tuple[str, str], tuple[str, ...]]:
    words = ("--bootstrap-server", bootstrap, "--describe", "--group", group)
    header = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
    return {
        (row["TOPIC"], row["PARTITION"]): tuple(row[name] for name in header)
        for row in tools.run(CONSUMER_GROUPS, *words).table()
    }


@pytest.fixture(scope="module")
def tools() -> KafkaTools:
    return require_kafka_tools()


@pytest.fixture(scope="module")
def kafka(tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tools, tmp_path_factory.mktemp("cluster") / "kafka") as broker:
        run(broker.bootstrap, "topic", "create", "orders", "--partitions", "2")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for partition in range(2):
            for _ in range(RECORDS):
                producer.produce("orders", b"x", partition=partition)
        assert producer.flush(WITHIN_S) == 0
        yield broker.bootstrap


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described_as_kafkas_tool_does(
    tools: KafkaTools, kafka: str, protocol: str
) -> None:
    group = f"of-{protocol}"
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": group,
            "client.id": "amy",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.protocol": protocol,
        }
    )
    consumer.subscribe(["orders"])
    left = 2 * RECORDS
    while left:
        left -= len(consumer.consume(left, WITHIN_S))
    consumer.commit(asynchronous=False)
    assert rows(kafka, group) == kafkas_rows(tools, kafka, group)
    listed = json.loads(run(kafka, "group", "list", "--json"))
    expected = {"group": group, "type": protocol, "state": "Stable", "members": 1}
    assert expected in listed
    refused = run(kafka, "group", "reset", group, "--all-topics", "--to-earliest", code=1)
    assert "inactive" in refused
    assert "members" in run(kafka, "group", "delete", group, code=1)
    consumer.close()
    run(kafka, "group", "reset", group, "--topic", "orders:0", "--shift-by", "-4", "--execute")
    assert rows(kafka, group)["orders", "0"][0] == str(RECORDS - 4)
    assert rows(kafka, group) == kafkas_rows(tools, kafka, group)
    run(kafka, "group", "delete", group)
    assert "no group" in run(kafka, "group", "describe", group, code=2)


RESETS = (
    ("--topic", "orders", "--to-earliest"),
    ("--topic", "orders", "--to-latest"),
    ("--topic", "orders:1", "--to-offset", "99"),
    ("--all-topics", "--shift-by", "-3"),
    ("--all-topics", "--shift-by", "-99"),
    ("--topic", "orders", "--to-current"),
    ("--topic", "orders", "--to-datetime", "2000-01-01T00:00:00.000"),
    ("--topic", "orders", "--by-duration", "PT0S"),
)


@pytest.mark.parametrize("words", RESETS, ids=" ".join)
def test_a_reset_is_planned_as_kafkas_tool_plans_it(
    tools: KafkaTools, kafka: str, words: tuple[str, ...]
) -> None:
    run(kafka, "group", "reset", "idle", "--topic", "orders:0", "--to-offset", "5", "--execute")
    ours = json.loads(run(kafka, "group", "reset", "idle", *words, "--json"))
    planned = tools.run(
        CONSUMER_GROUPS,
        *("--bootstrap-server", kafka, "--group", "idle", "--reset-offsets", "--dry-run", *words),
    )
    assert {
        (row["topic"], str(row["partition"])): str(row["new_offset"]) for row in ours["offsets"]
    } == {(row["TOPIC"], row["PARTITION"]): row["NEW-OFFSET"] for row in planned.table()}
    run(kafka, "group", "delete", "idle")


def test_topics_are_altered_and_deleted(kafka: str) -> None:
    run(kafka, "topic", "create", "logs", "--partitions", "1", "--config", "retention.ms=60000")
    assert "already exists" in run(kafka, "topic", "create", "logs", code=1)
    run(kafka, "topic", "alter", "logs", "--partitions", "3", "--config", "cleanup.policy=compact")
    described = json.loads(run(kafka, "topic", "describe", "logs", "--json"))
    assert len(described["partitions"]) == 3
    assert described["configs"] == {"cleanup.policy": "compact", "retention.ms": "60000"}
    run(kafka, "topic", "delete", "logs")
    assert "no topic 'logs'" in run(kafka, "topic", "delete", "logs", code=2)
