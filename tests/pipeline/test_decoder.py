"""Decoder: a log comes out of the source row for row as the daemon's own readers read it.

No Spark here: pieces of logs of every kind, read in chunks of any size, against the record batches
and record schemas of the daemon. What neither reads must be in the table of the undecodable.
"""

import random
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.record_schemas import OffsetCommitValue
from coordinator.records import decode_record
from logtools.group_records import decode_group_record
from pipeline.decode import batch_boundaries as hops
from pipeline.decode import lockstep
from pipeline.decode import record_extents as records
from pipeline.decode.checksums import are_right
from pipeline.decode.record_extents import find_records
from pipeline.read import data_source as source
from pipeline.read.data_source import read_chunks, read_piece
from pipeline.read.segments import Piece, log_ends, pieces, segments
from pipeline.tables import COMMITS, GROUP_RECORDS, TRANSACTION_MARKERS, UNDECODABLE, Table
from protocol.names import OFFSETS_TOPIC
from storage.api import Record
from storage.batch.compression import NONE
from storage.batch.record_batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL_FLAG,
    encode_batch,
    encode_varint,
    iter_batches,
    read_header,
    read_records,
)
from storage.batch.rewrite import assemble, recompressed
from tests.pipeline.logs import NOON_MS, commit, write_log
from tests.pipeline.test_columns import commits, said

NAMES = st.text(max_size=20)
HEADERS = st.lists(st.tuples(st.binary(max_size=9), st.one_of(st.none(), st.binary(max_size=9))),
                   max_size=2)  # fmt: skip


