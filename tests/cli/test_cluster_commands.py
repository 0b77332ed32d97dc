"""`rollcall group` and `rollcall topic` against the daemon: what they print, change and refuse."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Consumer, Producer

import client.cluster
from client.topics import create_new_topic
from tests.broker.daemon import Daemon
from tests.cli.test_command import Command, rollcall
from tests.conftest import StartDaemon

__all__ = ["rollcall"]  # a fixture

RECORDS = 6  # of each partition
WITHIN_S = 60.0


class Cluster:
    """`rollcall WORDS` against one daemon."""

    def __init__(self, run: Command, bootstrap: str) -> None:
        self._run = run
        self.bootstrap = bootstrap

    def say(self, words: str, code: int = 0) -> str:
        """What it prints on the standard output, or the error."""
        done = self._run(*shlex.split(words), ROLLCALL_BOOTSTRAP=self.bootstrap)
        assert done.exit_code == code, done.err
        if code:
            assert done.err.count("\n") == 1, "an error is one line"
            return done.err
        return done.out

    def json(self, words: str) -> object:
        group, command, *arguments = words.split(" ", 2)
        document: object = json.loads(self.say(" ".join((group, command, "--json", *arguments))))
        return document

    def offsets(self, group: str) -> dict[int, object]:
        described = self.json(f"group describe {group}")
        assert isinstance(described, dict)
        return {row["partition"]: row["current_offset"] for row in described["offsets"]}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon with a topic of two partitions: six records in each, a second apart from 1,000 s."""
    daemon = Daemon(tmp_path_factory.mktemp("cluster")).start()
    with client.cluster.Cluster(daemon.bootstrap) as cluster:
        create_new_topic(cluster, "orders", 2, 1, {})
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for partition in range(2):
        for number in range(RECORDS):
            at_ms = 1_000_000 + 1_000 * number
            producer.produce("orders", b"x", partition=partition, timestamp=at_ms)
    assert producer.flush(WITHIN_S) == 0
    yield daemon.bootstrap
    daemon.close()


@pytest.fixture
def cluster(bootstrap: str, rollcall: Command) -> Cluster:
    return Cluster(rollcall, bootstrap)


