"""Log folders: every state in which a Kafka leaves its log is read as Kafka would read it."""

import os
from pathlib import Path

import pytest

from coordinator.group import CommittedOffset
from coordinator.record_schemas import (
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    MemberMetadata,
    OffsetCommitValue,
)
from protocol.compiler import writer
from protocol.names import ZERO_TOPIC_ID
from storage.api import Record
from storage.batch.record_batch import encode_batch
from storage.log.partition_folders import PARTITION_NUMBER_MAX
from tests.transfer.given import (
    FOREIGN_ID,
    NOW_MS,
    classic_group,
    compacted,
    emptied,
    foreign_record,
    gzipped,
    marker,
    offset_record,
    offset_tombstone,
    read,
    shown,
    transactional,
    write_segment,
)
from transfer.errors import NoOffsets


def batch(*records, base_offset: int = 0) -> bytes:
    return encode_batch(records, base_offset, NOW_MS)


def test_the_newest_record_of_a_key_counts(tmp_path: Path) -> None:
    write_segment(
        tmp_path,
        3,
        0,
        batch(offset_record("g", "t", 0, 5), offset_record("g", "t", 1, 6)),
        batch(offset_record("g", "t", 0, 9), base_offset=2),
    )
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 9, ("t", 1): 6}}
    assert (tally.batches, tally.records, tally.partitions) == (2, 3, [3])
    assert tally.by_type["OffsetCommit", "v4"] == 3
    assert tally.missing_partitions == [0, 1, 2]


@pytest.mark.parametrize("version", [3, 4])
def test_times_epochs_and_metadata_are_kept(tmp_path: Path, version: int) -> None:
    record = offset_record("g", "t", 0, 5, at_ms=NOW_MS - 77, version=version)
    write_segment(tmp_path, 0, 0, batch(record))
    contents, tally = read(tmp_path)
    (found, timestamp_ms), *_ = contents.groups["g"].offsets.values()
    assert (found.committed_offset, found.committed_at_ms) == (5, NOW_MS - 77)
    assert timestamp_ms == NOW_MS
    assert tally.by_type["OffsetCommit", f"v{version}"] == 1


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_every_version_are_read(tmp_path: Path, version: int) -> None:
    said = OffsetCommitValue(
        offset=5,
        leader_epoch=3 if version >= 3 else -1,
        metadata="m",
        commit_timestamp=NOW_MS - 7,
        expire_timestamp=NOW_MS + 7 if version == 1 else -1,
        topic_id=FOREIGN_ID if version == 4 else ZERO_TOPIC_ID,
    )
    value = version.to_bytes(2, "big") + writer(OffsetCommitValue, version)(said)
    write_segment(tmp_path, 0, 0, batch(Record(offset_record("g", "t", 0, 0).key, value)))
    contents, tally = read(tmp_path)
    assert contents.groups["g"].offsets["t", 0][0] == CommittedOffset(
        5, said.leader_epoch, "m", NOW_MS - 7, said.expire_timestamp, said.topic_id
    )
    assert tally.by_type["OffsetCommit", f"v{version}"] == 1


def test_offsets_of_the_first_kind_are_read(tmp_path: Path) -> None:
    said = LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=NOW_MS)
    value = b"\x00\x00" + writer(LegacyOffsetCommitValue, 0)(said)
    key = b"\x00\x00" + offset_record("g", "t", 0, 0).key[2:]
    write_segment(tmp_path, 0, 0, batch(Record(key, value)))
    contents, _ = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 5}}


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_are_kept_as_they_are(tmp_path: Path, version: int) -> None:
    said = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m",
        members=[MemberMetadata("m", None, "c", "/h", session_timeout=9)],
    )  # fmt: skip
    value = version.to_bytes(2, "big") + writer(GroupMetadataValue, version)(said)
    write_segment(tmp_path, 0, 0, batch(Record(classic_group("g").key, value)))
    contents, tally = read(tmp_path)
    assert [kept.value for kept in contents.groups["g"].state.values()] == [value]
    assert tally.by_type["GroupMetadata", f"v{version}"] == 1


def test_message_sets_of_before_0_11_are_named(tmp_path: Path) -> None:
    old = bytes(12) + b"\x00\x00\x00\x00" + b"\x01" + bytes(60)
    write_segment(tmp_path, 0, 0, old, batch(offset_record("g", "t", 0, 5)))
    contents, tally = read(tmp_path)
    assert "magic 1, only magic 2" in tally.damaged[0].reason
    assert shown(contents) == {"g": {("t", 0): 5}}


def test_a_tombstone_takes_an_offset_away_and_a_group_with_its_last(tmp_path: Path) -> None:
    write_segment(
        tmp_path,
        0,
        0,
        batch(offset_record("g", "t", 0, 5), offset_record("h", "t", 0, 1)),
        batch(offset_tombstone("g", "t", 0), base_offset=2),
        batch(offset_tombstone("nobody", "t", 0), base_offset=3),
    )
    contents, tally = read(tmp_path)
    assert shown(contents) == {"h": {("t", 0): 1}}
    assert tally.tombstones == 2


