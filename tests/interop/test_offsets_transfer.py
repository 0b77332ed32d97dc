"""Offsets transfer: from a real Kafka to Rollcall and on to another Kafka; and as CSV.

Both sides are asked by Kafka's own tool, and by librdkafka. The short form has a few groups of each
kind that a client can make quickly; OFFSETS_ROUND_TRIP=1 has hundreds.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.daemon import Daemon
from tests.interop.kafka_broker import is_wanted, kafka_broker
from tests.interop.kafka_tools import CONSUMER_GROUPS, KafkaTools, require_kafka_tools
from transfer.importing import ACTOR

ROLLCALL = Path(sys.executable).with_name("rollcall")
TOPICS = ("orders", "a-topic-with-a-rather-long-name-of-42-chars")
PARTITIONS = 6
TIMEOUT_S = 120
T = TypeVar("T")
MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)


@pytest.fixture(scope="module")
def kafka_tools() -> KafkaTools:
    return require_kafka_tools()


def rollcall(*arguments: str | Path, exit_code: int = 0) -> str:
    done = subprocess.run(
        [ROLLCALL, "offsets", *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


def given_topics(bootstrap: str, messages: int = 60) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1) for topic in TOPICS]
    for created in admin.create_topics(new).values():
        created.result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic in TOPICS:
        for number in range(messages):
            producer.produce(topic, f"m{number}", partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def consumer(bootstrap: str, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def patiently(call: Callable[[], T]) -> T:
    """A broker's first requests may find its coordinator just moving in."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return call()
        except KafkaException as fault:
            if fault.args[0].code() not in MOVING or time.monotonic() > deadline:
                raise


def until_assigned(client: Consumer) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not client.assignment():
        assert time.monotonic() < deadline, "it is assigned nothing"
        client.poll(0.1)


def commit(bootstrap: str, group: str, *offsets: TopicPartition) -> None:
    """By nobody: the group has no members."""
    client = consumer(bootstrap, group)
    patiently(lambda: client.commit(offsets=list(offsets), asynchronous=False))
    client.close()


def read_and_leave(bootstrap: str, group: str, **settings: object) -> None:
    client = consumer(bootstrap, group, **settings)
    client.subscribe([TOPICS[0]])
    deadline = time.monotonic() + TIMEOUT_S
    while (message := client.poll(1)) is None or message.error():
        assert time.monotonic() < deadline, f"nothing to read but {message and message.error()}"
    client.commit(message=message, asynchronous=False)
    client.close()


def transaction(bootstrap: str, group: str, offset: int, end: str) -> None:
    """`end` is commit or abort; anything else leaves it open."""
    client = consumer(bootstrap, group)
    client.subscribe([TOPICS[0]])
    until_assigned(client)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"{group}-{end}",
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    offsets = [TopicPartition(TOPICS[0], n, offset) for n in range(3)]
    producer.send_offsets_to_transaction(offsets, client.consumer_group_metadata(), 60)
    if end == "commit":
        producer.commit_transaction(60)
    elif end == "abort":
        producer.abort_transaction(60)
    else:
        # A record in it as well: then the broker has heard of all that came before.
        producer.produce(TOPICS[0], "in the open transaction")
        producer.flush(60)
    client.close()


def given_groups(bootstrap: str) -> int:
    """How many; members have left all of them, or are thrown out by the next start."""
    given_topics(bootstrap)
    simple = 300 if is_wanted() else 7
    for number in range(simple):
        places = [
            TopicPartition(topic, n, number + n, metadata='é "m"' if n % 2 else "")
            for topic in TOPICS
            for n in range(number % PARTITIONS + 1)
        ]
        commit(bootstrap, f"simple-{number}", *places)
    commit(bootstrap, 'odd, "very"', TopicPartition(TOPICS[1], 1, 3))
    read_and_leave(bootstrap, "classic")
    read_and_leave(bootstrap, "static", group_instance_id="one")
    read_and_leave(bootstrap, "modern", group_protocol="consumer")
    commit(bootstrap, "transactional", TopicPartition(TOPICS[0], 0, 1))
    transaction(bootstrap, "transactional", 20, "commit")
    transaction(bootstrap, "transactional", 30, "abort")
    transaction(bootstrap, "transactional", 40, "open")
    commit(bootstrap, "deleted", TopicPartition(TOPICS[0], 0, 9))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_consumer_groups(["deleted"])["deleted"].result(60)
    return simple + 5


