"""Lag: the same rows as `kafka-consumer-groups --describe` shows on the same daemon.

Kafka's own tool and the admin port are asked about the same groups: one with a member that has
committed some of its partitions, a simple consumer's, and one whose offset was reset.
"""

import json
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker.daemon import Daemon
from tests.interop.conftest import GivenTopic
from tests.interop.group import TIMEOUT_S
from tests.interop.kafka_tools import CONSUMER_GROUPS, KafkaTools, require_kafka_tools

COLUMNS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST")


@pytest.fixture(scope="module")
def kafka_tools() -> KafkaTools:
    return require_kafka_tools()


def kafkas(tools: KafkaTools, daemon: Daemon, group: str) -> list[tuple[str, ...]]:
    asked = ("--bootstrap-server", daemon.bootstrap, "--describe", "--group", group)
    done = tools.run(CONSUMER_GROUPS, *asked)
    assert done.exit_code == 0, done.err
    return sorted(tuple(row[name] for name in COLUMNS) for row in done.table())


def ours(daemon: Daemon, group: str) -> list[tuple[str, ...]]:
    status, body = daemon.get(f"/api/lag?group={group}")
    assert status == 200
    rows = []
    for partition in json.loads(body)["partitions"]:
        member = partition["member"] or {}
        facts = (
            *(
                partition["topic"],
                partition["partition"],
                partition["committed_offset"],
                partition["log_end_offset"],
            ),
            *(partition["lag"], member.get("member_id"), member.get("client_host")),
        )
        rows.append(tuple("-" if fact is None else str(fact) for fact in facts))
    return sorted(rows)


def consumer(daemon: Daemon, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "session.timeout.ms": 30_000,
        }
    )


def test_the_numbers_are_those_of_kafkas_own_tool(
    shared_daemon: Daemon, given_topic: GivenTopic, kafka_tools: KafkaTools
) -> None:
    topic = given_topic(3, 30)

    member = consumer(shared_daemon, "compared")
    member.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_S
    while not member.assignment():
        assert time.monotonic() < deadline, "it is assigned nothing"
        member.poll(0.1)
    some = [TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 10)]
    member.commit(offsets=some, asynchronous=False)
    found = ours(shared_daemon, "compared")
    assert found == kafkas(kafka_tools, shared_daemon, "compared")
    assert [row[4] for row in found] == ["6", "0", "-"]
    member.close()

    simple = consumer(shared_daemon, "simple")
    simple.commit(offsets=[TopicPartition(topic, 2, 0)], asynchronous=False)
    simple.close()
    found = ours(shared_daemon, "simple")
    assert found == kafkas(kafka_tools, shared_daemon, "simple")
    assert found == [(topic, "2", "0", "10", "10", "-", "-")]

    # Beyond the end the tool shows a negative lag, and we none: docs/differences.md.
    simple = consumer(shared_daemon, "beyond")
    simple.commit(offsets=[TopicPartition(topic, 2, 17)], asynchronous=False)
    simple.close()
    assert [row[4] for row in kafkas(kafka_tools, shared_daemon, "beyond")] == ["-7"]
    assert [row[4] for row in ours(shared_daemon, "beyond")] == ["0"]
