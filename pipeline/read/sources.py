"""Sources: a job's input tables from segments, a broker or a lake.

    /var/lib/rollcall              a data directory of Rollcall or Kafka; one folder; one segment
    s3a://bucket/backup            the same on a file system that only Hadoop can read
    kafka://host:9092              the topics of a broker, through Spark's Kafka connector
    /data/lake                     Parquet that `ingest` has landed

The ends of a source are fixed when it is opened: all tables read from it end at the same offsets,
even if the log grows.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.decode.decoder import of_messages, rows_of, schema_of
from pipeline.engine import fn
from pipeline.lake import Lake, NoLake, committed_places
from pipeline.read.broker_log_ends import measure_broker
from pipeline.read.brokers import KAFKA, Broker
from pipeline.read.data_source import FORMAT
from pipeline.read.files import is_local, local_path, read_text
from pipeline.read.identity import Beginnings
from pipeline.read.log_ends import LogEndReading, MeasuredLog
from pipeline.read.remote import read_remote, remote_extents
from pipeline.read.segments import (
    NoSegments,
    cluster_id_in,
    cluster_id_of,
    log_beginnings,
    log_ends,
    segments,
)
from pipeline.read.topic_folders import has_topic_folders, measure_folders
from pipeline.tables import COMMITS, LOG_ENDS, UNDECODABLE, Table
from pipeline.worker_imports import prepare_worker
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC

Offsets = Mapping[int, int]


class SourceLog:
    """One topic of a source, up to `ends`. What was read of it and may be asked for again is kept,
    in memory or on the workers' disks, until `forget`."""

    def __init__(self, topic: str, ends: Offsets, beginnings: Beginnings) -> None:
        self.topic = topic
        self.ends = ends
        self.beginnings = beginnings
        self._kept: list[DataFrame] = []

    def rows(self, table: Table, begins: Offsets) -> DataFrame:
        """Of a table that is made of it, from `begins` on; those columns that the table has."""
        return self._read([table], begins)

    def few(self, tables: Sequence[Table], begins: Offsets) -> dict[str, DataFrame]:
        """The same of several tables that have few rows, by name: the log is decoded once."""
        every = self.keep(self._read(tables, begins))
        return {
            table.name: every.where(fn.col(table.name).isNotNull()).select(f"{table.name}.*")
            for table in tables
        }

    def _read(self, tables: Sequence[Table], begins: Offsets) -> DataFrame:
        """As `schema_of` has them."""
        raise NotImplementedError

    def keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return frame

    def forget(self) -> None:
        while self._kept:
            self._kept.pop().unpersist()


class SegmentLog(SourceLog):
    """Files that this machine's Python can open."""

    def __init__(self, spark: SparkSession, path: str, topic: str) -> None:
        found = segments(path, topic)
        super().__init__(topic, log_ends(found), log_beginnings(found))
        self._spark = spark
        self._path = path

    def _read(self, tables: Sequence[Table], begins: Offsets) -> DataFrame:
        said = {
            "table": ",".join(table.name for table in tables),
            "topic": self.topic,
            "begins": json.dumps(dict(begins)),
            "ends": json.dumps(dict(self.ends)),
        }
        if len(tables) == 1:
            said["columns"] = ",".join(tables[0].schema.names)
        return self._spark.read.format(FORMAT).options(**said).load(self._path)


class RemoteLog(SourceLog):
    """Files that Spark reads whole."""

    def __init__(self, spark: SparkSession, path: str, topic: str) -> None:
        extents = remote_extents(spark, path, topic)
        begins = {p: extent.beginning for p, extent in extents.items() if extent.beginning}
        super().__init__(topic, {p: extent.end for p, extent in extents.items()}, begins)
        self._spark = spark
        self._path = path

    def _read(self, tables: Sequence[Table], begins: Offsets) -> DataFrame:
        return read_remote(self._spark, self._path, self.topic, tables, begins, self.ends)


class BrokerLog(SourceLog):
    """A topic as its broker serves it; what was read of it is not asked for again."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str) -> None:
        self._extents = broker.extents(topic)
        super().__init__(
            topic,
            {partition: extent.end for partition, extent in self._extents.items()},
            broker.beginnings(topic),
        )
        self._spark = spark
        self._broker = broker
        self._brought: dict[str, DataFrame] = {}

    def _read(self, tables: Sequence[Table], begins: Offsets) -> DataFrame:
        """Only what is after `begins` is asked for."""
        if not self._extents:
            return self._spark.createDataFrame([], from_arrow_schema(schema_of(tables)))
        starts = {
            partition: min(max(begins.get(partition, 0), extent.begin), extent.end)
            for partition, extent in self._extents.items()
        }
        return decoded(self._messages(starts), self.topic, *tables)

    def forget(self) -> None:
        super().forget()
        self._brought.clear()

    def _messages(self, starts: Offsets) -> DataFrame:
        begin = json.dumps(
            {self.topic: {str(partition): offset for partition, offset in starts.items()}}
        )
        if begin not in self._brought:
            end = json.dumps(
                {self.topic: {str(partition): offset for partition, offset in self.ends.items()}}
            )
            reader = self._spark.read.format("kafka").options(
                **self._broker.assign({self.topic: self.ends}),
                startingOffsets=begin,
                endingOffsets=end,
            )
            self._brought[begin] = self.keep(messages(reader.load()))
        return self._brought[begin]


def messages(loaded: DataFrame) -> DataFrame:
    """The connector's columns as the decoder wants them."""
    at_ms = fn.unix_millis("timestamp").alias("timestamp_ms")
    return loaded.select("key", "value", "partition", "offset", at_ms)


