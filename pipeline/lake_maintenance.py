"""Lake maintenance: merges the files of many runs into one for each day, and drops old days.

Works on a local lake, without an engine. A merged run counts once the manifest lists it instead of
those that it replaces, so a kill at any moment leaves the old runs or the new one. The files of
replaced runs (and of runs that died) are removed by the next maintenance: a reader that has read
the manifest before finds its files until then.
"""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import structs

from pipeline.lake import Manifest, NoLake, next_run, read_manifest, write_manifest
from pipeline.read.files import is_local, local_path, sync_folder
from pipeline.runner import TimeSpan
from pipeline.tables import LAKE_TABLES
from pipeline.write_lock import one_writer
from seams.operator_error import WrongInput

_RUN: Final = "run="
_DAY: Final = "dt="
_ROWS_AT_ONCE: Final = 1 << 16


class Compacted(NamedTuple):
    """`files` before and after; `removed`: folders of replaced and dead runs."""

    runs: int
    files_before: int
    files_after: int
    removed: int


def compact_lake(path: str) -> Compacted:
    """Merge all runs into one. Raises NoLake, WriterBusy, WrongInput."""
    with one_writer(_local(path)):
        before = _manifest(path)
        removed = _remove_unlisted(path, before)
        if len(before.runs) < 2:
            count = sum(len(files) for _, files in _days(path, before))
            return Compacted(len(before.runs), count, count, removed)
        run = next_run(before)
        old = new = 0
        for folder, files in _days(path, before):
            old, new = old + len(files), new + 1
            _merge(files, folder / f"{_RUN}{run}")
        write_manifest(None, path, structs.replace(before, runs=(run,)))
        return Compacted(len(before.runs), old, new, removed)


def expire_lake(path: str, before_ms: int) -> list[str]:
    """Drop whole days before an instant; the days. Raises NoLake, WriterBusy, WrongInput."""
    first_kept, _ = TimeSpan(before_ms, before_ms).days()
    dropped = set()
    with one_writer(_local(path)):
        manifest = _manifest(path)
        _remove_unlisted(path, manifest)
        for name in LAKE_TABLES:
            table = local_path(path) / name
            for day in sorted(table.glob(f"{_DAY}*")):
                if day.name.removeprefix(_DAY) < first_kept:
                    gone = table / f"_expired-{uuid.uuid4().hex[:8]}"  # no reader finds a half
                    day.rename(gone)
                    shutil.rmtree(gone)
                    dropped.add(day.name.removeprefix(_DAY))
    return sorted(dropped)


def compacted_text(done: Compacted) -> str:
    """For people."""
    return (
        f"{done.runs} runs, {done.files_before} files before, {done.files_after} after; "
        f"removed {done.removed} folders of replaced or incomplete runs"
    )


def expired_text(days: list[str]) -> str:
    """For people; `days` in order."""
    return f"dropped {len(days)} days" + (f", {days[0]} to {days[-1]}" if days else "")


def _local(path: str) -> str:
    if not is_local(path):
        raise WrongInput(f"{path}: only local lakes can be compacted or expired")
    if not local_path(path).is_dir():
        raise NoLake(f"{path}: no such folder")
    return path


def _manifest(path: str) -> Manifest:
    manifest = read_manifest(None, path)
    if manifest is None:
        raise NoLake(f"{path} is not a lake")
    return manifest


def _days(path: str, manifest: Manifest) -> Iterator[tuple[Path, list[Path]]]:
    """Each day's folder of each table, with the files that count."""
    for name in LAKE_TABLES:
        for day in sorted((local_path(path) / name).glob(f"{_DAY}*")):
            files = [
                file
                for run in manifest.runs
                for file in sorted((day / f"{_RUN}{run}").glob("*.parquet"))
            ]
            if files:
                yield day, files


def _merge(files: list[Path], folder: Path) -> None:
    """Durable when it returns. A single file is linked: its rows are not copied again."""
    folder.mkdir()
    if len(files) == 1:
        try:
            os.link(files[0], folder / files[0].name)
        except OSError:  # the file system has no links
            shutil.copy2(files[0], folder / files[0].name)
    else:
        schema = pq.read_schema(files[-1])  # the newest has all columns
        with pq.ParquetWriter(folder / "part-0.parquet", schema, compression="snappy") as merged:
            for file in files:
                with pq.ParquetFile(file) as source:
                    for batch in source.iter_batches(_ROWS_AT_ONCE):
                        merged.write_batch(_as_columns_of(batch, schema))
    sync_folder(str(folder))


def _as_columns_of(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """An older run may lack columns, and engines name the elements of lists differently."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _remove_unlisted(path: str, manifest: Manifest) -> int:
    listed = {f"{_RUN}{run}" for run in manifest.runs}
    removed = 0
    for name in LAKE_TABLES:
        for folder in (local_path(path) / name).glob(f"{_DAY}*/{_RUN}*"):
            if folder.name not in listed:
                shutil.rmtree(folder)
                removed += 1
        for folder in (local_path(path) / name).glob("_expired-*"):
            shutil.rmtree(folder)
    return removed