def listed(bootstrap: str) -> dict[str, str]:
    """group -> type."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + TIMEOUT_S
    while (answer := admin.list_consumer_groups(request_timeout=60).result()).errors:
        # It loads still. Anything else is a failure.
        assert {error.code() for error in answer.errors} <= {*MOVING}
        assert time.monotonic() < deadline, f"it loads forever: {answer.errors}"
    return {group.group_id: group.type.name for group in answer.valid}


def listed_once_loaded(bootstrap: str, expected: dict[str, str]) -> dict[str, str]:
    """A Kafka that has started lists no group whose partition it has not loaded yet."""
    deadline = time.monotonic() + TIMEOUT_S
    while (found := listed(bootstrap)) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def described(tools: KafkaTools, bootstrap: str) -> dict[tuple[str, str, int], int]:
    """(group, topic, partition) -> committed offset, by Kafka's own tool."""
    done = tools.run(
        CONSUMER_GROUPS, "--bootstrap-server", bootstrap, "--describe", "--offsets", "--all-groups"
    )
    assert done.exit_code == 0, done.err
    rows = re.findall(r"^(.*\S) +([\w.-]+) +(\d+) +(\d+) +\d+ +-?\d+ ", done.out, re.MULTILINE)
    return {(group, topic, int(n)): int(offset) for group, topic, n, offset in rows}


@pytest.mark.timeout(600)
def test_from_a_kafka_to_rollcall_and_on_to_another_kafka(
    kafka_tools: KafkaTools, start_daemon, tmp_path: Path
) -> None:
    # Given a Kafka with groups of several kinds, stopped with a transaction still open.
    with kafka_broker(kafka_tools, tmp_path / "a", offsets_topic_num_partitions=50) as first:
        count = given_groups(first.bootstrap)
        kinds = listed(first.bootstrap)
        offsets = described(kafka_tools, first.bootstrap)
    assert len(kinds) == count
    assert kinds["modern"] == "CONSUMER"
    assert offsets["transactional", TOPICS[0], 0] == 20

    # When its files are imported, and Rollcall starts on them.
    daemon = start_daemon()
    daemon.stop()
    report = rollcall("import", "--from", first.log_dir, "--data-dir", daemon.data_dir)
    assert "3 pending offsets, not shown" in report
    daemon.start()

    # Then Kafka's tool finds the same groups and offsets there, and so does librdkafka.
    given_topics(daemon.bootstrap)
    assert set(listed(daemon.bootstrap)) == set(kinds)
    assert described(kafka_tools, daemon.bootstrap) == offsets
    places = [TopicPartition(TOPICS[0], n) for n in range(3)]
    fetched = consumer(daemon.bootstrap, "transactional").committed(places, 60)
    assert [place.offset for place in fetched] == [20, 20, 20]
    (fetched,) = consumer(daemon.bootstrap, "simple-1").committed(
        [TopicPartition(TOPICS[0], 1)], 60
    )
    assert (fetched.offset, fetched.metadata) == (2, 'é "m"')

    # When they are exported to a Kafka that has fewer partitions for them.
    daemon.stop()
    with kafka_broker(kafka_tools, tmp_path / "b", offsets_topic_num_partitions=7) as second:
        given_topics(second.bootstrap)
        # To be asked for a coordinator is what makes it create the topic.
        nobody = consumer(second.bootstrap, "nobody")
        patiently(lambda: nobody.committed([TopicPartition(TOPICS[0], 0)], 60))
        nobody.close()
        running = ("export", "--for-kafka", second.log_dir, "--data-dir", daemon.data_dir)
        rollcall(*running, exit_code=2)
        second.stop()
        rollcall(*running)
        second.start()

        # Then that one says of every group and offset what the first one said.
        assert listed_once_loaded(second.bootstrap, kinds) == kinds
        assert described(kafka_tools, second.bootstrap) == offsets
        # As it says to us, over the wire.
        csv = rollcall("export", "--csv", "-", "--bootstrap", second.bootstrap)
        assert len(lines(csv)) == len(offsets)
        file = tmp_path / "wire.csv"
        file.write_text(csv.replace("simple-1,", "copied,"))
        into = ("--bootstrap", second.bootstrap)
        rollcall("import", "--from", file, "--group", "copied", *into)
        copied = rollcall("export", "--csv", "-", "--group", "copied", *into)
        assert len(lines(copied)) == csv.count("simple-1,")

        # And its groups go on from there.
        read_and_leave(second.bootstrap, "modern", group_protocol="consumer")
        read_and_leave(second.bootstrap, "classic")


