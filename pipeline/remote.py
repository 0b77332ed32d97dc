"""How are segments read that lie where only Hadoop's file systems reach? Whole, through Spark.

Object stores and HDFS: Spark lists and reads the files (its `binaryFile` source), a task gets a
segment as one value and decodes it in chunks. A segment cannot be cut then, nor be longer than
2 GiB, and each byte goes through Java first: where a path can be mounted, source.py is faster.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.decoder import of_segment, rows_of
from pipeline.places import NoSegments
from pipeline.source import CHUNK_BYTES
from pipeline.tables import Table

_SEGMENT: Final = re.compile(r"(?P<topic>[^/]+)-(?P<partition>\d+)/(?P<base>\d{20})\.log$")


def _files(spark: SparkSession, path: str, topic: str) -> DataFrame:
    pattern = path if path.endswith(".log") else f"{path.rstrip('/')}/{topic}-*/*.log"
    try:
        return spark.read.format("binaryFile").load(pattern)
    except Exception as fault:
        if "PATH_NOT_FOUND" in str(fault):
            raise NoSegments(f"{path}: no segment of {topic} there") from None
        raise


def read_remote(spark: SparkSession, path: str, topic: str, table: Table) -> DataFrame:
    """The rows of the table in all segments of the topic."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, content in zip(batch.column("path"), batch.column("content"), strict=True):
                yield from _decoded(file.as_py(), content.as_buffer().to_pybytes(), topic, table)

    files = _files(spark, path, topic).select("path", "content")
    return files.mapInArrow(decode, from_arrow_schema(table.schema))


def _decoded(file: str, content: bytes, topic: str, table: Table) -> Iterator[pa.RecordBatch]:
    match = _SEGMENT.search(file)
    if match is None or match["topic"] != topic:
        return
    position, want, end = 0, CHUNK_BYTES, len(content)
    while position < end:
        chunk = content[position : position + want]
        records, consumed = of_segment(
            chunk,
            topic,
            int(match["partition"]),
            file=file,
            position=position,
            end=end,
            is_last=position + len(chunk) >= end,
        )
        if not consumed:
            want *= 2  # a batch that is longer than a chunk
            continue
        want = CHUNK_BYTES
        position += consumed
        rows = rows_of(table, records)
        if rows.num_rows:
            yield rows


def remote_ends(spark: SparkSession, path: str, topic: str) -> dict[int, int]:
    """By partition, the offset after the last whole batch."""
    schema = "partition int, end long"

    def ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, content in zip(batch.column("path"), batch.column("content"), strict=True):
                match = _SEGMENT.search(file.as_py())
                if match is None or match["topic"] != topic:
                    continue
                end = _end_of(content.as_buffer().to_pybytes(), int(match["base"]))
                yield pa.RecordBatch.from_pydict(
                    {"partition": pa.array([int(match["partition"])], pa.int32()),
                     "end": pa.array([end], pa.int64())}
                )  # fmt: skip

    found = _files(spark, path, topic).select("path", "content").mapInArrow(ends, schema)
    newest = found.groupBy("partition").agg(fn.max("end").alias("end")).collect()
    return {row.partition: row.end for row in newest}


def _end_of(content: bytes, base_offset: int) -> int:
    position, end = 0, base_offset
    while position + 61 <= len(content) and content[position + 16] == 2:
        size = int.from_bytes(content[position + 8 : position + 12], signed=True) + 12
        if size < 61 or position + size > len(content):
            break
        base = int.from_bytes(content[position : position + 8])
        end = base + int.from_bytes(content[position + 23 : position + 27], signed=True) + 1
        position += size
    return end
