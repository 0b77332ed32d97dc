"""The words of the transfer tests: a Kafka's log folders, byte by byte as Kafka leaves them.

Batches come from `storage.batch.record_batch.encode_batch` with offsets, producers and attributes
of the
test's choice; what a cleaner does to them (gaps, empty batches, delete horizons) is done here by
hand, so that no reader is tested with its own writer.
"""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import google_crc32c

from coordinator.group import CommittedOffset
from coordinator.records import (
    group_metadata_record,
    offset_commit_key,
    offset_commit_value,
)
from protocol.names import GroupId, TopicName
from storage.api import Record
from storage.batch.record_batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    TRANSACTIONAL_FLAG,
    encode_batch,
    encode_varint,
)
from transfer.contents import Contents
from transfer.log_folders import partitions_in, read_partition
from transfer.source_stats import SourceStats

NOW_MS = 1_790_000_000_000
TOPIC_ID = UUID("a2f2a1c0-31f7-4d5a-9d1b-0f4c3b2a1908")
FOREIGN_ID = UUID("0f0e0d0c-0b0a-4908-8706-050403020100")


def commit(offset: int, at_ms: int = NOW_MS, **more: object) -> CommittedOffset:
    return CommittedOffset(offset, committed_at_ms=at_ms, **more)  # type: ignore[arg-type]


def offset_record(
    group: str, topic: str, partition: int, offset: int, at_ms: int = NOW_MS, version: int = 4
) -> Record:
    value = offset_commit_value(commit(offset, at_ms, topic_id=FOREIGN_ID), version)
    return Record(offset_commit_key(GroupId(group), TopicName(topic), partition), value)


def offset_tombstone(group: str, topic: str, partition: int) -> Record:
    return Record(offset_commit_key(GroupId(group), TopicName(topic), partition), None)


def classic_group(group: str, generation: int = 3, at_ms: int = NOW_MS) -> Record:
    return group_metadata_record(
        GroupId(group),
        protocol_type="consumer",
        generation_id=generation,
        protocol_name=None,
        leader_id=None,
        state_since_ms=at_ms,
        members=(),
    )


def short_string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def foreign_record(kind: int, group: str, value: bytes = b"\x00\x00\x00\x00\x00\x07\x00") -> Record:
    """Of a type that Rollcall does not serve."""
    return Record(struct.pack(">h", kind) + short_string(group), value)


def marker(base_offset: int, producer_id: int, *, commits: bool) -> bytes:
    """The control batch that ends a transaction, as the transaction coordinator writes it."""
    record = Record(struct.pack(">hh", 0, 1 if commits else 0), struct.pack(">hi", 0, 5))
    return encode_batch(
        [record], base_offset, NOW_MS, 0, producer_id, 0, -1, TRANSACTIONAL_FLAG | CONTROL_FLAG
    )


def transactional(records: Sequence[Record], base_offset: int, producer_id: int) -> bytes:
    return encode_batch(records, base_offset, NOW_MS, 0, producer_id, 0, 0, TRANSACTIONAL_FLAG)


def resealed(batch: bytes) -> bytes:
    """With the length and the checksum of what it holds now."""
    whole = bytearray(batch)
    struct.pack_into(">i", whole, 8, len(whole) - 12)
    struct.pack_into(">I", whole, 17, google_crc32c.value(bytes(whole[21:])))
    return bytes(whole)


def emptied(batch: bytes) -> bytes:
    """What the cleaner keeps of a batch of which no record is left: the header and its offsets."""
    header = bytearray(batch[:HEADER_BYTES])
    struct.pack_into(">i", header, 57, 0)
    return resealed(bytes(header))


def compacted(
    records: Sequence[tuple[int, Record]], base_offset: int, last_offset: int, horizon_ms: int = 0
) -> bytes:
    """(offset, record) pairs as the cleaner leaves a batch: gaps between, and with a horizon the
    times counted from it."""
    base_ms = horizon_ms or NOW_MS
    body = b""
    for offset, (key, value) in records:
        fields = b"\x00" + encode_varint(NOW_MS - base_ms) + encode_varint(offset - base_offset)
        fields += encode_varint(len(key)) + key
        fields += encode_varint(-1) if value is None else encode_varint(len(value)) + value
        fields += b"\x00"
        body += encode_varint(len(fields)) + fields
    attributes = DELETE_HORIZON_FLAG if horizon_ms else 0
    header = struct.pack(
        ">qiibIhiqqqhii",
        base_offset, 0, 0, 2, 0, attributes, last_offset - base_offset,
        base_ms, NOW_MS, -1, -1, -1, len(records),
    )  # fmt: skip
    return resealed(header + body)


def gzipped(batch: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=31)
    squeezed = squeezer.compress(batch[HEADER_BYTES:]) + squeezer.flush()
    whole = bytearray(batch[:HEADER_BYTES] + squeezed)
    struct.pack_into(">h", whole, 21, struct.unpack_from(">h", whole, 21)[0] | 1)
    return resealed(bytes(whole))


def write_segment(directory: Path, partition: int, base_offset: int, *pieces: bytes) -> Path:
    """One .log file of the offsets topic, and no index."""
    folder = directory / f"__consumer_offsets-{partition}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(pieces))
    return path


def read(*directories: Path) -> tuple[Contents, SourceStats]:
    contents, tally = Contents(), SourceStats("test", "kafka")
    for partition in partitions_in(directories):
        read_partition(partition, contents, tally)
    return contents, tally


def shown(contents: Contents) -> dict[str, dict[tuple[str, int], int]]:
    """group -> (topic, partition) -> offset."""
    return {
        str(group_id): {
            place: commit.committed_offset for place, (commit, _) in group.offsets.items()
        }
        for group_id, group in contents.groups.items()
    }
