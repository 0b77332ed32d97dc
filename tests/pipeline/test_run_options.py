"""Options of a run: filters, incremental days, the summary, Delta tables; on the local engine."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from cli.commands import cli
from pipeline.incremental import STATE_FILE, first_day_ms
from pipeline.lake_maintenance import compact_lake
from storage.batch.record_batch import encode_batch
from tests.pipeline.logs import NOON_MS, commit
from tests.pipeline.small_world import NASTY, START_MS, small_world

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_world(tmp_path_factory.mktemp("world"))


def run(job: str, source: Path, out: Path, *options: object) -> Result:
    words = ["pipeline", "run", job, "--engine", "local", "--from", source, "--to", out]
    done = CliRunner().invoke(cli, list(map(str, [*words, *options])))
    assert done.exit_code == 0, done.output
    return done


def rows(folder: Path, name: str) -> pa.Table:
    return ds.dataset(folder / name, format="parquet", partitioning="hive").to_table()


def test_a_group_and_a_topic_are_what_they_are_among_all(world: Path, tmp_path: Path) -> None:
    span = ["--until", START_MS + DAY_MS]
    run("all", world, tmp_path / "all", *span)
    run("all", world, tmp_path / "some", *span, "--group", NASTY, "--topic", "pages")

    for name in ("commit_rate", "partition_health", "lag_trend", "group_health"):
        every, some = (rows(tmp_path / folder, name).to_pylist() for folder in ("all", "some"))
        expected = [row for row in every if row["group"] == NASTY]
        assert sorted(some, key=str) == sorted(expected, key=str)
        assert 0 < len(some) < len(every)


def test_the_summary_says_what_was_done(world: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    run("audit", world, tmp_path / "out", "--summary", summary, "--until", START_MS + DAY_MS)

    said = json.loads(summary.read_text())
    assert (said["job"], said["from"], said["engine"]) == ("audit", str(world), "local")
    assert said["rows"] == {"offset_suspects": 2, "audit": 1}
    assert said["seconds_by_job"].keys() == {"audit"}
    assert said["until"] == "2026-05-29T00:00:00.000Z"


def test_a_run_replaces_the_days_of_its_span_in_delta_tables(world: Path, tmp_path: Path) -> None:
    out, delta = tmp_path / "out", tmp_path / "delta"
    for _ in range(2):
        run("commit_rate", world, out, "--delta", delta, "--until", START_MS + DAY_MS)

    table = DeltaTable(str(delta / "commit_rate"))
    assert table.version() == 1
    assert pa.table(table.to_pyarrow_table()).num_rows == rows(out, "commit_rate").num_rows == 362
    later = ["--since", START_MS + DAY_MS, "--until", START_MS + 2 * DAY_MS]
    run("commit_rate", world, out, "--delta", delta, *later)
    assert DeltaTable(str(delta / "commit_rate")).to_pyarrow_table().num_rows == 362


def land(data: Path, lake: Path, *days: int) -> None:
    """A commit on each of these days, and its ingest."""
    folder = data / "__consumer_offsets-0"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{0:020}.log"
    end = log.stat().st_size if log.exists() else 0
    with log.open("ab") as file:
        for number, day in enumerate(days):
            at = NOON_MS + day * DAY_MS
            file.write(encode_batch([commit("g", "t", 0, day, at)], end + number, at))
    run("ingest", data, lake)


def test_an_incremental_run_makes_only_the_days_that_changed(tmp_path: Path) -> None:
    data, lake, out = tmp_path / "data", tmp_path / "lake", tmp_path / "out"

    def made(until_day: int) -> set[str]:
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
        run("commit_rate", lake, out, "--incremental", "--until", NOON_MS + until_day * DAY_MS)
        new = [path for path in out.rglob("*.parquet") if path not in before]
        return {path.parent.name for path in new if "_" not in path.parent.name}

    land(data, lake, 0, 1, 2, 3)
    assert made(4) == {"dt=2026-05-28", "dt=2026-05-29", "dt=2026-05-30", "dt=2026-05-31"}
    assert made(4) == set(), "the last day, 2026-06-01, has no rows"
    land(data, lake, 2, 5)
    assert made(6) == {"dt=2026-05-30", "dt=2026-05-31", "dt=2026-06-02"}
    run("commit_rate", lake, tmp_path / "whole", "--until", NOON_MS + 6 * DAY_MS)
    everything = rows(tmp_path / "whole", "commit_rate").to_pylist()
    assert sorted(rows(out, "commit_rate").to_pylist(), key=str) == sorted(everything, key=str)

    compact_lake(str(lake))
    assert first_day_ms("commit_rate", str(lake), str(out)) == NOON_MS // DAY_MS * DAY_MS
    assert first_day_ms("audit", str(lake), str(out)) == 0


def test_incremental_needs_a_lake_and_a_sound_state(world: Path, tmp_path: Path) -> None:
    words = ["pipeline", "run", "audit", "--incremental", "--to", str(tmp_path / "out"), "--from"]
    refused = CliRunner().invoke(cli, [*words, str(world)])
    assert (refused.exit_code, "needs a lake" in refused.output) == (2, True)

    lake, out = tmp_path / "lake", tmp_path / "out"
    run("ingest", world, lake)
    out.mkdir(exist_ok=True)
    (out / STATE_FILE).write_text('{"audit": 7}')
    refused = CliRunner().invoke(cli, [*words, str(lake)])
    assert (refused.exit_code, "is damaged" in refused.output) == (2, True)


def test_what_ingest_cannot_do_is_refused(world: Path, tmp_path: Path) -> None:
    words = ["pipeline", "run", "ingest", "--from", world, "--to", tmp_path, "--group", "g"]
    refused = CliRunner().invoke(cli, list(map(str, words)))

    assert (refused.exit_code, "ingest has no --group" in refused.output) == (2, True)
