"""Record batches v2: written as Kafka writes them, and nothing malformed is taken for one."""

from pathlib import Path

import cramjam
import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.api import Record, StoredRecord
from storage.batch.compression import GZIP, LZ4, SNAPPY, ZSTD
from storage.batch.record_batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    TRANSACTIONAL_FLAG,
    BadChecksum,
    BadRecords,
    InvalidBatch,
    OldFormat,
    TruncatedBatch,
    check_crc,
    encode_batch,
    iter_batches,
    peek_header,
    read_header,
    read_keys,
    read_records,
    read_sole_key,
    stored_records,
    with_offsets,
)
from tests.storage.rig import NOW_MS, batch, records

GOLDEN = Path(__file__).parents[1] / "golden"

keyed = st.builds(Record, st.binary(max_size=2000), st.none() | st.binary(max_size=2000))


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def compressed(plain: bytes, codec: int, blob: bytes) -> bytes:
    """A batch like `plain` whose records are this blob."""
    body = (codec).to_bytes(2, "big") + plain[23:HEADER_BYTES] + blob
    crc: bytes = google_crc32c.value(body).to_bytes(4, "big")
    return plain[:8] + (9 + len(body)).to_bytes(4, "big") + plain[12:17] + crc + body


# --- what the real Kafka wrote -------------------------------------------------------------------


def test_a_real_coordinators_segment_is_read_and_written_again_byte_for_byte() -> None:
    segment = golden("consumer-offsets.log")
    written = b""
    for position, header in iter_batches(segment):
        check_crc(segment, position)
        each = stored_records(segment[position : position + header.size])
        assert [record.offset for record in each] == [header.base_offset]
        written += encode_batch(
            [Record(record.key or b"", record.value) for record in each],
            header.base_offset,
            each[0].timestamp_ms,
            header.partition_leader_epoch,
        )
    assert written == segment


