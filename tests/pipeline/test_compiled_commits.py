"""Compiled commits: row for row what numpy reads, and whatever is not usual is left to it."""

import random
from collections.abc import Iterable, Iterator, Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from coordinator.records import offset_commit_key
from pipeline.decode import compiled_commits, decoder
from pipeline.decode.compiled_commits import UsualCommits, compiled_reader, usual_commits
from pipeline.decode.record_extents import find_batches
from pipeline.read import data_source as source
from pipeline.read.data_source import read_chunks
from pipeline.read.segments import Piece
from pipeline.tables import COMMITS, Table
from protocol.names import OFFSETS_TOPIC, GroupId, TopicName
from storage.api import Record
from storage.batch.record_batch import TRANSACTIONAL_FLAG, encode_batch, iter_batches, read_records
from tests.build import IS_COMPILED
from tests.pipeline.logs import KAFKAS_OFFSETS, NOON_MS, commit
from tests.pipeline.test_decoder import batches, log_of

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

NAMES = COMMITS.schema.names


class Counting:
    """`usual_commits`, and how often it has read the batches itself."""

    def __init__(self) -> None:
        self.asked = self.read = 0

    def __call__(self, *given: object) -> UsualCommits | None:
        self.asked += 1
        found = usual_commits(*given)  # type: ignore[arg-type]  # as it was called
        self.read += found is not None
        return found


def rows_of(log: bytes, table: Table, usual: object, **options: object) -> list[dict]:
    piece = Piece("f.log", OFFSETS_TOPIC, 3, 0, len(log), is_last=True)
    with patch.object(source, "usual_commits", usual):
        found = read_chunks(lambda size, at: log[at : at + size], piece, table, **options)  # type: ignore[arg-type]
        rows = list(found)
    for batch in rows:
        batch.validate(full=True)
        assert batch.schema == table.schema
    return [row for batch in rows for row in batch.to_pylist()]


def not_compiled(*_: object) -> None:
    """As without the compiled build."""


@given(
    st.lists(batches(), min_size=1, max_size=14),
    st.sampled_from([200, 3_000, 4 << 20]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True) | st.just(NAMES),
    st.sampled_from([(0, None), (5, None), (0, 9), (3, 12)]),
)
def test_both_readers_give_the_same_rows(
    made: list[bytes], chunk_bytes: int, columns: list[str], between: tuple[int, int | None]
) -> None:
    log, table = log_of(made), COMMITS.only(*columns)

    with patch.object(source, "_CHUNK_BYTES", chunk_bytes):
        found, expected = (
            rows_of(log, table, usual, between=between) for usual in (usual_commits, not_compiled)
        )

    assert found == expected


@given(st.lists(batches(), min_size=1, max_size=9), st.sampled_from([NAMES, ["topic_id"]]))
def test_messages_of_a_broker_give_the_same_rows(made: list[bytes], columns: list[str]) -> None:
    log, table = log_of(made), COMMITS.only(*columns)
    fields = [fields for at, _ in iter_batches(log) for fields in read_records(log, at)]
    messages = pa.RecordBatch.from_pylist(
        [{"key": key, "value": value, "partition": offset % 3, "offset": offset, "timestamp_ms": at}
         for offset, at, key, value, _ in fields],
        MESSAGES,
    )  # fmt: skip
    reader = compiled_reader()
    assert reader is not None

    found = messages_rows(table, messages)
    with patch.object(compiled_commits, "compiled_reader", lambda: None):
        expected = messages_rows(table, messages)

    assert found == expected


MESSAGES = pa.schema(
    {"key": pa.binary(), "value": pa.binary(), "partition": pa.int32(), "offset": pa.int64(),
     "timestamp_ms": pa.int64()}
)  # fmt: skip


def messages_rows(table: Table, messages: pa.RecordBatch) -> list[dict]:
    # From the second on: an Arrow column may begin within its buffers.
    rows = decoder.rows_of([table], decoder.of_messages(OFFSETS_TOPIC, messages.slice(1)))
    rows.validate(full=True)
    assert rows.schema == table.schema
    found: list[dict] = rows.to_pylist()
    return found


