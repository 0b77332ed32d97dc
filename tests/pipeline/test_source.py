"""Data source: Spark reads everything in the segments, however they are split."""

import struct
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator.records import decode_record
from pipeline.read.data_source import (
    FORMAT,
    BadOption,
    LogReader,
    RollcallLog,
    requested_tables,
)
from pipeline.read.segments import NoSegments, pieces, segments, with_records_from
from pipeline.tables import TABLES
from storage.api import Record
from storage.batch.record_batch import iter_batches, read_records
from tests.pipeline.logs import KAFKAS_OFFSETS, commit, write_log

pytestmark = pytest.mark.xdist_group("spark")


def read(spark: SparkSession, path: Path, table: str, **options: object):
    reader = spark.read.format(FORMAT).option("table", table)
    for name, value in options.items():
        reader = reader.option(name.replace("_", "."), str(value))
    return reader.load(str(path))


def test_programs_import_the_source_by_its_documented_path() -> None:
    from pipeline.source import RollcallLog as documented

    assert documented is RollcallLog


@pytest.mark.parametrize("piece_bytes", [200, 5_000, 1 << 30])
def test_every_commit_comes_once_wherever_segments_are_cut(
    spark: SparkSession, tmp_path: Path, piece_bytes: int
) -> None:
    for partition in (0, 7):
        records = [commit(f"group-{n % 5}", "orders", n % 3, n) for n in range(400)]
        write_log(tmp_path, partition, [records[n : n + 4] for n in range(0, 400, 4)])

    rows = read(spark, tmp_path, "commits", piece_bytes=piece_bytes).collect()

    found = sorted((row.log_partition, row.log_offset, row.committed_offset) for row in rows)
    assert found == [(p, n, n) for p in (0, 7) for n in range(400)]


def test_what_kafka_wrote_is_all_in_some_table(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    log = KAFKAS_OFFSETS.read_bytes()
    (folder / f"{0:020}.log").write_bytes(log)
    expected = _by_kind(log)

    counts = {
        name: read(spark, folder, name).count()
        for name, table in TABLES.items()
        if table.topic in ("__consumer_offsets", None)
    }

    assert counts["commits"] == expected["commits"] > 0
    assert counts["group_records"] == expected["others"] > 0
    assert counts["group_metadata"] > 0
    assert counts["undecodable"] == 0


def _by_kind(log: bytes) -> dict[str, int]:
    counts = {"commits": 0, "others": 0}
    for at, header in iter_batches(log):
        if header.is_control:
            continue
        for fields in read_records(log, at):
            decoded = decode_record(fields[2], fields[3])
            assert decoded is not None
            is_commit = fields[2] is not None and fields[2][:2] in (b"\0\0", b"\0\1")
            counts["commits" if is_commit else "others"] += 1
    return counts


def test_damage_is_kept_aside_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    unknown = Record(struct.pack(">h", 99) + b"later", b"\0\0")
    short = Record(commit("g", "t", 0, 1).key, b"\0\4\0")
    log = write_log(
        tmp_path, 3, [[commit("g", "t", 0, 1)], [unknown, short], [commit("g", "t", 0, 2)]]
    )
    content = bytearray(log.read_bytes())
    content[-1] ^= 0xFF
    log.write_bytes(bytes(content))

    rows = read(spark, tmp_path, "undecodable").orderBy("position", "log_offset").collect()

    last = len(content) - rows[-1]["size"]
    assert [(r.log_offset, r.record_type) for r in rows] == [(1, 99), (2, 1), (3, None)]
    assert rows[0].key == unknown.key
    assert rows[2].position == last
    assert "checksum" in rows[2].reason
    assert read(spark, tmp_path, "commits").count() == 1


def test_only_the_columns_that_are_asked_for_come(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, 0, [[commit("g", "orders", 2, 7)]])

    rows = read(spark, tmp_path, "commits", columns="committed_offset, group").collect()

    assert [row.asDict() for row in rows] == [{"committed_offset": 7, "group": "g"}]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(BadOption, match="no column lag; the columns are log_partition, "):
        requested_tables({"table": "commits", "columns": "group,lag"})


def test_several_tables_come_out_of_one_pass(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(KAFKAS_OFFSETS.read_bytes() + b"torn")
    names = ["transaction_markers", "group_metadata", "undecodable"]

    together = read(spark, tmp_path, ",".join(names)).collect()

    assert all(sum(of is not None for of in row) == 1 for row in together)
    for name in names:
        alone = read(spark, tmp_path, name).collect()
        assert sorted(str(row[name]) for row in together if row[name]) == sorted(map(str, alone))
    assert together[-1].undecodable.reason == "a batch that was not written whole"


def test_records_come_from_one_offset_up_to_another(spark: SparkSession, tmp_path: Path) -> None:
    for partition in (0, 1, 2):
        log = write_log(tmp_path, partition, [[commit("g", "t", 0, n)] * 4 for n in range(10)])
    spoilt = bytearray(log.read_bytes())
    spoilt[len(spoilt) // 10 - 1] ^= 1
    spoilt[-1] ^= 1
    log.write_bytes(bytes(spoilt))
    offsets = {"begins": '{"0": 6, "2": 4}', "ends": '{"0": 13, "2": 99}'}

    rows = read(spark, tmp_path, "commits", **offsets).collect()
    damage = read(spark, tmp_path, "undecodable", **offsets).collect()

    found = sorted((row.log_partition, row.log_offset) for row in rows)
    assert found == [(0, n) for n in range(6, 13)] + [(2, n) for n in range(4, 36)]
    assert [row.log_offset for row in damage] == [36]


def test_segments_that_were_read_whole_are_not_opened_again(tmp_path: Path) -> None:
    log = write_log(tmp_path, 0, [[commit("g", "t", 0, n)] for n in range(10)])
    write_log(tmp_path, 1, [[commit("g", "t", 0, 1)]])
    for base in (10, 20):
        log.with_name(f"{base:020}.log").write_bytes(b"")
    found = segments(str(tmp_path), "__consumer_offsets")

    def left(begin: int) -> list[tuple[int, int]]:
        some = with_records_from(found, {0: begin})
        return [(piece.partition, piece.base_offset) for piece in some]

    assert left(0) == left(9) == [(0, 0), (0, 10), (0, 20), (1, 0)]
    assert left(10) == left(19) == [(0, 10), (0, 20), (1, 0)]
    assert left(99) == [(0, 20), (1, 0)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"table": "commits,lag"}, "no table 'lag'; the tables are commits, "),
        ({"table": "commits,lag_samples"}, "not from the same topic"),
        ({"table": "commits,undecodable", "columns": "group"}, "columns needs a single table"),
        ({"ends": "17"}, 'ends must be offsets by partition, such as {"0": 17}'),
    ],
)
def test_options_that_say_nothing_are_named(options: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption, match=says):
        LogReader(options)


def test_a_segment_is_cut_at_batches_with_its_index_and_without(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [[commit("g", "t", 0, n)] for n in range(500)])
    (segment,) = segments(str(tmp_path), "__consumer_offsets")

    cut = pieces(segment, 3_000)

    assert len(cut) > 5
    assert [piece.start for piece in cut[1:]] == [piece.end for piece in cut[:-1]]
    content = Path(segment.path).read_bytes()
    for piece in cut:
        read_records(content, piece.start)  # raises where no batch begins


def test_a_path_without_segments_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSegments, match=str(tmp_path)):
        segments(str(tmp_path), "__consumer_offsets")
