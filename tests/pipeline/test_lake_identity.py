"""Lake identity: a lake takes the logs that it was landed from, and no others.

The rule without Spark; then `ingest` of another cluster, and of a data directory that was wiped and
filled again under the same cluster id.
"""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from cli.commands import cli
from pipeline.lake import Lake
from pipeline.read.identity import CLOCK_SKEW_MS, LogBeginning, another_cluster, another_log
from pipeline.read.segments import cluster_id_of
from pipeline.tables import COMMITS
from tests.pipeline.logs import NOON_MS, commit, write_log

pytestmark = pytest.mark.xdist_group("spark")

READ_MS = NOON_MS + 60_000
BEFORE = LogBeginning(10, NOON_MS, NOON_MS + 5)


def why(
    now: LogBeginning | None,
    *,
    end: int = 100,
    before: LogBeginning | None = BEFORE,
    read_ms: int | None = READ_MS,
) -> str | None:
    return another_log("t", 3, read=100, read_ms=read_ms, end=end, before=before, now=now)


def test_the_same_log_is_taken_however_it_was_cleaned() -> None:
    assert why(BEFORE) is None
    assert why(BEFORE, end=90) is None  # a replica that is behind
    assert why(LogBeginning(10, NOON_MS + 3, NOON_MS + 3)) is None  # cleaned: fewer of its records
    assert why(LogBeginning(60, NOON_MS + 9, NOON_MS + 9)) is None  # cleaned, or retention
    assert why(LogBeginning(400, READ_MS + 10**9, READ_MS + 10**9)) is None  # nothing that was read
    assert why(None) is None
    assert why(LogBeginning(0, 1, 1), before=None, read_ms=None) is None  # of version 1


def test_another_log_is_noticed_by_its_beginning_and_its_end() -> None:
    later = READ_MS + CLOCK_SKEW_MS + 1
    assert "ends at offset 40" in str(why(LogBeginning(0, later, later), end=40))
    assert "ends at offset 0" in str(why(None, end=0))
    assert "ends at offset 40" in str(why(LogBeginning(0, 1, 1), end=40, before=None, read_ms=None))
    assert "begins at offset 0, and began at 10" in str(why(LogBeginning(0, NOON_MS, NOON_MS)))
    assert "begins with a record of" in str(why(LogBeginning(10, NOON_MS + 6, NOON_MS + 6)))
    assert "has at offset 50 a record of" in str(why(LogBeginning(50, later, later)))


def test_a_cluster_is_known_by_its_id() -> None:
    assert another_cluster("a", "a") is None
    assert another_cluster(None, "a") is None
    assert another_cluster("a", None) is None
    assert "cluster a, this is the cluster b" in str(another_cluster("a", "b"))


def test_the_cluster_id_is_that_of_the_data_directory(tmp_path: Path) -> None:
    log = write_log(tmp_path, 0, [[commit("g", "t", 0, 1)]])
    assert cluster_id_of(str(tmp_path)) is None
    identify(tmp_path, "abc=d")

    for place in (tmp_path, log.parent, log):
        assert cluster_id_of(str(place)) == "abc=d"


def identify(data_dir: Path, cluster_id: str) -> None:
    (data_dir / "meta.properties").write_text(f"#comment\ncluster.id={cluster_id}\nversion=1\n")


def rollcall(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["pipeline", *map(str, words)])


def landed(spark: SparkSession, lake: Path, cluster: str | None = None) -> list[int]:
    rows = Lake(spark, str(lake), cluster).table(COMMITS).select("committed_offset").collect()
    return sorted(row.committed_offset for row in rows)


