"""Kafka directory: a stopped Kafka's log directory after an export, byte by byte."""

import json
import os
import struct
from pathlib import Path
from uuid import UUID

import pytest

from coordinator.classic.generation_record import generation_record
from protocol.names import GenerationId, GroupId, MemberId
from seams.java_hash import partition_of
from storage.api import Record
from storage.batch.record_batch import encode_batch, iter_batches, read_records
from storage.log.checkpoints import encode_uuid
from tests.transfer.given import (
    FOREIGN_ID,
    NOW_MS,
    classic_group,
    commit,
    foreign_record,
    offset_record,
    read,
    shown,
    write_segment,
)
from transfer.append import apply_plan
from transfer.contents import Contents
from transfer.errors import Unusable
from transfer.kafka_dir import KafkaDir
from transfer.plan import Rule, Terms, for_kafka, make_plan

PARTITIONS = 7
KAFKAS_TOPIC_ID = UUID("5b3e0d6c-8c1f-4b60-b6e3-3f2b7a6c9d01")
ORDERS_ID = UUID("77777777-0000-4000-8000-000000000001")
MARKER = b'{"version":0,"brokerEpoch":42}'


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """As a broker of one node leaves it: partition 2 was written to in epochs 0 and 5."""
    directory = tmp_path / "kafka"
    for number in range(PARTITIONS):
        folder = directory / f"__consumer_offsets-{number}"
        folder.mkdir(parents=True)
        metadata = f"version: 0\ntopic_id: {encode_uuid(KAFKAS_TOPIC_ID)}"
        (folder / "partition.metadata").write_text(metadata)
        epochs = "0\n2\n0 0\n5 1\n" if number == 2 else "0\n1\n3 0\n" if number else "0\n0\n"
        (folder / "leader-epoch-checkpoint").write_text(epochs)
        (folder / f"{0:020d}.log").write_bytes(b"")
        (folder / f"{0:020d}.index").write_bytes(b"")
        (folder / f"{0:020d}.timeindex").write_bytes(b"")
    old = offset_tombstone_and_more()
    write_segment(directory, 2, 0, *old)
    orders = directory / "orders-0"
    orders.mkdir()
    (orders / "partition.metadata").write_text(f"version: 0\ntopic_id: {encode_uuid(ORDERS_ID)}")
    (directory / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    (directory / ".kafka_cleanshutdown").write_bytes(MARKER)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        text = "0\n3\n__consumer_offsets 0 0\n__consumer_offsets 2 2\norders 0 17\n"
        (directory / name).write_text(text)
    return directory


def offset_tombstone_and_more() -> list[bytes]:
    """Two batches of which nothing is left: a commit and its tombstone."""
    record = offset_record("gone", "orders", 0, 1)
    return [
        encode_batch([record], 0, NOW_MS, 0),
        encode_batch([Record(record.key, None)], 1, NOW_MS, 5),
    ]


def source() -> Contents:
    made = Contents()
    records = [
        classic_group("classic"),
        foreign_record(3, "modern"),
        foreign_record(11, "shared"),
        generation_record(
            GroupId("begun"), GenerationId(4), ("consumer", "range"), MemberId("m"), NOW_MS, ()
        ),
    ]
    for record in records:
        assert record.value is not None
        made.put(record.key, record.value, NOW_MS - 5)
    for number in range(40):
        group = made.group(GroupId(f"group-{number}"))
        group.offsets["orders", number] = (
            commit(number, NOW_MS - number, leader_epoch=3, metadata="m", topic_id=ORDERS_ID),
            NOW_MS - number,
        )
        group.offsets["other", 0] = (commit(1, NOW_MS, topic_id=FOREIGN_ID), NOW_MS)
    return made


def export(directory: Path, contents: Contents, version: int = 4, rule: Rule = Rule.REFUSE) -> int:
    list(for_kafka(contents))
    with KafkaDir(str(directory)) as target:
        terms = Terms(rule, NOW_MS, version, dict(target.topic_ids()))
        plan = make_plan(contents, Contents(), terms)
        target.begin()
        assert not (directory / ".kafka_cleanshutdown").exists()
        records = apply_plan(target, plan, NOW_MS).records
        target.finish()
    return records


def batches(directory: Path, number: int):
    content = (directory / f"__consumer_offsets-{number}" / f"{0:020d}.log").read_bytes()
    return [(header, content[at : at + header.size]) for at, header in iter_batches(content)]


def test_every_group_is_in_the_partition_that_kafka_hashes_it_to(kafka: Path) -> None:
    contents = source()
    assert export(kafka, contents) == 40 * 2 + 3
    for number in range(PARTITIONS):
        for _, batch in batches(kafka, number):
            for _, _, key, _, _ in read_records(batch):
                length = struct.unpack_from(">h", key, 2)[0]
                group_id = key[4 : 4 + length].decode()
                assert group_id == "gone" or partition_of(group_id, PARTITIONS) == number
    found, tally = read(kafka)
    assert shown(found) == shown(contents)
    assert tally.damaged == []


def test_batches_follow_what_is_there_in_its_latest_epoch(kafka: Path) -> None:
    before = (kafka / "__consumer_offsets-2" / f"{0:020d}.log").read_bytes()
    export(kafka, source())
    assert (kafka / "__consumer_offsets-2" / f"{0:020d}.log").read_bytes().startswith(before)
    for number, (epoch, first) in {2: (5, 2), 3: (3, 0), 0: (0, 0)}.items():
        header, _ = batches(kafka, number)[-1]
        assert (header.partition_leader_epoch, header.base_offset) == (epoch, first)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
        assert header.attributes == 0
    epochs = (kafka / "__consumer_offsets-2" / "leader-epoch-checkpoint").read_text()
    assert epochs == "0\n2\n0 0\n5 1\n"


def test_times_are_those_of_the_records(kafka: Path) -> None:
    export(kafka, source())
    seen = {}
    for number in range(PARTITIONS):
        for header, batch in batches(kafka, number):
            times = [fields[1] for fields in read_records(batch)]
            assert header.max_timestamp == max(times)
            seen |= {fields[2]: fields[1] for fields in read_records(batch)}
    record = offset_record("group-7", "orders", 7, 7)
    assert seen[record.key] == NOW_MS - 7


def test_values_keep_all_but_a_foreign_topic_id(kafka: Path) -> None:
    export(kafka, source())
    found, _ = read(kafka)
    offsets = found.groups["group-7"].offsets
    own, foreign = offsets["orders", 7][0], offsets["other", 0][0]
    assert (own.leader_epoch, own.metadata, own.committed_at_ms) == (3, "m", NOW_MS - 7)
    assert own.topic_id == ORDERS_ID
    assert foreign.topic_id.int == 0


def test_older_brokers_get_older_values(kafka: Path) -> None:
    export(kafka, source(), version=3)
    _, tally = read(kafka)
    assert tally.by_type["OffsetCommit", "v3"] == 80
    assert tally.by_type["OffsetCommit", "v4"] == 1  # what was there already


def test_records_of_our_own_are_left_out(kafka: Path) -> None:
    contents = source()
    export(kafka, contents)
    found, tally = read(kafka)
    assert "begun" not in found.groups
    assert not [name for name, _ in tally.by_type if "Rollcall" in name]
    assert {found.groups[name].kind for name in ("modern", "shared")} == {"consumer", "share"}


def test_the_checkpoints_say_that_all_is_durable_and_replicated(kafka: Path) -> None:
    export(kafka, source())
    ends = {number: batches(kafka, number)[-1][0].next_offset for number in range(PARTITIONS)}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        lines = (kafka / name).read_text().splitlines()
        assert lines[:2] == ["0", str(PARTITIONS + 1)]
        said = {tuple(line.split()[:2]): int(line.split()[2]) for line in lines[2:]}
        assert said.pop(("orders", "0")) == 17, "no business of ours"
        assert said == {("__consumer_offsets", str(n)): end for n, end in ends.items()}
    assert (kafka / ".kafka_cleanshutdown").read_bytes() == MARKER
    leftovers = [path.name for path in kafka.iterdir() if "rollcall" in path.name]
    assert leftovers == []


def test_the_time_index_of_the_last_segment_is_complete(kafka: Path) -> None:
    export(kafka, source())
    index = (kafka / "__consumer_offsets-3" / f"{0:020d}.timeindex").read_bytes()
    header, _ = batches(kafka, 3)[-1]
    assert struct.unpack(">qI", index[-12:]) == (header.max_timestamp, header.last_offset)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_belong_to_the_brokers_user_though_root_wrote_them(kafka: Path) -> None:
    for path in (kafka, *kafka.rglob("*")):
        os.chown(path, 12_345, 23_456)
    export(kafka, source())
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in kafka.rglob("*")}
    assert owners == {(12_345, 23_456)}