def test_usual_messages_are_read_in_c() -> None:
    records = [commit("g", "orders", n, n) for n in range(9)] + [Record(b"\0\2\0\1g", None)]
    messages = pa.RecordBatch.from_pylist(
        [{"key": key, "value": value, "partition": 2, "offset": n, "timestamp_ms": NOON_MS}
         for n, (key, value) in enumerate(records)],
        MESSAGES,
    )  # fmt: skip
    of_broker = decoder.of_messages(OFFSETS_TOPIC, messages)

    where = of_broker.partition, of_broker.offset, of_broker.timestamp_ms
    usual = compiled_commits.usual_records(of_broker.records, *where, COMMITS)

    assert usual is not None
    assert usual.last_offset == 9
    assert usual.rows.column("committed_offset").to_pylist() == list(range(9))


def test_damage_that_no_checksum_finds_is_read_as_numpy_reads_it() -> None:
    rng = random.Random(20261128)
    usual = Counting()
    for _ in range(400):
        made = [
            [commit(f"g{rng.randint(0, 9)}", "orders", n, n) for n in range(rng.randint(1, 5))]
            for _ in range(4)
        ]
        log = bytearray(log_of([encode_batch(records, 0, NOON_MS) for records in made]))
        for _ in range(rng.randint(0, 2)):
            log[rng.randrange(len(log))] ^= 1 << rng.randrange(8)
        found, expected = (
            rows_of(bytes(log), COMMITS, how, check_crc=False) for how in (usual, not_compiled)
        )
        assert found == expected

    assert usual.asked > usual.read > usual.asked / 4  # both were tried


def usual_log() -> bytes:
    """What groups write: both versions of the value, tombstones, transactions, other records."""
    key = offset_commit_key(GroupId("zürich"), TopicName("orders"), 7)
    plain = [commit(f"app-{n}", "orders", n, 1 << n) for n in range(40)]
    gone = [Record(key, None), Record(b"\0\2\0\1g", None), Record(b"", b"x")]
    old = [Record(key, b"\0\3" + bytes(7) + b"\x05" + b"\0\0\0\2" + b"\0\3abc" + bytes(8))]
    kinds: Sequence[tuple[Sequence[Record], int, int]] = [
        (plain, -1, 0), (gone, -1, 0), (old, 8, TRANSACTIONAL_FLAG), (plain, -1, 0),
    ]  # fmt: skip
    return log_of(
        [encode_batch(records, 0, NOON_MS, 0, producer, 0, 0, flags)
         for records, producer, flags in kinds]
    )  # fmt: skip


@pytest.mark.parametrize("log", [usual_log(), KAFKAS_OFFSETS.read_bytes()], ids=["made", "kafka"])
def test_usual_commits_are_read_in_c(log: bytes) -> None:
    usual = Counting()

    rows = rows_of(log, COMMITS, usual)

    assert usual.read == usual.asked > 0
    assert rows == rows_of(log, COMMITS, not_compiled)
    assert rows


def test_columns_that_are_too_short_are_refused() -> None:
    reader = compiled_reader()
    assert reader is not None
    found = find_batches(usual_log(), is_last=True)
    where = found.batches.position, found.batches.begin, found.batches.end
    columns: list[np.ndarray | None] = [None] * 19

    def read(room: int) -> tuple[int, int] | None:
        answer: tuple[int, int] | None = reader.read_batches(
            found.content.octets, *where, 3, 0, 1 << 40, room, tuple(columns)
        )
        return answer

    columns[0] = np.empty(50, np.int64)
    with pytest.raises(ValueError, match="column 0 has no room for 100 rows"):
        read(100)
    assert read(50) is None  # there are more rows
    columns[0] = np.empty(100, np.int64)
    assert read(100) == (82, 86)  # after gaps
    columns[2], columns[3] = np.empty(101, np.int32), np.empty(10, np.uint8)
    assert read(100) is None  # of the texts there are more bytes
    columns[3] = None
    with pytest.raises(ValueError, match="column 2 has ends without bytes"):
        read(100)


def test_a_text_that_is_not_utf_8_is_left_to_numpy() -> None:
    key = offset_commit_key(GroupId("gg"), TopicName("orders"), 7).replace(b"gg", b"\xff\xfe")
    log = log_of([encode_batch([Record(key, None)], 0, NOON_MS)])
    usual = Counting()

    (row,) = rows_of(log, COMMITS, usual)

    assert (usual.read, row["group"]) == (0, "\ufffd\ufffd")


def test_a_worker_of_spark_reads_in_c(spark: SparkSession) -> None:
    def ask(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"is_compiled": [compiled_reader() is not None]})

    asked = spark.range(1, numPartitions=1).mapInArrow(ask, "is_compiled boolean")

    assert [row.is_compiled for row in asked.collect()] == [True]
