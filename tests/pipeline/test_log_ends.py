"""Log ends: what folders and brokers say of the logs that groups read, and what lag that gives."""

import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from cli.commands import cli
from pipeline.derive.measured_lag import measured_health, measured_samples
from pipeline.engine import local_rules
from pipeline.ingest import ingest
from pipeline.job_notes import read_note
from pipeline.jobs import JOBS, JobInput
from pipeline.lake import Lake
from pipeline.local.session import LocalSession, local_session
from pipeline.read.log_ends import LogEndReading, MeasuredLog, summary
from pipeline.read.sources import PipelineSource
from pipeline.read.topic_folders import has_topic_folders, measure_folders
from pipeline.runner import run_job
from pipeline.tables import COMMITS, LOG_ENDS
from storage.api import Record
from storage.batch.record_batch import encode_batch
from tests.pipeline.logs import NOON_MS, commit, write_log
from tests.pipeline.test_local_engine import assert_same

MINUTE = 60_000
DATA_DIR = Path(__file__).with_name("golden") / "data-dir"
"""Of a Kafka 4.3.1: a group read 300 records of `orders` and ended, then 90 more were written. A
topic that it read as well was deleted."""


@pytest.fixture
def local() -> Iterator[LocalSession]:
    with local_session() as session:
        yield session


def segment(root: Path, place: str, base: int, records: int) -> Path:
    """A segment with batches of ten."""
    folder = root / place
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{base:020}.log"
    file.write_bytes(
        b"".join(
            encode_batch([Record(b"k", b"x")] * min(10, records - n), base + n, NOON_MS)
            for n in range(0, records, 10)
        )
    )
    return file


def measured(root: Path) -> dict[str, tuple[int | None, int | None, str | None]]:
    found = measure_folders(root).measured
    return {
        f"{topic}-{partition}": (row.log_start_offset, row.log_end_offset, row.problem)
        for (topic, partition), row in found.items()
    }


# ---------------------------------------------------------------- folders


def test_a_log_ends_after_the_last_whole_batch_of_its_last_segment(tmp_path: Path) -> None:
    segment(tmp_path, "orders-0", 0, 40)
    last = segment(tmp_path, "orders-0", 40, 25)
    segment(tmp_path, "with-dashes-1", 7, 3)
    torn = segment(tmp_path, "torn-0", 0, 30)
    torn.write_bytes(torn.read_bytes()[:-5])
    segment(tmp_path, "rolled-0", 0, 10)
    segment(tmp_path, "rolled-0", 10, 0)
    segment(tmp_path, "new-0", 0, 0)
    (tmp_path / "bare-0").mkdir()
    segment(tmp_path, "gone-0.0123456789abcdef0123456789abcdef-delete", 0, 5)

    assert measured(tmp_path) == {
        "orders-0": (0, 65, None),
        "with-dashes-1": (7, 10, None),
        "torn-0": (0, 20, None),
        "rolled-0": (0, 10, None),
        "new-0": (0, 0, None),
        "bare-0": (None, None, "its folder has no segment"),
    }
    last.unlink()
    assert measured(tmp_path)["orders-0"] == (0, 40, None)


def test_an_index_with_room_for_more_leads_to_the_end(tmp_path: Path) -> None:
    """As a broker that runs has it: some entries, then zeros up to 10 MiB."""
    file = segment(tmp_path, "orders-0", 100, 1_000)
    size = len(file.read_bytes()) // 100
    entries = b"".join(struct.pack(">ii", n * 10 + 9, n * size) for n in range(10, 100, 10))
    with file.with_suffix(".index").open("wb") as index:
        index.write(entries)
        index.truncate(10 << 20)
    assert measured(tmp_path)["orders-0"] == (100, 1_100, None)

    file.with_suffix(".index").write_bytes(os.urandom(4_000))
    assert measured(tmp_path)["orders-0"] == (100, 1_100, None)


def test_a_log_begins_where_the_checkpoint_says(tmp_path: Path) -> None:
    segment(tmp_path, "orders-0", 10, 20)
    segment(tmp_path, "orders-1", 10, 20)
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n2\norders 0 15\norders 1 4\n")
    assert measured(tmp_path) == {"orders-0": (15, 30, None), "orders-1": (10, 30, None)}

    checkpoint.write_text("0\n2\norders 0 fifteen\n")
    assert measured(tmp_path)["orders-0"] == (10, 30, None)


