"""Results: the tables that jobs wrote to a folder, and each as one CSV or JSON file.

Reads what runner.py writes; a table that no job has written is absent. Files for other programs are
written row by row, so a table may be larger than the memory.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.engine import fn
from pipeline.job_notes import JobNote, read_note
from pipeline.jobs import JOBS
from pipeline.read.files import folders
from pipeline.result_tables import RESULTS
from pipeline.runner import TimeSpan
from seams.operator_error import WrongInput

_TIMES: Final = {name: column for job in JOBS.values() for name, column in job.days.items()}

_Row = Mapping[str, object]


class NoResults(WrongInput):
    """No job has written there; the message is for people."""


class Results:
    """The tables under `path`, of a span alone."""

    def __init__(self, spark: SparkSession, path: str, span: TimeSpan) -> None:
        """Raises NoResults."""
        self._spark = spark
        self.path = path.rstrip("/")
        self.span = span
        self._notes: dict[str, JobNote | None] = {}
        self.names = [name for name in RESULTS if self._is_there(name)]
        if not self.names:
            raise NoResults(f"{path} has no table of a job")

    def _is_there(self, name: str) -> bool:
        return bool(folders(self._spark, f"{self.path}/{name}"))

    def table(self, name: str) -> DataFrame | None:
        """Its rows about instants of the span; None if no job has written it."""
        if name not in self.names:
            return None
        schema = from_arrow_schema(RESULTS[name].schema)
        rows = self._spark.read.schema(schema.add("dt", "date")).parquet(f"{self.path}/{name}")
        if column := _TIMES[name]:
            at = fn.col(column)
            rows = rows.where((at >= self.span.since_ms) & (at < self.span.until_ms))
        return rows.drop("dt")

    def note(self, job: str) -> JobNote | None:
        """Of the job's last run."""
        if job not in self._notes:
            self._notes[job] = read_note(self._spark, self.path, job)
        return self._notes[job]

    def in_order(self, name: str) -> Iterator[_Row]:
        """The rows, sorted, so that the same table always makes the same file."""
        table = self.table(name)
        if table is None:
            return
        first = [column for column in (_TIMES[name],) if column]
        rest = [column for column in table.columns if column not in first]
        for row in table.orderBy(*first, *rest).toLocalIterator(prefetchPartitions=True):
            yield row.asDict()


def write_csv(results: Results, folder: Path) -> list[Path]:
    """A file for each table, with a line of names first; null is an empty cell."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in results.names:
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            lines = csv.DictWriter(file, RESULTS[name].schema.names, lineterminator="\n")
            lines.writeheader()
            lines.writerows(results.in_order(name))
        written.append(path)
    return written


def write_json(results: Results, folder: Path) -> list[Path]:
    """A file for each table, with an object on each line."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in results.names:
        path = folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for row in results.in_order(name):
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        written.append(path)
    return written