def blob(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Of any sort: what a coordinator writes, and what it never would but the format allows."""
    sort = draw(st.sampled_from(["plain", "plain", "transaction", "control", "odd", "empty"]))
    if sort == "control":
        key = struct.pack(">hh", 0, draw(st.sampled_from([0, 1, 2])))
        chosen = [Record(key, bytes(6))]
    else:
        chosen = draw(st.lists(kinds(), min_size=1, max_size=9))
    attributes = {
        "transaction": TRANSACTIONAL_FLAG,
        "control": TRANSACTIONAL_FLAG | CONTROL_FLAG,
    }.get(sort, 0)
    if sort == "odd" and draw(st.booleans()):
        attributes |= LOG_APPEND_TIME
    producer = draw(st.integers(0, 3)) if attributes & TRANSACTIONAL_FLAG else -1
    batch = encode_batch(chosen, 0, NOON_MS, 0, producer, 0 if producer >= 0 else -1, 0, attributes)
    if sort == "odd":
        batch = odd(batch, chosen, draw)
    elif sort == "empty":  # all that the cleaner left of it
        header = read_header(batch)
        left = header._replace(records_count=0, batch_length=HEADER_BYTES - 12)
        return assemble(left, b"")
    codec = draw(st.sampled_from([NONE, NONE, 1, 2, 3, 4]))
    return batch if codec == NONE else recompressed(batch, read_header(batch), codec, None)


def odd(batch: bytes, chosen: Sequence[Record], draw: st.DrawFn) -> bytes:
    """The same records with timestamps far apart, gaps in their offsets, and record headers."""
    delta, body = 0, b""
    for key, value in chosen:
        fields = b"\0" + encode_varint(draw(st.integers(-(2**40), 2**40)))
        fields += encode_varint(delta) + blob(key) + blob(value)
        extra = draw(HEADERS)
        fields += encode_varint(len(extra)) + b"".join(blob(k) + blob(v) for k, v in extra)
        body += encode_varint(len(fields)) + fields
        delta += draw(st.sampled_from([1, 1, 2, 70_000]))
    header = read_header(batch)._replace(
        last_offset_delta=delta, batch_length=HEADER_BYTES - 12 + len(body)
    )
    return assemble(header, body)


@st.composite
def kinds(draw: st.DrawFn) -> Record:
    """A commit, mostly; also broken ones, other types, and what has no type."""
    sort = draw(st.sampled_from(["commit"] * 6 + ["broken", "broken", "other", "long", "noise"]))
    key, value = draw(commits())
    if sort == "broken":
        broken = bytearray(key if value is None or draw(st.booleans()) else value)
        change = draw(st.sampled_from(["cut", "longer", "changed"]))
        if change == "cut":
            del broken[draw(st.integers(0, len(broken) - 1)) :]
        elif change == "longer":
            broken += draw(st.binary(min_size=1, max_size=9))
        else:
            # Not a letter: what is no UTF-8 the readers show in ways of their own.
            broken[draw(st.integers(0, min(1, len(broken) - 1)))] ^= draw(st.integers(1, 255))
        is_key = len(key) >= 2 and broken[:2] == key[:2] and change != "changed"
        return Record(bytes(broken), value) if is_key else Record(key, bytes(broken))
    if sort == "other":
        kind = draw(st.sampled_from([2, 3, 5, 11, 17, 99]))
        return Record(struct.pack(">h", kind) + draw(st.binary(max_size=20)), draw(st.none()))
    if sort == "long":  # more than the lockstep's table reaches
        return Record(b"\0\x63", bytes(draw(st.sampled_from([8_000, 8_300, 70_000]))))
    if sort == "noise":
        return Record(draw(st.binary(max_size=3)), draw(st.binary(max_size=9)))
    return Record(key, value)


def log_of(found: Sequence[bytes]) -> bytes:
    log, offset = [], 0
    for n, batch in enumerate(found):
        log.append(struct.pack(">q", offset) + batch[8:])
        offset += read_header(batch).last_offset_delta + 1 + n % 3
    return b"".join(log)


def rows_of(log: bytes, table: Table, chunk_bytes: int = 4 << 20, **options: int) -> list[dict]:
    piece = Piece("f.log", OFFSETS_TOPIC, 3, 0, len(log), is_last=True)
    with patch.object(source, "_CHUNK_BYTES", chunk_bytes):
        found = read_chunks(lambda size, at: log[at : at + size], piece, table, **options)
        rows = [row for batch in found for row in batch.to_pylist()]
    always = [column.name for column in table.schema if not column.nullable]
    assert all(row[name] is not None for row in rows for name in always)
    return rows


def by_the_daemon(log: bytes) -> tuple[dict[int, dict | None], dict[int, bool], set[int]]:
    """(commits by offset, None if unsound; markers; the other records)."""
    rows_of_daemon: dict[int, dict | None] = {}
    markers: dict[int, bool] = {}
    others: set[int] = set()
    for at, header in iter_batches(log):
        for offset, timestamp, key, value, _ in read_records(log, at):
            if header.is_control:
                if key is not None and key[2:4] in (b"\0\0", b"\0\1"):
                    markers[offset] = key[3] == 1
            elif key is None or key[:2] not in (b"\0\0", b"\0\1"):
                others.add(offset)
            elif decode_group_record(key, value).problem is not None:
                rows_of_daemon[offset] = None
            else:
                rows_of_daemon[offset] = _row(key, value) | {
                    "log_timestamp_ms": timestamp,
                    "producer_id": None if header.producer_id < 0 else header.producer_id,
                    "transactional": header.is_transactional,
                }
    return rows_of_daemon, markers, others


def _row(key: bytes, value: bytes | None) -> dict:
    decoded = decode_record(key, value)
    assert decoded is not None
    said = decoded.value
    row = {
        "log_partition": 3,
        **{name: getattr(decoded.key, name) for name in ("group", "topic", "partition")},
        **dict.fromkeys(("committed_offset", "leader_epoch", "metadata", "commit_timestamp_ms")),
        **dict.fromkeys(("expire_timestamp_ms", "topic_id", "value_version")),
        "tombstone": said is None,
    }
    if said is not None:
        row |= {
            "committed_offset": said.offset,  # type: ignore[attr-defined]  # of two types
            "metadata": said.metadata,  # type: ignore[attr-defined]
            "commit_timestamp_ms": said.commit_timestamp,  # type: ignore[attr-defined]
            "value_version": decoded.value_version,
        }
    if isinstance(said, OffsetCommitValue):
        row["leader_epoch"] = None if said.leader_epoch < 0 else said.leader_epoch
        row["expire_timestamp_ms"] = None if said.expire_timestamp < 0 else said.expire_timestamp
        row["topic_id"] = said.topic_id.bytes if said.topic_id.int else None
    return row


@given(
    st.lists(batches(), min_size=1, max_size=14),
    st.sampled_from([200, 3_000, 4 << 20]),
    st.sampled_from([1, 20]),
    st.sampled_from([50, 16 << 20]),
)
def test_every_record_is_a_row_of_its_table_or_undecodable(
    made: list[bytes], chunk_bytes: int, alone: int, opened_bytes: int
) -> None:
    log = log_of(made)
    expected, markers, others = by_the_daemon(log)

    with ExitStack() as stack:
        stack.enter_context(patch.object(lockstep, "_ALONE", alone))
        stack.enter_context(patch.object(records, "OPENED_BYTES", opened_bytes))
        stack.enter_context(patch.object(source, "_ROWS_AT_ONCE", 7))
        found, ended, shown, aside = (
            rows_of(log, table, chunk_bytes)
            for table in (COMMITS, TRANSACTION_MARKERS, GROUP_RECORDS, UNDECODABLE)
        )

    assert {row.pop("log_offset"): row for row in found} == {
        offset: row for offset, row in expected.items() if row is not None
    }
    assert {row["log_offset"]: row["committed"] for row in ended} == markers
    unsound = {offset for offset, row in expected.items() if row is None}
    kept = [row["log_offset"] for row in aside]
    assert sorted([*kept, *(row["log_offset"] for row in shown)]) == sorted(unsound | others)
    assert unsound <= set(kept)


# Small batches: found together, checked together.


def small_log(count: int, seed: int = 1) -> tuple[bytes, list[int]]:
    """Of one commit each, some with a whole batch for metadata; where each begins."""
    rng = random.Random(seed)
    decoy = encode_batch([commit("g", "t", 0, 1)], 5, NOON_MS)
    log, at = bytearray(), []
    for n in range(count):
        record = commit(f"group-{rng.randint(0, 999)}", "t" * rng.randint(1, 30), n % 7, n)
        if rng.random() < 0.1:
            record = Record(record.key + decoy, None)
        at.append(len(log))
        log += encode_batch([record], n, NOON_MS)
    return bytes(log), at


def test_small_batches_are_found_as_by_hopping() -> None:
    log, at = small_log(700)
    content = records.Bytes(log)

    assert len(hops._find_together(content, check_crc=True)[0]) == 700
    for cut in (len(log), len(log) - 1, at[-1] + 61, at[-1] + 30, at[-2] + 17):
        found = find_records(log[:cut], is_last=False)
        ends = [*at[1:], len(log)]
        whole = [begin for begin, end in zip(at, ends, strict=True) if end <= cut]
        assert found.batches.position.tolist() == whole


def test_values_that_resemble_batches_are_not_read_as_batches() -> None:
    decoys = b"".join(encode_batch([commit("g", "t", 0, 1)], n, NOON_MS) for n in range(9))
    long = Record(b"long", bytes(20_000))  # more than a stretch in which a beginning is looked for
    log, at = bytearray(), []
    for n in range(700):
        record = Record(commit("g", "t", 0, n).key + decoys, None) if n % 20 == 9 else None
        record = long if n == 300 else record or commit("group", "topic", n % 7, n)
        at.append(len(log))
        log += encode_batch([record], n, NOON_MS)

    sure, _ = hops._find_together(records.Bytes(bytes(log)), check_crc=True)

    assert 0 < len(sure) < 700
    assert sure.tolist() == at[: len(sure)]
    assert find_records(bytes(log), is_last=True).batches.position.tolist() == at


def test_where_too_many_steps_were_needed_batches_are_hopped_over() -> None:
    log, at = small_log(700)

    with patch.object(hops, "_STEPS_MAX", 5):
        sure, _ = hops._find_together(records.Bytes(log), check_crc=True)
        found = find_records(log, is_last=True)

    assert sure.tolist() == at[:5]
    assert found.batches.position.tolist() == at


@pytest.mark.parametrize("where", [0, 1, 350, 698, 699])
@pytest.mark.parametrize("field", [11, 16, 17, 22, 70])
def test_of_small_batches_a_false_one_is_named_and_the_rest_is_read(where: int, field: int) -> None:
    log, at = small_log(700)
    changed = bytearray(log)
    changed[at[where] + field] ^= 0x15

    found = find_records(bytes(changed), is_last=True)

    assert found.damage[0].position == at[where]
    before = found.batches.position.tolist()[:where]
    assert before == at[:where]
    assert len(found.offset) == 699  # also after a false length or magic
    assert [damage.position for damage in found.damage] == [at[where]]


@given(
    st.lists(st.binary(max_size=400), min_size=1, max_size=60), st.integers(0), st.integers(1, 255)
)
def test_a_change_anywhere_changes_the_checksum_of_all(
    parts: list[bytes], where: int, change: int
) -> None:
    zeros = bytes(21)
    octets = b"".join(zeros + part for part in parts)
    stated = np.array([google_crc32c.value(part) for part in parts], np.uint32)
    after = len(octets) - np.cumsum([len(part) + 21 for part in parts])

    def right(content: bytes) -> bool:
        return are_right(stated[::-1], np.frombuffer(content, np.uint8), after[::-1], 21)

    changed = bytearray(octets)
    changed[where % len(octets)] ^= change
    assert right(octets)
    assert not right(bytes(changed))


# What is too long, cut, or not there yet.


def test_a_batch_too_long_is_kept_aside_and_what_follows_is_read() -> None:
    long = encode_batch([Record(b"\0\x63" + bytes(9_000), None)], 1, NOON_MS)
    log = log_of([encode_batch([commit("g", "t", 0, 1)], 0, NOON_MS), long,
                  encode_batch([commit("g", "t", 0, 2)], 0, NOON_MS)])  # fmt: skip
    first = read_header(log).size

    (aside,) = rows_of(log, UNDECODABLE, 512, largest_batch=4_000)

    assert (aside["position"], aside["size"]) == (first, len(long))
    assert "the limit is 4000" in aside["reason"]
    rows = rows_of(log, COMMITS, 512, largest_batch=4_000)
    assert [row["committed_offset"] for row in rows] == [1, 2]


def test_a_batch_longer_than_a_chunk_is_read_alone() -> None:
    many = [commit("g", "t", n % 9, n) for n in range(300)]
    log = log_of([encode_batch(many[:3], 0, NOON_MS), encode_batch(many[3:], 0, NOON_MS)])
    asked: list[int] = []

    def read(size: int, at: int) -> bytes:
        asked.append(size)
        return log[at : at + size]

    piece = Piece("f.log", OFFSETS_TOPIC, 0, 0, len(log), is_last=False)
    with patch.object(source, "_CHUNK_BYTES", 1_000):
        rows = sum(batch.num_rows for batch in read_chunks(read, piece, COMMITS))

    assert rows == 300
    assert max(asked) == len(log) - read_header(log).size


@pytest.mark.parametrize("finished", [True, False])
def test_a_torn_end_is_damage_unless_it_is_being_written(finished: bool) -> None:
    log = log_of([encode_batch([commit("g", "t", 0, n)], 0, NOON_MS) for n in range(3)])
    torn = len(log) - 20
    piece = Piece("f.log", OFFSETS_TOPIC, 0, 0, torn, is_last=True)  # as it was when looked at
    there = log if finished else log[:torn]

    def rows(table: Table) -> int:
        found = read_chunks(lambda size, at: there[at : at + size], piece, table)
        return sum(batch.num_rows for batch in found)

    assert rows(COMMITS) == 2
    assert rows(UNDECODABLE) == (0 if finished else 1)


def test_a_segment_that_was_cut_since_ends_where_it_ends() -> None:
    log = log_of([encode_batch([commit("g", "t", 0, n)], 0, NOON_MS) for n in range(3)])
    piece = Piece("f.log", OFFSETS_TOPIC, 0, 0, 10 * len(log), is_last=True)

    found = list(read_chunks(lambda size, at: log[at : at + size], piece, COMMITS))

    assert sum(batch.num_rows for batch in found) == 3


def _mid_batch(positions: list[int]) -> list[int]:
    return [position + 30 for position in positions]


def _decoys(positions: list[int]) -> list[int]:
    return [position + 200 for position in positions]


@pytest.mark.parametrize("spoil", [list, _mid_batch, _decoys])
def test_an_index_that_points_into_batches_costs_no_row(
    tmp_path: Path, spoil: Callable[[list[int]], list[int]]
) -> None:
    decoy = encode_batch([commit("x", "x", 0, 1)], 5, NOON_MS)
    whole = [
        [commit("g", "t", 0, n), Record(b"\0\x63" + decoy[: n % 40], decoy)] for n in range(200)
    ]
    log = write_log(tmp_path, 0, whole)
    at = [position for position, _ in iter_batches(log.read_bytes())][1:]
    index = b"".join(
        struct.pack(">ii", 2 * n + 2, position) for n, position in enumerate(spoil(at))
    )
    log.with_suffix(".index").write_bytes(index)
    (segment,) = segments(str(tmp_path), OFFSETS_TOPIC)

    cut = pieces(segment, 2_000)

    assert len(cut) == 1 if spoil is list else len(cut) > 1  # an index is thinned out to MiBs
    rows = [row for p in cut for b in read_piece(p, COMMITS) for row in b.to_pylist()]
    assert [row["committed_offset"] for row in rows] == list(range(200))


@pytest.mark.parametrize("value_bytes", [100, 30_000, 200_000])
def test_a_segment_without_an_index_is_cut_where_batches_begin(
    tmp_path: Path, value_bytes: int
) -> None:
    whole = [[commit("g", "t", 0, n), Record(b"\0\x63", bytes(value_bytes))] for n in range(40)]
    log = write_log(tmp_path, 0, whole)
    (segment,) = segments(str(tmp_path), OFFSETS_TOPIC)

    cut = pieces(segment, segment.size // 4)

    assert 2 < len(cut) < 6
    begins = {position for position, _ in iter_batches(log.read_bytes())}
    assert {piece.start for piece in cut} <= begins
    rows = [row for p in cut for b in read_piece(p, COMMITS) for row in b.to_pylist()]
    assert [row["committed_offset"] for row in rows] == list(range(40))


def test_a_chunk_of_much_compressed_batches_opens_but_some_at_once() -> None:
    long = [Record(b"\0\x63", bytes(100_000)), commit("g", "t", 0, 1)]
    batch = encode_batch(long, 0, NOON_MS)
    tight = recompressed(batch, read_header(batch), 4, None)
    log = log_of([tight] * 20)
    opened: list[int] = []

    def noted(*given: object, **named: object):
        found = records.find_batches(*given, **named)
        opened.append(found.content.size)
        return found

    with (
        patch.object(records, "OPENED_BYTES", 250_000),
        patch.object(source, "find_batches", noted),
    ):
        rows = rows_of(log, COMMITS)

    assert [row["log_offset"] for row in rows] == [o for o, *_ in _commits_in(log)]
    assert max(opened) < 250_000 + len(batch) + len(log)


def _commits_in(log: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    found = said(find_records(log, is_last=True))
    return [row for row in found if row[2] is not None and row[2][:2] == b"\0\1"]


# Damage that no checksum covers.


def many_batches(data_dir: Path, count: int = 300) -> tuple[Path, list[int]]:
    """A log with an index, of one commit each; where the batches begin."""
    decoy = encode_batch([commit("x", "x", 0, 1)], 5, NOON_MS)
    log = write_log(
        data_dir, 0, [[Record(commit("g", "t", n % 3, n).key, commit("g", "t", 0, n).value),
                       Record(b"\0\x63" + bytes(n % 50), decoy)] for n in range(count)]
    )  # fmt: skip
    at = [position for position, _ in iter_batches(log.read_bytes())]
    entries = [struct.pack(">ii", 2 * n + 1, at[n]) for n in range(20, count, 20)]
    log.with_suffix(".index").write_bytes(b"".join(entries))
    return log, at


def read_all(data_dir: Path, table: Table, chunk_bytes: int, piece_bytes: int) -> list[dict]:
    (segment,) = segments(str(data_dir), OFFSETS_TOPIC)
    with patch.object(source, "_CHUNK_BYTES", chunk_bytes), patch.object(hops, "RESYNC_BYTES", 700):
        return [
            row
            for piece in pieces(segment, piece_bytes)
            for batch in read_piece(piece, table)
            for row in batch.to_pylist()
        ]


@pytest.mark.parametrize("piece_bytes", [8_000, 1 << 20])
@pytest.mark.parametrize("chunk_bytes", [2_000, 1 << 20])
@pytest.mark.parametrize(
    ("at_byte", "mask"),
    [(0, 0x80), (0, 1), (2, 4), (5, 0x20), (7, 0x80), (8, 0x80), (8, 1), (9, 8), (10, 1),
     (11, 0x11), (11, 0xFF), (16, 3), (40, 1)],
)  # fmt: skip
def test_one_wrong_bit_costs_one_batch_and_is_named(
    tmp_path: Path, at_byte: int, mask: int, chunk_bytes: int, piece_bytes: int
) -> None:
    """In the base offset, the length, the magic or the records of a batch in the middle."""
    log, at = many_batches(tmp_path)
    content = bytearray(log.read_bytes())
    content[at[150] + at_byte] ^= mask
    log.write_bytes(content)

    found = read_all(tmp_path, COMMITS, chunk_bytes, piece_bytes)
    aside = [
        row
        for row in read_all(tmp_path, UNDECODABLE, chunk_bytes, piece_bytes)
        if row["record_type"] is None
    ]

    assert [row["committed_offset"] for row in found] == [n for n in range(300) if n != 150]
    assert [row["log_offset"] for row in found] == [2 * n for n in range(300) if n != 150]
    assert aside[0]["position"] == at[150]
    assert sum(row["size"] for row in aside) >= at[151] - at[150]
    assert max(row["position"] + row["size"] for row in aside) == at[151]
    assert log_ends(segments(str(tmp_path), OFFSETS_TOPIC)) == {0: 600}


@pytest.mark.parametrize(("at_byte", "mask"), [(0, 1), (5, 1), (8, 1), (9, 8), (10, 1)])
def test_damage_near_the_end_moves_the_end_of_the_log_no_further(
    tmp_path: Path, at_byte: int, mask: int
) -> None:
    """A later run begins at the end: one that is too far would pass over what is written next."""
    log, at = many_batches(tmp_path)
    content = bytearray(log.read_bytes())
    content[at[297] + at_byte] ^= mask
    log.write_bytes(content)

    assert log_ends(segments(str(tmp_path), OFFSETS_TOPIC)) == {0: 600}


def test_a_wrong_base_offset_is_in_the_span_in_which_the_batch_would_be(tmp_path: Path) -> None:
    """So that a run lands it once, and the next one does not land it again."""
    log, at = many_batches(tmp_path)
    content = bytearray(log.read_bytes())
    content[at[150]] ^= 0x40
    log.write_bytes(content)
    (piece,) = pieces(segments(str(tmp_path), OFFSETS_TOPIC)[0])

    def aside(begin: int, end: int) -> list[int]:
        found = read_piece(piece, UNDECODABLE, between=(begin, end))
        rows = [row for batch in found for row in batch.to_pylist()]
        return [row["log_offset"] for row in rows if "out of order" in row["reason"]]

    assert aside(0, 600) == aside(300, 301) == [300]
    assert aside(0, 300) == aside(301, 600) == []
