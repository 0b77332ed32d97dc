"""Transactions: offsets committed in transactions, from the segments alone.

A log that was moved here from a Kafka may have come without its `.txnindex` and `.snapshot` files,
which name the aborted transactions. The log says the same by its control batches. Here are random
histories in segments with nothing beside them, read by the pipeline, against what a coordinator of
Rollcall counts when it loads them (storage/log/transactions.py).
"""

import random
import struct
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator.records import read_offset_commit_value, read_offset_key
from pipeline.jobs import JOBS, JobInput
from pipeline.read.data_source import read_piece
from pipeline.read.segments import pieces, segments
from pipeline.read.sources import PipelineSource
from pipeline.tables import TRANSACTION_MARKERS, UNDECODABLE, Table
from protocol.names import OFFSETS_TOPIC
from storage.api import Record
from storage.batch.record_batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    encode_batch,
    read_header,
)
from storage.batch.rewrite import assemble, recompressed
from storage.log.transactions import CommittedRecords
from tests.pipeline.logs import NOON_MS, commit

pytestmark = pytest.mark.xdist_group("spark")

FOREVER = 4_000_000_000_000
LOGS = 4
ABORT, COMMIT, LEADER_CHANGE = 0, 1, 2

Key = tuple[str, str, int]


def history(seed: int) -> list[bytes]:
    """Batches in the order of the log: plain commits, three producers' transactions, deletions."""
    rng = random.Random(seed)
    log: list[bytes] = []
    offset = committed = 0

    def write(records: list[Record], producer: int = -1, attributes: int = 0) -> None:
        nonlocal offset
        batch = encode_batch(
            records, offset, NOON_MS + offset, 0, producer, -1 if producer < 0 else 0, 0, attributes
        )
        if not attributes & CONTROL_FLAG and rng.random() < 0.2:
            batch = recompressed(batch, read_header(batch), rng.randint(1, 4), None)
        log.append(batch)
        offset += len(records) + rng.randint(0, 1)  # the cleaner leaves gaps

    for _ in range(120):
        records = []
        for _ in range(rng.randint(1, 3)):
            committed += 1
            made = commit(f"log-{seed}", "orders", rng.randint(0, 5), committed)
            records.append(Record(made.key, None) if rng.random() < 0.1 else made)
        match rng.choice(["plain", "inside", "inside", "inside", "end", "end", "other", "emptied"]):
            case "plain":
                write(records)
            case "inside":
                write(records, rng.randint(1, 3), TRANSACTIONAL_FLAG)
            case "end":
                how = rng.choice([ABORT, COMMIT])
                marker = Record(struct.pack(">hh", 0, how), struct.pack(">hi", 0, 0))
                write([marker], rng.randint(1, 3), TRANSACTIONAL_FLAG | CONTROL_FLAG)
            case "other":  # a control record that ends nothing
                write([Record(struct.pack(">hh", 0, LEADER_CHANGE), b"\0\0")], -1, CONTROL_FLAG)
            case "emptied":  # a marker of which the cleaner left the batch
                write(
                    [Record(struct.pack(">hh", 0, COMMIT), b"")],
                    2,
                    TRANSACTIONAL_FLAG | CONTROL_FLAG,
                )
                header = read_header(log[-1])
                log[-1] = assemble(
                    header._replace(records_count=0, batch_length=HEADER_BYTES - LOG_OVERHEAD), b""
                )
    return log


def write_segments(data_dir: Path, partition: int, log: list[bytes]) -> None:
    """Three of them, cut anywhere: a transaction may begin in one and end in the next."""
    folder = data_dir / f"__consumer_offsets-{partition}"
    folder.mkdir()
    for begin, end in ((0, 35), (35, 36), (36, len(log))):
        base_offset = read_header(log[begin]).base_offset
        (folder / f"{base_offset:020}.log").write_bytes(b"".join(log[begin:end]))


def by_the_coordinator(log: list[bytes]) -> tuple[dict[Key, int], CommittedRecords]:
    """The offsets that count at the end, and what became of the transactions."""
    counts = CommittedRecords()
    newest: dict[Key, tuple[int, int | None]] = {}
    for batch in log:
        for offset, _, key, value in counts.take(batch):
            assert key is not None
            where = read_offset_key(key)
            committed_key = (where.group_id, where.topic, where.partition)
            if offset >= newest.get(committed_key, (-1, None))[0]:
                said = None if value is None else read_offset_commit_value(value).committed_offset
                newest[committed_key] = (offset, said)
    return {key: said for key, (_, said) in newest.items() if said is not None}, counts


def test_offsets_of_transactions_are_those_of_a_coordinator(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected: dict[Key, int] = {}
    for seed in range(LOGS):
        log = history(seed)
        write_segments(tmp_path, seed, log)
        offsets, counts = by_the_coordinator(log)
        expected |= offsets
        assert min(counts.committed, counts.aborted, counts.is_holding) > 0, "a history of all"
    assert {file.suffix for file in tmp_path.rglob("*-*/*")} == {".log"}

    job_input = JobInput(PipelineSource(spark, str(tmp_path)), 0, FOREVER)
    rows = JOBS["offsets_as_of"].run(job_input)["offsets_as_of"].collect()

    found = {(row.group, row.topic, row.partition): row.committed_offset for row in rows}
    assert found == expected


def test_every_marker_that_ends_a_transaction_is_found_and_no_other(tmp_path: Path) -> None:
    log = history(0)
    write_segments(tmp_path, 0, log)
    cut = [piece for segment in segments(str(tmp_path), OFFSETS_TOPIC) for piece in pieces(segment)]

    def rows(table: Table) -> list[dict[str, object]]:
        return [row for p in cut for batch in read_piece(p, table) for row in batch.to_pylist()]

    headers = [read_header(batch) for batch in log]
    ends = [header for header in headers if header.is_control and header.is_transactional]
    assert [row["log_offset"] for row in rows(TRANSACTION_MARKERS)] == [
        header.base_offset for header in ends if header.records_count
    ]
    assert rows(UNDECODABLE) == []