def test_a_segment_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "orders-0" / f"{0:020}.log").mkdir(parents=True)
    segment(tmp_path, "orders-1", 0, 10)

    found = measured(tmp_path)

    assert found["orders-0"] == (None, None, "its folder cannot be read: Is a directory")
    assert found["orders-1"] == (0, 10, None)


def message_of_version_1(offset: int) -> bytes:
    body = struct.pack(">bbqii3s", 1, 0, 1_500_000_000_000, -1, 3, b"old")
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def test_an_end_of_records_before_kafka_0_11_is_unknown(tmp_path: Path) -> None:
    """And not where their segment begins: then no group would lag."""
    old = segment(tmp_path, "orders-0", 0, 0)
    old.write_bytes(b"".join(map(message_of_version_1, range(9))))
    upgraded = segment(tmp_path, "orders-1", 9, 5)
    upgraded.write_bytes(message_of_version_1(8) + upgraded.read_bytes())
    room = segment(tmp_path, "orders-2", 7, 0)
    room.write_bytes(bytes(4_096))  # log.preallocate

    assert measured(tmp_path) == {
        "orders-0": (0, None, "its newest records have Kafka's format before 0.11"),
        "orders-1": (9, 14, None),
        "orders-2": (7, 7, None),
    }


def test_the_time_is_that_of_the_newest_change(tmp_path: Path) -> None:
    file = segment(tmp_path, "orders-0", 0, 10)
    (tmp_path / "replication-offset-checkpoint").touch()
    for path in (tmp_path, *tmp_path.iterdir(), file):
        os.utime(path, (1_000, 1_000))
    assert measure_folders(tmp_path).sampled_at_ms == 1_000_000

    os.utime(tmp_path / "replication-offset-checkpoint", (2_000, 2_000))
    assert measure_folders(tmp_path).sampled_at_ms == 2_000_000


def test_rollcalls_topics_alone_say_nothing_of_others(tmp_path: Path) -> None:
    for topic in ("__consumer_offsets", "__group_lag", "__group_history"):
        segment(tmp_path, f"{topic}-0", 0, 10)
    assert not has_topic_folders(tmp_path)

    segment(tmp_path, "orders-0", 0, 10)
    assert has_topic_folders(tmp_path)
    assert not has_topic_folders(tmp_path / "orders-0")
    assert not has_topic_folders(tmp_path / "not there")


# ---------------------------------------------------------------- what is said of them


def row(partition: int, at_ms: int, end: int | None, problem: str | None = None) -> MeasuredLog:
    return MeasuredLog("orders", partition, at_ms, 0, end, "broker", problem)


def test_places_that_were_not_measured_are_explained() -> None:
    known = {("orders", 0): row(0, NOON_MS, 5)}
    ends = LogEndReading(
        "broker", NOON_MS, known, lambda topics: dict.fromkeys(topics, "topic deleted")
    )

    found = ends.of([("orders", 3), ("orders", 0), ("gone", 1), ("orders", 0)])

    assert [(each.topic, each.partition, each.log_end_offset, each.problem) for each in found] == [
        ("gone", 1, None, "topic deleted"),
        ("orders", 0, 5, None),
        ("orders", 3, None, "no such partition"),
    ]


def test_a_summary_counts_the_newest_measurement() -> None:
    rows = [
        row(0, NOON_MS, 4),
        row(0, NOON_MS + MINUTE, 5),
        row(1, NOON_MS + MINUTE, None, "no leader"),
        row(2, NOON_MS + MINUTE, None, "topic deleted"),
        row(3, NOON_MS + MINUTE, None, "topic deleted"),
    ]

    assert summary([]).text == "log ends: none, no group has committed"
    assert summary(rows).text == (
        "log ends: broker at 2026-05-28T20:27:40.000Z, 1 partition; "
        "3 unknown: 1 no leader, 2 topic deleted; 2 samples since 2026-05-28T20:26:40.000Z"
    )
    assert not summary([row(0, NOON_MS, None, "no leader")]).known


# ---------------------------------------------------------------- the rules


