"""Lake: what was landed already, and how does a run add to it exactly once?

A *lake* is a folder of Parquet tables, each partitioned by day (`dt`) and by run, with a manifest:

    LAKE/manifest.json               the committed runs, and how far each partition was read
    LAKE/commits/dt=2026-11-21/run=000007-3f2a91c0/*.parquet

A run writes under a new name and counts once the manifest lists it. The manifest is replaced
atomically after all files are written. Files of a run that died are not listed, so they are never
read, and the next run starts where the last listed run ended. Landed records of compacted topics
stay when the log drops them: that is the purpose of landing.

A lake has the records of one cluster, whose id and logs the manifest describes. Further ones have
names, and each a lake of its own:

    LAKE/clusters/NAME/manifest.json
"""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.engine import fn
from pipeline.read.files import folders, read_text, replace_text
from pipeline.read.identity import Beginnings, LogBeginning
from pipeline.read.log_ends import LogEndReading, LogPlace, MeasuredLog
from pipeline.tables import COMMITS, LAKE_TABLES, LOG_ENDS, TABLES, Table
from seams.operator_error import WrongInput

MANIFEST: Final = "manifest.json"
_CLUSTERS: Final = "clusters"
_VERSION: Final = 2
_VERSIONS: Final = (1, _VERSION)
"""Of the manifest and its tables. Version 1 did not know the cluster. Columns that an older lake
lacks are null."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_ReadEnds = Mapping[str, Mapping[int, int]]
"""By topic and partition: the offset after the last record that was landed."""


class NoLake(WrongInput):
    """The folder holds no tables of ours; the message is for people."""


class LandedLogs(Struct, frozen=True):
    """Which logs were landed: the cluster's id (None: unknown), each log's beginning by topic and
    partition, and when they were read up to the ends of the manifest."""

    cluster_id: str | None = None
    beginnings: Mapping[str, Beginnings] = field(default_factory=dict)
    read_ms: int | None = None


class Manifest(Struct, frozen=True):
    runs: tuple[str, ...] = ()
    read: _ReadEnds = field(default_factory=dict)
    logs: LandedLogs = LandedLogs()

    def to_json(self) -> str:
        content = {
            "version": _VERSION,
            "runs": self.runs,
            "read": self.read,
            "cluster_id": self.logs.cluster_id,
            "read_ms": self.logs.read_ms,
            "beginnings": {
                topic: {partition: list(begin) for partition, begin in begins.items()}
                for topic, begins in self.logs.beginnings.items()
            },
        }
        return json.dumps(content, indent=1, sort_keys=True) + "\n"


def read_manifest(spark: SparkSession | None, path: str) -> Manifest | None:
    """None where nothing was landed yet. Raises NoLake."""
    content = read_text(spark, f"{path}/{MANIFEST}")
    if content is None:
        return None
    try:
        said = json.loads(content)
        read = {
            topic: {int(partition): int(end) for partition, end in ends.items()}
            for topic, ends in said["read"].items()
        }
        version, runs = int(said["version"]), tuple(map(str, said["runs"]))
        begins = {
            topic: {int(p): LogBeginning(*map(int, begin)) for p, begin in of_topic.items()}
            for topic, of_topic in said.get("beginnings", {}).items()
        }
        logs = LandedLogs(said.get("cluster_id"), begins, said.get("read_ms"))
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise NoLake(f"{path}/{MANIFEST} is damaged: {fault}") from None
    if version not in _VERSIONS:
        known = " and ".join(map(str, _VERSIONS))
        raise NoLake(f"{path} has format version {version}; this program reads versions {known}")
    return Manifest(runs, read, logs)


def write_manifest(spark: SparkSession | None, path: str, manifest: Manifest) -> None:
    replace_text(spark, f"{path}/{MANIFEST}", manifest.to_json())


def next_run(manifest: Manifest) -> str:
    """A new name, which sorts after those of the runs before."""
    numbers = [run.partition("-")[0] for run in manifest.runs]
    number = max((int(text) for text in numbers if text.isdecimal()), default=0) + 1
    return f"{number:06}-{uuid.uuid4().hex[:8]}"


class Lake:
    """The tables under one folder."""

    def __init__(self, spark: SparkSession, path: str, cluster: str | None = None) -> None:
        """`cluster`: the name of one of several. Raises NoLake."""
        self._spark = spark
        self._root = path.rstrip("/")
        if cluster is not None and not _NAME.fullmatch(cluster):
            raise NoLake(f"{cluster!r} is no name for a cluster: letters, digits, . _ and -")
        self.path = self._root if cluster is None else f"{self._root}/{_CLUSTERS}/{cluster}"

    def clusters(self) -> list[str]:
        """The names of those that have one."""
        return folders(self._spark, f"{self._root}/{_CLUSTERS}")

    def manifest(self) -> Manifest | None:
        """None where nothing was landed yet. Raises NoLake."""
        return read_manifest(self._spark, self.path)

    def table(self, table: Table) -> DataFrame:
        """What the runs that count have landed of it: its columns, and the day `dt`. Raises
        NoLake."""
        manifest = self.manifest()
        if manifest is None:
            raise NoLake(f"{self.path} is not a lake: it has no {MANIFEST}")
        return self._landed(table).where(fn.col("run").isin(*manifest.runs)).drop("run")

    def _landed(self, table: Table) -> DataFrame:
        schema = from_arrow_schema(table.schema).add("dt", "date").add("run", "string")
        try:
            return self._spark.read.schema(schema).parquet(f"{self.path}/{table.name}")
        except AnalysisException as fault:
            if "PATH_NOT_FOUND" not in str(fault):
                raise
            return self._spark.createDataFrame([], schema)  # no run has had a row of it

    def count(self, name: str, run: str) -> int:
        """Rows of a table that one run landed; from the files' own notes."""
        return self._landed(LAKE_TABLES[name]).where(fn.col("run") == run).count()

    def land(
        self,
        found: Mapping[str, DataFrame],
        ends: _ReadEnds,
        logs: LandedLogs | None = None,
        log_ends: LogEndReading | None = None,
    ) -> Manifest:
        """Add rows, by table; they count when this returns. `ends`: how far was read by now;
        `logs`: of which logs; `log_ends`: of which those that groups have committed for are
        added."""
        before = self.manifest() or Manifest()
        run = next_run(before)
        for name, rows in found.items():
            _write(rows.withColumn("run", fn.lit(run)), f"{self.path}/{name}")
        if log_ends is not None:
            places = self._committed_places((*before.runs, run))
            measured = measured_rows(self._spark, log_ends.of(places))
            _write(measured.withColumn("run", fn.lit(run)), f"{self.path}/{LOG_ENDS.name}")
        read = {topic: dict(partitions) for topic, partitions in before.read.items()}
        for topic, partitions in ends.items():
            read.setdefault(topic, {}).update(partitions)
        after = Manifest((*before.runs, run), read, logs or before.logs)
        write_manifest(self._spark, self.path, after)
        return after

    def _committed_places(self, runs: Sequence[str]) -> list[LogPlace]:
        """Topics and partitions that groups have committed for, in these runs."""
        commits = self._landed(COMMITS).where(fn.col("run").isin(*runs))
        return committed_places(commits.where("NOT tombstone"))


def committed_places(commits: DataFrame) -> list[LogPlace]:
    found = commits.select("topic", "partition").distinct().collect()
    return [(row["topic"], row["partition"]) for row in found]


def measured_rows(spark: SparkSession, rows: Sequence[MeasuredLog]) -> DataFrame:
    """As the table `log_ends`."""
    return spark.createDataFrame(list(rows), from_arrow_schema(LOG_ENDS.schema))


def _write(rows: DataFrame, path: str) -> None:
    day = fn.to_date(fn.timestamp_millis(fn.coalesce(_time_of(rows), fn.lit(0))))
    dated = rows.withColumn("dt", day)
    # Few files a day, however many tasks read the log: a small day has one, a large day is split.
    dated.hint("rebalance", fn.col("dt")).write.mode("append").partitionBy("dt", "run").parquet(
        path
    )


def _time_of(rows: DataFrame) -> Column:
    for name in ("log_timestamp_ms", "sampled_at_ms"):
        if name in rows.columns:
            return fn.col(name)
    return fn.lit(None)


def tables_of(topic: str) -> list[Table]:
    """The tables that are made of a topic's records; what could not be read comes with each."""
    return [table for table in TABLES.values() if table.topic in (topic, None)]