def test_what_the_cleaner_leaves_is_read(tmp_path: Path) -> None:
    old = batch(offset_record("gone", "t", 0, 1), offset_record("gone", "t", 1, 1))
    write_segment(
        tmp_path,
        0,
        0,
        emptied(old),
        compacted([(4, offset_record("g", "t", 0, 5))], base_offset=2, last_offset=6),
        compacted(
            [(9, offset_tombstone("g", "t", 9)), (11, offset_record("g", "t", 1, 7))],
            base_offset=7,
            last_offset=12,
            horizon_ms=NOW_MS + 86_400_000,
        ),
    )
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 5, ("t", 1): 7}}
    assert {timestamp for _, timestamp in contents.groups["g"].offsets.values()} == {NOW_MS}
    assert (tally.empty_batches, tally.damaged) == (1, [])


def test_compressed_batches_are_read(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 0, gzipped(batch(offset_record("g", "t", 0, 5))))
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 5}}
    assert tally.compressed_batches == 1


def test_several_segments_whose_first_batch_lies_above_their_name(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 1)))
    write_segment(tmp_path, 0, 5, batch(offset_record("g", "t", 0, 2), base_offset=8))
    write_segment(tmp_path, 0, 20, b"")
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 2}}
    assert tally.segments == 3


def test_only_committed_transactions_become_offsets(tmp_path: Path) -> None:
    write_segment(
        tmp_path,
        0,
        0,
        batch(offset_record("g", "t", 0, 1), offset_record("g", "t", 2, 1)),
        transactional([offset_record("g", "t", 0, 50)], 2, 7),
        marker(3, 7, commits=True),
        transactional([offset_record("g", "t", 1, 60)], 4, 8),
        marker(5, 8, commits=False),
        transactional([offset_record("g", "t", 2, 70), offset_record("new", "t", 0, 1)], 6, 9),
    )
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 50, ("t", 2): 1}}
    sums = tally.transactions
    assert (sums.committed, sums.committed_records) == (1, 1)
    assert (sums.aborted, sums.aborted_records) == (1, 1)
    assert [(commit.group, commit.partition, commit.offset) for commit in sums.pending] == [
        ("g", 2, 70),
        ("new", 0, 1),
    ]
    assert tally.control_batches == 2


def test_transactions_of_one_partition_are_no_business_of_another(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 0, transactional([offset_record("g", "t", 0, 50)], 0, 7))
    write_segment(tmp_path, 1, 0, marker(0, 7, commits=True))
    contents, _ = read(tmp_path)
    assert shown(contents) == {}


def test_records_of_types_that_are_not_served_are_kept_as_they_are(tmp_path: Path) -> None:
    records = [foreign_record(3, "k"), foreign_record(42, "x", b"\x00\x09any"), classic_group("c")]
    write_segment(tmp_path, 0, 0, batch(*records))
    contents, tally = read(tmp_path)
    kept = {
        key: stored.value
        for group in contents.groups.values()
        for key, stored in group.state.items()
    }
    assert kept == {record.key: record.value for record in records}
    assert {group_id: group.kind for group_id, group in contents.groups.items()} == {
        "k": "consumer",
        "x": "unknown",
        "c": "classic",
    }
    assert tally.by_type["unknown type 42", "v9"] == 1
    assert tally.kept_undecoded == 1
    assert tally.damaged == []


def test_an_active_segment_with_room_that_was_never_written(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 5)), bytes(10_000))
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 5}}
    assert (tally.damaged, tally.torn_tails) == ([], [])


def test_a_tail_that_a_kill_has_torn_is_skipped_and_reported(tmp_path: Path) -> None:
    whole = batch(offset_record("g", "t", 0, 5))
    path = write_segment(
        tmp_path, 0, 0, whole, batch(offset_record("g", "t", 0, 6), base_offset=1)[:-3]
    )
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 5}}
    (torn,) = tally.torn_tails
    assert (torn.file, torn.position) == (str(path), len(whole))
    assert tally.damaged == []


@pytest.mark.parametrize("said", ["clean stop", "recovery point"])
def test_a_torn_tail_of_what_was_durable_is_damage(tmp_path: Path, said: str) -> None:
    write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 5))[:-3])
    if said == "clean stop":
        (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    else:
        text = "0\n1\n__consumer_offsets 0 1\n"
        (tmp_path / "recovery-point-offset-checkpoint").write_text(text)
    _, tally = read(tmp_path)
    assert len(tally.damaged) == 1
    assert tally.torn_tails == []


def test_damage_is_named_by_file_and_position_and_reading_goes_on(tmp_path: Path) -> None:
    first, broken = batch(offset_record("g", "t", 0, 1)), batch(offset_record("h", "t", 0, 2))
    bad = bytearray(broken)
    bad[-2] ^= 0xFF
    last = batch(offset_record("i", "t", 0, 3), base_offset=2)
    path = write_segment(tmp_path, 0, 0, first, bytes(bad), last)
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 1}, "i": {("t", 0): 3}}
    (damaged,) = tally.damaged
    assert (damaged.file, damaged.position) == (str(path), len(first))
    assert "checksum" in damaged.reason