def decoded(raw: DataFrame, topic: str, *tables: Table) -> DataFrame:
    """The rows of the tables in what a connector brought, as `schema_of` has them."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            if batch.num_rows:
                yield rows_of(tables, of_messages(topic, batch))

    return raw.mapInArrow(decode, from_arrow_schema(schema_of(tables)))


class PipelineSource:
    """What stands behind `--from`."""

    def __init__(
        self,
        spark: SparkSession,
        where: str,
        options: Mapping[str, str] | None = None,
        cluster: str | None = None,
    ) -> None:
        """`options` go to the Kafka connector (`kafka.security.protocol`, ...); `cluster` is the
        name that a lake has for it. Raises NoLake."""
        self._spark = spark
        self._options = dict(options or {})
        self._logs: dict[str, SourceLog] = {}
        self._log_ends: LogEndReading | None = None
        self._is_measured = False
        self._has_landed_ends: bool | None = None
        self.where = where
        self.lake = None if where.startswith(KAFKA) else _lake(spark, where, cluster)

    def log(self, topic: str) -> SourceLog:
        """The topic's log. Raises NoSegments, NoBroker."""
        if topic not in self._logs:
            self._logs[topic] = self._open(topic)
        return self._logs[topic]

    def _open(self, topic: str) -> SourceLog:
        if self.where.startswith(KAFKA):
            return BrokerLog(self._spark, Broker(self._spark, self.where, self._options), topic)
        if is_local(self.where):
            return SegmentLog(self._spark, self.where, topic)
        return RemoteLog(self._spark, self.where, topic)

    def cluster_id(self) -> str | None:
        """Of which cluster the logs are; None: nothing here says so. Raises NoBroker."""
        if self.where.startswith(KAFKA):
            return Broker(self._spark, self.where, self._options).cluster_id()
        if is_local(self.where):
            return cluster_id_of(self.where)
        content = read_text(self._spark, f"{self.where.rstrip('/')}/meta.properties")
        return None if content is None else cluster_id_in(content.splitlines())

    def table(self, table: Table) -> DataFrame:
        """All rows of the table, with those columns that it has."""
        if self.lake is not None:
            return self.lake.table(table)
        return self._log_of(table).rows(table, {})

    def few(self, *tables: Table) -> dict[str, DataFrame]:
        """All rows of several tables of one topic, which have few; by name."""
        if self.lake is not None:
            return {table.name: self.lake.table(table) for table in tables}
        return self._log_of(tables[0]).few(tables, {})

    def _log_of(self, table: Table) -> SourceLog:
        assert table.topic is not None, f"say of which topic {table.name} is wanted"
        return self.log(table.topic)

    def damage(self) -> int:
        """Rows of `undecodable`, of all topics that are there."""
        if self.lake is not None:
            return self.lake.table(UNDECODABLE).count()
        topics = [topic for topic in (OFFSETS_TOPIC, HISTORY_TOPIC, LAG_TOPIC) if self.has(topic)]
        return sum(self.log(topic).rows(UNDECODABLE, {}).count() for topic in topics)

    def log_ends(self) -> LogEndReading | None:
        """Where the logs that groups read ended when the log of commits was opened, measured once;
        None: the source has samples of its own, or cannot be measured. Raises NoSegments,
        NoBroker."""
        if not self._is_measured:
            self._is_measured = True
            self._log_ends = self._measured()
        return self._log_ends

    def _measured(self) -> LogEndReading | None:
        if self.lake is not None or self.has(LAG_TOPIC) or not self.has(OFFSETS_TOPIC):
            return None
        if self.where.startswith(KAFKA):
            return measure_broker(Broker(self._spark, self.where, self._options))
        if is_local(self.where) and has_topic_folders(local_path(self.where)):
            return measure_folders(local_path(self.where))
        return None

    def log_end_rows(self) -> list[MeasuredLog]:
        """All measurements: of a lake those of its runs; otherwise the one of this source, of the
        partitions that groups have committed for. Raises NoSegments, NoBroker."""
        if self.lake is not None:
            return [MeasuredLog(*row) for row in self._landed_ends().collect()]
        measured = self.log_ends()
        if measured is None:
            return []
        commits = self.table(COMMITS.only("topic", "partition", "tombstone"))
        return measured.of(committed_places(commits.where("NOT tombstone")))

    def _landed_ends(self) -> DataFrame:
        assert self.lake is not None
        return self.lake.table(LOG_ENDS).select(*LOG_ENDS.schema.names)

    def frame(self, table: Table, rows: Sequence[tuple[object, ...]]) -> DataFrame:
        """Rows that this process has, as the table."""
        return self._spark.createDataFrame(list(rows), from_arrow_schema(table.schema))

    def has_log_ends(self) -> bool:
        """Whether log ends were measured, now or by the runs of the lake."""
        if self.lake is None:
            return self.log_ends() is not None
        if self._has_landed_ends is None:
            self._has_landed_ends = bool(self._landed_ends().limit(1).collect())
        return self._has_landed_ends

    def forget(self) -> None:
        """Frees what was kept; the source can be read on."""
        for log in self._logs.values():
            log.forget()

    def has(self, topic: str) -> bool:
        """Whether the topic is there, or was when the lake's runs read it."""
        if self.lake is not None:
            manifest = self.lake.manifest()
            return manifest is not None and bool(manifest.read.get(topic))
        try:
            return bool(self.log(topic).ends)
        except NoSegments:
            return False


def _lake(spark: SparkSession, where: str, cluster: str | None) -> Lake | None:
    lake = Lake(spark, where, cluster)
    if lake.manifest() is not None:
        return lake
    if named := lake.clusters():
        raise NoLake(f"{where} has the clusters {', '.join(named)}: name one with --as")
    if cluster is not None:
        raise NoLake(f"{where} is not a lake with a cluster {cluster}")
    return None
