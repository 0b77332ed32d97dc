"""Log files: Kafka's own tools read every one, after rolls, restarts and kills.

`kafka-dump-log` looks at logs and indexes from the disk, the console consumer reads the same topic
over the wire. `rollcall log dump` and `lint` look at the same files: they must agree with Kafka.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator.record_schemas import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from logtools.dump import Wanted, dump
from logtools.findings import LintCounts
from logtools.layout import place_at
from logtools.lint import findings
from protocol.compiler import writer
from protocol.names import OFFSETS_TOPIC
from seams.java_hash import partition_of
from storage import api
from storage.api import Record
from storage.batch.record_batch import encode_batch
from storage.disk import RealDisk
from storage.log.log_store import LogStore
from tests.broker.daemon import Daemon
from tests.conftest import StartDaemon
from tests.interop.conftest import create_topic, produce
from tests.interop.kafka_tools import (
    CONSOLE_CONSUMER,
    DUMP_LOG,
    GROUP_METADATA_FORMATTER,
    OFFSETS_FORMATTER,
    TOPICS,
    KafkaTools,
    require_kafka_tools,
)
from tests.interop.offsets_givens import commit_by_hand, consume_all, fetch_by_hand
from tests.interop.test_kafka_tools import json_values

FORMATTERS = (
    (OFFSETS_FORMATTER, "OffsetCommit"),
    (GROUP_METADATA_FORMATTER, "GroupMetadata"),
)
ROLLCALL = Path(sys.executable).with_name("rollcall")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.segment.bytes": "1048576",  # so that the past has several segments
    "log.index.interval.bytes": "20000",
}
_RECORD = re.compile(
    r"^\| offset: (\d+) \w+Time: (\d+) keySize: (-?\d+) valueSize: (-?\d+) .*? headerKeys: \[\]"
    r" key: (.*?)(?: payload: (.*))?$"
)


@pytest.fixture(scope="module")
def kafka_tools() -> KafkaTools:
    return require_kafka_tools()


def given_a_past(daemon: Daemon) -> None:
    """Members, static members, simple commits, metadata, a deleted group; rolls, a kill, a stop."""
    create_topic(daemon.bootstrap, "orders", 10)
    produce(daemon.bootstrap, "orders", 10, range(50))
    consume_all(daemon.bootstrap, "billing", "orders", 50)
    consume_all(daemon.bootstrap, "static", "orders", 50, instance="one")
    commit_by_hand(daemon.port, "by-hand", "orders", range(60))
    commit_by_hand(daemon.port, "gone", "orders", range(3))
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.delete_consumer_groups(["gone"])["gone"].result(60)
    daemon.kill()
    daemon.start()
    commit_by_hand(daemon.port, "by-hand", "orders", range(60, 120), version=5)


def logs_of(data_dir: Path) -> list[Path]:
    return sorted(log for log in data_dir.glob(f"{OFFSETS_TOPIC}-*/*.log") if log.stat().st_size)


def dumped(path: Path) -> list[dict]:
    """What `rollcall log dump` says of a file."""
    place = place_at(path, topic=OFFSETS_TOPIC).only([OFFSETS_TOPIC], [])
    return list(dump(place, Wanted(), lambda *damage: pytest.fail(str(damage))))


def printed_by_kafka(out: str) -> Iterator[tuple[Path, tuple]]:
    """(file, (offset, timestamp, key, value)) of each record that kafka-dump-log printed."""
    file = Path()
    for line in out.splitlines():
        if line.startswith("Dumping "):
            file = Path(line.removeprefix("Dumping "))
        found = _RECORD.match(line)
        if found is None:
            assert not line.startswith("| offset"), line
            continue
        offset, timestamp, _, _, key, value = found.groups()
        if key.startswith("Unknown record type"):
            yield file, (int(offset), int(timestamp), "unknown", None)
        else:
            yield file, (int(offset), int(timestamp), json.loads(key), _value(value))


def _value(text: str) -> dict | None:
    return None if text == "<DELETE>" else json.loads(text)


def as_kafka_prints(line: dict) -> tuple:
    """A line of ours in the form of Kafka's tool, which writes its numbers of versions as text."""
    if line["type"] == "GenerationBegun":
        return line["offset"], line["timestamp"], "unknown", None
    key = {**line["key"], "type": str(line["key"]["type"])}
    value = line["value"]
    if value is not None:
        value = {**value, "version": str(value["version"])}
    return line["offset"], line["timestamp"], key, value


