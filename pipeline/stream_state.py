"""What does the stream remember between two batches, so that a batch may be done twice?

    OUT/_stream/checkpoint/            Spark's own: which offsets are in which batch
    OUT/_stream/stream.json            the stream's name in what it writes to the topic
    OUT/_stream/batches/000012/        what the batches after 12 need of those before
        samples/ statuses/ positions/ minutes/     tables
        topic.json                     where the verdicts' topic ended before batch 12 wrote to it
        done.json                      all of it is there; how far was judged

Spark gives a batch that was cut off the same number and the same rows again. It then starts from
the folder of the batch before, as the first time, and comes to the same results.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from pipeline.files import folders, read_text, remove_folder, replace_text
from pipeline.refusals import Refusal

KEPT: Final = 2
"""Batches whose folders stay: the last one, and the one that it would be done again from."""

SCHEMAS: Final[Mapping[str, str]] = {
    "samples": (
        "group string, topic string, partition int, at_ms long, committed_offset long, lag long"
    ),
    "statuses": "group string, status string",
    "positions": (
        "log_partition int, log_offset long, group string, topic string, partition int, "
        "committed_offset long, tombstone boolean, outcome string, effective_at_ms long"
    ),
    "minutes": "minute_ms long, group string, commits long",
}


class BadState(Refusal):
    """The folder holds another stream's state, or damage; the message is for people."""


@dataclass(frozen=True)
class Clock:
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

    def stream_id(self, source: str) -> str:
        """Given at the first start. Raises BadState if the folder is another source's."""
        path = f"{self.path}/stream.json"
        content = read_text(self._spark, path)
        if content is None:
            said = {"id": uuid.uuid4().hex[:12], "from": source}
            replace_text(self._spark, path, json.dumps(said) + "\n")
            return str(said["id"])
        said = json.loads(content)
        if said["from"] != source:
            raise BadState(f"{self.path} is about {said['from']}, not {source}: give another --to")
        return str(said["id"])

    def before(self, batch: int) -> "Remembered":
        """What the batches before this one have left."""
        names = folders(self._spark, f"{self.path}/batches")
        for name in sorted(names, reverse=True):
            if int(name) < batch:
                done = read_text(self._spark, f"{self.path}/batches/{name}/done.json")
                if done is not None:
                    return Remembered(f"{self.path}/batches/{name}", Clock(**json.loads(done)))
        return Remembered(None, Clock())

    def topic_ends(self, batch: int) -> dict[int, int] | None:
        """As an earlier try of the batch has found them; None: it did not come so far."""
        content = read_text(self._spark, f"{self._folder(batch)}/topic.json")
        if content is None:
            return None
        return {int(partition): int(end) for partition, end in json.loads(content).items()}

    def note_topic_ends(self, batch: int, ends: Mapping[int, int]) -> None:
        replace_text(self._spark, f"{self._folder(batch)}/topic.json", json.dumps(dict(ends)))

    def remember(self, batch: int, tables: Mapping[str, DataFrame], clock: Clock) -> None:
        """For the batches after this one; older folders go."""
        folder = self._folder(batch)
        for name, rows in tables.items():
            rows.coalesce(1).write.mode("overwrite").parquet(f"{folder}/{name}")
        replace_text(self._spark, f"{folder}/done.json", json.dumps(asdict(clock)))
        for name in folders(self._spark, f"{self.path}/batches"):
            if int(name) <= batch - KEPT:
                remove_folder(self._spark, f"{self.path}/batches/{name}")

    def _folder(self, batch: int) -> str:
        return f"{self.path}/batches/{batch:06}"


@dataclass(frozen=True)
class Remembered:
    """A batch's folder, once it is whole; None before the first."""

    path: str | None
    clock: Clock

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        if self.path is None:
            return spark.createDataFrame([], SCHEMAS[name])
        return spark.read.schema(SCHEMAS[name]).parquet(f"{self.path}/{name}")
