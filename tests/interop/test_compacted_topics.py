"""Compacted topics: real clients, while the cleaner runs and the daemon is killed.

The daemon looks for logs to clean every 50 ms here, rolls its files after a moment, and syncs them
when it is idle for a moment: so a second has more passes than a day elsewhere.
"""

import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logtools.findings import Finding, LintCounts
from logtools.layout import place_at
from logtools.lint import findings
from protocol.names import OFFSETS_TOPIC
from storage.batch.record_batch import iter_batches, read_records
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.conftest import StartDaemon
from tests.interop.kafka_tools import DUMP_LOG, require_kafka_tools
from tests.interop.swaps import holds_of_whole

pytestmark = pytest.mark.timeout(900)
WAIT_S: Final = 240.0  # the cleaner works at a low priority: a busy machine gives it little

EAGER: Final = {
    **TEST_SETTINGS,
    "offsets.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": "1",
    "log.segment.delete.delay.ms": "1",
    "log.roll.ms": "100",
    "rollcall.offsets.history.ms": "0",
    "rollcall.checkpoint.idle.ms": "50",
}
SLOW: Final = {"log.cleaner.io.max.bytes.per.second": "1000"}

COMPACTED: Final = {"cleanup.policy": "compact"}


def wait_for(what: str, fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < deadline, f"not within {WAIT_S:.0f} s: {what}"
        time.sleep(0.05)


def metric(daemon: Daemon, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", daemon.get("/metrics")[1], re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def consumer(daemon: Daemon, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def create(daemon: Daemon, *names: str, partitions: int = 1) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    topics = [NewTopic(name, partitions, 1, config=COMPACTED) for name in names]
    for future in admin.create_topics(topics).values():
        future.result(WAIT_S)
    return admin


def records(daemon: Daemon, partition: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """All that the segments of a stopped daemon hold: (offset, key, value)."""
    found = []
    for path in sorted((daemon.data_dir / partition).glob("*.log")):
        content = path.read_bytes()
        for at, _ in iter_batches(content):
            found += [(record[0], record[2], record[3]) for record in read_records(content, at)]
    return found


def cleaned_lines(daemon: Daemon, log: str) -> int:
    return daemon.log().count(f"Log cleaner cleaned log log={log} ")


def begun_lines(daemon: Daemon, log: str) -> int:
    return daemon.log().count(f"Beginning cleaning of log {log}\n")


def test_offsets_are_cleaned_while_commits_go_on(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(EAGER)
    client = consumer(daemon, "g")
    partitions = [TopicPartition("t", number) for number in range(5)]
    create(daemon, "t")
    count = 0

    def commit_on() -> bool:
        nonlocal count
        count += 1
        offsets = [TopicPartition("t", partition.partition, count) for partition in partitions[:1]]
        client.commit(offsets=offsets, asynchronous=False)
        return metric(daemon, "rollcall_cleaner_runs_total") >= 3

    wait_for("three passes under commits", commit_on)
    (found,) = client.committed(partitions[:1], timeout=WAIT_S)
    assert found.offset == count
    daemon.kill()
    daemon.start()
    (found,) = client.committed(partitions[:1], timeout=WAIT_S)
    assert found.offset == count
    client.close()
    assert daemon.stop() == 0
    assert len(records(daemon, "__consumer_offsets-0")) < count
    assert (
        (daemon.data_dir / "cleaner-offset-checkpoint").read_text().startswith("0\n1\n__consumer")
    )


def test_killed_in_the_middle_of_a_pass(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({**EAGER, **SLOW})
    create(daemon, "t")
    client = consumer(daemon, "g")
    count = 0

    def commit_on() -> bool:
        nonlocal count
        count += 1
        client.commit(offsets=[TopicPartition("t", 0, count)], asynchronous=False)
        return begun_lines(daemon, "__consumer_offsets-0") > 0

    wait_for("a pass has begun", commit_on)
    folder = daemon.data_dir / "__consumer_offsets-0"

    def is_writing() -> bool:
        commit_on()  # if this pass was over before it was seen, there will be another
        return any(folder.glob("*.cleaned"))

    wait_for("it writes", is_writing)
    for _ in range(20):
        commit_on()
    daemon.kill()
    daemon.settings.update({"log.cleaner.io.max.bytes.per.second": "1e12"})
    daemon.start()
    (found,) = client.committed([TopicPartition("t", 0)], timeout=WAIT_S)
    assert found.offset == count
    wait_for("it is cleaned", lambda: cleaned_lines(daemon, "__consumer_offsets-0") > 0)
    (found,) = client.committed([TopicPartition("t", 0)], timeout=WAIT_S)
    assert found.offset == count
    client.close()
    assert daemon.stop() == 0
    assert not any(folder.glob("*.cleaned"))


def test_killed_at_random_moments_while_it_commits_and_cleans(start_daemon: StartDaemon) -> None:
    """Every commit that was answered is there after each kill; CLEANER_KILLS sets how many."""
    daemon = start_daemon(EAGER)
    create(daemon, "t", partitions=8)
    dice = random.Random(5)
    acknowledged = dict.fromkeys(range(8), -1)
    number = 0
    for _ in range(int(os.environ.get("CLEANER_KILLS", "5"))):
        client = consumer(daemon, "g")
        until = time.monotonic() + dice.uniform(0.2, 1.5)
        while time.monotonic() < until:
            number += 1
            partition = dice.randrange(8)
            client.commit(offsets=[TopicPartition("t", partition, number)], asynchronous=False)
            acknowledged[partition] = number
        time.sleep(dice.uniform(0, 0.2))  # where it is idle, it checkpoints and cleans
        daemon.kill()
        daemon.start()
        found = client.committed(
            [TopicPartition("t", number) for number in range(8)], timeout=WAIT_S
        )
        for committed in found:
            assert max(committed.offset, -1) == acknowledged[committed.partition]
        client.close()
    assert "is damaged" not in daemon.log()
    wait_for("a pass, at the latest now", lambda: begun_lines(daemon, "__consumer_offsets-0") > 0)
    assert daemon.stop() == 0
    assert damage_in(daemon) == []


def test_a_stop_ends_a_pass_at_once(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({**EAGER, "log.cleaner.io.max.bytes.per.second": "1"})
    create(daemon, "t")
    client = consumer(daemon, "g")
    committed = 0

    def commit_on() -> bool:
        nonlocal committed
        committed += 1
        client.commit(offsets=[TopicPartition("t", 0, committed)], asynchronous=False)
        return begun_lines(daemon, "__consumer_offsets-0") > 0

    wait_for("a pass has begun", commit_on)
    client.close()
    assert daemon.stop() == 0
    assert "Unexpected error" not in daemon.log()


def test_of_deleted_groups_nothing_is_left(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(EAGER)
    admin = create(daemon, "t")
    for group in ("gone", "stays"):
        client = consumer(daemon, group)
        client.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
        client.close()
    for future in admin.delete_consumer_groups(["gone"]).values():
        future.result(WAIT_S)
    busy = consumer(daemon, "stays")
    folder = daemon.data_dir / "__consumer_offsets-0"

    def is_gone() -> bool:
        busy.commit(offsets=[TopicPartition("t", 0, 8)], asynchronous=False)
        return holds_of_whole(
            folder, lambda: not any(b"gone" in path.read_bytes() for path in folder.glob("*.log"))
        )

    wait_for("tombstones and all have gone", is_gone)
    daemon.kill()
    daemon.start()
    (found,) = consumer(daemon, "gone").committed([TopicPartition("t", 0)], timeout=WAIT_S)
    assert found.offset < 0
    (found,) = consumer(daemon, "stays").committed([TopicPartition("t", 0)], timeout=WAIT_S)
    assert found.offset == 8


def test_kafkas_tool_reads_what_a_pass_has_left(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({**EAGER, "log.index.interval.bytes": "200"})
    create(daemon, "t", partitions=40)
    client = consumer(daemon, "g")
    count = 0

    def commit_on() -> bool:
        nonlocal count
        count += 1
        client.commit(offsets=[TopicPartition("t", count % 40, count)], asynchronous=False)
        return count > 100 and metric(daemon, "rollcall_cleaner_runs_total") >= 2

    wait_for("two passes", commit_on)
    client.close()
    assert daemon.stop() == 0
    assert damage_in(daemon) == []
    tools = require_kafka_tools()
    logs = sorted((daemon.data_dir / "__consumer_offsets-0").glob("*.log"))
    files = ",".join(map(str, logs))
    shown = tools.run(DUMP_LOG, "--offsets-decoder", "--deep-iteration", "--files", files)
    assert shown.exit_code == 0, shown.err
    assert "isvalid: true" in shown.out
    assert "isvalid: false" not in shown.out
    assert "invalid bytes" not in shown.out
    indexes = [path for log in logs for path in log.parent.glob(f"{log.stem}.*index")]
    named = ",".join(map(str, indexes))
    sane = tools.run(DUMP_LOG, "--index-sanity-check", "--files", named)
    assert sane.exit_code == 0, sane.err
    verified = tools.run(DUMP_LOG, "--verify-index-only", "--files", named)
    assert "Mismatches" not in verified.out + verified.err


def test_a_quiet_partition_is_rolled_and_cleaned_as_well(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(EAGER)
    create(daemon, "t")
    client = consumer(daemon, "g")
    for offset in range(20):
        client.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    client.close()
    folder = daemon.data_dir / "__consumer_offsets-0"

    def is_one() -> bool:
        contents = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
        return sum(len([*iter_batches(content)]) for content in contents) == 1

    wait_for(
        "of twenty commits one is left, and nobody commits", lambda: holds_of_whole(folder, is_one)
    )
    (found,) = consumer(daemon, "g").committed([TopicPartition("t", 0)], timeout=WAIT_S)
    assert found.offset == 19


def test_a_compacted_topic_keeps_the_newest_of_each_key(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(EAGER)
    create(daemon, "changelog")
    producer = Producer(
        {"bootstrap.servers": daemon.bootstrap, "linger.ms": 0, "enable.idempotence": True}
    )
    number = 0

    def produce_on() -> bool:
        nonlocal number
        for _ in range(10):
            producer.produce("changelog", key=f"key-{number % 7}", value=str(number))
            number += 1
        assert producer.flush(WAIT_S) == 0
        return cleaned_lines(daemon, "changelog-0") >= 2

    wait_for("two passes under a producer", produce_on)
    daemon.kill()  # its producer's sequence numbers are in batches that may be empty by now
    daemon.start()
    produce_on()
    reader = consumer(daemon, "reader")
    reader.assign([TopicPartition("changelog", 0, 0)])
    newest: dict[bytes, bytes] = {}
    seen = 0
    while newest.get(f"key-{(number - 1) % 7}".encode()) != str(number - 1).encode():
        (message,) = reader.consume(1, WAIT_S)
        assert message.error() is None
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        newest[key] = value
        seen += 1
    assert newest == {
        f"key-{value_number % 7}".encode(): str(value_number).encode()
        for value_number in range(number - 7, number)
    }
    assert seen < number
    reader.close()


def test_a_topic_that_is_deleted_during_its_pass(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({**EAGER, "log.cleaner.io.max.bytes.per.second": "1"})
    admin = create(daemon, "doomed")
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "linger.ms": 0})

    def produce_on() -> bool:
        producer.produce("doomed", key="k", value="v")
        assert producer.flush(WAIT_S) == 0
        return begun_lines(daemon, "doomed-0") > 0

    wait_for("its pass has begun", produce_on)
    for future in admin.delete_topics(["doomed"]).values():
        future.result(WAIT_S)
    wait_for("the pass is given up", lambda: "The cleaning of a log is aborted" in daemon.log())
    assert metric(daemon, "rollcall_cleaner_uncleanable_partitions") == 0
    assert not [path.name for path in daemon.data_dir.iterdir() if "doomed" in path.name]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(bytes(content))


def test_a_damaged_log_is_set_aside_and_the_others_are_cleaned(start_daemon: StartDaemon) -> None:
    victim = "damaged"
    daemon = start_daemon({**EAGER, "log.cleaner.enable": "false"})
    create(daemon, victim, "sound")
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "linger.ms": 0})

    def produce_on() -> bool:
        for topic in (victim, "sound"):
            producer.produce(topic, key="k", value="v" * 100)
        assert producer.flush(WAIT_S) == 0
        folders = [daemon.data_dir / f"{topic}-0" for topic in (victim, "sound")]
        return all(len([*folder.glob("*.log")]) > 2 for folder in folders)

    wait_for("both have sealed segments", produce_on)
    assert daemon.stop() == 0
    damage(min((daemon.data_dir / f"{victim}-0").glob("*.log")))
    daemon.settings.update({"log.cleaner.enable": "true"})
    daemon.start()
    wait_for("the sound one is cleaned", lambda: cleaned_lines(daemon, "sound-0") > 0)
    wait_for(
        "the damaged one is marked",
        lambda: metric(daemon, "rollcall_cleaner_uncleanable_partitions") == 1,
    )
    assert "Marking its partition as uncleanable" in daemon.log()
    assert re.search(rf"log={victim}-0 .*at byte 0: stored crc", daemon.log())
    assert metric(daemon, "rollcall_cleaner_uncleanable_bytes") > 0
    assert cleaned_lines(daemon, f"{victim}-0") == 0


def damage_in(daemon: Daemon) -> list[Finding]:
    """Without notes: a kill may leave a small file that was being written."""
    found = findings(place_at(daemon.data_dir, topic=OFFSETS_TOPIC), LintCounts())
    return [finding for finding in found if not finding.is_note]