def assert_kafka_reads(tools: KafkaTools, data_dir: Path) -> None:
    """Every log, record by record, and every index."""
    logs = logs_of(data_dir)
    files = ",".join(map(str, logs))
    decoded = tools.run(DUMP_LOG, "--offsets-decoder", "--deep-iteration", "--files", files)
    assert decoded.exit_code == 0, decoded.err
    assert "isvalid: true" in decoded.out
    for bad in ("isvalid: false", "invalid bytes", "rror"):
        assert bad not in decoded.out + decoded.err, decoded.out[-2000:] + decoded.err
    # The tool reports every gap, and every start other than 0 as one, also in Kafka's own files.
    expected = [
        (str(before), str(after))
        for log in logs
        for before, after in pairwise([-1, *(line["offset"] for line in dumped(log))])
        if after != before + 1
    ]
    gaps = re.findall(r"(-?\d+) is followed by (\d+)", decoded.out + decoded.err)
    assert sorted(gaps) == sorted(expected)
    of_kafka: dict[Path, list[tuple]] = {log: [] for log in logs}
    for file, record in printed_by_kafka(decoded.out):
        of_kafka[file].append(record)
    for log in logs:
        assert of_kafka[log] == [as_kafka_prints(line) for line in dumped(log)]

    plain = tools.run(DUMP_LOG, "--print-data-log", "--files", files)
    assert plain.exit_code == 0, plain.err
    assert plain.out.count("\n| offset: ") == sum(map(len, of_kafka.values()))

    indexes = [
        path for log in logs for path in (log.with_suffix(".index"), log.with_suffix(".timeindex"))
        if path.exists()
    ]  # fmt: skip
    named = ",".join(map(str, indexes))
    sane = tools.run(DUMP_LOG, "--index-sanity-check", "--files", named)
    assert sane.exit_code == 0, sane.err
    passed = sane.out.count("passed sanity check") + sane.out.count(" is empty.")
    assert passed == len(indexes), sane.out
    verified = tools.run(DUMP_LOG, "--verify-index-only", "--files", named)
    assert verified.exit_code == 0, verified.err
    silent = ("Dumping ", " is empty.")
    said = [line for line in verified.out.splitlines() if not any(word in line for word in silent)]
    assert said == [], "mismatches between index and log are told line by line"

    assert list(findings(place_at(data_dir, topic=OFFSETS_TOPIC), LintCounts())) == []


def test_kafkas_dump_tool_reads_every_file_after_rolls_and_kills(
    start_daemon: StartDaemon, kafka_tools: KafkaTools
) -> None:
    daemon = start_daemon(SETTINGS)
    given_a_past(daemon)
    daemon.kill()
    assert max(len(list(log.parent.glob("*.log"))) for log in logs_of(daemon.data_dir)) > 3
    assert_kafka_reads(kafka_tools, daemon.data_dir)  # as the kill has left them
    daemon.start()
    assert daemon.stop() == 0
    assert_kafka_reads(kafka_tools, daemon.data_dir)

    before = {log.name for log in logs_of(daemon.data_dir)}
    command = [ROLLCALL, "log", "clean", "--roll", daemon.data_dir]
    subprocess.run([*command, "--set", "rollcall.offsets.history.ms=0"], check=True)
    assert {log.name for log in logs_of(daemon.data_dir)} != before
    assert_kafka_reads(kafka_tools, daemon.data_dir)
    daemon.start()
    offset, note = fetch_by_hand(daemon.port, "by-hand", "orders", 9)
    assert (offset, (note or "")[:6]) == (119, "at 119")


def test_kafkas_consumers_read_the_topic_over_the_wire(
    start_daemon: StartDaemon, kafka_tools: KafkaTools
) -> None:
    daemon = start_daemon(SETTINGS)
    given_a_past(daemon)

    described = kafka_tools.run(
        TOPICS, "--bootstrap-server", daemon.bootstrap, "--describe", "--topic", OFFSETS_TOPIC
    )
    assert "PartitionCount: 50" in described.out

    lines = dumped(daemon.data_dir)
    for formatter, kind in FORMATTERS:
        written = [
            json.dumps({"key": line["key"], "value": line["value"]})
            for line in lines
            if line["type"] == kind
        ]
        assert len(written) > 5
        # The tool ends when nothing has come for so long: on a busy machine that may be too soon.
        for silence_ms in (3_000, 15_000, 60_000):
            done = kafka_tools.run(
                *(CONSOLE_CONSUMER, "--bootstrap-server", daemon.bootstrap),
                *("--topic", OFFSETS_TOPIC, "--from-beginning", "--formatter", formatter),
                *("--isolation-level", "read_committed", "--timeout-ms", str(silence_ms)),
            )
            read = [json.dumps(fact) for fact in json_values(done.out)]
            if len(read) >= len(written):
                break
        # Kafka's consumer may have begun its own group meanwhile; nothing else is new.
        assert set(map(_bare, written)) <= set(map(_bare, read))