def test_a_sealed_segment_has_no_torn_tail(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 1))[:-3])
    write_segment(tmp_path, 0, 1, batch(offset_record("g", "t", 0, 2), base_offset=1))
    _, tally = read(tmp_path)
    assert len(tally.damaged) == 1


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\x00", b"\x00\x00", "too short"),
        (b"\x00\x01\x00\x09g", b"\x00\x04", "breaks off"),
        (offset_record("g", "t", 0, 1).key, b"\x00\x63", "value version 99"),
        (classic_group("g").key, b"\x00\x03\x00", "record type 2"),
        (b"\x00\x05\x00\x63g", b"\x00\x00", "record type 5: key"),
        (b"\x00\x0a\x00\x63g", b"\x00\x00", "a group id of 99 bytes"),
    ],
)
def test_a_record_that_cannot_be_understood_is_named(
    tmp_path: Path, key: bytes, value: bytes, reason: str
) -> None:
    good = offset_record("g", "t", 7, 1)
    path = write_segment(tmp_path, 0, 0, batch(good, type(good)(key, value)))
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 7): 1}}
    (damaged,) = tally.damaged
    assert (damaged.file, damaged.position, damaged.offset) == (str(path), 0, 1)
    assert reason in damaged.reason


def test_a_batch_whose_offsets_go_back_is_named(tmp_path: Path) -> None:
    write_segment(
        tmp_path, 0, 0,
        batch(offset_record("g", "t", 0, 5), offset_record("g", "t", 1, 5)),
        batch(offset_record("g", "t", 0, 6), base_offset=1),
    )  # fmt: skip
    contents, tally = read(tmp_path)
    assert shown(contents)["g"]["t", 0] == 5
    assert "offset 1 after 1" in tally.damaged[0].reason


def test_what_a_cleaner_finished_counts_and_what_it_had_not_does_not(tmp_path: Path) -> None:
    first = write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 1)))
    second = write_segment(tmp_path, 0, 1, batch(offset_record("g", "t", 0, 2), base_offset=1))
    write_segment(tmp_path, 0, 2, batch(offset_record("h", "t", 0, 3), base_offset=2))
    swap = first.with_name(first.name + ".swap")
    swap.write_bytes(compacted([(1, offset_record("g", "t", 0, 9))], 1, 1))
    first.rename(first.with_name(first.name + ".deleted"))
    second.with_name(second.name + ".cleaned").write_bytes(b"half")
    contents, tally = read(tmp_path)
    assert shown(contents) == {"g": {("t", 0): 9}, "h": {("t", 0): 3}}
    assert tally.segments == 2


def test_records_below_the_log_start_are_gone(tmp_path: Path) -> None:
    write_segment(
        tmp_path, 0, 0, batch(offset_record("g", "t", 0, 1)),
        batch(offset_record("h", "t", 0, 1), base_offset=1),
    )  # fmt: skip
    text = "0\n2\nother 0 7\n__consumer_offsets 0 1\n"
    (tmp_path / "log-start-offset-checkpoint").write_text(text)
    contents, _ = read(tmp_path)
    assert shown(contents) == {"h": {("t", 0): 1}}


def test_folders_that_are_no_partition_are_passed_over(tmp_path: Path) -> None:
    write_segment(tmp_path, 1, 0, batch(offset_record("g", "t", 0, 1)))
    copy = f"__consumer_offsets-{PARTITION_NUMBER_MAX + 1}"
    renamed = f"__consumer_offsets-1.{'0123456789abcdef' * 2}-delete"
    for name in (renamed, "__consumer_offsets-01", "orders-0", copy):
        (tmp_path / name).mkdir()
    (tmp_path / "__consumer_offsets-2").write_text("a file")
    contents, tally = read(tmp_path)
    assert (shown(contents), tally.partitions) == ({"g": {("t", 0): 1}}, [1])


def test_several_directories_are_one_source_unless_they_share_a_partition(tmp_path: Path) -> None:
    write_segment(tmp_path / "a", 0, 0, batch(offset_record("g", "t", 0, 1)))
    write_segment(tmp_path / "b", 1, 0, batch(offset_record("h", "t", 0, 1)))
    contents, _ = read(tmp_path / "a", tmp_path / "b")
    assert set(contents.groups) == {"g", "h"}
    contents, _ = read(tmp_path / "b" / "__consumer_offsets-1")
    assert set(contents.groups) == {"h"}
    write_segment(tmp_path / "c", 1, 0)
    with pytest.raises(NoOffsets, match="partition 1 is in"):
        read(tmp_path / "b", tmp_path / "c")


def test_a_place_without_offsets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoOffsets, match="no folder __consumer_offsets-N"):
        read(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_backup_that_must_not_be_written_to_is_read(tmp_path: Path) -> None:
    path = write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 1)))
    path.chmod(0o400)
    path.parent.chmod(0o500)
    contents, _ = read(tmp_path)
    assert set(contents.groups) == {"g"}


def test_nothing_in_the_source_is_changed(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, 0, batch(offset_record("g", "t", 0, 1)), b"\x01torn")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    read(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
