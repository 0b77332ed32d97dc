"""Stream: health and anomalies of groups as of now, batch by batch.

    __group_lag ---------> samples --> partition_health --> group_health --> Parquet and a topic
    (a Kafka has none: its log ends are measured at each batch; measured_batches.py)
    __consumer_offsets --> commits --> rewinds, storms; and stalls of the health --> Parquet

Spark's Structured Streaming splits both topics into batches and remembers them (its checkpoint);
each batch goes through `HealthStream.batch`. Its output is a function of the batch and of the state
after the previous one (state.py), written under the batch's number, so that a repeated batch
replaces its earlier output; status_topic.py does the same for the topic. The rules are those of
derive/, in Spark SQL functions.

Time is that of the daemon's newest sample, not of this machine: an instant is evaluated once there
are samples `SAMPLE_DELAY_MS` beyond it, so results do not depend on the boundaries of batches. (Old
commits of many partitions are an exception: a minute's commits may come in several batches, and an
old storm may be missed. `run anomalies` has all of them.)
"""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from msgspec import Struct, field
from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.derive.anomalies import STALLED_INSTANTS, rewinds
from pipeline.derive.audit import suspects
from pipeline.derive.group_health import EXPIRES_MS, group_health, partition_health
from pipeline.derive.lag_samples import deletions, each_once
from pipeline.derive.measured_lag import measured_health
from pipeline.derive.sliding import PAST_MS, last_samples, stalls_begun, storms
from pipeline.read.broker_log_ends import measure_broker
from pipeline.read.brokers import KAFKA, Broker
from pipeline.read.source_check import check_broker, check_output
from pipeline.read.sources import decoded, messages
from pipeline.session import start_session
from pipeline.stream.measured_batches import (
    MeasureLogEnds,
    measured_ends,
    measurements,
    recent_commits,
    with_ticks,
)
from pipeline.stream.merging import finish_merges, merge
from pipeline.stream.state import Clock, Remembered, State, columns_of
from pipeline.stream.status_topic import StatusChange, StatusTopic
from pipeline.tables import COMMITS, LAG_SAMPLES, MINUTE_MS
from protocol.names import LAG_TOPIC, OFFSETS_TOPIC
from seams.operator_error import OperationFailed, OperatorError, WrongInput

STREAM_INTERVAL_MS: Final = 60_000
"""Between two instants that are judged."""

SAMPLE_DELAY_MS: Final = 30_000
"""The longest time from a commit to its sample: three rounds of the sampler."""

RECORDS_OF_A_BATCH: Final = 500_000
"""At a first start the topics hold weeks."""

LISTEN_S: Final = 1
"""Until a signal is heard, at the most."""

_BACK_MS: Final = STALLED_INSTANTS * STREAM_INTERVAL_MS
_KAFKAS_FAULT: Final = "org.apache.kafka.common."


class NoStream(WrongInput):
    """There is nothing to follow; the message is for people."""


class StreamOrder(Struct, frozen=True):
    """The options of a stream. `every_s` None: process the available data, then end."""

    source: str
    out: str
    verdicts_topic: str | None = None
    every_s: int | None = None
    connector: Mapping[str, str] = field(default_factory=dict)


class StreamEnded(OperationFailed):
    """The stream could not continue; the message is for people."""


