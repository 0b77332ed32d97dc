"""Kafka's tools: those of 4.3.1 work against the daemon as against Kafka.

What an operator types in a normal week: topics, groups, offsets, the console clients and the
tools that read `__consumer_offsets`. The Java client is in all of them. The expectations were met
by a real Kafka 4.3.1 first.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.kafka_tools import (
    ACLS,
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_GROUPS,
    DELETE_RECORDS,
    DUMP_LOG,
    FEATURES,
    GET_OFFSETS,
    GROUP_METADATA_FORMATTER,
    LEADER_ELECTION,
    LOG_DIRS,
    METADATA_QUORUM,
    OFFSETS_FORMATTER,
    REASSIGN_PARTITIONS,
    TOPICS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    Finished,
    KafkaTools,
    require_kafka_tools,
)

Tool = Callable[..., Finished]


@pytest.fixture(scope="module")
def kafka_tools() -> KafkaTools:
    return require_kafka_tools()


@pytest.fixture
def tool(daemon, kafka_tools: KafkaTools) -> Tool:
    """Run a tool against the daemon; it must succeed unless told otherwise."""

    def run(main_class: str, *arguments: str, stdin: str = "", fails: bool = False) -> Finished:
        done = kafka_tools.run(
            main_class, "--bootstrap-server", daemon.bootstrap, *arguments, stdin=stdin
        )
        assert (done.exit_code != 0) == fails, f"{main_class} {arguments}\n{done.out}\n{done.err}"
        return done

    return run


def given_topic(tool: Tool, name: str, partitions: int, messages: int = 0) -> None:
    tool(TOPICS, "--create", "--topic", name, "--partitions", str(partitions))
    if messages:
        lines = "".join(f"key-{n}:value-{n}\n" for n in range(messages))
        tool(
            CONSOLE_PRODUCER,
            *("--topic", name),
            *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
            stdin=lines,
        )


def consume(tool: Tool, topic: str, group: str, messages: int) -> list[str]:
    done = tool(
        CONSOLE_CONSUMER,
        *("--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", str(messages), "--timeout-ms", "60000"),
    )
    return done.out.split()


def test_topics_are_created_described_extended_and_deleted(tool: Tool) -> None:
    created = tool(TOPICS, "--create", "--topic", "orders", "--partitions", "3")
    assert "Created topic orders." in created.out
    again = tool(TOPICS, "--create", "--topic", "orders", fails=True)
    assert "Topic 'orders' already exists." in again.out + again.err

    described = tool(TOPICS, "--describe", "--topic", "orders").out
    assert re.search(r"Topic: orders\tTopicId: [\w-]{22}\tPartitionCount: 3\t", described)
    assert described.count("\tLeader: 1\tReplicas: 1\tIsr: 1") == 3

    tool(TOPICS, "--alter", "--topic", "orders", "--partitions", "5")
    assert "PartitionCount: 5" in tool(TOPICS, "--describe", "--topic", "orders").out

    assert "orders" in tool(TOPICS, "--list").out.split()
    tool(TOPICS, "--delete", "--topic", "orders")
    assert "orders" not in tool(TOPICS, "--list").out.split()


def test_console_clients_and_the_life_of_a_group(tool: Tool) -> None:
    # Given a group that has read everything and left.
    given_topic(tool, "orders", 3, messages=30)
    assert sorted(consume(tool, "orders", "billing", 30)) == sorted(f"value-{n}" for n in range(30))

    # Then the tools list and describe it, its offsets and its state.
    assert tool(CONSUMER_GROUPS, "--list").out.split() == ["billing"]
    rows = tool(CONSUMER_GROUPS, "--describe", "--group", "billing").table()
    assert [row["PARTITION"] for row in rows] == ["0", "1", "2"]
    assert {row["LAG"] for row in rows} == {"0"}
    assert sum(int(row["CURRENT-OFFSET"]) for row in rows) == 30
    state = tool(CONSUMER_GROUPS, "--describe", "--group", "billing", "--state").out
    assert re.search(r"^billing .*\bEmpty\b", state, re.MULTILINE)

    # When its offsets are reset, first as a rehearsal.
    reset = ("--reset-offsets", "--group", "billing", "--topic", "orders", "--to-earliest")
    tool(CONSUMER_GROUPS, *reset, "--dry-run")
    rows = tool(CONSUMER_GROUPS, "--describe", "--group", "billing").table()
    assert {row["LAG"] for row in rows} == {"0"}
    tool(CONSUMER_GROUPS, *reset, "--execute")

    # Then it reads all of it again.
    rows = tool(CONSUMER_GROUPS, "--describe", "--group", "billing").table()
    assert sum(int(row["LAG"]) for row in rows) == 30
    assert len(consume(tool, "orders", "billing", 30)) == 30

    # When it is deleted, then it is gone, and a second time it is an error with a name.
    deleted = tool(CONSUMER_GROUPS, "--delete", "--group", "billing")
    assert "Deletion of requested consumer groups ('billing') was successful." in deleted.out
    assert tool(CONSUMER_GROUPS, "--list").out.split() == []
    again = tool(CONSUMER_GROUPS, "--delete", "--group", "billing")  # which the tool calls success
    assert "GroupIdNotFoundException: The group id does not exist." in again.out


def test_members_are_described_while_they_live(daemon, tool: Tool, kafka_tools: KafkaTools) -> None:
    given_topic(tool, "orders", 4, messages=8)
    consumer = kafka_tools.running(
        VERIFIABLE_CONSUMER,
        *("--bootstrap-server", daemon.bootstrap, "--topic", "orders"),
        *("--group-id", "billing", "--reset-policy", "earliest", "--verbose"),
    )
    with consumer as process:
        heard = facts(process)
        assigned = next(fact for fact in heard if fact["name"] == "partitions_assigned")
        assert len(assigned["partitions"]) == 4
        for fact in heard:
            if fact["name"] == "offsets_committed" and fact["success"]:
                break

        members = tool(
            CONSUMER_GROUPS, "--describe", "--group", "billing", "--members", "--verbose"
        ).out
        assert re.search(
            r"^billing +consumer-billing-1-[\w-]{36} +/127\.0\.0\.1 ", members, re.MULTILINE
        )
        assert "orders:0,1,2,3" in members.replace("orders(", "orders:").replace(")", "")
        state = tool(CONSUMER_GROUPS, "--describe", "--group", "billing", "--state").out
        assert re.search(r"^billing .*127\.0\.0\.1:\d+ .*\bStable\b +1 *$", state, re.MULTILINE)

        # A group that is in use is neither deleted nor reset.
        refused = tool(CONSUMER_GROUPS, "--delete", "--group", "billing")
        assert "GroupNotEmptyException: The group is not empty." in refused.out
        reset = tool(
            *(CONSUMER_GROUPS, "--reset-offsets", "--group", "billing", "--topic", "orders"),
            *("--to-earliest", "--execute"),
        )
        assert "can only be reset if the group 'billing' is inactive" in reset.out + reset.err


def facts(process: "subprocess.Popen[str]") -> Iterator[dict]:
    """What a verifiable client says, one JSON object a line."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)
    raise AssertionError("the client ended before it said what the test waits for")


