"""Runner: writes a job's result as Parquet by day, replaced whole, the same on every rerun.

    OUT/<table>/dt=2026-11-21/*.parquet

A run replaces the days of its tables that are in its span, and no others; a day of the span that
has no rows any more loses its folder. Results are derived: deleting all of them loses nothing.
"""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct, structs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.engine import fn
from pipeline.job_notes import JobNote, write_note
from pipeline.jobs import WITHOUT, Job, JobInput, lacks
from pipeline.read.files import folders, move_folder, remove_tree
from pipeline.read.sources import PipelineSource
from pipeline.result_tables import RESULTS
from protocol.names import HISTORY_TOPIC, LAG_TOPIC
from seams.operator_error import WrongInput
from seams.text import instant

DAY_MS: Final = 86_400_000


class NothingToRead(WrongInput):
    """The source lacks a topic that the job is about; the message is for people."""


class TimeSpan(Struct, frozen=True):
    """From `since_ms` up to, not including, `until_ms`."""

    since_ms: int
    until_ms: int

    def days(self) -> tuple[str, str]:
        """The first and the last day that it touches, as `dt` writes them."""
        return _day(self.since_ms), _day(max(self.since_ms, self.until_ms - 1))


def _day(at_ms: int) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms)).date().isoformat()


def run_job(spark: SparkSession, job: Job, job_input: JobInput, out: str) -> Mapping[str, int]:
    """Write the job's tables under `out`, and its note; the rows of each table. Raises
    NothingToRead."""
    span = TimeSpan(job_input.since_ms, job_input.until_ms)
    check_needs(job, job_input.source)
    rows = {}
    for name, table in job.run(job_input).items():
        column = job.days[name]
        at = fn.col(column) if column else fn.lit(span.until_ms - 1)
        rows[name] = _replace_days(
            spark,
            _as_declared(name, job_input.chosen(table)),
            f"{out.rstrip('/')}/{name}",
            at,
            span,
        )
    write_note(spark, out, _note(job, job_input, rows))
    return rows


def check_needs(job: Job, source: PipelineSource) -> None:
    """Raises NothingToRead, NoBroker."""
    for topic in job.needs:
        if (why := lacks(source, topic)) is not None:
            raise NothingToRead(f"{job.name} needs {topic}; {why}")


def skip_job(spark: SparkSession, job: Job, job_input: JobInput, out: str) -> str:
    """Write why the job cannot run; the reason."""
    why = next(filter(None, (lacks(job_input.source, topic) for topic in job.needs)))
    note = _note(job, job_input, {})
    write_note(spark, out, structs.replace(note, empty=dict.fromkeys(job.days, why)))
    return why


def _note(job: Job, job_input: JobInput, rows: Mapping[str, int]) -> JobNote:
    source = job_input.source
    topics = tuple(topic for topic in WITHOUT if source.has(topic))
    span = f"{instant(job_input.since_ms)} to {instant(job_input.until_ms)}"
    log_ends = job_input.log_ends_text() if LAG_TOPIC in (*job.needs, *job.uses) else ""
    nothing = f"{source.where} has nothing for it from {span}"
    if log_ends:
        nothing += f" ({log_ends})"
    empty = dict.fromkeys((name for name, count in rows.items() if not count), nothing)
    for name in job.days:
        if name not in rows:
            empty[name] = f"{source.where} has no {HISTORY_TOPIC}: {WITHOUT[HISTORY_TOPIC]}"
    return JobNote(
        job.name, source.where, job_input.since_ms, job_input.until_ms, topics, log_ends,
        dict(rows), empty,
    )  # fmt: skip


def _as_declared(name: str, table: DataFrame) -> DataFrame:
    """In the declared order and types: engines differ in the types of sums and constants."""
    declared = from_arrow_schema(RESULTS[name].schema)
    return table.select(
        *(fn.col(field.name).cast(field.dataType.simpleString()).alias(field.name)
          for field in declared)
    )  # fmt: skip


def _replace_days(
    spark: SparkSession, table: DataFrame, path: str, at_ms: Column, span: TimeSpan
) -> int:
    """Write beside, where no reader looks, then put each day of the span in its place."""
    beside = f"{path}/_new-{uuid.uuid4().hex[:8]}"
    dated = table.withColumn("dt", fn.to_date(fn.timestamp_millis(at_ms.cast("long"))))
    try:
        # Few files a day, however many tasks: one for a small day, and a large day is split.
        dated.hint("rebalance", fn.col("dt")).write.partitionBy("dt").parquet(beside)
        new = [name for name in folders(spark, beside) if name.startswith("dt=")]
        count = spark.read.parquet(*(f"{beside}/{name}" for name in new)).count() if new else 0
        first, last = span.days()
        for name in folders(spark, path):
            if name.startswith("dt=") and first <= name.removeprefix("dt=") <= last:
                remove_tree(spark, f"{path}/{name}")
        for name in new:
            move_folder(spark, f"{beside}/{name}", f"{path}/{name}")
    finally:
        remove_tree(spark, beside)
    return count
