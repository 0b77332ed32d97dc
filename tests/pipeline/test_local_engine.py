"""Local engine: the same rules, on DuckDB, give the same tables as on Spark."""

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from cli.commands import cli
from pipeline.engine import Window, fn, local_rules
from pipeline.engine_choice import LOCAL_MAX_BYTES, Engine, choose_engine
from pipeline.ingest import ingest
from pipeline.jobs import JOBS, JobInput
from pipeline.lake import Lake
from pipeline.local.session import LocalSession, local_session
from pipeline.read.source_check import CheckedSource, SourceKind
from pipeline.read.sources import PipelineSource
from pipeline.result_tables import RESULTS
from pipeline.runner import run_job
from seams.operator_error import WrongInput
from tests.pipeline.small_world import START_MS, small_world
from tests.pipeline.test_golden import GOLDEN

pytestmark = pytest.mark.xdist_group("spark")

DAY_MS = 86_400_000

Row = Mapping[str, object]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rollcall's topics, and partitions of a real Kafka's log with transactions."""
    folder = small_world(tmp_path_factory.mktemp("world"))
    for partition in (GOLDEN / "before").iterdir():
        shutil.copytree(partition, folder / partition.name, dirs_exist_ok=True)
    return folder


@pytest.fixture
def local() -> Iterator[LocalSession]:
    with local_session() as session:
        yield session


def tables(session: SparkSession | LocalSession, source: Path) -> dict[str, list[Row]]:
    job_input = JobInput(
        PipelineSource(session, str(source)), 0, START_MS + DAY_MS, r"^app-([0-9.]+)", keep=True
    )
    made = {
        name: [row.asDict(recursive=True) for row in frame.collect()]
        for job in JOBS.values()
        for name, frame in job.run(job_input).items()
    }
    job_input.forget()
    return made


def assert_same(ours: list[Row], expected: list[Row], name: str) -> None:
    """In any order. The last bits of a number depend on the order of a sum, so those of an error
    that should be 0 do."""
    assert len(ours) == len(expected), name
    for left, right in zip(sorted(ours, key=_exact), sorted(expected, key=_exact), strict=True):
        assert left.keys() == right.keys()
        for column, value in left.items():
            there = right[column]
            if column == "evidence":
                value, there = json.loads(str(value)), json.loads(str(there))
            if isinstance(value, float) and isinstance(there, float):
                assert math.isclose(value, there, rel_tol=1e-9, abs_tol=1e-6), (name, left, right)
            else:
                assert value == there, (name, left, right)


def _exact(row: Row) -> str:
    """What is not computed from a sum: enough to tell rows apart."""
    inexact = {"evidence"} | {name for name, value in row.items() if isinstance(value, float)}
    return json.dumps(
        {name: value for name, value in row.items() if name not in inexact}, sort_keys=True
    )


def test_every_table_of_every_job_is_the_same(
    spark: SparkSession, local: LocalSession, world: Path
) -> None:
    ours = tables(local, world)
    with local_rules(is_local=False):
        expected = tables(spark, world)

    assert ours.keys() == expected.keys() == RESULTS.keys()
    for name, rows in expected.items():
        assert rows, f"{name} is empty: nothing was compared"
        assert_same(ours[name], rows, name)


EDGES = pa.table(
    {
        "k": pa.array([1, 1, 2, 3, 3], pa.int64()),
        "n": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "big": pa.array([2**63 - 1, 5, -(2**63), None, 7], pa.int64()),
        "text": ["app-1.2-x", "none", None, "", "app-9-"],
        "said": ['{"a": 1, "m": [{"who": {"id": "c"}}]}', '{"m": []}', "{}", None, '{"a": null}'],
        "list": pa.array([[3, None, 1], [], None, [2], [5, 4]], pa.list_(pa.int64())),
    }
)


def edges(rows: DataFrame) -> list[list[Row]]:
    order = Window.partitionBy("k").orderBy("n")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    wanted = "array<struct<who:struct<id:string,host:string>>>"
    single = rows.select(
        "n",
        fn.try_subtract("big", "n").alias("less"),
        fn.regexp_extract("text", "^app-(?<v>[0-9.]+)-", 1).alias("version"),
        fn.get_json_object("said", "$.a").alias("a"),
        fn.from_json(fn.get_json_object("said", "$.m"), wanted).alias("m"),
        fn.sort_array("list").alias("sorted"),
        fn.array_sort("list").alias("array_sorted"),
        fn.get("list", fn.lit(0)).alias("first"),
        fn.get("list", fn.lit(9)).alias("beyond"),
        fn.size("list").alias("size"),
        fn.aggregate("list", fn.lit(0).cast("long"), lambda all_, each: all_ + each).alias("sum"),
        fn.to_json(fn.struct("n", "text")).alias("json"),
        fn.to_date(fn.timestamp_millis(fn.col("n") * 86_400_000 - 1)).cast("string").alias("day"),
        fn.last("big", ignorenulls=True).over(earlier).alias("before"),
        fn.concat_ws(" ", "text", fn.lit("x")).alias("words"),
        fn.greatest("big", fn.col("n")).alias("greatest"),
        (fn.col("n") / 0.5).alias("twice"),
        fn.floor(fn.col("n") / 2).alias("half"),
    )
    grouped = rows.groupBy("k").agg(
        fn.try_sum("big").alias("sum"),
        fn.array_sort(fn.collect_set("big")).alias("set"),
        fn.max_by("text", "n").alias("newest"),
        fn.max(fn.struct("n", "text")).alias("largest"),
        fn.percentile("n", 0.95).alias("p95"),
        fn.regr_slope("n", "n").alias("slope"),
        fn.regr_sxx("n", "n").alias("sxx"),
        fn.count_if(fn.col("big") > 0).alias("positive"),
        fn.count_distinct("text").alias("texts"),
        fn.median("n").alias("middle"),
    )
    return [
        [row.asDict(recursive=True) for row in frame.orderBy(key).collect()]
        for frame, key in ((single, "n"), (grouped, "k"))
    ]


def test_functions_mean_the_same_at_the_edges(spark: SparkSession, local: LocalSession) -> None:
    ours = edges(local.from_arrow(EDGES))
    with local_rules(is_local=False):
        expected = edges(spark.createDataFrame(EDGES))

    assert ours == expected


def test_a_field_has_its_own_name_and_a_star_is_all_of_them(local: LocalSession) -> None:
    rows = local.from_arrow(pa.table({"s": [{"a": 1, "t": {"b": 2, "c": 3}}]}))

    found = rows.select("s.a", "s.t.*").where("c = 3")

    assert found.columns == ["a", "b", "c"]
    assert [tuple(row) for row in found.collect()] == [(1, 2, 3)]


def test_groups_are_evaluated_by_python(local: LocalSession) -> None:
    from pyspark.sql.types import LongType, StringType, StructType

    rows = local.from_arrow(pa.table({"k": ["a", "b", "a", None], "n": [1, 2, 3, 4]}))
    schema = StructType().add("k", StringType()).add("total", LongType())

    def total(group: pa.Table) -> pa.Table:
        numbers = group.column("n").to_pylist()
        return pa.table({"k": group.column("k").slice(0, 1), "total": [sum(numbers)]})

    found = rows.groupBy("k").applyInArrow(total, schema).orderBy("k").collect()

    assert [tuple(row) for row in found] == [(None, 4), ("a", 4), ("b", 2)]


def test_a_lake_that_it_landed_says_what_the_log_says(
    local: LocalSession, world: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    first = ingest(PipelineSource(local, str(world)), Lake(local, str(lake)))
    again = ingest(PipelineSource(local, str(world)), Lake(local, str(lake)))

    assert first.rows["commits"] > 700
    assert set(again.rows.values()) == {0}
    from_log, from_lake = tables(local, world), tables(local, lake)
    for name, rows in from_log.items():
        assert_same(from_lake[name], rows, name)


def test_spark_reads_a_lake_and_results_of_the_local_engine(
    spark: SparkSession, world: Path, tmp_path: Path
) -> None:
    lake, out = str(tmp_path / "lake"), str(tmp_path / "out")
    with local_session() as local:
        landed = ingest(PipelineSource(local, str(world)), Lake(local, lake))
        job_input = JobInput(PipelineSource(local, lake), 0, START_MS + DAY_MS)
        run_job(local, JOBS["commit_rate"], job_input, out)

    counted = {name: Lake(spark, lake).count(name, _run(lake)) for name in landed.rows}
    assert counted == landed.rows
    job_input = JobInput(PipelineSource(spark, lake), 0, START_MS + DAY_MS)
    before = spark.read.parquet(f"{out}/commit_rate").count()
    assert run_job(spark, JOBS["commit_rate"], job_input, out)["commit_rate"] == before


def _run(lake: str) -> str:
    (run,) = json.loads((Path(lake) / "manifest.json").read_text())["runs"]
    return str(run)


def run(*words: str) -> "tuple[int, str, str]":
    done = CliRunner().invoke(cli, ["pipeline", *words], standalone_mode=True)
    return done.exit_code, done.stdout, done.stderr


def test_the_commands_need_no_java(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("pipeline.command.start_session", fail)
    monkeypatch.setattr("pipeline.command.check_java", fail)
    out, page = tmp_path / "out", tmp_path / "page.html"
    local = ["--engine", "local", "--from"]

    code, lines, progress = run("run", "all", *local, str(world), "--to", str(out))
    assert (code, "\naudit: 1 rows\n" in lines) == (0, True), progress
    assert progress.startswith("engine: local (as asked)\n")
    code, _, _ = run("report", *local, str(out), "--to", str(page), "--csv", str(tmp_path / "csv"))
    assert code == 0
    assert "billing" in page.read_text()
    assert (tmp_path / "csv" / "audit.csv").read_text().count("\n") == 2
    code, lines, _ = run("as-of", *local, str(world), "--at", str(START_MS + DAY_MS), "--group",
                         "billing")  # fmt: skip
    assert (code, "orders" in lines) == (0, True)


SEGMENTS = CheckedSource(SourceKind.SEGMENTS, LOCAL_MAX_BYTES[SourceKind.SEGMENTS], None)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


@pytest.mark.usefixtures("no_spark")
def test_auto_takes_spark_from_a_size_on() -> None:
    larger = SEGMENTS._replace(size=(SEGMENTS.size or 0) + 1)

    assert choose_engine(Engine.AUTO, SEGMENTS).engine is Engine.LOCAL
    assert choose_engine(Engine.AUTO, larger).engine is Engine.SPARK
    assert choose_engine(Engine.LOCAL, larger).engine is Engine.LOCAL
    assert choose_engine(Engine.SPARK, SEGMENTS).engine is Engine.SPARK
    assert choose_engine(Engine.AUTO, SEGMENTS).line() == (
        "engine: local (256 MiB of segments, the local engine's limit is 256 MiB)"
    )


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("options", "source", "why"),
    [
        ({"master": "local[2]"}, SEGMENTS, "--master"),
        ({"remote": "sc://h"}, SEGMENTS, "--remote"),
        ({"settings": {"spark.x": "1"}}, SEGMENTS, "--set"),
        ({"needs_kafka": True}, SEGMENTS, "--acknowledge"),
        ({}, CheckedSource(SourceKind.BROKER, None, None), "a broker"),
        ({}, CheckedSource(SourceKind.REMOTE, None, None), "only Java"),
    ],
)
def test_what_only_spark_does_is_said(
    options: Mapping[str, object], source: CheckedSource, why: str
) -> None:
    chosen = choose_engine(Engine.AUTO, source, **options)

    assert chosen.engine is Engine.SPARK
    assert why in chosen.why
    with pytest.raises(WrongInput, match=why):
        choose_engine(Engine.LOCAL, source, **options)
