"""Where do a job's tables come from? Segments, a broker, or a lake: the same tables of each.

    /var/lib/rollcall              a data directory of Rollcall or Kafka; one folder; one segment
    s3a://bucket/backup            the same on a file system that only Hadoop knows
    kafka://host:9092              the topics themselves, through Spark's Kafka connector
    /data/lake                     Parquet that `ingest` has landed

A source is opened once, and its end is fixed then: all tables that are read from it end at the same
offsets, though the log goes on.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.brokers import KAFKA, Broker
from pipeline.decoder import of_messages, rows_of
from pipeline.files import is_local
from pipeline.landing import Lake, between
from pipeline.places import NoSegments, log_ends, segments
from pipeline.remote import read_remote, remote_ends
from pipeline.source import FORMAT
from pipeline.tables import Table

Offsets = Mapping[int, int]


@dataclass
class Log:
    """One topic of a source, up to `ends`. `rows` of a table that is made of it."""

    topic: str
    ends: Offsets

    def rows(self, table: Table, begins: Offsets) -> DataFrame:
        raise NotImplementedError


class SegmentLog(Log):
    """Files that this machine's Python can open."""

    def __init__(self, spark: SparkSession, path: str, topic: str) -> None:
        super().__init__(topic, log_ends(segments(path, topic)))
        self._spark = spark
        self._path = path

    def rows(self, table: Table, begins: Offsets) -> DataFrame:
        reader = self._spark.read.format(FORMAT).option("table", table.name)
        found = reader.option("topic", self.topic).load(self._path)
        return between(found, begins, self.ends)


class RemoteLog(Log):
    """Files that Spark reads whole."""

    def __init__(self, spark: SparkSession, path: str, topic: str) -> None:
        super().__init__(topic, remote_ends(spark, path, topic))
        self._spark = spark
        self._path = path

    def rows(self, table: Table, begins: Offsets) -> DataFrame:
        found = read_remote(self._spark, self._path, self.topic, table)
        return between(found, begins, self.ends)


class BrokerLog(Log):
    """A topic as its broker serves it; what was read of it is kept until the job is done."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str) -> None:
        self._extents = broker.extents(topic)
        super().__init__(topic, {one: extent.end for one, extent in self._extents.items()})
        self._spark = spark
        self._broker = broker
        self._read: dict[str, DataFrame] = {}

    def rows(self, table: Table, begins: Offsets) -> DataFrame:
        """Only what is after `begins` is asked for."""
        if not self._extents:
            return self._spark.createDataFrame([], from_arrow_schema(table.schema))
        starts = {
            one: min(max(begins.get(one, 0), extent.begin), extent.end)
            for one, extent in self._extents.items()
        }
        return decoded(self._messages(starts), self.topic, table)

    def _messages(self, starts: Offsets) -> DataFrame:
        begin = json.dumps({self.topic: {str(one): offset for one, offset in starts.items()}})
        if begin not in self._read:
            end = json.dumps({self.topic: {str(one): offset for one, offset in self.ends.items()}})
            reader = self._spark.read.format("kafka").options(
                **self._broker.assign({self.topic: self.ends}),
                startingOffsets=begin,
                endingOffsets=end,
            )
            self._read[begin] = messages(reader.load()).persist(StorageLevel.MEMORY_AND_DISK)
        return self._read[begin]


def messages(loaded: DataFrame) -> DataFrame:
    """The connector's columns as the decoder wants them."""
    at_ms = fn.unix_millis("timestamp").alias("timestamp_ms")
    return loaded.select("key", "value", "partition", "offset", at_ms)


def decoded(raw: DataFrame, topic: str, table: Table) -> DataFrame:
    """The rows of the table in what a connector brought."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield rows_of(table, of_messages(topic, batch))

    return raw.mapInArrow(decode, from_arrow_schema(table.schema))


class Source:
    """What stands behind `--from`."""

    def __init__(
        self, spark: SparkSession, where: str, options: Mapping[str, str] | None = None
    ) -> None:
        """`options` go to the Kafka connector (`kafka.security.protocol`, ...)."""
        self._spark = spark
        self._options = dict(options or {})
        self._logs: dict[str, Log] = {}
        self.where = where
        self.lake = None if where.startswith(KAFKA) else _lake(spark, where)

    def log(self, topic: str) -> Log:
        """The topic's log. Raises NoSegments, NoBroker."""
        if topic not in self._logs:
            self._logs[topic] = self._open(topic)
        return self._logs[topic]

    def _open(self, topic: str) -> Log:
        if self.where.startswith(KAFKA):
            return BrokerLog(self._spark, Broker(self._spark, self.where, self._options), topic)
        if is_local(self.where):
            return SegmentLog(self._spark, self.where, topic)
        return RemoteLog(self._spark, self.where, topic)

    def table(self, table: Table, begins: Offsets | None = None) -> DataFrame:
        """All rows of the table."""
        if self.lake is not None:
            return self.lake.table(table)
        assert table.topic is not None, f"say of which topic {table.name} is wanted"
        return self.log(table.topic).rows(table, begins or {})

    def has(self, topic: str) -> bool:
        """Whether the topic is there, or was when the lake's runs read it."""
        if self.lake is not None:
            manifest = self.lake.manifest()
            return manifest is not None and bool(manifest.read.get(topic))
        try:
            return bool(self.log(topic).ends)
        except NoSegments:
            return False


def _lake(spark: SparkSession, where: str) -> Lake | None:
    lake = Lake(spark, where)
    return None if lake.manifest() is None else lake