def _bare(line: str) -> str:
    """Without the members' bytes, which the formatter shows in base64 and the dump decodes."""
    fact = json.loads(line)
    for member in ((fact["value"] or {}).get("data") or {}).get("members", []):
        del member["subscription"], member["assignment"]
    return json.dumps(fact, sort_keys=True)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_range_of_offsets_is_read_as_it_is_stored(
    start_daemon: StartDaemon, isolation: str
) -> None:
    """As Spark's source reads: earliest and latest of each partition, then ranges of offsets."""
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, "orders", 10)
    for number in range(4):
        commit_by_hand(daemon.port, f"group-{number}", "orders", range(20))
    consumer = Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 100_000,  # several requests for each range
            "fetch.wait.max.ms": 10,
        }
    )
    written: dict[int, list[dict]] = {}
    for line in dumped(daemon.data_dir):
        written.setdefault(line["partition"], []).append(line)
    assert len(written) > 1
    for partition in range(50):
        at = TopicPartition(OFFSETS_TOPIC, partition)
        earliest, latest = consumer.get_watermark_offsets(at, timeout=60)
        there = written.get(partition, [])
        assert (earliest, latest) == (0, len(there))
        for start in {0, 7, len(there) // 2} if there else ():
            at.offset = start
            consumer.assign([at])
            read = []
            while (message := consumer.poll(60)) is not None and message.error() is None:
                read.append((message.offset(), message.timestamp()[1], message.key()[:2]))
            assert [offset for offset, _, _ in read] == list(range(start, latest))
            assert [time for _, time, _ in read] == [line["timestamp"] for line in there[start:]]
            assert {key for _, _, key in read} == {b"\x00\x01"}
    consumer.close()


# ---------------------------------------------------------------- old versions


def old_records() -> Iterator[tuple[str, Record, int]]:
    """(group, a commit in some version, its offset): whatever a Kafka has ever written."""
    yield (
        "legacy",
        Record(
            writer(OffsetCommitKey, 0, prefix=b"\x00\x00")(OffsetCommitKey("legacy", "orders", 3)),
            writer(LegacyOffsetCommitValue, 0, prefix=b"\x00\x00")(
                LegacyOffsetCommitValue(10, "old", 1_790_000_000_000)
            ),
        ),
        10,
    )
    for version in range(5):
        group, offset = f"offsets-v{version}", 20 + version
        key = writer(OffsetCommitKey, 0, prefix=b"\x00\x01")(OffsetCommitKey(group, "orders", 3))
        value = OffsetCommitValue(
            offset,
            metadata="old",
            commit_timestamp=1_790_000_000_000,
            expire_timestamp=4_000_000_000_000,
        )
        write = writer(OffsetCommitValue, version, prefix=version.to_bytes(2))
        yield group, Record(key, write(value)), offset


def old_groups() -> Iterator[tuple[str, Record]]:
    for version in range(5):
        group = f"group-v{version}"
        key = writer(GroupMetadataKey, 0, prefix=b"\x00\x02")(GroupMetadataKey(group))
        value = GroupMetadataValue("consumer", 7, None, None, 1_790_000_000_000)
        write = writer(GroupMetadataValue, version, prefix=version.to_bytes(2))
        yield group, Record(key, write(value))


def test_records_of_every_version_are_loaded(
    start_daemon: StartDaemon, kafka_tools: KafkaTools
) -> None:
    daemon = start_daemon({**SETTINGS, "offsets.retention.minutes": "100000000"})
    assert daemon.stop() == 0
    store = LogStore(RealDisk(), str(daemon.data_dir))
    store.open()
    for group, record in [*((g, r) for g, r, _ in old_records()), *old_groups()]:
        log = store.partition_log(api.TopicPartition(OFFSETS_TOPIC, partition_of(group, 50)))
        assert log is not None
        log.append(encode_batch([record], 0, 1_790_000_000_000), 1_790_000_000_000)
    assert store.close() == []
    assert_kafka_reads(kafka_tools, daemon.data_dir)

    daemon.start()
    for group, _, offset in old_records():
        assert fetch_by_hand(daemon.port, group, "orders", 3) == (offset, "old")
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    listed = admin.list_consumer_groups().result(60)
    assert {group for group, _ in old_groups()} <= {
        group_listed.group_id for group_listed in listed.valid
    }