def written(kafka: Path) -> dict[Path, bytes]:
    """Every log that holds anything."""
    return {path: content for path in kafka.rglob("*.log") if (content := path.read_bytes())}


def test_an_export_that_was_interrupted_is_undone_by_the_next(kafka: Path) -> None:
    before = written(kafka)
    with KafkaDir(str(kafka)) as target:
        plan = make_plan(source(), Contents(), Terms(Rule.REFUSE, NOW_MS))
        target.begin()
        failing = target.log(5)
        failing.abandon("pulled out")
        with pytest.raises(Exception, match="pulled out"):
            apply_plan(target, plan, NOW_MS)
    assert not (kafka / ".kafka_cleanshutdown").exists()
    with KafkaDir(str(kafka)) as target:
        assert written(kafka) == before
        assert "was rolled back" in target.note
    assert (kafka / ".kafka_cleanshutdown").exists()
    export(kafka, source())
    assert len(read(kafka)[0].groups) == 43


def interrupted_export(kafka: Path) -> None:
    """Some of its partitions are written, and the process is gone."""
    with KafkaDir(str(kafka)) as target:
        plan = make_plan(source(), Contents(), Terms(Rule.REFUSE, NOW_MS))
        target.begin()
        target.log(5).abandon("pulled out")
        with pytest.raises(Exception, match="pulled out"):
            apply_plan(target, plan, NOW_MS)
    assert len(read(kafka)[0].groups) > 5


