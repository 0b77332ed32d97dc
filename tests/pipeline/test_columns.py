"""Column readers: the same values as the daemon's own readers, record by record."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.record_schemas import OffsetCommitValue
from coordinator.records import decode_record
from pipeline.decode.offset_commits import KeyValues, read_offset_commits
from pipeline.decode.record_extents import RecordExtents, find_records
from pipeline.decode.vector_reads import Bytes
from storage.api import Record
from storage.batch.compression import NONE
from storage.batch.record_batch import encode_batch, iter_batches, read_header, read_records
from storage.batch.rewrite import recompressed

CODECS = st.sampled_from([NONE, NONE, 1, 2, 3, 4])
BLOBS = st.one_of(st.none(), st.binary(max_size=300))
RECORDS = st.lists(st.builds(Record, st.binary(max_size=200), BLOBS), min_size=1, max_size=12)
BATCHES = st.lists(st.tuples(RECORDS, CODECS), min_size=1, max_size=12)


def log_of(
    batches: Sequence[tuple[Sequence[Record], int]], now_ms: int = 1_700_000_000_000
) -> bytes:
    """Batches back to back, some of them compressed."""
    log, offset = [], 0
    for n, (records, codec) in enumerate(batches):
        batch = encode_batch(records, offset, now_ms + 1_000 * n)
        if codec != NONE:
            batch = recompressed(batch, read_header(batch), codec, None)
        log.append(batch)
        offset += len(records) + n % 3  # the cleaner leaves gaps
    return b"".join(log)


def said(found: RecordExtents) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """What was found, in the words of `storage`."""
    content = found.content.octets.tobytes()

    def blob(at: int, size: int) -> bytes | None:
        return None if size < 0 else content[at : at + size]

    columns = (found.offset, found.timestamp_ms, found.key_at, found.key_bytes, found.value_at,
               found.value_bytes)  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(o, t, blob(ka, kb), blob(va, vb)) for o, t, ka, kb, va, vb in rows]


@given(BATCHES)
def test_every_record_is_found_where_the_daemon_finds_it(
    batches: list[tuple[list[Record], int]],
) -> None:
    log = log_of(batches)
    expected = [fields[:4] for at, _ in iter_batches(log) for fields in read_records(log, at)]

    found = find_records(log, is_last=True)

    assert said(found) == expected
    assert (found.damage, found.consumed) == ([], len(log))


def test_batches_of_very_different_sizes_are_walked_to_their_ends() -> None:
    many = [Record(b"k%d" % n, b"v" * (n % 90)) for n in range(1_500)]
    log = log_of([(many, NONE), ([many[0]], NONE), (many[:700], 1)] + [([many[3]], NONE)] * 20)

    assert len(said(find_records(log, is_last=True))) == 2_221


@given(BATCHES, st.integers(0), st.booleans())
def test_a_chunk_may_end_anywhere(
    batches: list[tuple[list[Record], int]], cut: int, is_last: bool
) -> None:
    log = log_of(batches)
    cut %= len(log)
    whole = [at for at, header in iter_batches(log) if at + header.size <= cut]
    end = 0 if not whole else whole[-1] + read_header(log, whole[-1]).size

    found = find_records(log[:cut], is_last=is_last)

    assert len(found.batches) == len(whole)
    if is_last and cut > end:
        assert [(d.position, d.size) for d in found.damage] == [(end, cut - end)]
        assert found.consumed == cut
    else:
        assert (found.damage, found.consumed) == ([], end)


@given(BATCHES, st.integers(0), st.integers(1, 255))
def test_a_changed_byte_costs_its_batch_and_no_other(
    batches: list[tuple[list[Record], int]], where: int, change: int
) -> None:
    log = bytearray(log_of(batches))
    where %= len(log)
    extents = [(at, header.size) for at, header in iter_batches(bytes(log))]
    hit, size = next((at, size) for at, size in extents if at <= where < at + size)
    before = [
        fields[:4] for at, _ in extents if at < hit for fields in read_records(bytes(log), at)
    ]
    log[where] ^= change

    found = find_records(bytes(log), is_last=True)

    kept = said(found)
    assert kept[: len(before)] == before
    if 12 <= where - hit < 16:
        return  # the leader epoch: no checksum covers it, and nobody reads it
    others = [
        fields[:4] for at, _ in extents if at != hit for fields in read_records(bytes(log), at)
    ]
    if where - hit < 8 and not found.damage:
        return  # a base offset that fits the others as well
    if where - hit < 8 and len(extents) == 2:
        return  # of two batches in disorder nobody knows which is the wrong one
    assert kept == others
    assert [damage.position for damage in found.damage] == [hit]
    assert size == found.damage[0].size


@given(st.binary(max_size=400))
def test_no_bytes_at_all_break_it(noise: bytes) -> None:
    found = find_records(noise, is_last=True, check_crc=False)

    assert found.consumed == len(noise)


@given(st.binary(min_size=1, max_size=300), st.integers(0, 40))
def test_records_that_do_not_fit_their_batch_are_set_aside_with_it(
    noise: bytes, count: int
) -> None:
    sound = encode_batch([Record(b"a", b"b")], 7, 1)
    header = bytearray(encode_batch([Record(b"k", b"v")], 0, 1)[:61])
    header[8:12] = struct.pack(">i", 49 + len(noise))
    header[57:61] = struct.pack(">i", count)

    found = find_records(sound + bytes(header) + noise + sound, is_last=True, check_crc=False)

    offsets = found.offset.tolist()
    assert offsets[0] == offsets[-1] == 7
    if count and not found.damage:
        assert len(read_records(bytes(header) + noise)) == count


def test_zeros_after_the_last_batch_are_the_room_of_an_active_segment() -> None:
    log = log_of([([Record(b"k", b"v")], NONE)])

    found = find_records(log + bytes(5_000), is_last=True)

    assert (len(found.offset), found.damage) == (1, [])


# Offset commits.

NAMES = st.text(max_size=40).filter(lambda text: len(text.encode("utf-8", "replace")) < 200)
LONGS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def commits(draw: st.DrawFn) -> Record:
    kind = draw(st.sampled_from([1, 1, 1, 0]))
    group, topic = (_string(draw(NAMES)) for _ in range(2))
    key = struct.pack(">h", kind) + group + topic + struct.pack(">i", draw(st.integers(0, 99)))
    version = 0 if kind == 0 else draw(st.integers(0, 4))
    if draw(st.integers(0, 9)) == 0:
        return Record(key, None)
    value = struct.pack(">hq", version, draw(LONGS))
    if version >= 3:
        value += struct.pack(">i", draw(st.integers(-1, 9)))
    metadata = draw(st.one_of(st.just(""), NAMES))
    value += _string(metadata, compact=version == 4) + struct.pack(">q", draw(LONGS))
    if version == 1:
        value += struct.pack(">q", draw(st.integers(-1, 2**62)))
    if version == 4:
        value += draw(st.sampled_from([b"\0", b"\x01\x00\x10" + bytes(range(16))]))
    return Record(key, value)


def _string(text: str, *, compact: bool = False) -> bytes:
    encoded = text.encode("utf-8", "replace")
    if not compact:
        return struct.pack(">h", len(encoded)) + encoded
    length, head = len(encoded) + 1, b""
    while length > 0x7F:
        head, length = head + bytes([length & 0x7F | 0x80]), length >> 7
    return head + bytes([length]) + encoded


def key_values(records: Sequence[Record]) -> KeyValues:
    """As the rows of a Kafka connector: keys in one buffer, values in another."""
    sizes = np.array([(len(k), -1 if v is None else len(v)) for k, v in records], np.int64)
    at = [np.cumsum(np.maximum(sizes[:, n], 0)) - np.maximum(sizes[:, n], 0) for n in (0, 1)]
    keys = Bytes(b"".join(key for key, _ in records))
    values = Bytes(b"".join(value or b"" for _, value in records))
    return KeyValues(keys, at[0], sizes[:, 0], values, at[1], sizes[:, 1])


@given(st.lists(commits(), min_size=1, max_size=30))
def test_commits_of_every_version_say_what_the_coordinator_reads(records: list[Record]) -> None:
    sound, columns = read_offset_commits(key_values(records))

    assert sound.all()
    for record, row in zip(records, columns.to_pylist(), strict=True):
        decoded = decode_record(record.key, record.value)
        assert decoded is not None
        key, value = decoded.key, decoded.value
        assert (row["group"], row["topic"], row["partition"]) == (
            key.group, key.topic, key.partition,  # type: ignore[attr-defined]  # of these two types
        )  # fmt: skip
        assert row["tombstone"] is (value is None)
        if value is None:
            assert row["committed_offset"] is row["commit_timestamp_ms"] is row["metadata"] is None
            continue
        assert row["value_version"] == decoded.value_version
        assert row["committed_offset"] == value.offset  # type: ignore[attr-defined]
        assert row["metadata"] == value.metadata  # type: ignore[attr-defined]
        assert row["commit_timestamp_ms"] == value.commit_timestamp  # type: ignore[attr-defined]
        if isinstance(value, OffsetCommitValue):
            epoch, expires = value.leader_epoch, value.expire_timestamp
            assert row["leader_epoch"] == (None if epoch == -1 else epoch)
            assert row["expire_timestamp_ms"] == (None if expires == -1 else expires)
            has_id = value.topic_id.int != 0
            assert row["topic_id"] == (value.topic_id.bytes if has_id else None)


@given(commits(), st.data())
def test_a_commit_that_breaks_off_is_not_sound_and_its_neighbours_are(
    record: Record, data: st.DataObject
) -> None:
    key, value = record
    if value is None or data.draw(st.booleans()):
        broken = Record(key[: data.draw(st.integers(2, len(key) - 1))], value)
    else:
        broken = Record(key, value[: data.draw(st.integers(0, len(value) - 1))])

    sound, columns = read_offset_commits(key_values([record, broken, record]))

    assert sound.tolist() == [True, False, True]
    rows = columns.to_pylist()
    assert rows[0] == rows[1]


@pytest.mark.parametrize("version", [5, 77, -1])
def test_a_version_that_nobody_knows_is_not_sound(version: int) -> None:
    key = struct.pack(">h", 1) + _string("g") + _string("t") + struct.pack(">i", 0)
    value = struct.pack(">hqi", version, 1, 1) + b"\x01" + struct.pack(">q", 1) + b"\x00"

    sound, columns = read_offset_commits(key_values([Record(key, value)]))

    assert sound.tolist() == [False]
    assert columns.num_rows == 0
