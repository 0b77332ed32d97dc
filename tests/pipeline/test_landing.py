"""Landing: each record is landed once, however often a run starts, dies or starts again."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.ingest import ingest
from pipeline.lake import Lake, NoLake
from pipeline.read.sources import PipelineSource, RemoteLog
from pipeline.tables import COMMITS, UNDECODABLE
from tests.pipeline.logs import commit, write_log

pytestmark = pytest.mark.xdist_group("spark")

TOPIC = "__consumer_offsets"


def offsets(lake: Lake) -> list[tuple[int, int]]:
    rows = lake.table(COMMITS).select("log_partition", "log_offset").collect()
    return sorted(map(tuple, rows))


def test_runs_take_up_where_the_last_one_ended(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    batches = [[commit("g", "t", n % 3, n)] for n in range(30)]
    write_log(tmp_path, 0, batches[:10])
    write_log(tmp_path, 5, batches[:4])
    first = ingest(PipelineSource(spark, str(tmp_path)), lake)
    again = ingest(PipelineSource(spark, str(tmp_path)), lake)
    write_log(tmp_path, 0, batches)
    third = ingest(PipelineSource(spark, str(tmp_path)), lake)

    assert [run.rows["commits"] for run in (first, again, third)] == [14, 0, 20]
    assert third.ends[TOPIC] == {0: 30, 5: 4}
    assert offsets(lake) == [(0, n) for n in range(30)] + [(5, n) for n in range(4)]


def test_what_a_dead_run_left_is_never_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, 0, [[commit("g", "t", 0, n)] for n in range(8)])
    lake = Lake(spark, str(tmp_path / "lake"))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.lake.replace_text", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(PipelineSource(spark, str(tmp_path)), lake)
    assert list((tmp_path / "lake" / "commits").glob("dt=*/run=*/*.parquet"))
    with pytest.raises(NoLake):
        lake.table(COMMITS)
    ingest(PipelineSource(spark, str(tmp_path)), lake)

    assert offsets(lake) == [(0, n) for n in range(8)]


def test_what_the_log_forgets_stays_landed(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "lake"))
    log = write_log(tmp_path, 0, [[commit("g", "t", 0, n)] for n in range(8)])
    ingest(PipelineSource(spark, str(tmp_path)), lake)
    content = log.read_bytes()
    log.write_bytes(content[len(content) // 8 * 7 :])  # as the cleaner would: the newest alone

    ingest(PipelineSource(spark, str(tmp_path)), lake)

    assert len(offsets(lake)) == 8


def test_a_source_ends_where_its_log_ended_when_it_was_opened(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [[commit("g", "t", 0, n)] for n in range(9)]
    write_log(tmp_path, 0, batches[:6])
    source = PipelineSource(spark, str(tmp_path))
    assert source.log(TOPIC).ends == {0: 6}
    write_log(tmp_path, 0, batches)

    assert source.table(COMMITS).count() == 6


def test_hadoops_file_systems_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    log = write_log(tmp_path, 4, [[commit("g", "t", 0, n)] for n in range(9)])
    log.write_bytes(log.read_bytes() + b"torn")
    remote = RemoteLog(spark, f"file:{tmp_path}", TOPIC)
    local = PipelineSource(spark, str(tmp_path)).log(TOPIC)

    assert remote.ends == local.ends == {4: 9}
    for table in (COMMITS, UNDECODABLE):
        there, here = (sorted(map(str, log.rows(table, {}).collect())) for log in (remote, local))
        assert [row.replace(f"file:{tmp_path}", str(tmp_path)) for row in there] == here
        assert here


def test_a_folder_that_holds_no_lake_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"version": 99, "runs": [], "read": {}}')

    with pytest.raises(NoLake, match="version 99"):
        Lake(spark, str(tmp_path)).manifest()


def test_a_lake_has_those_topics_that_its_source_had(spark: SparkSession, tmp_path: Path) -> None:
    # A Kafka keeps no history: then rebalances are told by generations, of a lake as of a log.
    write_log(tmp_path / "data", 0, [[commit("g", "t", 0, 1)]])
    ingest(PipelineSource(spark, str(tmp_path / "data")), Lake(spark, str(tmp_path / "lake")))

    for where in ("data", "lake"):
        source = PipelineSource(spark, str(tmp_path / where))
        assert source.has(TOPIC)
        assert not source.has("__group_history")