def broker_ran(kafka: Path, *, stopped: bool = True) -> list[str]:
    """It took a commit of a new group in each partition, in its next leader epoch."""
    groups = []
    for number in range(PARTITIONS):
        folder = kafka / f"__consumer_offsets-{number}"
        log = folder / f"{0:020d}.log"
        content = log.read_bytes()
        end = max((header.next_offset for _, header in iter_batches(content)), default=0)
        group = next(f"n{i}" for i in range(999) if partition_of(f"n{i}", PARTITIONS) == number)
        log.write_bytes(content + encode_batch([offset_record(group, "t", 0, 9)], end, NOW_MS, 9))
        (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n9 {end}\n")
        groups.append(group)
    if stopped:
        (kafka / ".kafka_cleanshutdown").write_bytes(MARKER)
    return groups


def test_commits_of_a_broker_that_ran_since_are_never_rolled_back(kafka: Path) -> None:
    interrupted_export(kafka)
    groups = broker_ran(kafka)
    before = written(kafka)
    with KafkaDir(str(kafka)) as target:
        assert "the broker has run since" in target.note
        assert "nothing is rolled back" in target.note
    assert written(kafka) == before
    assert groups == [name for name in groups if name in read(kafka)[0].groups]
    with KafkaDir(str(kafka)) as target:
        assert target.note == "", "said once"


def test_a_broker_that_was_killed_since_has_to_recover_first(kafka: Path) -> None:
    interrupted_export(kafka)
    broker_ran(kafka, stopped=False)
    before = written(kafka)
    with pytest.raises(Unusable, match="not stopped cleanly since an export into it was interr"):
        KafkaDir(str(kafka))
    assert written(kafka) == before


@pytest.mark.parametrize(
    "trace",
    [
        "replication-offset-checkpoint",
        "__consumer_offsets-2/leader-epoch-checkpoint",
        "__cluster_metadata-0/00000000000000000000.log",
    ],
)
def test_any_trace_of_a_broker_forbids_the_roll_back(kafka: Path, trace: str) -> None:
    (kafka / "__cluster_metadata-0").mkdir()
    (kafka / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(b"records")
    interrupted_export(kafka)
    path = kafka / trace
    path.write_bytes(path.read_bytes())  # the same bytes, at another time
    with pytest.raises(Unusable, match="not stopped cleanly"):
        KafkaDir(str(kafka))


def test_an_undo_file_without_a_stamp_cuts_nothing(kafka: Path) -> None:
    interrupted_export(kafka)
    undo_file = kafka / "rollcall-unfinished-import.json"
    document = json.loads(undo_file.read_text())
    del document["stamp"]
    undo_file.write_text(json.dumps(document))
    before = written(kafka)
    with pytest.raises(Unusable, match="not stopped cleanly"):
        KafkaDir(str(kafka))
    assert written(kafka) == before


def test_a_part_of_the_partitions_is_refused(kafka: Path) -> None:
    (kafka / "__consumer_offsets-4").rename(kafka / "elsewhere-4")
    with pytest.raises(Unusable, match="only some of the partitions"):
        KafkaDir(str(kafka))


def test_a_kafka_without_the_topic_is_refused(kafka: Path) -> None:
    for number in range(PARTITIONS):
        (kafka / f"__consumer_offsets-{number}").rename(kafka / f"elsewhere-{number}")
    with pytest.raises(Unusable, match="has no __consumer_offsets yet"):
        KafkaDir(str(kafka))


def test_what_is_no_kafka_is_refused(kafka: Path) -> None:
    (kafka / "meta.properties").unlink()
    with pytest.raises(Unusable, match="is not a Kafka log directory"):
        KafkaDir(str(kafka))