def test_an_idempotent_producer_is_acknowledged(tool: Tool) -> None:
    given_topic(tool, "orders", 2)
    produced = tool(VERIFIABLE_PRODUCER, "--topic", "orders", "--max-messages", "50").out

    said = [json.loads(line) for line in produced.splitlines() if line.startswith("{")]
    assert sum(fact["name"] == "producer_send_success" for fact in said) == 50
    offsets = tool(GET_OFFSETS, "--topic", "orders").out.split()
    assert sum(int(line.rsplit(":", 1)[1]) for line in offsets) == 50


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_come_back_as_they_went(tool: Tool, codec: str) -> None:
    tool(
        *(CONSOLE_PRODUCER, "--topic", f"by-{codec}", "--compression-codec", codec),
        stdin="".join(f"value-{n}\n" for n in range(20)),
    )
    assert consume(tool, f"by-{codec}", "g", 20) == [f"value-{n}" for n in range(20)]


def test_configs_of_a_topic_are_changed_and_described(tool: Tool) -> None:
    tool(TOPICS, "--create", "--topic", "orders", "--config", "retention.ms=1234567")
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    tool(CONFIGS, "--alter", *topic, "--add-config", "cleanup.policy=[compact,delete]")
    described = tool(CONFIGS, "--describe", "--all", *topic).out
    assert "retention.ms=1234567 " in described
    assert "cleanup.policy=compact,delete " in described
    assert "retention.ms=1234567" in tool(TOPICS, "--describe", "--topic", "orders").out


