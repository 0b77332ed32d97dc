"""Remote segments: read whole, through Hadoop's file systems.

For object stores and HDFS: Spark lists and reads the files (its `binaryFile` source), and a task
gets a segment as one value and decodes it in chunks. So a segment cannot be split or be longer than
2 GiB, and each byte goes through Java first. If a path can be mounted, source.py is faster.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.decode.decoder import schema_of
from pipeline.engine import fn
from pipeline.read.data_source import read_chunks
from pipeline.read.segments import NoSegments, Piece, ReadAt, end_of_log
from pipeline.tables import Table

_SEGMENT: Final = re.compile(
    r"(?P<topic>[^/]+)-(?P<partition>[0-9]{1,10})/(?P<base>[0-9]{20})\.log$"
)


def _files(spark: SparkSession, path: str, topic: str) -> DataFrame:
    pattern = path if path.endswith(".log") else f"{path.rstrip('/')}/{topic}-*/*.log"
    try:
        return spark.read.format("binaryFile").load(pattern)
    except Exception as fault:
        if "PATH_NOT_FOUND" in str(fault):
            raise NoSegments(f"{path} has no segment of {topic}") from None
        raise


def read_remote(
    spark: SparkSession,
    path: str,
    topic: str,
    tables: Sequence[Table],
    begins: Mapping[int, int],
    ends: Mapping[int, int],
) -> DataFrame:
    """The rows of the tables in all segments of the topic, as `schema_of` has them."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, content in zip(batch.column("path"), batch.column("content"), strict=True):
                piece = _whole(file.as_py(), len(content.as_buffer()), topic)
                if piece is None:
                    continue
                log = content.as_buffer().to_pybytes()
                of = begins.get(piece.partition, 0), ends.get(piece.partition, 0)
                # All of it is here already: no batch is too long.
                yield from read_chunks(
                    _read(log), piece, *tables, between=of, largest_batch=len(log)
                )

    files = _files(spark, path, topic).select("path", "content")
    return files.mapInArrow(decode, from_arrow_schema(schema_of(tables)))


def _whole(file: str, size: int, topic: str) -> Piece | None:
    match = _SEGMENT.search(file)
    if match is None or match["topic"] != topic:
        return None
    return Piece(file, topic, int(match["partition"]), 0, size, is_last=True)


def _read(content: bytes) -> ReadAt:
    return lambda size, position: content[position : position + size]


def remote_ends(spark: SparkSession, path: str, topic: str) -> dict[int, int]:
    """By partition, the offset after the last whole batch."""
    schema = "partition int, end long"

    def ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, content in zip(batch.column("path"), batch.column("content"), strict=True):
                match = _SEGMENT.search(file.as_py())
                if match is None or match["topic"] != topic:
                    continue
                log = content.as_buffer().to_pybytes()
                end = end_of_log(_read(log), 0, len(log), int(match["base"]))
                yield pa.RecordBatch.from_pydict(
                    {"partition": pa.array([int(match["partition"])], pa.int32()),
                     "end": pa.array([end], pa.int64())}
                )  # fmt: skip

    found = _files(spark, path, topic).select("path", "content").mapInArrow(ends, schema)
    newest = found.groupBy("partition").agg(fn.max("end").alias("end")).collect()
    return {row.partition: row.end for row in newest}