def test_another_cluster_is_refused_and_has_a_name_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, other, lake = tmp_path / "first", tmp_path / "other", tmp_path / "lake"
    write_log(first, 0, [[commit("g", "t", 0, n)] for n in range(5)])
    write_log(other, 0, [[commit("g", "t", 0, 100 + n)] for n in range(9)])
    identify(first, "one")
    identify(other, "two")
    assert rollcall("run", "ingest", "--from", first, "--to", lake).exit_code == 0

    refused = rollcall("run", "ingest", "--from", other, "--to", lake)
    named = rollcall("run", "ingest", "--from", other, "--to", lake, "--as", "staging")

    assert refused.exit_code == 1
    assert "the cluster one, this is the cluster two" in refused.stderr.splitlines()[-1]
    assert "--as NAME" in refused.stderr.splitlines()[-1]
    assert named.exit_code == 0, named.output
    assert landed(spark, lake) == [0, 1, 2, 3, 4]
    assert landed(spark, lake, "staging") == [100 + n for n in range(9)]
    shown = rollcall("as-of", "--from", lake, "--as", "staging", "--at", "2100-01-01", "--json")
    assert json.loads(shown.stdout)["groups"][0]["offsets"][0]["offset"] == 108
    for words, says in (
        (["as-of", "--from", lake, "--as", "x", "--at", "2100-01-01"], "the clusters staging"),
        (["run", "ingest", "--from", first, "--to", lake, "--as", "../x"], "is no name"),
    ):
        wrong = rollcall(*words)
        assert (wrong.exit_code, says in wrong.stderr) == (2, True), wrong.stderr


def test_a_directory_that_was_wiped_and_filled_again_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, lake = tmp_path / "data", tmp_path / "lake"
    write_log(data, 0, [[commit("g", "t", 0, n)] for n in range(5)])
    identify(data, "one")
    assert rollcall("run", "ingest", "--from", data, "--to", lake).exit_code == 0
    shutil.rmtree(data)
    later = write_log(data, 0, [[commit("g", "t", 0, n)] for n in range(9)])
    identify(data, "one")  # as a Kafka that is formatted with the same id
    content = later.read_bytes()
    size = len(content) // 9
    again = b"".join(
        (n - 2).to_bytes(8) + content[n * size + 8 : (n + 1) * size] for n in range(2, 9)
    )
    later.write_bytes(again)  # offsets from 0 on, with times after those that were landed

    refused = rollcall("run", "ingest", "--from", data, "--to", lake)

    assert refused.exit_code == 1
    assert "begins with a record of" in refused.stderr.splitlines()[-1]
    assert landed(spark, lake) == [0, 1, 2, 3, 4]


def test_a_lake_of_version_1_is_read_and_added_to(spark: SparkSession, tmp_path: Path) -> None:
    data, lake = tmp_path / "data", tmp_path / "lake"
    write_log(data, 0, [[commit("g", "t", 0, n)] for n in range(5)])
    identify(data, "one")
    assert rollcall("run", "ingest", "--from", data, "--to", lake).exit_code == 0
    said = json.loads((lake / "manifest.json").read_text())
    assert (said["version"], said["cluster_id"]) == (2, "one")
    old = {"version": 1, "runs": said["runs"], "read": said["read"]}
    (lake / "manifest.json").write_text(json.dumps(old))
    assert landed(spark, lake) == [0, 1, 2, 3, 4]
    write_log(data, 0, [[commit("g", "t", 0, n)] for n in range(7)])

    assert rollcall("run", "ingest", "--from", data, "--to", lake).exit_code == 0

    assert landed(spark, lake) == [0, 1, 2, 3, 4, 5, 6]
    assert json.loads((lake / "manifest.json").read_text())["cluster_id"] == "one"


def test_strict_fails_after_everything_else_was_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, lake, out = tmp_path / "data", tmp_path / "lake", tmp_path / "out"
    log = write_log(data, 0, [[commit("g", "t", 0, n)] for n in range(9)])
    content = bytearray(log.read_bytes())
    content[4 * len(content) // 9 + 2] ^= 1  # a base offset
    log.write_bytes(content)

    ingested = rollcall("run", "ingest", "--from", data, "--to", lake, "--strict")
    ran = rollcall("run", "offsets_as_of", "--from", data, "--to", out, "--strict")
    lenient = rollcall("run", "offsets_as_of", "--from", lake, "--to", out)

    assert landed(spark, lake) == [0, 1, 2, 3, 5, 6, 7, 8]
    for failed in (ingested, ran):
        assert failed.exit_code == 1
        assert "could not be decoded" in failed.stderr.splitlines()[-1]
    assert list((out / "offsets_as_of").glob("dt=*/*.parquet"))
    assert lenient.exit_code == 0
