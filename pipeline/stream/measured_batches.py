"""Measured batches: the stream's health where no daemon samples the lag.

At each batch the broker is asked where the logs end that groups read (read/broker_log_ends.py), and
each partition is evaluated once, by the rules of derive/measured_lag.py. The answer is saved under
the batch's number before it is used, so a repeated batch has the same rows. A group that stopped
committing makes no records: a second source, which has a row at each interval, brings the batches.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.derive.anomalies import STALLED_INSTANTS
from pipeline.derive.group_health import EXPIRES_MS, INTERVALS
from pipeline.derive.measured_lag import measured_samples
from pipeline.lake import committed_places
from pipeline.read.log_ends import LogEndReading, MeasuredLog
from pipeline.stream.state import Remembered, State, columns_of
from pipeline.tables import LOG_ENDS, PARTITION_KEY

MeasureLogEnds = Callable[[], LogEndReading]

_KEPT: Final = INTERVALS + STALLED_INSTANTS + 1
"""Measurements of a partition: a full window for each of the instants that make a stall."""


def with_ticks(spark: SparkSession, records: DataFrame) -> DataFrame:
    """And a row without a topic in each batch."""
    reader = spark.readStream.format("rate-micro-batch")
    ticks = reader.options(rowsPerBatch="1", numPartitions="1").load()
    empty = [fn.lit(None).cast(field.dataType).alias(field.name) for field in records.schema]
    return records.unionByName(ticks.select(*empty))


def recent_commits(new: DataFrame, known: Remembered, spark: SparkSession) -> DataFrame:
    """The last commits of each partition, and its last deletion; those that expired are dropped."""
    every = new.select(*columns_of("recent")).unionByName(known.table(spark, "recent"))
    newest = Window.partitionBy(*PARTITION_KEY, "tombstone").orderBy(fn.desc("log_offset"))
    most = fn.when(fn.col("tombstone"), 1).otherwise(INTERVALS)
    ranked = every.withColumn("rank", fn.row_number().over(newest)).where(fn.col("rank") <= most)
    horizon_ms = known.clock.judged_to_ms - EXPIRES_MS
    return ranked.where(fn.col("effective_at_ms") > horizon_ms).drop("rank")


def measured_ends(
    state: State, batch: int, recent: DataFrame, measure: MeasureLogEnds, after_ms: int
) -> list[MeasuredLog]:
    """Of this batch, the same if it is repeated; later than `after_ms`, whatever the clock says."""
    rows = state.measured_ends(batch)
    if rows is None:
        found = measure().of(committed_places(recent.where("NOT tombstone")))
        rows = [row._replace(sampled_at_ms=max(row.sampled_at_ms, after_ms + 1)) for row in found]
        state.note_measured_ends(batch, rows)
    return rows


def measurements(
    spark: SparkSession, recent: DataFrame, rows: list[MeasuredLog], known: Remembered
) -> DataFrame:
    """Those of this batch, and the last ones of each partition before it."""
    ends = spark.createDataFrame(rows, from_arrow_schema(LOG_ENDS.schema))
    now = measured_samples(recent, ends).select(*columns_of("measured"))
    every = now.unionByName(known.table(spark, "measured"))
    newest = Window.partitionBy(*PARTITION_KEY).orderBy(fn.desc("at_ms"))
    ranked = every.withColumn("rank", fn.row_number().over(newest))
    return ranked.where(fn.col("rank") <= _KEPT).drop("rank")
