"""The source "rollcall-log": a Python Data Source that reads segments and yields Arrow batches.

    spark.dataSource.register(RollcallLog)
    spark.read.format("rollcall-log").option("table", "commits").load("/var/lib/rollcall")

One task reads one piece of a segment in chunks and decodes each at once (decoder.py); nothing is
held but the chunk. Reads local paths (also mounted shares); for other file systems of Hadoop see
remote.py, which takes whole files through Spark. Options:

    columns     those that are wanted, with commas: Spark does not tell a Python source which it
                uses, and to take in all costs its JVM as much as to decode them costs here
    table       commits, group_metadata, ... (tables.py); "undecodable" may be asked of any topic.
                Several with commas, for tables of few rows: the log is decoded once for all; a
                row then has a column for each table, and is of the one that is not null
    topic       for "undecodable": of which topic; __consumer_offsets if not said
    begins      offsets by partition, as JSON: records before them are left out, and segments that
                have no others are not read
    ends        the same of records from these offsets on; a partition that is not named is empty
    check.crcs  false skips the checksums, as kafka clients name it; true if not said
    piece.bytes how much of a log one task reads
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import structs
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pipeline.decode.batch_boundaries import RESYNC_BYTES, Undecodable
from pipeline.decode.compiled_commits import usual_commits
from pipeline.decode.decoder import Between, Slice, of_segment, rows_of, schema_of
from pipeline.decode.record_extents import find_batches
from pipeline.decode.resync import OffsetBounds, next_batch
from pipeline.memory import keep_memory
from pipeline.read.segments import (
    PIECE_BYTES,
    Piece,
    ReadAt,
    batch_extent,
    pieces,
    segments,
    with_records_from,
)
from pipeline.tables import COMMITS, TABLES, Table
from pipeline.worker_imports import prepare_worker
from protocol.names import OFFSETS_TOPIC

FORMAT: Final = "rollcall-log"
_CHUNK_BYTES: Final = 4 << 20
"""Read and decoded at once; the caches of a core like it."""

_LARGEST_BATCH: Final = 64 << 20
"""A batch longer than a chunk is read alone, up to this."""

_ROWS_AT_ONCE: Final = 1 << 17
"""Made into columns at once: of compressed batches a chunk may have many more."""


class BadOption(ValueError):
    """An option that names nothing; the message is for people."""


class RollcallLog(DataSource):
    """Segments of the offsets topic, of Rollcall or of Kafka, and of the topics of the history."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        prepare_worker()
        return from_arrow_schema(schema_of(requested_tables(self.options)))

    def reader(self, schema: StructType) -> "LogReader":  # noqa: ARG002  ours is the only one
        return LogReader(dict(self.options))


class Task(InputPartition):
    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)
        self.piece = piece


class LogReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._tables = requested_tables(options)
        self._begins = _offsets(options, "begins") or {}
        self._ends = _offsets(options, "ends")
        self._check_crc = options.get("check.crcs", "true").lower() != "false"

    def partitions(self) -> list[InputPartition]:
        prepare_worker()
        path = self._options.get("path")
        if path is None:
            raise BadOption("no path: use .load(DATA_DIR)")
        size = int(self._options.get("piece.bytes", PIECE_BYTES))
        topic = topic_of(self._tables, self._options)
        found = with_records_from(segments(path, topic), self._begins)
        return [Task(piece) for segment in found for piece in pieces(segment, size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Task)
        prepare_worker()
        piece = partition.piece
        begin = self._begins.get(piece.partition, 0)
        end = None if self._ends is None else self._ends.get(piece.partition, 0)
        return read_piece(piece, *self._tables, between=(begin, end), check_crc=self._check_crc)


def requested_tables(options: Mapping[str, str]) -> list[Table]:
    """With the columns that are wanted. Raises BadOption."""
    names = [name.strip() for name in options.get("table", COMMITS.name).split(",")]
    for name in names:
        if name not in TABLES:
            raise BadOption(f"no table {name!r}; the tables are {', '.join(TABLES)}")
    tables = [TABLES[name] for name in names]
    if len({table.topic for table in tables} - {None}) > 1:
        raise BadOption(f"{', '.join(names)} are not from the same topic")
    if "columns" not in options:
        return tables
    if len(tables) > 1:
        raise BadOption("columns needs a single table")
    wanted = [name.strip() for name in options["columns"].split(",")]
    there = tables[0].schema.names
    if unknown := [name for name in wanted if name not in there]:
        raise BadOption(f"no column {', '.join(unknown)}; the columns are {', '.join(there)}")
    return [tables[0].only(*wanted)]


def topic_of(tables: Sequence[Table], options: Mapping[str, str]) -> str:
    said = options.get("topic", OFFSETS_TOPIC)
    return next((table.topic for table in tables if table.topic), said)


def _offsets(options: Mapping[str, str], name: str) -> Mapping[int, int] | None:
    if name not in options:
        return None
    try:
        return {int(partition): int(at) for partition, at in json.loads(options[name]).items()}
    except (ValueError, TypeError, AttributeError):
        raise BadOption(f'{name} must be offsets by partition, such as {{"0": 17}}') from None


def read_piece(
    piece: Piece, *tables: Table, between: Between = (0, None), check_crc: bool = True
) -> Iterator[pa.RecordBatch]:
    """The rows of the tables in a piece, a batch for each chunk; as `schema_of` has them."""
    keep_memory()
    with open(piece.path, "rb") as file:  # noqa: PTH123  as Spark's workers do

        def read(size: int, position: int) -> bytes:
            return os.pread(file.fileno(), size, position)

        yield from read_chunks(read, piece, *tables, between=between, check_crc=check_crc)


def read_chunks(
    read: ReadAt,
    piece: Piece,
    *tables: Table,
    between: Between = (0, None),
    check_crc: bool = True,
    largest_batch: int = _LARGEST_BATCH,
) -> Iterator[pa.RecordBatch]:
    """The same of bytes that `read` brings."""
    position, want = piece.start, _CHUNK_BYTES
    low, high = piece.offsets
    of_commits = piece.topic == COMMITS.topic and [table.name for table in tables] == [COMMITS.name]
    while position < piece.end:
        asked = min(want, piece.end - position)
        chunk = read(asked, position)
        if not chunk:
            return  # it was cut since it was looked at: a repair, or the room of a segment
        at_end = position + asked == piece.end or len(chunk) < asked
        found = find_batches(
            chunk,
            # What is torn may be what is being written just now: then it is the next run's.
            is_last=at_end and not (piece.is_last and read(1, piece.end)),
            check_crc=check_crc,
            offsets=(low, high),
        )
        consumed = found.consumed
        commits = None
        if consumed and of_commits:
            commits = usual_commits(found, tables[0], piece.partition, *between)
        if commits is not None:
            rows, last = _in_parts(commits.rows), commits.last_offset
        else:
            records = of_segment(
                found, piece.topic, piece.partition, file=piece.path, position=position
            )
            if not consumed:
                if at_end:
                    return
                _, size = batch_extent(chunk)
                if size <= min(largest_batch, piece.end - position):
                    want = size
                    continue
                records, consumed = _beyond(
                    records, chunk, position, (low, high), piece, largest_batch
                )
            rows, last = _decoded(records.between(*between), tables), records.last_offset
        want = _CHUNK_BYTES
        position += consumed
        low = max(low, last + 1)
        yield from rows


def _in_parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for begin in range(0, rows.num_rows, _ROWS_AT_ONCE):
        yield rows.slice(begin, _ROWS_AT_ONCE)


def _decoded(records: Slice, tables: Sequence[Table]) -> Iterator[pa.RecordBatch]:
    for part in records.parts(_ROWS_AT_ONCE):
        rows = rows_of(tables, part)
        if rows.num_rows:
            yield rows


def _beyond(
    records: Slice,
    chunk: bytes,
    position: int,
    offsets: OffsetBounds,
    piece: Piece,
    largest_batch: int,
) -> tuple[Slice, int]:
    """(the damage, bytes that were read) of a chunk that begins with a batch which is longer than
    the piece or than is allowed."""
    base_offset, size = batch_extent(chunk)
    after = next_batch(chunk, 1, len(chunk), offsets)
    if after is not None:
        reason, consumed = "its length is wrong", after
    elif size > piece.end - position:
        reason, consumed = "its length is wrong", max(1, len(chunk) - RESYNC_BYTES)
    else:
        reason, consumed = f"a batch of {size} bytes; the limit is {largest_batch}", size
    damage = [Undecodable(position, consumed, base_offset, reason)]
    return structs.replace(records, damage=damage), consumed