@contextmanager
def member(bootstrap: str, group: str, protocol: str = "classic") -> Iterator[Consumer]:
    """A member that owns both partitions and has read them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "amy",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.protocol": protocol,
        }
    )
    try:
        consumer.subscribe(["orders"])
        left = 2 * RECORDS
        while left:
            left -= len(consumer.consume(left, WITHIN_S))
        consumer.commit(asynchronous=False)
        yield consumer
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member_is_listed_described_and_protected(
    cluster: Cluster, protocol: str
) -> None:
    with member(cluster.bootstrap, "billing", protocol):
        listed = {"group": "billing", "type": protocol, "state": "Stable", "members": 1}
        assert cluster.json("group list --state stable") == [listed]
        assert cluster.json(f"group list --type {protocol} --state Stable") == [listed]
        assert cluster.json("group list --type nothing") == []
        assert re.search(rf"billing +{protocol} +Stable +1\n", cluster.say("group list"))

        described = cluster.json("group describe billing")
        assert isinstance(described, dict)
        (only,) = described["members"]
        assert (only["client_id"], only["host"]) == ("amy", "/127.0.0.1")
        assert only["assignment"] == [{"topic": "orders", "partitions": [0, 1]}]
        assert described["offsets"][1] == {
            "topic": "orders",
            "partition": 1,
            "current_offset": RECORDS,
            "log_end_offset": RECORDS,
            "lag": 0,
            "member_id": only["member_id"],
            "client_id": "amy",
            "host": "/127.0.0.1",
        }
        assert "orders(0,1)" in cluster.say("group members billing")

        refused = cluster.say("group reset billing --all-topics --to-earliest --execute", 1)
        assert "only be reset while the group 'billing' is inactive" in refused
        assert "has members" in cluster.say("group delete billing", 1)
        assert cluster.offsets("billing") == {0: RECORDS, 1: RECORDS}
    cluster.say("group reset billing --all-topics --to-earliest --execute")
    assert cluster.offsets("billing") == {0: 0, 1: 0}
    cluster.say("group delete billing")
    assert '"billing"' not in cluster.say("group list --json")


def remove(cluster: Cluster, group: str) -> None:
    if f'"{group}"' in cluster.say("group list --json"):
        cluster.say(f"group delete {group}")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--topic orders --to-earliest", {0: 0, 1: 0}),
        ("--topic orders --to-latest", {0: 6, 1: 6}),
        ("--topic orders:1 --to-offset 2", {0: 3, 1: 2}),
        ("--all-topics --shift-by -2", {0: 1}),
        ("--all-topics --shift-by 2", {0: 5}),
        ("--topic orders --to-current", {0: 3, 1: 6}),
        ("--topic orders --to-datetime 1970-01-01T00:16:44.000", {0: 4, 1: 4}),
        ("--topic orders --to-datetime 2999-01-01T00:00:00.000", {0: 6, 1: 6}),
        ("--topic orders --by-duration PT1H", {0: 6, 1: 6}),
        ("--topic orders:0,1 --by-duration P99999D", {0: 0, 1: 0}),
    ],
)
def test_a_reset_moves_offsets_after_a_dry_run(
    cluster: Cluster, words: str, expected: dict[int, int]
) -> None:
    remove(cluster, "g")
    cluster.say("group reset g --topic orders:0 --to-offset 3 --execute")
    plan = cluster.json(f"group reset g {words}")
    assert isinstance(plan, dict)
    assert plan["executed"] is False
    assert "This was a dry run" in cluster.say(f"group reset g {words} --dry-run")
    assert cluster.offsets("g") == {0: 3}
    done = cluster.json(f"group reset g {words} --execute")
    assert isinstance(done, dict)
    assert {row["partition"]: row["new_offset"] for row in done["offsets"]}.items() <= (
        expected.items()
    )
    assert cluster.offsets("g") == expected


def test_an_offset_outside_the_log_is_moved_to_its_end_with_kafkas_warning(
    cluster: Cluster, rollcall: Command
) -> None:
    remove(cluster, "g")
    words = "group reset g --topic orders:0 --to-offset 99 --execute"
    done = rollcall(*words.split(), "--bootstrap", cluster.bootstrap)
    assert done.exit_code == 0
    assert done.err == (
        "rollcall: warning: New offset (99) is higher than latest offset for topic partition "
        "orders-0. Value will be set to 6\n"
    )
    assert cluster.offsets("g") == {0: 6}


@pytest.mark.parametrize("group", ["undone", "two words", "-x", "it's --all"])
def test_what_undoes_a_reset_is_a_command_that_works(cluster: Cluster, group: str) -> None:
    name = f"-- {shlex.quote(group)}"
    cluster.say(f"group reset --topic orders:0 --to-offset 3 --execute {name}")
    shown = cluster.say(f"group reset --topic orders --to-latest --execute {name}")
    assert cluster.offsets(name) == {0: 6, 1: 6}
    script = shown.partition("To undo it:\n")[2]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "ROLLCALL_BOOTSTRAP": cluster.bootstrap}
    subprocess.run(
        ["/bin/sh", "-e"], input=script.encode(), env=environment, check=True, timeout=60
    )
    assert cluster.offsets(name) == {0: 3}


def test_a_reset_takes_the_rows_of_its_group(cluster: Cluster, tmp_path: Path) -> None:
    remove(cluster, "g")
    rows = tmp_path / "offsets.csv"
    rows.write_text("orders,0,1\nother-group,orders,1,1\n", "utf-8-sig")  # as spreadsheets do
    cluster.say(f"group reset g --from-file {rows} --execute")
    assert cluster.offsets("g") == {0: 1}


def test_topics_are_created_listed_described_altered_and_deleted(cluster: Cluster) -> None:
    cluster.say("topic create logs --partitions 3 --config retention.ms=60000")
    assert {"topic": "logs", "partitions": 3, "internal": False} in list(
        cluster.json("topic list --exclude-internal")  # type: ignore[call-overload]
    )
    assert "exists" in cluster.say("topic create logs", 1)
    assert cluster.json("topic create logs --if-not-exists") == {"topic": "logs", "created": False}
    cluster.say("topic alter logs --partitions 4 --config cleanup.policy=compact")
    cluster.say("topic alter logs --delete-config retention.ms")
    described = cluster.json("topic describe logs")
    assert isinstance(described, dict)
    assert described["configs"] == {"cleanup.policy": "compact"}
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2, 3]
    assert "partition" in cluster.say("topic alter logs --partitions 2", 1)
    orders = cluster.json("topic describe orders")
    assert isinstance(orders, dict)
    assert orders["partitions"][0] == {
        "partition": 0,
        "leader": 1,
        "replicas": [1],
        "isr": [1],
        "log_start_offset": 0,
        "log_end_offset": RECORDS,
    }
    cluster.say("topic delete logs")
    assert "no topic 'logs'" in cluster.say("topic describe logs", 2)
    assert "no topic 'logs'" in cluster.say("topic delete logs", 2)


def test_wrong_input_is_one_line_and_exit_code_2(cluster: Cluster, tmp_path: Path) -> None:
    remove(cluster, "g")
    for words, says in (
        ("group describe nobody", "no group 'nobody'"),
        ("group members nobody", "no group 'nobody'"),
        ("group delete nobody", "no group 'nobody'"),
        ("group reset g --to-earliest", "--topic T"),
        ("group reset g --topic orders", "give one of"),
        ("group reset g --topic orders --to-earliest --to-latest", "give one of"),
        ("group reset g --topic orders --all-topics --to-earliest", "cannot be combined"),
        ("group reset g --topic orders:7 --to-earliest", "no partition 7"),
        ("group reset g --topic orders:x --to-earliest", "is not TOPIC"),
        ("group reset g --topic nothing --to-earliest", "no topic 'nothing'"),
        ("group reset g --topic orders --shift-by 1", "no committed offset to shift from"),
        ("group reset g --all-topics --to-earliest", "no committed offsets"),
        ("group reset g --topic orders --to-datetime soon", "not a time"),
        ("group reset g --topic orders --by-duration 1h", "not a duration"),
        ("group reset g --from-file /nowhere --execute", "/nowhere"),
        ("topic alter orders", "give --partitions"),
        ("topic create t --config x", "NAME=VALUE"),
        (f"group list --command-config {tmp_path}/none", "none"),
        ("group list --bootstrap 127.0.0.1:1", "nobody answers at 127.0.0.1:1"),
        ("topic list --bootstrap nowhere", "not HOST:PORT"),
    ):
        assert says in cluster.say(words, 2), words
    assert '"g"' not in cluster.say("group list --json")


def test_a_secured_cluster_is_reached_with_kafkas_client_properties(
    start_daemon: StartDaemon, rollcall: Command, tmp_path: Path
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    store, trusted = tmp_path / "server.pem", tmp_path / "ca.pem"
    store.write_bytes(
        b"".join(
            blob.bytes() for blob in (certificate.private_key_pem, *certificate.cert_chain_pems)
        )
    )
    authority.cert_pem.write_to_path(trusted)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    daemon = start_daemon(
        {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f'{module} required user_amy="secret";'
            ),
        },
        listen=None,
    )
    properties = tmp_path / "client.properties"

    def written(*, password: str, trust: Path | None) -> list[str]:
        lines = [
            f"bootstrap.servers={daemon.bootstrap}",
            "security.protocol=SASL_SSL",
            "sasl.mechanism=PLAIN",
            f'sasl.jaas.config={module} required username="amy" password="{password}";',
        ]
        if trust is not None:
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={trust}"]
        properties.write_text("\n".join(lines))
        return ["topic", "create", "orders", "--command-config", str(properties)]

    assert rollcall(*written(password="secret", trust=trusted)).exit_code == 0
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("billing,orders,0,7\n")
    reached = ("--bootstrap", daemon.bootstrap, "--command-config", str(properties))
    imported = rollcall("offsets", "import", "--from", str(offsets), *reached)
    assert imported.exit_code == 0, imported.err
    exported = rollcall("offsets", "export", "--csv", "-", *reached)
    assert (exported.exit_code, exported.out.strip()) == (0, "billing,orders,0,7"), exported.err
    wrong = rollcall(*written(password="Secret", trust=trusted))
    assert (wrong.exit_code, "uthentication failed" in wrong.err) == (2, True)
    foreign = rollcall(*written(password="secret", trust=None))
    assert (foreign.exit_code, "ssl.truststore.location" in foreign.err) == (2, True)
    bare = rollcall("topic", "list", "--bootstrap", daemon.bootstrap)
    assert (bare.exit_code, "security.protocol" in bare.err) == (2, True)
