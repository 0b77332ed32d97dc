"""Stream state: what is kept between batches, so that a batch can be repeated?

    OUT/_stream/checkpoint/            Spark's own: which offsets are in which batch
    OUT/_stream/stream.json            the stream's id in the records of the topic
    OUT/_stream/ticks.json             there is a batch at each interval, also without new records
    OUT/_stream/batches/000012/        what the batches after 12 need of those before
        samples/ statuses/ positions/ minutes/ deletions/ recent/ measured/     tables
        log_ends.json                  what batch 12 has measured; measured_batches.py
        topic.json                     where the verdicts topic ended before batch 12 wrote to it
        done.json                      all of it is written; the last evaluated instant
    OUT/_stream/lock                   held by the process that writes (local folders)

Spark gives an interrupted batch the same number and the same rows again. It then starts from the
folder of the batch before, as the first time, and gives the same results. That holds while
checkpoint and batches belong to one stream. If one of them is lost, batch numbers would restart and
mean other rows, so nothing is written then.
"""

import fcntl
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, structs
from pyspark.sql import DataFrame, SparkSession

from pipeline.read.files import (
    folders,
    is_local,
    local_path,
    read_text,
    remove_tree,
    replace_text,
)
from pipeline.read.log_ends import MeasuredLog
from seams.operator_error import OperationFailed

KEPT: Final = 2
"""Batches whose folders stay: the last one, and the one that it would be done again from."""

STATE_SCHEMAS: Final[Mapping[str, str]] = {
    "samples": (
        "group string, topic string, partition int, at_ms long, committed_offset long, lag long"
    ),
    "statuses": "group string, status string",
    "positions": (
        "log_partition int, log_offset long, group string, topic string, partition int, "
        "committed_offset long, tombstone boolean, outcome string, effective_at_ms long"
    ),
    "minutes": "minute_ms long, group string, commits long",
    "deletions": "group string, topic string, partition int, at_ms long",
    "recent": (
        "group string, topic string, partition int, log_offset long, committed_offset long, "
        "tombstone boolean, effective_at_ms long"
    ),
    "measured": (
        "group string, topic string, partition int, at_ms long, committed_offset long, lag long, "
        "log_end_offset long, commits int, first_ms long, last_ms long, high long, life long"
    ),
}
"""Those that a batch does not have are empty: an older version wrote it, or none was needed."""


def columns_of(name: str) -> list[str]:
    """Of a table of the state."""
    return STATE_SCHEMAS[name].replace(",", "").split()[::2]


_START_OVER: Final = (
    "start from scratch with another --to (or delete this folder) and another topic"
)


class BadState(OperationFailed):
    """The folder holds another stream's state, or damage; the message is for people."""


class Clock(Struct, frozen=True):
    """How far the stream has come; times of the daemons, ms since the epoch."""

    sampled_ms: int = 0  # the newest sample
    judged_to_ms: int = -1  # the last instant that was judged
    committed_ms: int = 0  # the newest commit
    minutes_to_ms: int = 0  # minutes that begin before it were judged


class State:
    """The folder of a stream."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self._spark = spark
        self.path = f"{out.rstrip('/')}/_stream"

    @contextmanager
    def held(self) -> Iterator[None]:
        """By one process at a time. Raises BadState. (A lock ends with its process, however that
        ends. Other file systems have none: there Spark's checkpoint refuses the second, but late.)
        """
        if not is_local(self.path):
            yield
            return
        folder = local_path(self.path)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadState(f"{self.path}: another process writes to it") from None
            yield

    def stream_id(self, cluster: str) -> str:
        """Given at the first start. Raises BadState if the folder is another cluster's (or that of
        a daemon with a new data directory: the saved offsets mean other records), or if Spark's
        checkpoint is not the one that the batches were counted by."""
        has_checkpoint = read_text(self._spark, f"{self.checkpoint}/metadata") is not None
        if not has_checkpoint and folders(self._spark, f"{self.path}/batches"):
            raise BadState(f"{self.checkpoint} is gone: {_START_OVER}")
        path = f"{self.path}/stream.json"
        content = read_text(self._spark, path)
        if content is None and has_checkpoint:
            raise BadState(f"{path} is gone: {_START_OVER}")
        if content is None:
            said = {"id": uuid.uuid4().hex[:12], "cluster": cluster}
            replace_text(self._spark, path, json.dumps(said) + "\n")
            return str(said["id"])
        said = json.loads(content)
        if said["cluster"] != cluster:
            raise BadState(
                f"{self.path} belongs to the cluster {said['cluster']}, not {cluster}: "
                "use another --to"
            )
        return str(said["id"])

    @property
    def checkpoint(self) -> str:
        return f"{self.path}/checkpoint"

    def before(self, batch: int) -> "Remembered":
        """What the batches before this one have left. Raises BadState."""
        if not batch:
            return Remembered(None, Clock())
        folder = self._folder(batch - 1)
        done = read_text(self._spark, f"{folder}/done.json")
        if done is None:
            raise BadState(f"{folder} is gone: {_START_OVER}")
        return Remembered(folder, Clock(**json.loads(done)))

    def topic_ends(self, batch: int) -> dict[int, int] | None:
        """As an earlier try of the batch has found them; None: it did not come so far."""
        content = read_text(self._spark, f"{self._folder(batch)}/topic.json")
        if content is None:
            return None
        return {int(partition): int(end) for partition, end in json.loads(content).items()}

    def ticks(self, *, wanted: bool) -> bool:
        """Whether batches come without new records: decided at the first start, because Spark's
        checkpoint knows how many sources there are."""
        path = f"{self.path}/ticks.json"
        if read_text(self._spark, f"{self.checkpoint}/metadata") is None and wanted:
            replace_text(self._spark, path, "{}\n")
        return read_text(self._spark, path) is not None

    def measured_ends(self, batch: int) -> list[MeasuredLog] | None:
        """As an earlier try of the batch has measured them; None: it did not come so far."""
        content = read_text(self._spark, f"{self._folder(batch)}/log_ends.json")
        return None if content is None else [MeasuredLog(*row) for row in json.loads(content)]

    def note_measured_ends(self, batch: int, rows: Sequence[MeasuredLog]) -> None:
        replace_text(self._spark, f"{self._folder(batch)}/log_ends.json", json.dumps(list(rows)))

    def note_topic_ends(self, batch: int, ends: Mapping[int, int]) -> None:
        replace_text(self._spark, f"{self._folder(batch)}/topic.json", json.dumps(dict(ends)))

    def remember(self, batch: int, tables: Mapping[str, DataFrame], clock: Clock) -> None:
        """For the batches after this one; older folders go."""
        folder = self._folder(batch)
        for name, rows in tables.items():
            rows.coalesce(1).write.mode("overwrite").parquet(f"{folder}/{name}")
        replace_text(self._spark, f"{folder}/done.json", json.dumps(structs.asdict(clock)))
        for name in folders(self._spark, f"{self.path}/batches"):
            if int(name) <= batch - KEPT:
                remove_tree(self._spark, f"{self.path}/batches/{name}")

    def _folder(self, batch: int) -> str:
        return f"{self.path}/batches/{batch:06}"


class Remembered(Struct, frozen=True):
    """A batch's folder, once it is whole; None before the first."""

    path: str | None
    clock: Clock

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        if self.path is None or name not in folders(spark, self.path):
            return spark.createDataFrame([], STATE_SCHEMAS[name])
        return spark.read.schema(STATE_SCHEMAS[name]).parquet(f"{self.path}/{name}")
