"""Answers: what a version says about a data directory, as a tree of plain values.

`online_answers` asks a running daemon: the wire and the admin port. `offline_answers` runs the
commands that read the files. Only what was stored before the fixture was packed is asked for: a
start adds events of its own, which `until_ms` leaves out.

`missing` compares: an answer may have gained fields, but nothing may be lost or changed.
"""

import contextlib
import hashlib
import json
import struct
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import google_crc32c
import msgpack
from confluent_kafka import (
    Consumer,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec
from kafka import KafkaAdminClient

from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import TopicName
from tests.compare.wire import Wire
from tests.compatibility.versions import Version, VersionDaemon

WAIT_S = 60
# Of a record batch v2.
CRC_AT = 17
ATTRIBUTES_AT = 21
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
LOG_APPEND_TIME = 8
EVENTS_MAX = 10_000
REBALANCES_MAX = 1_000
LAG_TOPIC = "__group_lag"

# Sentences for people: they may be worded better without a promise being broken.
PROSE = {"text", "stories", "note_words", "waiting_story", "verdicts", "summary", "remedy"}
# Of a partition's lag, what depends on the moment of the question is left out.
LAG_FIELDS = (
    "topic", "partition", "committed_offset", "committed_at_ms", "log_start_offset",
    "log_end_offset", "lag", "consumed_per_second", "note", "member",
)  # fmt: skip

Answers = dict[str, object]


def online_answers(daemon: VersionDaemon, until_ms: int) -> Answers:
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    topics = _topics(admin)
    groups = _groups(admin)
    python = KafkaAdminClient(bootstrap_servers=daemon.bootstrap)
    named = sorted({*groups, *(group for group, _ in _deleted(daemon, until_ms))})
    _await_windows(daemon)
    answers: Answers = {
        "loaded_records": loaded_records(daemon),
        "cluster_id": admin.describe_cluster().result(WAIT_S).cluster_id,
        "topics": topics,
        "groups": {
            group: {**facts, **_generation(daemon, group), "offsets": _offsets(python, group)}
            for group, facts in groups.items()
        },
        "lag": {group: _lag(daemon, group) for group in groups},
        "history": {group: _history(daemon, group, until_ms) for group in named},
        "rebalances": {group: _rebalances(daemon, group, until_ms) for group in groups},
        "records": _records(daemon, admin, topics, until_ms),
    }
    python.close()
    return answers


def loaded_records(daemon: VersionDaemon) -> object:
    """How many records the last load read beside the snapshots."""
    words = "Finished loading of metadata from __consumer_offsets"
    summaries = [line for line in daemon.lines() if "failed" in line and "partitions" in line]
    return [line["records"] for line in summaries if str(line["event"]).startswith(words)][-1]


def _topics(admin: AdminClient) -> Answers:
    names = sorted(admin.list_topics(timeout=WAIT_S).topics)
    described = admin.describe_topics(TopicCollection(names))
    configs = admin.describe_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    )
    set_by_topic = {
        resource.name: {
            name: entry.value
            for name, entry in sorted(future.result(WAIT_S).items())
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
        for resource, future in configs.items()
    }
    topics: Answers = {}
    for name, future in described.items():
        topic = future.result(WAIT_S)
        topics[name] = {
            "id": str(topic.topic_id),
            "internal": topic.is_internal,
            "partitions": len(topic.partitions),
            "configs": set_by_topic[name],
        }
    return topics


def _groups(admin: AdminClient) -> dict[str, Answers]:
    listed = admin.list_consumer_groups().result(WAIT_S)
    assert not listed.errors, listed.errors
    names = sorted(group.group_id for group in listed.valid)
    found: dict[str, Answers] = {}
    for name, future in admin.describe_consumer_groups(names).items():
        group = future.result(WAIT_S)
        found[name] = {
            "state": group.state.name,
            "assignor": group.partition_assignor,
            "simple": group.is_simple_consumer_group,
            "members": sorted(
                (
                    {
                        "member_id": member.member_id,
                        "client_id": member.client_id,
                        "host": member.host,
                        "group_instance_id": member.group_instance_id,
                        "assignment": sorted(
                            f"{partition.topic}-{partition.partition}"
                            for partition in member.assignment.topic_partitions
                        ),
                    }
                    for member in group.members
                ),
                key=lambda member: str(member["member_id"]),
            ),
        }
    return found


def _generation(daemon: VersionDaemon, group: str) -> Answers:
    content = _page(daemon, f"/api/rebalances?group={quote(group)}")
    return {"generation": content["generation"], "state_on_admin_port": content["state"]}


def _offsets(admin: KafkaAdminClient, group: str) -> Answers:
    """By kafka-python: confluent-kafka 2.16.1 reads beyond the end of a metadata text."""
    found = admin.list_group_offsets({group: None})[group]
    return {
        f"{at.topic}-{at.partition}": {
            "offset": offset.offset,
            "metadata": offset.metadata,
            "leader_epoch": offset.leader_epoch,
        }
        for at, offset in sorted(found.items())
    }


def _page(daemon: VersionDaemon, path: str) -> dict[str, object]:
    status, body = daemon.get(path)
    assert status == 200, f"{path}: {status} {body}"
    content: dict[str, object] = json.loads(body)
    return content


def _list(content: dict[str, object], name: str) -> list[dict[str, object]]:
    found = content[name]
    assert isinstance(found, list)
    return found


def _deleted(daemon: VersionDaemon, until_ms: int) -> Iterator[tuple[str, int]]:
    """Groups that are gone and whose history is there: the topic's keys name them."""
    for message in _messages(daemon, "__group_history", 0, until_ms):
        event = msgpack.unpackb(message.value() or b"")
        if event["type"] == "group_deleted":
            yield event["group_id"], event["at_ms"]


def _history(daemon: VersionDaemon, group: str, until_ms: int) -> list[Answers]:
    path = f"/api/history?group={quote(group)}&limit={EVENTS_MAX}"
    events = _list(_page(daemon, path), "events")
    return [_plain(event) for event in events if int(str(event["at_ms"])) <= until_ms]


def _rebalances(daemon: VersionDaemon, group: str, until_ms: int) -> list[Answers]:
    """Those that began after the fixture was written are the start's."""
    path = f"/api/rebalances?group={quote(group)}&limit={REBALANCES_MAX}"
    content = _page(daemon, path)
    until = _instant(until_ms)
    return [
        _plain(rebalance)
        for rebalance in _list(content, "rebalances")
        if str(rebalance["began_at"]) <= until
    ]


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def _plain(answer: dict[str, object]) -> Answers:
    return {name: value for name, value in answer.items() if name not in PROSE}


def _await_windows(daemon: VersionDaemon) -> None:
    """The first round of samples follows the reading back of the windows."""
    deadline = time.monotonic() + WAIT_S
    while _page(daemon, "/api/lag")["at_ms"] is None:
        assert time.monotonic() < deadline, "no lag was sampled"
        time.sleep(0.01)


def _lag(daemon: VersionDaemon, group: str) -> list[Answers]:
    content = _page(daemon, f"/api/lag?group={quote(group)}")
    return [
        {name: partition[name] for name in LAG_FIELDS} for partition in _list(content, "partitions")
    ]


def _records(daemon: VersionDaemon, admin: AdminClient, topics: Answers, until_ms: int) -> Answers:
    """Of each partition: where it begins, and a checksum of all that a consumer reads of it."""
    found: Answers = {}
    for topic, facts in sorted(topics.items()):
        assert isinstance(facts, dict)
        for partition in range(facts["partitions"]):
            at = TopicPartition(topic, partition)
            start = admin.list_offsets({at: OffsetSpec.earliest()})[at].result(WAIT_S).offset
            messages = list(_messages(daemon, topic, partition, until_ms))
            content = hashlib.sha256(repr([_content(message) for message in messages]).encode())
            entry = {"start": start, "count": len(messages), "sha256": content.hexdigest()}
            if topic == LAG_TOPIC:
                entry["samples"] = _samples(messages)
            found[f"{topic}-{partition}"] = entry
    return found


def _content(message: Message) -> tuple[object, ...]:
    return (
        message.offset(), message.timestamp(), message.key(), message.value(), message.headers(),
    )  # fmt: skip


def _samples(messages: list[Message]) -> dict[str, int]:
    """By group: the samples in the records that repeat a whole window."""
    found: Counter[str] = Counter()
    for message in messages:
        value = msgpack.unpackb(message.value() or b"")
        if value.get("whole"):
            key = (message.key() or b"").decode()
            found[key] += sum(len(samples) for _, samples in value["partitions"])
    return dict(sorted(found.items()))


def _messages(
    daemon: VersionDaemon, topic: str, partition: int, until_ms: int
) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": daemon.bootstrap,
            "group.id": "answers-read-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "fetch.wait.max.ms": 10,
        }
    )
    with contextlib.closing(consumer):
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), WAIT_S)
        consumer.assign([TopicPartition(topic, partition, 0)])
        consumer.seek(TopicPartition(topic, partition, _first(consumer, topic, partition)))
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{topic}-{partition} does not come to its end {end}"
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return
            if message.timestamp()[1] <= until_ms:
                yield message