def test_configs_of_a_group_are_changed_and_described(tool: Tool) -> None:
    group = ("--entity-type", "groups", "--entity-name", "billing")
    tool(CONFIGS, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    described = tool(CONFIGS, "--describe", "--entity-type", "groups").out
    assert "Dynamic configs for group billing are:" in described
    assert (
        "consumer.session.timeout.ms=50000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:"
        "consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}"
    ) in described


def test_configs_of_the_broker_outlive_a_restart_and_levels_do_not(daemon, tool: Tool) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    changed = tool(CONFIGS, "--alter", *broker, "--add-config", "log.retention.ms=3600000")
    assert "Completed updating config for broker 1." in changed.out
    tool(CONFIGS, "--alter", *loggers, "--add-config", "root=ERROR,rollcall.node=INFO")

    daemon.kill()
    daemon.start()

    assert (
        "log.retention.ms=3600000 sensitive=false synonyms={"
        "DYNAMIC_BROKER_CONFIG:log.retention.ms=3600000, "
        "DEFAULT_CONFIG:log.retention.hours=168}"
    ) in tool(CONFIGS, "--describe", *broker).out
    assert "rollcall.groups=INFO sensitive=false" in tool(CONFIGS, "--describe", *loggers).out


def test_records_are_deleted_and_the_log_directory_is_described(
    daemon, tool: Tool, tmp_path: Path
) -> None:
    lines = "".join(f"value-{n}\n" for n in range(5))
    tool(CONSOLE_PRODUCER, "--topic", "orders", stdin=lines)  # which creates the topic
    offsets = tmp_path / "offsets.json"
    offsets.write_text(
        '{"partitions": [{"topic": "orders", "partition": 0, "offset": 3}], "version": 1}'
    )

    deleted = tool(DELETE_RECORDS, "--offset-json-file", str(offsets)).out
    assert re.search(r"partition: orders-0\s+low_watermark: 3", deleted)

    described = tool(LOG_DIRS, "--describe", "--topic-list", "orders").out
    (broker,) = json.loads(described.splitlines()[-1])["brokers"]
    (log_dir,) = broker["logDirs"]
    assert log_dir["logDir"] == str(daemon.data_dir)
    assert [p["partition"] for p in log_dir["partitions"]] == ["orders-0"]
    assert log_dir["partitions"][0]["size"] > 0


@pytest.mark.skipif("ADMIN_TOOLS" not in os.environ, reason="ADMIN_TOOLS is not set")
def test_the_tools_of_a_cluster_find_one_healthy_node(tool: Tool, tmp_path: Path) -> None:
    given_topic(tool, "orders", 1)
    assignment = tmp_path / "assignment.json"
    assignment.write_text(
        '{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}], "version": 1}'
    )

    election = ("--election-type", "preferred", "--topic", "orders", "--partition", "0")
    assert "Valid replica already elected for partitions orders-0" in (
        tool(LEADER_ELECTION, *election).out
    )
    assert "No partition reassignments found." in tool(REASSIGN_PARTITIONS, "--list").out
    verified = tool(REASSIGN_PARTITIONS, "--verify", "--reassignment-json-file", str(assignment))
    assert "Reassignment of partition orders-0 is completed." in verified.out
    assert re.search(r"LeaderId: +1\n", tool(METADATA_QUORUM, "describe", "--status").out)
    assert re.search(
        r"Feature: group.version\s.*FinalizedVersionLevel: 1", tool(FEATURES, "describe").out
    )
    refused = tool(ACLS, "--list", fails=True)
    assert "No Authorizer is configured on the broker" in refused.out + refused.err
    assert tool(CONFIGS, "--describe", "--entity-type", "users").out == ""


def test_the_offsets_topic_is_read_over_the_wire_by_kafkas_formatters(tool: Tool) -> None:
    given_topic(tool, "orders", 1, messages=5)
    consume(tool, "orders", "billing", 5)

    def read(formatter: str, key: dict) -> list[dict]:
        """The tool ends when nothing has come for so long: too soon, perhaps, if it is starved."""
        found: list[dict] = []
        for silence_ms in (3_000, 15_000, 60_000):
            done = tool(
                CONSOLE_CONSUMER,
                *("--topic", "__consumer_offsets", "--from-beginning", "--formatter", formatter),
                *("--timeout-ms", str(silence_ms)),
            )
            found = [
                fact["value"]["data"]
                for fact in json_values(done.out)
                if fact["key"]["data"] == key and fact["value"] is not None
            ]
            if found:
                break
        return found

    commits = read(OFFSETS_FORMATTER, {"group": "billing", "topic": "orders", "partition": 0})
    assert commits[-1]["offset"] == 5
    generations = read(GROUP_METADATA_FORMATTER, {"group": "billing"})
    # Kafka writes a generation 0 as well, with nobody in it, when it creates a group.
    stored = [(g["generation"], len(g["members"])) for g in generations if g["generation"]]
    assert stored == [(1, 1), (2, 0)]


def json_values(text: str) -> Iterator[dict]:
    """One formatter ends its lines, the other does not."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:]


def test_the_offsets_topic_is_read_from_disk_by_kafkas_dump_tool(
    daemon, tool: Tool, kafka_tools: KafkaTools
) -> None:
    given_topic(tool, "orders", 1, messages=5)
    consume(tool, "orders", "billing", 5)

    (log,) = written_logs(daemon.data_dir)
    dumped = kafka_tools.run(DUMP_LOG, "--offsets-decoder", "--files", log)

    assert dumped.exit_code == 0, dumped.err
    assert '"group":"billing","topic":"orders","partition":0' in dumped.out
    assert "isvalid: true" in dumped.out
    assert "isvalid: false" not in dumped.out


def written_logs(data_dir: Path) -> list[Path]:
    """The files of `__consumer_offsets` that hold anything."""
    logs = sorted(data_dir.glob("__consumer_offsets-*/*.log"))
    return [log for log in logs if log.stat().st_size and log.read_bytes()[:61].strip(b"\0")]