@pytest.mark.parametrize("client", ["kafka-python", "librdkafka"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_of_real_producers_are_read_whatever_their_codec(client: str, codec: str) -> None:
    segment = golden(f"{client}-{codec}.log")
    header = check_crc(segment)
    fields = read_records(segment)

    assert [offset for offset, *_ in fields] == [0, 1, 2, 3, 4]
    assert [stamp for _, stamp, *_ in fields] == [
        1_700_000_000_000 + number * 1000 for number in range(5)
    ]
    assert [key for _, _, key, *_ in fields] == [None, b"key-1", b"key-2", b"key-3", b"key-4"]
    value = b"the same words over and over, " * 8
    assert [each[3] for each in fields] == [value, value, value, None, value]
    assert fields[2][4][0] == (b"first", b"1")
    assert fields[2][4][1] in ((b"empty", b""), (b"null", None))
    assert header.compression == ["none", "gzip", "snappy", "lz4", "zstd"].index(codec)
    assert header.base_sequence == 0
    assert header.producer_id >= 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_of_the_java_client_are_read(codec: str) -> None:
    segment = golden(f"java-{codec}.log")
    assert check_crc(segment).last_offset == 2
    assert [each[2] for each in read_records(segment)] == [b"k1", b"k2", b"k3"]


# --- round trips -----------------------------------------------------------------------------


@given(st.lists(keyed, min_size=1, max_size=40), st.integers(0, 2**62), st.integers(0, 2**41))
def test_what_is_encoded_is_read_back(
    written: list[Record], base_offset: int, timestamp_ms: int
) -> None:
    encoded = encode_batch(written, base_offset, timestamp_ms, leader_epoch=7)

    header = check_crc(encoded)
    assert header.size == len(encoded)
    assert header.next_offset == base_offset + len(written)
    assert (header.base_timestamp, header.max_timestamp) == (timestamp_ms, timestamp_ms)
    assert header.partition_leader_epoch == 7
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert stored_records(encoded) == [
        StoredRecord(base_offset + number, timestamp_ms, record.key, record.value)
        for number, record in enumerate(written)
    ]


def test_many_records_whose_offset_deltas_take_one_two_and_three_bytes() -> None:
    many = [Record(b"%d" % number, None) for number in range(8_200)]
    read = stored_records(encode_batch(many, 0, NOW_MS))
    assert [record.key for record in read] == [record.key for record in many]
    assert read[-1].offset == 8_199


@given(st.binary(max_size=5000))
def test_every_codec_gives_back_the_records(value: bytes) -> None:
    plain = encode_batch([Record(b"k", value)], 5, NOW_MS)
    body = plain[HEADER_BYTES:]
    raw = bytes(cramjam.snappy.compress_raw(body))
    xerial = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2 + len(raw).to_bytes(4, "big") + raw
    for codec, blob in (
        (GZIP, bytes(cramjam.gzip.compress(body))),
        (SNAPPY, raw),
        (SNAPPY, xerial),
        (LZ4, bytes(cramjam.lz4.compress(body))),
        (ZSTD, bytes(cramjam.zstd.compress(body))),
    ):
        assert read_records(compressed(plain, codec, blob)) == read_records(plain)


def test_a_control_batch_carries_no_records_for_a_load() -> None:
    marker = encode_batch(
        [Record(b"\x00\x00\x00\x01", bytes(6))],
        9,
        NOW_MS,
        producer_id=4,
        producer_epoch=2,
        attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG,
    )
    header = check_crc(marker)
    assert len(marker) == 78
    assert (header.is_control, header.is_transactional, header.producer_id) == (True, True, 4)
    assert stored_records(marker) == []
    assert len(read_records(marker)) == 1


def test_the_header_left_by_the_log_cleaner_holds_no_records() -> None:
    emptied = compressed(batch("a"), ZSTD, b"")
    emptied = emptied[:57] + (0).to_bytes(4, "big")
    assert read_records(emptied) == []


def test_offsets_and_leader_epoch_lie_outside_the_checksum() -> None:
    moved = with_offsets(batch("a", "b"), 1 << 40, 9)
    header = check_crc(moved)
    assert (header.base_offset, header.partition_leader_epoch) == (1 << 40, 9)
    assert [offset for offset, *_ in read_records(moved)] == [1 << 40, (1 << 40) + 1]


def test_batches_are_walked_where_they_lie() -> None:
    first, second = batch("a"), batch("b", "c", base_offset=1)
    walked = list(iter_batches(b"junk" + first + second, 4))
    assert [(position, header.base_offset) for position, header in walked] == [
        (4, 0),
        (4 + len(first), 1),
    ]
    assert peek_header((first + second)[:HEADER_BYTES], 0).size == len(first)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_other_formats_are_refused_by_name(magic: int) -> None:
    old = bytearray(batch("a"))
    old[16] = magic
    with pytest.raises(OldFormat, match=f"magic {magic}"):
        read_header(bytes(old))


def test_every_flipped_byte_under_the_checksum_is_seen() -> None:
    sound = batch("a", "b")
    for position in range(17, len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 0x40
        with pytest.raises(InvalidBatch):
            check_crc(bytes(damaged))


def test_every_truncation_is_seen() -> None:
    sound = batch("a", "b")
    for size in range(1, len(sound)):
        with pytest.raises(TruncatedBatch):
            list(iter_batches(sound[:size]))


def test_lengths_that_cannot_be_are_refused() -> None:
    sound = batch("a")
    for length in (-1, 0, 48):
        with pytest.raises(InvalidBatch, match="length"):
            read_header(sound[:8] + length.to_bytes(4, "big", signed=True) + sound[12:])
    with pytest.raises(InvalidBatch, match="negative"):
        read_header(sound[:57] + b"\xff\xff\xff\xff" + sound[61:])


def test_a_checksum_that_does_not_match_is_named() -> None:
    sound = batch("a")
    with pytest.raises(BadChecksum, match="crc"):
        check_crc(sound[:-1] + b"?")


@given(st.binary(max_size=200), st.integers(0, 5))
def test_records_that_are_garbage_are_bad_records_and_nothing_else(blob: bytes, codec: int) -> None:
    with pytest.raises(BadRecords):
        read_records(compressed(batch("a", "b"), codec, blob + b"\x02"))


@given(st.data())
def test_damage_inside_records_never_escapes_as_another_error(data: st.DataObject) -> None:
    sound = bytearray(golden("kafka-python-none.log"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(HEADER_BYTES, len(sound) - 1))
        sound[at] = data.draw(st.integers(0, 255))
    try:
        fields = read_records(bytes(sound))
    except BadRecords:
        return
    assert len(fields) == 5


def test_more_records_than_counted_are_refused() -> None:
    sound = batch("a", "b")
    with pytest.raises(BadRecords, match="left after 1 records"):
        read_records(sound[:57] + (1).to_bytes(4, "big") + sound[61:])
    with pytest.raises(BadRecords, match="past the end"):
        read_records(sound[:57] + (3).to_bytes(4, "big") + sound[61:])


def test_an_empty_batch_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        encode_batch(records(), 0, NOW_MS)


# --- no more than the keys -----------------------------------------------------------------------


@given(st.lists(keyed, min_size=1, max_size=20))
def test_the_keys_alone_are_those_of_the_records(some: list[Record]) -> None:
    encoded = encode_batch(some, 1 << 40, NOW_MS)
    has_values = all(record.value is not None for record in some)
    expected = [record.key for record in some] if has_values else None
    assert read_keys(encoded, len(some)) == expected
    if len(some) == 1:
        assert read_sole_key(encoded) == (expected[0] if expected else None)


@pytest.mark.parametrize("name", ["consumer-offsets", "librdkafka-none", "kafka-python-none"])
def test_the_keys_of_what_others_wrote(name: str) -> None:
    segment = golden(f"{name}.log")
    for position, header in iter_batches(segment):
        found = segment[position : position + header.size]
        plain = [fields[2] for fields in read_records(found) if fields[3] is not None]
        whole = len(plain) == header.records_count and None not in plain
        assert not header.attributes
        assert read_keys(found, header.records_count) == (plain if whole else None)


@pytest.mark.parametrize("size", [63, 64, 8_191, 8_192])
@pytest.mark.parametrize("value_size", [0, 63, 64, 8_191, 8_192])
def test_the_keys_of_lengths_that_take_one_two_or_three_bytes(size: int, value_size: int) -> None:
    """Those of three bytes are left to who reads whole records."""
    key, value = b"k" * size, b"v" * value_size
    small = size + value_size + 16 < 8_192
    twice = encode_batch([Record(key, value)] * 2, 0, NOW_MS)
    assert read_keys(twice, 2) == ([key, key] if small else None)
    once = encode_batch([Record(key, value)], 0, NOW_MS)
    assert read_sole_key(once) == (key if small else None)


@given(st.binary(max_size=60))
def test_records_that_are_not_what_the_header_says_have_no_keys_or_none_beyond_it(
    junk: bytes,
) -> None:
    plain = encode_batch(records("k"), 0, NOW_MS)[:HEADER_BYTES]
    keys = read_keys(plain + junk, 1)
    assert keys is None or len(keys) == 1
    sole = read_sole_key(plain + junk)
    assert sole is None or keys is None or keys == [sole]
