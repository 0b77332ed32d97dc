"""Stored formats: a lake and result tables of 284470a are read, and added to, by today's pipeline.

What they hold and what that commit read of them was kept by tests/compatibility/make_fixtures.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from cli.commands import cli
from pipeline.lake import Lake
from pipeline.results import Results
from pipeline.runner import TimeSpan
from pipeline.tables import TABLES
from tests.compatibility.answers import missing
from tests.compatibility.lake import checksum, table_answers
from tests.compatibility.versions import expected, unpack

pytestmark = pytest.mark.xdist_group("spark")

LATER_COLUMNS = {
    "group_events": ("principal",),
    "audit": ("principal",),
    "lag_samples": ("log_end_offset",),
    "lag_trend": ("deleted_ms",),
    "rebalances": ("group_type",),
}


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    return expected("lake")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return unpack("lake", tmp_path)


def rollcall(*words: str | Path) -> str:
    done = CliRunner().invoke(cli, ["pipeline", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def rows_of(name: str, frame: DataFrame) -> dict[str, object]:
    """As in the files: without the day that folders stand for, and later columns, all null."""
    rows = [row.asDict(recursive=True) for row in frame.drop("dt").collect()]
    for row in rows:
        for later in LATER_COLUMNS.get(name, ()):
            assert row.pop(later) is None
    return checksum(rows)


def test_the_fixture_is_what_was_written(written: Path, said: dict[str, Any]) -> None:
    assert table_answers(written / "lake", written / "results") == said["tables"]
    assert said["tables"]["lake"]["commits"]["rows"] > 100


def test_every_table_of_the_lake_is_read(
    spark: SparkSession, written: Path, said: dict[str, Any]
) -> None:
    lake = Lake(spark, str(written / "lake"))
    found = {name: rows_of(name, lake.table(TABLES[name])) for name in said["tables"]["lake"]}

    assert found == said["tables"]["lake"]


def test_every_result_table_is_read(
    spark: SparkSession, written: Path, said: dict[str, Any]
) -> None:
    results = Results(spark, str(written / "results"), TimeSpan(0, said["at_ms"]))
    wanted = said["tables"]["results"]

    assert set(results.names) == set(wanted)
    assert {name: rows_of(name, results.table(name)) for name in wanted} == wanted


def test_the_offsets_as_of_an_instant_are_the_same(
    spark: SparkSession, written: Path, said: dict[str, Any]
) -> None:
    assert spark is not None  # the command uses the session that runs
    shown = rollcall("as-of", "--from", written / "lake", "--at", str(said["until_ms"]), "--json")

    assert list(missing(said["as_of"], json.loads(shown))) == []


def test_a_later_run_on_the_directory_lands_only_what_is_new(
    spark: SparkSession, written: Path, said: dict[str, Any], tmp_path: Path
) -> None:
    assert spark is not None
    lake = written / "lake"
    # `killed` is the directory that was landed, after more writes.
    later = ingest(unpack("killed", tmp_path / "killed"), lake)

    assert later["commits"] > 100
    assert later["lag_samples"] > 100
    table = Lake(spark, str(lake)).table(TABLES["commits"])
    places = table.select("log_partition", "log_offset")
    assert places.distinct().count() == places.count()
    assert places.count() == said["tables"]["lake"]["commits"]["rows"] + later["commits"]


def ingest(data_dir: Path, lake: Path) -> dict[str, int]:
    """The rows of each table that it landed."""
    shown = rollcall("run", "ingest", "--from", data_dir, "--to", lake)
    lines = [line.split() for line in shown.splitlines() if line.endswith(" rows")]
    return {table.removesuffix(":"): int(count) for table, count, _ in lines}
