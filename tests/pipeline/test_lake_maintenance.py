"""Lake maintenance: merging runs loses no row, and neither does a kill in the middle."""

import json
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cli.commands import cli
from pipeline import lake_maintenance
from pipeline.ingest import ingest
from pipeline.lake import Lake, NoLake, read_manifest
from pipeline.lake_maintenance import compact_lake, expire_lake
from pipeline.local.session import local_session
from pipeline.read.sources import PipelineSource
from pipeline.tables import COMMITS
from pipeline.write_lock import WriterBusy, one_writer
from seams.operator_error import WrongInput
from storage.batch.record_batch import encode_batch
from tests.pipeline.logs import NOON_MS, commit

DAY_MS = 86_400_000


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three runs: of two days, of the second day, and of a third day."""
    folder = tmp_path / "data" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    offset = 0
    for days in ([0, 1], [1], [2]):
        with (folder / f"{0:020}.log").open("ab") as log:
            for day in days:
                at = NOON_MS + day * DAY_MS
                records = [commit("g", "t", n, offset + n, at) for n in range(5)]
                log.write(encode_batch(records, offset, at))
                offset += len(records)
        with local_session() as session:
            ingest(
                PipelineSource(session, str(tmp_path / "data")), Lake(session, str(tmp_path / "l"))
            )
    return tmp_path / "l"


def offsets(lake: Path) -> list[int]:
    with local_session() as session:
        rows = Lake(session, str(lake)).table(COMMITS).collect()
    return sorted(row["log_offset"] for row in rows)


def files(lake: Path) -> list[Path]:
    return sorted((lake / "commits").rglob("*.parquet"))


def test_a_compacted_lake_has_the_same_rows_in_one_file_for_each_day(lake: Path) -> None:
    before = read_manifest(None, str(lake))
    assert before is not None

    done = compact_lake(str(lake))

    after = read_manifest(None, str(lake))
    assert after is not None
    assert (done.runs, len(after.runs)) == (3, 1)
    assert after.read == before.read
    assert offsets(lake) == list(range(20))
    assert len(files(lake)) == 4 + 3, "the files of replaced runs stay for readers"
    again = compact_lake(str(lake))
    assert again.removed > 0
    assert len(files(lake)) == 3
    assert offsets(lake) == list(range(20))


def test_a_run_after_a_compaction_is_one_more(lake: Path, tmp_path: Path) -> None:
    compact_lake(str(lake))
    log = tmp_path / "data" / "__consumer_offsets-0" / f"{0:020}.log"
    with log.open("ab") as file:
        file.write(encode_batch([commit("g", "t", 0, 99, NOON_MS)], 20, NOON_MS))

    with local_session() as session:
        ingest(PipelineSource(session, str(tmp_path / "data")), Lake(session, str(lake)))

    manifest = read_manifest(None, str(lake))
    assert manifest is not None
    assert [run[:6] for run in manifest.runs] == ["000004", "000005"]
    assert offsets(lake) == list(range(21))


def test_a_compaction_that_is_cut_off_changes_nothing(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (lake / "manifest.json").read_text()

    def cut_off(*_: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(lake_maintenance, "write_manifest", cut_off)
        with pytest.raises(OSError, match="No space"):
            compact_lake(str(lake))

    assert (lake / "manifest.json").read_text() == before
    assert offsets(lake) == list(range(20))
    assert compact_lake(str(lake)).removed > 0
    assert offsets(lake) == list(range(20))


def test_an_older_run_without_a_column_is_merged(lake: Path) -> None:
    first = files(lake)[1]
    pq.write_table(pq.read_table(first, partitioning=None).drop_columns(["topic_id"]), first)

    compact_lake(str(lake))

    assert offsets(lake) == list(range(20))


def test_expired_days_are_gone_and_the_rest_stays(lake: Path) -> None:
    dropped = expire_lake(str(lake), NOON_MS + DAY_MS)

    assert dropped == ["2026-05-28"]
    assert offsets(lake) == list(range(5, 20))
    assert expire_lake(str(lake), NOON_MS + DAY_MS) == []
    assert not list(lake.rglob("_expired-*"))


def test_what_is_no_local_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoLake, match="no such folder"):
        compact_lake(str(tmp_path / "nope"))
    with pytest.raises(NoLake, match="is not a lake"):
        compact_lake(str(tmp_path))
    with pytest.raises(WrongInput, match="only local lakes"):
        expire_lake("s3a://bucket/lake", 0)


def test_one_writer_at_a_time(lake: Path, tmp_path: Path) -> None:
    with one_writer(str(lake)), pytest.raises(WriterBusy, match="another run writes there"):
        compact_lake(str(lake))
    with one_writer(str(lake)):
        words = ["run", "ingest", "--from", str(tmp_path / "data"), "--to", str(lake)]
        refused = CliRunner().invoke(cli, ["pipeline", *words, "--engine", "local"])
    assert refused.exit_code == 1
    assert "another run writes there" in refused.output
    assert compact_lake(str(lake)).runs == 3


def test_the_commands_say_what_was_done(lake: Path) -> None:
    compacted = CliRunner().invoke(cli, ["pipeline", "lake", "compact", str(lake)])
    expired = CliRunner().invoke(
        cli, ["pipeline", "lake", "expire", str(lake), "--before", str(NOON_MS + 9 * DAY_MS)]
    )

    assert compacted.output.startswith("3 runs, ")
    assert expired.output == "dropped 3 days, 2026-05-28 to 2026-05-30\n"
    assert json.loads((lake / "manifest.json").read_text())["read"]
    assert ds.dataset(lake / "commits", format="parquet").count_rows() == 0