def _first(consumer: Consumer, topic: str, partition: int) -> int:
    return consumer.get_watermark_offsets(TopicPartition(topic, partition), WAIT_S)[0]


def last_batch(folder: Path) -> bytes:
    """The newest batch of a partition's files, as its producer sent it.

    From offset 0, and with CreateTime in place of the LogAppendTime that the broker put in.
    """
    content = max(path for path in folder.glob("*.log") if path.stat().st_size).read_bytes()
    batch, at = b"", 0
    while at < len(content):
        (length,) = struct.unpack_from(">i", content, at + 8)
        batch = content[at : at + 12 + length]
        at += 12 + length
    sent = bytearray(batch)
    sent[:8] = bytes(8)
    (attributes,) = struct.unpack_from(">h", sent, ATTRIBUTES_AT)
    struct.pack_into(">h", sent, ATTRIBUTES_AT, attributes & ~LOG_APPEND_TIME)
    sent[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = sent[BASE_TIMESTAMP_AT : BASE_TIMESTAMP_AT + 8]
    struct.pack_into(">I", sent, CRC_AT, google_crc32c.value(bytes(sent[ATTRIBUTES_AT:])))
    return bytes(sent)


def produced_again(daemon: VersionDaemon, topic: str, batch: bytes) -> Answers:
    """Send a batch to partition 0: a producer that is known gets the offset of the first time."""
    wire = Wire(daemon.port, "again")
    data = PartitionProduceData(index=0, records=batch)
    wire.send(
        ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=TopicName(topic), partition_data=[data])],
        ),
        7,
    )
    answer = wire.receive(ProduceResponse, 7).responses[0].partition_responses[0]
    return {"error": answer.error_code.name, "base_offset": answer.base_offset}


def offline_answers(version: Version, data_dir: Path, at_ms: int) -> Answers:
    lint = version.run(at_ms, "log", "lint", "--json", "--log-topic", "all", data_dir)
    export = version.run(at_ms, "offsets", "export", "--json", "-", "--data-dir", data_dir)
    assert export.returncode == 0, export.stderr
    return {
        "lint": {"exit_code": lint.returncode, "wrong": _wrong(lint.stdout)},
        "export": json.loads(export.stdout),
    }


def _wrong(lint: str) -> list[str]:
    """What is worse than a note."""
    findings = map(json.loads, lint.splitlines())
    return [
        f"{finding['check']}: {finding['problem']}"
        for finding in findings
        if not finding["is_note"]
    ]


def missing(wanted: object, found: object, place: str = "") -> Iterator[str]:
    """Each place where `found` lacks what was wanted, or has something else."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            if name not in found:
                yield f"{place}/{name}: missing"
            else:
                yield from missing(value, found[name], f"{place}/{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (item, other) in enumerate(zip(wanted, found, strict=True)):
            yield from missing(item, other, f"{place}[{number}]")
    elif wanted != found:
        yield f"{place}: {str(found)[:200]!r}, not {str(wanted)[:200]!r}"