def follow(order: StreamOrder, master: str | None, settings: Mapping[str, str]) -> bool:
    """Keep the tables up to date, until it is done or told to stop: whether it was told, by SIGTERM
    or SIGINT; a second one ends it at once. Raises OperationFailed, NoJava."""
    if not order.source.startswith(KAFKA):
        raise NoStream(f"stream needs a broker, {KAFKA}HOST:PORT, not {order.source}")
    check_output(order.out)
    check_broker(order.source.removeprefix(KAFKA))
    stop_requested = False

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop_requested
        if stop_requested:
            raise KeyboardInterrupt
        stop_requested = True  # an exception here would break off a message to Java

    before = {
        number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        spark = start_session(master, settings=settings, kafka=True)
        signal.signal(signal.SIGINT, request_stop)  # Spark has taken it for itself
        with running_stream(spark, order) as query:
            while not stop_requested and not query.awaitTermination(LISTEN_S):
                pass
    except Exception:
        if not stop_requested:  # the signal may have stopped our Java as well
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return stop_requested


@contextmanager
def running_stream(spark: SparkSession, order: StreamOrder) -> Iterator[StreamingQuery]:
    """Runs until the block ends, or before. Raises NoStream, NoBroker, NoTopic, BadState,
    StreamEnded."""
    state = State(spark, order.out)
    with state.held():
        health, query = _start(spark, order, state)
        try:
            yield query
        except StreamingQueryException as fault:
            if health.refusal is not None:
                raise health.refusal from None
            raise _ended(fault) from None
        finally:
            _stop(query)


def _stop(query: StreamingQuery) -> None:
    """A batch that is being made is cut off, as a kill would."""
    with suppress(Py4JError, OSError):  # Java may be gone
        query.stop()


def _ended(fault: StreamingQueryException) -> Exception:
    """One line for a broker that was away for too long; the trace for other faults."""
    causes = [line for line in str(fault).splitlines() if _KAFKAS_FAULT in line]
    if not causes:
        return fault
    said = causes[-1].partition(_KAFKAS_FAULT)[2].removeprefix("errors.")
    return StreamEnded(f"the stream ended; the next start continues from here: {said}")


def _start(
    spark: SparkSession, order: StreamOrder, state: State
) -> "tuple[HealthStream, StreamingQuery]":
    if not order.source.startswith(KAFKA):
        raise NoStream(f"stream needs a broker, {KAFKA}HOST:PORT, not {order.source}")
    broker = Broker(spark, order.source, order.connector)
    topics = {topic: broker.extents(topic) for topic in (OFFSETS_TOPIC, LAG_TOPIC)}
    there: dict[str, list[int]] = {
        topic: sorted(partitions) for topic, partitions in topics.items() if partitions
    }
    if not there:
        raise NoStream(f"{order.source} has neither {OFFSETS_TOPIC} nor {LAG_TOPIC}")
    stream_id = state.stream_id(broker.cluster_id())
    topic = None
    if order.verdicts_topic is not None:
        topic = StatusTopic(broker, order.verdicts_topic, stream_id, state)
    out = order.out.rstrip("/")
    finish_merges(spark, out)
    is_measured = LAG_TOPIC not in there
    measure = (lambda: measure_broker(broker)) if is_measured else None
    health = HealthStream(state, out, topic, measure)
    options = {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(RECORDS_OF_A_BATCH),
        **broker.assign(there),
    }
    records = spark.readStream.format("kafka").options(**options).load()
    if state.ticks(wanted=is_measured):
        records = with_ticks(spark, records)
    writer = records.writeStream.foreachBatch(health.batch)
    writer = writer.option("checkpointLocation", state.checkpoint)
    if order.every_s is None:
        return health, writer.trigger(availableNow=True).start()
    return health, writer.trigger(processingTime=f"{order.every_s} seconds").start()


class HealthStream:
    """What is done with each batch."""

    def __init__(
        self,
        state: State,
        out: str,
        topic: StatusTopic | None,
        measure: MeasureLogEnds | None = None,
    ) -> None:
        """`measure`: asks for the log ends, where there are no lag samples."""
        self._state = state
        self._measure = measure
        self._out = out
        self._topic = topic
        self._kept: list[DataFrame] = []
        self.refusal: OperatorError | None = None  # that ended it; Spark hands on its words alone

    def batch(self, records: DataFrame, batch: int) -> None:
        try:
            self._make(records, batch)
        except OperatorError as refusal:
            self.refusal = refusal
            raise
        finally:
            while self._kept:
                self._kept.pop().unpersist()

    def _make(self, records: DataFrame, batch: int) -> None:
        spark = records.sparkSession
        # A stream's plans are not adaptive: two hundred tasks for each shuffle of a few rows.
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
        merge(spark, self._out, batch)
        self._keep(records)
        known = self._state.before(batch)
        commits = self._commits(spark, _of(records, OFFSETS_TOPIC), known)
        if self._measure is None:
            health = self._health(spark, _of(records, LAG_TOPIC), known, commits.new)
        else:
            health = self._measured_health(spark, batch, known, commits.new, self._measure)
        clock = Clock(
            health.sampled_ms, health.judged_to_ms, commits.committed_ms, commits.minutes_to_ms
        )
        groups = self._keep(
            group_health(health.partitions.where(fn.col("at_ms") > known.clock.judged_to_ms))
        )
        self._write("group_health", groups, "at_ms", batch)
        found = stalls_begun(health.partitions, known.clock.judged_to_ms)
        self._write("anomalies", found.unionByName(commits.anomalies), "since_ms", batch)
        statuses = known.table(spark, "statuses")
        if self._topic is not None:
            self._topic.write(batch, changes(groups, statuses))
        self._state.remember(
            batch,
            {
                **health.kept,
                "statuses": _newest_statuses(groups, statuses),
                "positions": commits.positions,
                "minutes": commits.minutes,
            },
            clock,
        )

    def _keep(self, rows: DataFrame) -> DataFrame:
        """Kept until the batch is done, so that it is computed only once."""
        self._kept.append(rows.persist())
        return rows

    def _health(
        self, spark: SparkSession, records: DataFrame, known: Remembered, commits: DataFrame
    ) -> "_Health":
        clock = known.clock
        new = self._keep(decoded(records, LAG_TOPIC, LAG_SAMPLES))
        newest = new.agg(fn.max("sampled_at_ms")).collect()[0][0] or 0
        sampled_ms = max(clock.sampled_ms, newest)
        judge_to = max(
            clock.judged_to_ms,
            (sampled_ms - SAMPLE_DELAY_MS) // STREAM_INTERVAL_MS * STREAM_INTERVAL_MS,
        )
        columns = columns_of("samples")
        before = known.table(spark, "samples")
        samples = self._keep(each_once(new.select(*columns).unionByName(before)))
        since_ms = max(0, clock.judged_to_ms + 1 - _BACK_MS)
        deleted = known.table(spark, "deletions").unionByName(deletions(commits))
        deleted = self._keep(deleted.where(fn.col("at_ms") > judge_to - EXPIRES_MS))
        partitions = partition_health(
            samples, since_ms, judge_to + 1, every_ms=STREAM_INTERVAL_MS, deleted=deleted
        )
        kept = {"samples": last_samples(samples, judge_to - _BACK_MS), "deletions": deleted}
        return _Health(kept, self._keep(partitions), sampled_ms, judge_to)

    def _measured_health(
        self,
        spark: SparkSession,
        batch: int,
        known: Remembered,
        commits: DataFrame,
        measure: MeasureLogEnds,
    ) -> "_Health":
        after_ms = known.clock.judged_to_ms
        recent = self._keep(recent_commits(commits, known, spark))
        rows = measured_ends(self._state, batch, recent, measure, after_ms)
        now_ms = max((row.sampled_at_ms for row in rows), default=after_ms)
        every = self._keep(measurements(spark, recent, rows, known))
        partitions = measured_health(every, 0, now_ms + 1)
        return _Health(
            {"recent": recent, "measured": every}, self._keep(partitions), now_ms, now_ms
        )

    def _commits(self, spark: SparkSession, records: DataFrame, known: Remembered) -> "_Commits":
        clock = known.clock
        new = decoded(records, OFFSETS_TOPIC, COMMITS).withColumns(
            {"outcome": fn.lit("committed"), "effective_at_ms": fn.col("log_timestamp_ms")}
        )
        columns = columns_of("positions")
        new = self._keep(new.select(*columns))
        newest = new.agg(fn.max("effective_at_ms")).collect()[0][0] or 0
        committed_ms = max(clock.committed_ms, newest)
        minutes_to = max(
            clock.minutes_to_ms, (committed_ms - SAMPLE_DELAY_MS) // MINUTE_MS * MINUTE_MS
        )
        every = new.unionByName(known.table(spark, "positions"))
        minute = (fn.col("effective_at_ms") - fn.col("effective_at_ms") % MINUTE_MS).cast("long")
        counted = self._keep(
            new.where("NOT tombstone").select(minute.alias("minute_ms"), "group")
            .withColumn("commits", fn.lit(1).cast("long"))
            .unionByName(known.table(spark, "minutes"))
            .groupBy("minute_ms", "group").agg(fn.sum("commits").alias("commits"))
        )  # fmt: skip
        found = rewinds(suspects(every)).unionByName(
            storms(counted, clock.minutes_to_ms, minutes_to)
        )
        key = ["log_partition", "group", "topic", "partition"]
        others = [name for name in columns if name not in key]
        last = every.groupBy(*key).agg(fn.max_by(fn.struct(*others), "log_offset").alias("last"))
        return _Commits(
            found,
            last.select(*key, "last.*").where("NOT tombstone"),
            counted.where(fn.col("minute_ms") >= minutes_to - PAST_MS),
            committed_ms,
            minutes_to,
            new,
        )

    def _write(self, table: str, rows: DataFrame, at: str, batch: int) -> None:
        """By day and batch; the same batch replaces what it has written before."""
        day = fn.to_date(fn.timestamp_millis(fn.col(at)))
        dated = rows.withColumns({"dt": day, "batch": fn.lit(batch)}).coalesce(1)
        writer = dated.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.partitionBy("dt", "batch").parquet(f"{self._out}/{table}")


class _Health(Struct, frozen=True):
    kept: Mapping[str, DataFrame]  # for the batches after this one, by table of the state
    partitions: DataFrame
    sampled_ms: int
    judged_to_ms: int


class _Commits(Struct, frozen=True):
    anomalies: DataFrame
    positions: DataFrame
    minutes: DataFrame
    committed_ms: int
    minutes_to_ms: int
    new: DataFrame  # commits of this batch


def changes(groups: DataFrame, statuses: DataFrame) -> Sequence[StatusChange]:
    """Groups whose status is not what it was an instant before; a first OK is not a change."""
    columns = (
        "group", "at_ms", "status", "worst_topic", "worst_partition", "worst_verdict",
        "total_lag", "partitions", "bad_partitions",
    )  # fmt: skip
    by_then = statuses.withColumn("at_ms", fn.lit(-1).cast("long"))
    every = groups.select(*columns).unionByName(by_then, allowMissingColumns=True)
    before = fn.lag("status").over(Window.partitionBy("group").orderBy("at_ms"))
    changes = every.withColumn("before", fn.coalesce(before, fn.lit("OK")))
    changes = changes.where("at_ms >= 0 AND status != before").orderBy("at_ms", "group")
    return [row.asDict() for row in changes.collect()]


def _newest_statuses(groups: DataFrame, statuses: DataFrame) -> DataFrame:
    dated = groups.select("group", "status", "at_ms").unionByName(
        statuses.withColumn("at_ms", fn.lit(-1).cast("long"))
    )
    return dated.groupBy("group").agg(fn.max_by("status", "at_ms").alias("status"))


def _of(records: DataFrame, topic: str) -> DataFrame:
    return messages(records.where(fn.col("topic") == topic))