def test_csv_of_kafkas_tool_and_ours_are_one(
    kafka_tools: KafkaTools, daemon: Daemon, tmp_path: Path
) -> None:
    given_topics(daemon.bootstrap)
    commit(daemon.bootstrap, 'odd, "very"', TopicPartition(TOPICS[0], 1, 3))
    commit(daemon.bootstrap, "g", *[TopicPartition(TOPICS[1], n, n) for n in range(PARTITIONS)])
    both = ("--group", 'odd, "very"', "--group", "g")

    def reset(*arguments: str | Path) -> str:
        done = kafka_tools.run(
            *(CONSUMER_GROUPS, "--bootstrap-server", daemon.bootstrap, "--reset-offsets"),
            *arguments,
        )
        assert done.exit_code == 0, done.err
        return done.out

    def ours(*arguments: str) -> list[str]:
        return lines(rollcall("export", "--csv", "-", "--bootstrap", daemon.bootstrap, *arguments))

    current = ("--all-topics", "--to-current", "--dry-run", "--export")
    assert ours() == lines(reset(*both, *current))
    three = lines(reset("--group", "g", *current))
    assert ours("--columns", "3", "--group", "g") == three

    # The tool takes ours, changed.
    moved = tmp_path / "moved.csv"
    moved.write_text("".join(re.sub(r",\d+$", ",7\n", line) for line in ours()))
    reset(*both, "--from-file", moved, "--execute")
    assert ours() == lines(moved.read_text())

    # And we take the tool's.
    kafkas_csv = tmp_path / "theirs.csv"
    kafkas_csv.write_text("\n".join(three))
    into = ("--bootstrap", daemon.bootstrap)
    rollcall("import", "--from", kafkas_csv, "--for-group", "g", *into, exit_code=1)
    rollcall("import", "--from", kafkas_csv, "--for-group", "g", "--overwrite", *into)
    assert ours("--columns", "3", "--group", "g") == three


def lines(text: str) -> list[str]:
    """The tool's are in the order of a hash map, with an empty one before them."""
    return sorted(line for line in text.split("\n") if line)


def test_what_is_imported_joins_what_a_daemon_has_written(daemon: Daemon, tmp_path: Path) -> None:
    given_topics(daemon.bootstrap, messages=0)
    commit(daemon.bootstrap, "own", TopicPartition("orders", 0, 5), TopicPartition("orders", 1, 6))
    daemon.kill()  # so that the journal has what the segments may lack
    file = tmp_path / "f.csv"
    file.write_text("own,orders,1,9\nnew,orders,2,7\nnew,not-there-yet,0,8\n")
    into = ("--data-dir", daemon.data_dir)
    rollcall("import", "--from", file, *into, exit_code=1)
    rollcall("import", "--from", file, *into, "--merge")
    for _ in range(2):  # the second time it starts from what it wrote at its stop
        daemon.start()
        csv = rollcall("export", "--csv", "-", "--bootstrap", daemon.bootstrap)
        assert lines(csv) == [
            "new,not-there-yet,0,8",
            "new,orders,2,7",
            "own,orders,0,5",
            "own,orders,1,9",
        ]
        assert daemon.stop() == 0
    # A third import, behind whatever the stops have written down to start from.
    file.write_text("own,orders,0,11\n")
    rollcall("import", "--from", file, *into, "--merge")
    daemon.start()
    own = ("--group", "own", "--bootstrap", daemon.bootstrap)
    assert lines(rollcall("export", "--csv", "-", *own)) == ["own,orders,0,11", "own,orders,1,9"]
    moves = who_moved(daemon.admin, "own", "orders", 0)
    assert [(row["by"], row["old"], row["new"]) for row in moves] == [
        ("commit", None, 5),
        ("import", 5, 11),
    ]
    assert moves[1]["client_id"] == ACTOR


def who_moved(admin: str, group: str, topic: str, partition: int) -> list[dict[str, object]]:
    """Of one partition, the oldest first."""
    done = subprocess.run(
        [ROLLCALL, "history", group, "--offsets", "--json", "--admin", admin],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [
        {"by": event["by"], "client_id": event["asker"]["client_id"], **change}
        for event in reversed(json.loads(done.stdout))
        for change in event.get("changes", ())
        if (change["topic"], change["partition"]) == (topic, partition)
    ]


def test_what_a_running_cluster_refuses_is_reported(daemon: Daemon, tmp_path: Path) -> None:
    given_topics(daemon.bootstrap, messages=0)
    live = consumer(daemon.bootstrap, "live")
    live.subscribe([TOPICS[0]])
    until_assigned(live)
    file = tmp_path / "f.csv"
    file.write_text("g,orders,0,1\ng,nowhere,0,1\nlive,orders,0,1\n")
    out = rollcall("import", "--from", file, "--bootstrap", daemon.bootstrap, exit_code=1)
    assert "refused       g nowhere-0: UNKNOWN_TOPIC_OR_PARTITION" in out
    assert "refused       live orders-0: UNKNOWN_MEMBER_ID" in out
    assert "done          1 offset committed" in out
    live.close()
    json = rollcall("export", "--json", "-", "--bootstrap", daemon.bootstrap)
    assert '"group": "g"' in json