def health(session: LocalSession, offsets: list[int | None], ends: dict[int, int]) -> list[tuple]:
    """`offsets`: one a minute, None deletes it; `ends`: by minute, the log's end."""
    commits = pa.table(
        {
            "group": ["g"] * len(offsets),
            "topic": ["orders"] * len(offsets),
            "partition": pa.array([0] * len(offsets), pa.int32()),
            "log_offset": pa.array(range(len(offsets)), pa.int64()),
            "committed_offset": pa.array(offsets, pa.int64()),
            "tombstone": [offset is None for offset in offsets],
            "effective_at_ms": [NOON_MS + n * MINUTE for n in range(len(offsets))],
        }
    )
    rows = [row(0, NOON_MS + minute * MINUTE, end) for minute, end in ends.items()]
    ends_frame = session.from_arrow(
        pa.Table.from_pylist([each._asdict() for each in rows], schema=LOG_ENDS.schema)
    )
    measured_rows = measured_samples(session.from_arrow(commits), ends_frame)
    found = measured_health(measured_rows, 0, NOON_MS + 20_000 * MINUTE).orderBy("at_ms").collect()
    return [
        ((each["at_ms"] - NOON_MS) // MINUTE, each["verdict"], each["lag"], each["commits"])
        for each in found
    ]


@pytest.mark.parametrize(
    ("offsets", "ends", "expected"),
    [
        ([10, 20], {1: 20}, [(1, "OK", 0, 2)]),
        ([10, 20], {0: 15, 1: 25}, [(0, "OK", 5, 1), (1, "OK", 5, 2)]),
        ([10], {-1: 10, 1: 12}, [(1, "OK", 2, 1)]),  # nothing was committed at the first
        ([*range(10)], {18: 30, 19: 30}, [(18, "OK", 21, 10), (19, "STOP", 21, 10)]),
        ([*range(9)], {99: 30}, [(99, "OK", 22, 9)]),  # too few commits to call it silent
        ([50, 60, 20], {2: 90}, [(2, "REWIND", 70, 3)]),
        ([50, 60, 20, 61], {3: 90}, [(3, "OK", 29, 4)]),
        ([50, 90], {1: 70}, [(1, "OK", 0, 2)]),  # beyond the end: no lag, and not a negative one
        ([50, None], {0: 60, 1: 60}, [(0, "OK", 10, 1)]),  # deleted: no health any more
        ([50, None, 10], {0: 60, 2: 60}, [(0, "OK", 10, 1), (2, "OK", 50, 1)]),  # and no rewind
    ],
)
def test_the_status_at_a_measurement(
    local: LocalSession, offsets: list[int], ends: dict[int, int], expected: list[tuple]
) -> None:
    assert health(local, offsets, ends) == expected


def test_a_stall_and_a_warning_need_ten_measurements(local: LocalSession) -> None:
    stalled = health(local, [5] * 20, dict.fromkeys(range(20), 9))
    behind = health(local, [*range(20)], {n: 9 + 2 * n for n in range(20)})

    assert [verdict for _, verdict, *_ in stalled] == ["OK"] * 9 + ["STALL"] * 11
    assert [verdict for _, verdict, *_ in behind] == ["OK"] * 9 + ["WARN"] * 11


def test_a_partition_without_a_commit_for_a_week_is_dropped(local: LocalSession) -> None:
    week = 7 * 24 * 60

    assert len(health(local, [5], {week - 1: 9, week: 9})) == 1


# ---------------------------------------------------------------- sources, jobs and notes


def kafkas_data_dir(root: Path) -> Path:
    """Commits of a group on `orders` and on a topic that is gone; no samples, no history."""
    write_log(
        root,
        0,
        [[commit("billing", "orders", 0, 10), commit("billing", "gone", 0, 3)],
         [commit("billing", "orders", 1, 4)]],
    )  # fmt: skip
    segment(root, "orders-0", 0, 25)
    segment(root, "orders-1", 0, 4)
    segment(root, "unread-0", 0, 99)
    set_time(root, NOON_MS + MINUTE)
    return root


def set_time(root: Path, at_ms: int) -> None:
    for path in (root, *root.rglob("*")):
        os.utime(path, (at_ms / 1_000, at_ms / 1_000))


def test_jobs_on_a_data_directory_of_kafka(local: LocalSession, tmp_path: Path) -> None:
    root, out = kafkas_data_dir(tmp_path / "kafka"), str(tmp_path / "out")
    job_input = JobInput(PipelineSource(local, str(root)), 0, NOON_MS + 2 * MINUTE, keep=True)

    rows = run_job(local, JOBS["group_health"], job_input, out)
    rows |= run_job(local, JOBS["lag_trend"], job_input, out)

    assert rows == {"partition_health": 2, "group_health": 1, "lag_trend": 2}
    (group,) = local.read.parquet(f"{out}/group_health").collect()
    assert (group["at_ms"], group["total_lag"], group["max_lag"]) == (NOON_MS + MINUTE, 15, 15)
    note = read_note(local, out, "lag_trend")
    assert note is not None
    assert note.log_ends == (
        "log ends: folders at 2026-05-28T20:27:40.000Z, 2 partitions; "
        "1 unknown: no folder of the topic"
    )


def test_runs_build_a_history_in_the_lake(local: LocalSession, tmp_path: Path) -> None:
    root, lake = kafkas_data_dir(tmp_path / "kafka"), Lake(local, str(tmp_path / "lake"))
    first = ingest(PipelineSource(local, str(root)), lake)
    segment(root, "orders-0", 25, 10)
    set_time(root, NOON_MS + 3 * MINUTE)
    second = ingest(PipelineSource(local, str(root)), lake)

    assert (first.rows["log_ends"], second.rows["log_ends"], second.rows["commits"]) == (3, 3, 0)
    source = PipelineSource(local, lake.path)
    job_input = JobInput(source, 0, NOON_MS + 10 * MINUTE, keep=True)
    lags = job_input.measured.where("partition = 0").orderBy("at_ms").collect()
    assert [(each["at_ms"] - NOON_MS, each["lag"]) for each in lags] == [
        (MINUTE, 15),
        (3 * MINUTE, 25),
    ]
    (trend,) = JOBS["lag_trend"].run(job_input)["lag_trend"].where("partition = 0").collect()
    assert trend["slope_per_s"] == pytest.approx(10 / 120)
    assert trend["produced_per_s"] == pytest.approx(10 / 120)
    assert job_input.log_ends_text().endswith("2 samples since 2026-05-28T20:27:40.000Z")


def test_a_source_without_log_ends_says_so(local: LocalSession, tmp_path: Path) -> None:
    root = write_log(tmp_path / "kafka", 0, [[commit("billing", "orders", 0, 10)]]).parents[1]
    out = tmp_path / "out"
    done = CliRunner().invoke(
        cli, ["pipeline", "run", "all", "--engine", "local", "--from", str(root), "--to", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "group_health: not run" in done.output
    note = read_note(local, str(out), "group_health")
    assert note is not None
    assert "with the folders of the topics" in note.empty["group_health"]

    done = CliRunner().invoke(
        cli,
        [
            "pipeline",
            "run",
            "lag_trend",
            "--engine",
            "local",
            "--from",
            str(root),
            "--to",
            str(out),
        ],
    )
    assert done.exit_code == 2


def test_an_empty_table_says_why(local: LocalSession, tmp_path: Path) -> None:
    root, out = kafkas_data_dir(tmp_path / "kafka"), str(tmp_path / "out")
    for folder in ("orders-0", "orders-1"):
        shutil.rmtree(root / folder)
    job_input = JobInput(PipelineSource(local, str(root)), 0, NOON_MS + 2 * MINUTE, keep=True)

    assert run_job(local, JOBS["group_health"], job_input, out)["group_health"] == 0

    note = read_note(local, out, "group_health")
    assert note is not None
    assert "0 partitions; 3 unknown: no folder of the topic" in note.empty["group_health"]


@pytest.mark.xdist_group("spark")
def test_both_engines_agree_on_a_real_kafkas_directory(
    spark: SparkSession, local: LocalSession, tmp_path: Path
) -> None:
    root = tmp_path / "kafka"
    shutil.copytree(DATA_DIR, root)
    commits = PipelineSource(local, str(root)).table(COMMITS).orderBy("log_timestamp_ms")
    at_ms = commits.collect()[-1]["log_timestamp_ms"]
    set_time(root, at_ms + 5 * MINUTE)

    def tables(session: SparkSession | LocalSession) -> dict[str, list]:
        job_input = JobInput(PipelineSource(session, str(root)), 0, at_ms + 9 * MINUTE, keep=True)
        made = {
            name: [row.asDict(recursive=True) for row in frame.collect()]
            for job in ("group_health", "lag_trend", "anomalies")
            for name, frame in JOBS[job].run(job_input).items()
        }
        job_input.forget()
        return made

    ours = tables(local)
    with local_rules(is_local=False):
        expected = tables(spark)

    for name, rows in expected.items():
        assert_same(ours[name], rows, name)
    assert {(each["verdict"], each["lag"]) for each in ours["partition_health"]} == {("STOP", 30)}
    assert [each["total_lag"] for each in ours["group_health"]] == [90]
    assert len(ours["lag_trend"]) == 3
