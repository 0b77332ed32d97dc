"""Merging: a stream's small files become few, every row once, wherever the merge is interrupted."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.result_tables import RESULTS
from pipeline.stream import merging
from pipeline.stream.merging import EVERY, finish_merges, merge

HEALTH = RESULTS["group_health"].schema
BATCHES = {"dt=2026-11-20": (3, 7, 61), "dt=2026-11-21": (61, 62, 119, 120)}
"""By day, the batches that wrote something; 120 is the one that is to be done next, or again."""

MERGED = {"dt=2026-11-20": [61], "dt=2026-11-21": [119, 120]}


class PowerFailure(BaseException):
    """Nothing that comes after it is done."""


def row(batch: int, day: str) -> dict[str, object]:
    return {"group": f"{day} {batch}", "at_ms": batch, "status": "OK", "total_lag": batch}


def write(folder: Path, rows: Sequence[dict[str, object]]) -> None:
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(list(rows), schema=HEALTH)
    pq.write_table(table, folder / "part-0.parquet")


def streamed(out: Path) -> Path:
    for day, batches in BATCHES.items():
        for batch in batches:
            write(out / "group_health" / day / f"batch={batch}", [row(batch, day)])
    return out


def groups(out: Path) -> list[str]:
    """As somebody reads them who knows nothing of batches."""
    table = ds.dataset(out / "group_health", partitioning="hive").to_table()
    return sorted(table.column("group").to_pylist())


EVERY_ROW = sorted(f"{day} {batch}" for day, batches in BATCHES.items() for batch in batches)


def folders(out: Path) -> dict[str, list[int]]:
    days = sorted((out / "group_health").glob("dt=*"))
    return {
        day.name: sorted(int(path.name.removeprefix("batch=")) for path in day.iterdir())
        for day in days
    }


@pytest.mark.xdist_group("spark")
def test_batches_that_are_done_become_one(spark: SparkSession, tmp_path: Path) -> None:
    out = streamed(tmp_path)

    merge(spark, str(out), 2 * EVERY + 1)
    assert folders(out) == {day: list(batches) for day, batches in BATCHES.items()}
    merge(spark, str(out), 2 * EVERY)

    assert folders(out) == MERGED
    rows = spark.read.schema(spark.read.parquet(str(out / "group_health")).schema)
    found = rows.parquet(str(out / "group_health")).collect()
    assert sorted(row["group"] for row in found) == EVERY_ROW == groups(out)
    assert {row["group"]: row["total_lag"] for row in found} == {
        f"{day} {batch}": batch for day, batches in BATCHES.items() for batch in batches
    }
    assert not (out / "group_health" / "_merged").exists()


def copy(_spark: object, path: str, old: Sequence[str], new: str) -> None:
    """What Spark would write."""
    rows = [each for name in old for each in pq.read_table(f"{path}/{name}").to_pylist()]
    write(Path(new), rows)


class Power:
    """Fails after so many steps."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self.done: list[str] = []

    def step(self, name: str) -> None:
        if not self._left:
            raise PowerFailure
        self._left -= 1
        self.done.append(name)

    def wire(self, patch: pytest.MonkeyPatch) -> None:
        """To whatever a merge does to the disk. A folder is removed file by file."""
        patch.setattr(merging, "_copy", self._halting(copy, "copy"))
        patch.setattr(merging, "remove_tree", self._remove)
        for name in ("sync_folder", "replace_text", "move_folder"):
            patch.setattr(merging, name, self._halting(getattr(merging, name), name))

    def _halting(self, action: Callable[..., None], name: str) -> Callable[..., None]:
        def halting(*words: object) -> None:
            self.step(name)
            action(*words)
            self.step(f"{name}, done")

        return halting

    def _remove(self, _spark: object, path: str) -> None:
        for file in sorted(Path(path).glob("*.*")):
            self.step("remove a file")
            file.unlink()
        self.step("remove a folder")
        shutil.rmtree(path, ignore_errors=True)


def test_a_merge_that_is_cut_off_anywhere_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, seen = 0, Counter[str]()
    while True:
        out, power = streamed(tmp_path / str(steps)), Power(steps)
        try:
            with monkeypatch.context() as patch:
                power.wire(patch)
                merge(None, str(out), 2 * EVERY)
        except PowerFailure:
            pass
        else:
            break
        seen.update(power.done[-1:])
        finish_merges(None, str(out))
        assert groups(out) == EVERY_ROW, power.done
        with monkeypatch.context() as patch:
            patch.setattr(merging, "_copy", copy)
            merge(None, str(out), 2 * EVERY)
        assert folders(out) == MERGED
        assert groups(out) == EVERY_ROW, power.done
        steps += 1
    assert set(seen) > {"copy", "replace_text", "replace_text, done", "remove a file"}
    assert seen["move_folder, done"] == len(BATCHES)


def test_days_that_are_over_wait_for_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_copy", copy)
    days = [f"dt=2026-11-{number:02}" for number in range(1, 2 * merging.DAYS_OF_A_STEP + 1)]
    for day in days:
        for batch in (1, 2):
            write(tmp_path / "group_health" / day / f"batch={batch}", [row(batch, day)])

    merge(None, str(tmp_path), 10 * EVERY)
    first = [len(batches) for batches in folders(tmp_path).values()]
    merge(None, str(tmp_path), 11 * EVERY)

    assert first == [1] * merging.DAYS_OF_A_STEP + [2] * merging.DAYS_OF_A_STEP
    # The newest may still be written, and none of its batches is new.
    assert [len(batches) for batches in folders(tmp_path).values()] == [1] * (len(days) - 1) + [2]


def test_where_a_rename_is_not_one_step_nothing_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "folders", None)  # nobody even looks
    merge(None, "s3a://bucket/health", EVERY)
