"""Merging: how does the stream keep the number of files small?

A batch writes a folder for each table and day that it has rows of. Before every `EVERY`th batch, in
each day that is still being written the folders of the batches before it are merged into one, and
all folders of a finished day are merged into one. So each row is copied at most twice. Only
finished batches are merged, and those are never repeated.

    OUT/<table>/dt=2026-11-21/batch=63/       rows of the batch 63, or of those up to it
    OUT/<table>/_merged/rows/                 the merged rows; readers ignore this folder
    OUT/<table>/_merged/plan.json             the rows are complete; the folders to replace

The plan file commits the merge. Without it `_merged` is discarded; with it the next start completes
the merge (`finish_merges`), wherever it was interrupted. This needs a file system that renames a
folder atomically; elsewhere, on object stores, nothing is merged.
"""

import json
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.read.files import (
    folders,
    move_folder,
    read_text,
    remove_tree,
    renames_at_once,
    replace_text,
    sync_folder,
)
from pipeline.result_tables import RESULTS

_TABLES: Final = ("group_health", "anomalies")
EVERY: Final = 60
"""Batches between two steps."""

DAYS_OF_A_STEP: Final = 4
"""Days that are over and are merged in one step; more of them wait for the next."""

_BATCH: Final = "batch="


def merge(spark: SparkSession, out: str, batch: int) -> None:
    """A step, if one is due before this batch. By the one process that writes there."""
    if batch % EVERY or not renames_at_once(out):
        return
    for table in _TABLES:
        path = f"{out}/{table}"
        *over, newest = [name for name in folders(spark, path) if name.startswith("dt=")] or [""]
        done = {day: _batches(spark, f"{path}/{day}", batch) for day in (*over, newest)}
        many = [day for day in over if len(done[day]) > 1]
        for day in many[:DAYS_OF_A_STEP]:
            _merge(spark, path, day, done[day])
        _merge(spark, path, newest, [number for number in done[newest] if number >= batch - EVERY])


def finish_merges(spark: SparkSession, out: str) -> None:
    """Those that were cut off; to be called before anything is written."""
    for table in _TABLES:
        _finish(spark, f"{out}/{table}")


def _batches(spark: SparkSession, day: str, before: int) -> list[int]:
    names = [name for name in folders(spark, day) if name.startswith(_BATCH)]
    numbers = [int(name.removeprefix(_BATCH)) for name in names]
    return sorted(number for number in numbers if number < before)


def _merge(spark: SparkSession, path: str, day: str, batches: list[int]) -> None:
    """Into the folder of the last of them."""
    if len(batches) < 2:
        return
    merged = f"{path}/_merged"
    remove_tree(spark, merged)
    old = [f"{day}/{_BATCH}{number}" for number in batches]
    _copy(spark, path, old, f"{merged}/rows")
    sync_folder(f"{merged}/rows")  # what it replaces may have been on the disk for hours
    replace_text(spark, f"{merged}/plan.json", json.dumps(old))
    _finish(spark, path)


def _copy(spark: SparkSession, path: str, old: list[str], new: str) -> None:
    schema = from_arrow_schema(RESULTS[path.rpartition("/")[2]].schema)
    rows = spark.read.schema(schema).parquet(*(f"{path}/{folder}" for folder in old))
    rows.coalesce(1).write.parquet(new)


def _finish(spark: SparkSession, path: str) -> None:
    merged = f"{path}/_merged"
    plan = read_text(spark, f"{merged}/plan.json")
    if plan is not None and "rows" in folders(spark, merged):
        old: list[str] = json.loads(plan)
        for folder in old:
            remove_tree(spark, f"{path}/{folder}")
        move_folder(spark, f"{merged}/rows", f"{path}/{old[-1]}")
    remove_tree(spark, merged)
