"""Remote segments: read whole, through Hadoop's file systems.

For object stores and HDFS: Spark lists and reads the files (its `binaryFile` source), and a task
gets a segment as one value and decodes it in chunks. So a segment cannot be split or be longer than
2 GiB, and each byte goes through Java first. If a path can be mounted, source.py is faster.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.decode.decoder import schema_of
from pipeline.decode.resync import OFFSETS_OF_A_SEGMENT
from pipeline.read.data_source import read_chunks
from pipeline.read.identity import LogBeginning
from pipeline.read.segments import NoSegments, Piece, ReadAt, end_of_log, log_beginning
from pipeline.tables import Table
from pipeline.worker_imports import prepare_worker

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
        prepare_worker()
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
    base = int(match["base"])
    offsets = (base, base + OFFSETS_OF_A_SEGMENT)
    return Piece(file, topic, int(match["partition"]), 0, size, is_last=True, offsets=offsets)


def _read(content: bytes) -> ReadAt:
    return lambda size, position: content[position : position + size]


class RemoteExtent(NamedTuple):
    """`end`: the offset after the last whole batch."""

    end: int
    beginning: LogBeginning | None


def remote_extents(spark: SparkSession, path: str, topic: str) -> dict[int, RemoteExtent]:
    """By partition."""
    schema = "partition int, base long, end long, begin long, first_ms long, last_ms long"

    def extents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for file, content in zip(batch.column("path"), batch.column("content"), strict=True):
                match = _SEGMENT.search(file.as_py())
                if match is None or match["topic"] != topic:
                    continue
                log = content.as_buffer().to_pybytes()
                base = int(match["base"])
                offsets = (base, base + OFFSETS_OF_A_SEGMENT)
                end = end_of_log(_read(log), 0, len(log), offsets)
                begins = log_beginning(log, offsets) or (None, None, None)
                row = (int(match["partition"]), base, end, *begins)
                names = ("partition", "base", "end", "begin", "first_ms", "last_ms")
                kinds = (pa.int32(), *[pa.int64()] * 5)
                arrays = [pa.array([x], kind) for x, kind in zip(row, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=list(names))

    found = _files(spark, path, topic).select("path", "content").mapInArrow(extents, schema)
    whole: dict[int, RemoteExtent] = {}
    for row in sorted(found.collect(), key=lambda row: (row.partition, row.base)):
        known = whole.get(row.partition)
        beginning = None if known is None else known.beginning
        if beginning is None and row.begin is not None:
            beginning = LogBeginning(row.begin, row.first_ms, row.last_ms)
        end = row.end if known is None else max(known.end, row.end)
        whole[row.partition] = RemoteExtent(end, beginning)
    return whole
