"""Offset commits: keys and values to columns, all records at once.

Takes the positions of keys and values in two buffers (for a segment they are the same one; for rows
of Spark's Kafka connector they are two), so both paths share all rules. Reads versions 0 to 4 of
`OffsetCommitValue` and the legacy keys of type 0: all that Kafka ever wrote. Kafka's counterpart:
OffsetCommitKey, OffsetCommitValue, CoordinatorRecordSerde.

A record is `sound` if key and value match their version to the last byte. Other records go to the
caller, which keeps them aside with their position.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from coordinator.records import LEGACY_OFFSET_COMMIT
from pipeline.decode.vector_reads import Bytes, Flags, Ints, numbers, validity

NO_TYPE: Final = -1
"""The type of a record without a key, or with one too short to name a type."""

VALUE_COLUMNS: Final = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("committed_offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("metadata", pa.string()),
        pa.field("commit_timestamp_ms", pa.int64()),
        pa.field("expire_timestamp_ms", pa.int64()),
        pa.field("topic_id", pa.binary()),
        pa.field("value_version", pa.int16()),
        pa.field("tombstone", pa.bool_()),
    ]
)

_TOPIC_ID_BYTES: Final = 16
_TOPIC_ID_TAGS: Final = 3 + _TOPIC_ID_BYTES  # one tag; number 0; size 16; the id
_TOPIC_ID: Final = np.dtype([("id", "V16")])

_KEY_HEAD: Final = np.dtype([("type", ">i2"), ("group_bytes", ">i2")])
_OLDER: Final = range(3)
"""Versions of the value: what stands before the metadata, and after it."""
_OLD_HEAD: Final = np.dtype([("version", ">i2"), ("offset", ">i8"), ("metadata_bytes", ">i2")])
_NEW_HEAD: Final = np.dtype(
    [("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"), ("metadata_bytes", ">i2")]
)
_TAIL: Final = np.dtype([("committed", ">i8"), ("tags", "u1"), ("tag", "u1"), ("size", "u1")])


class KeyValues(Struct, frozen=True):
    """The positions of keys and values; each array has one entry per record. -1 bytes: null."""

    keys: Bytes
    key_at: Ints
    key_bytes: Ints
    values: Bytes
    value_at: Ints
    value_bytes: Ints

    def __len__(self) -> int:
        return len(self.key_at)

    def where(self, keep: Flags | Ints | slice) -> "KeyValues":
        return KeyValues(
            self.keys, self.key_at[keep], self.key_bytes[keep],
            self.values, self.value_at[keep], self.value_bytes[keep],
        )  # fmt: skip

    def types(self) -> Ints:
        """The record type that opens each key."""
        types = self.keys.int16(self.key_at)
        types[self.key_bytes < 2] = NO_TYPE
        return types


class _Values(Struct, frozen=True):
    """What the values say; -1: nothing. Of what is not sound nothing is to be used."""

    version: Ints
    offset: Ints
    epoch: Ints
    metadata_at: Ints
    metadata_bytes: Ints
    committed: Ints
    expires: Ints
    topic_id_at: Ints
    sound: Flags

    def where(self, rows: Ints) -> "_Values":
        return _Values(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    def forget(self, rows: Ints) -> None:
        """There is no value: what was read is something else."""
        for column in (self.epoch, self.metadata_bytes, self.expires, self.topic_id_at):
            column[rows] = -1

    def put(self, rows: Ints, others: "_Values") -> None:
        for name in self.__struct_fields__:
            getattr(self, name)[rows] = getattr(others, name)


def read_offset_commits(
    records: KeyValues, wanted: pa.Schema = VALUE_COLUMNS
) -> tuple[Flags, pa.RecordBatch]:
    """(which of the records are sound, the wanted columns of those). All have type 0 or 1."""
    keys = records.keys
    key_end = records.key_at + records.key_bytes
    head = keys.structs(records.key_at, _KEY_HEAD)
    group_at = records.key_at + _KEY_HEAD.itemsize
    group_bytes = head["group_bytes"].astype(np.int64)
    topic_at = group_at + np.maximum(group_bytes, 0) + 2
    topic_bytes = keys.int16(topic_at - 2)
    partition_at = topic_at + np.maximum(topic_bytes, 0)
    fits = (group_bytes >= 0) & (topic_bytes >= 0) & (partition_at + 4 == key_end)
    living = records.value_bytes >= 0
    values = _read_values(records, head["type"] == LEGACY_OFFSET_COMMIT)
    values.forget(np.flatnonzero(~living))
    sound = fits & (values.sound | ~living)
    if not sound.all():
        rows = np.flatnonzero(sound)
        group_at, group_bytes = group_at[rows], group_bytes[rows]
        topic_at, topic_bytes = topic_at[rows], topic_bytes[rows]
        partition_at, living, values = partition_at[rows], living[rows], values.where(rows)
    present = validity(living)
    make: dict[str, Callable[[], pa.Array]] = {
        "group": lambda: keys.texts(group_at, group_bytes),
        "topic": lambda: keys.texts(topic_at, topic_bytes),
        "partition": lambda: numbers(keys.int32(partition_at), pa.int32()),
        "committed_offset": lambda: numbers(values.offset, pa.int64(), present),
        "leader_epoch": lambda: numbers(values.epoch, pa.int32(), validity(values.epoch >= 0)),
        "metadata": lambda: _metadata(records.values, values, present),
        "commit_timestamp_ms": lambda: numbers(values.committed, pa.int64(), present),
        "expire_timestamp_ms": lambda: numbers(
            values.expires, pa.int64(), validity(values.expires >= 0)
        ),
        "topic_id": lambda: _topic_ids(records.values, values.topic_id_at),
        "value_version": lambda: numbers(values.version, pa.int16(), present),
        "tombstone": lambda: pa.array(~living),
    }
    columns = [make[name]() for name in wanted.names]
    return sound, pa.RecordBatch.from_arrays(columns, schema=wanted)


def _read_values(records: KeyValues, legacy: Flags) -> _Values:
    """Versions 3 and 4, which are nearly all there are, in one; then whatever else there is."""
    at = records.value_at
    end = at + records.value_bytes
    values = _read_new(records.values, at, end)
    older = np.flatnonzero((values.version < 3) & (records.value_bytes >= 2))
    for version in _OLDER:
        rows = older[values.version[older] == version]
        if len(rows):
            values.put(rows, _read_old(records.values, at[rows], end[rows], version))
    values.sound[legacy & (values.version != 0)] = False
    return values


def _read_new(content: Bytes, at: Ints, end: Ints) -> _Values:
    """Version 3 has a length of two bytes before the metadata, and nothing after the last field;
    version 4 a compact string, and tagged fields, of which Kafka knows the topic id alone."""
    head = content.structs(at, _NEW_HEAD)
    version = head["version"].astype(np.int64)
    flexible = version == 4
    length = head["metadata_bytes"].astype(np.int64)
    metadata_at = at + _NEW_HEAD.itemsize
    rows = np.flatnonzero(flexible)
    if len(rows):
        length[rows], metadata_at[rows] = _compact_length(content, metadata_at[rows] - 2)
    fits = (length >= 0) & (metadata_at + length <= end)
    tail_at = metadata_at + length * fits
    tail = content.structs(tail_at, _TAIL)
    ends = (tail_at + 8 == end) & (version == 3)
    ends |= (tail_at + 9 == end) & flexible & (tail["tags"] == 0)
    with_id = np.flatnonzero((tail_at + 8 + _TOPIC_ID_TAGS == end) & flexible)
    topic_id_at = np.full(len(at), -1, np.int64)
    if len(with_id):
        tags = tail[with_id]
        said = (tags["tags"] == 1) & (tags["tag"] == 0) & (tags["size"] == _TOPIC_ID_BYTES)
        with_id = with_id[said]
        topic_id_at[with_id] = tail_at[with_id] + _TAIL.itemsize
        ends[with_id] = True
    none = np.full(len(at), -1, np.int64)
    return _Values(
        version, head["offset"], head["epoch"], metadata_at, length, tail["committed"], none,
        topic_id_at, fits & ends,
    )  # fmt: skip


def _read_old(content: Bytes, at: Ints, end: Ints, version: int) -> _Values:
    """Versions 0 to 2: no epoch; in version 1 the client says when the commit is to expire."""
    head = content.structs(at, _OLD_HEAD)
    length = head["metadata_bytes"].astype(np.int64)
    metadata_at = at + _OLD_HEAD.itemsize
    committed_at = metadata_at + np.maximum(length, 0)
    has_expiry = version == 1
    sound = (length >= 0) & (committed_at + (16 if has_expiry else 8) == end)
    none = np.full(len(at), -1, np.int64)
    expires = content.int64(committed_at + 8) if has_expiry else none
    return _Values(
        head["version"], head["offset"], none, metadata_at, length, content.int64(committed_at),
        expires, none, sound,
    )  # fmt: skip


def _compact_length(content: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """(bytes, place) of strings whose length is a varint, and one more; -1: it has no end."""
    first = content.octets[at].astype(np.int64)
    length, begin = first - 1, at + 1
    long = np.flatnonzero(first >= 0x80)
    if len(long):
        number, width = content.uvarint(at[long])
        length[long], begin[long] = np.where(width > 0, number - 1, -1), at[long] + width
    return length, begin


def _metadata(content: Bytes, values: _Values, present: pa.Buffer | None) -> pa.Array:
    """Nearly all of it is empty: only what is not is read."""
    count = len(values.metadata_at)
    filled = np.flatnonzero(values.metadata_bytes > 0)
    bounds = np.zeros(count + 1, np.int32)
    content_of = pa.py_buffer(b"")
    if len(filled):
        texts = content.texts(values.metadata_at[filled], values.metadata_bytes[filled])
        _, ends, content_of = texts.buffers()
        # Not the bytes that were read: invalid UTF-8 has become longer.
        bounds[filled + 1] = np.diff(np.frombuffer(ends, np.int32, len(filled) + 1))
        bounds = np.cumsum(bounds, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(bounds), content_of, present)


def _topic_ids(content: Bytes, at: Ints) -> pa.Array:
    """Sixteen bytes each, null where there is none."""
    present = at >= 0
    if not present.any():
        return pa.nulls(len(at), pa.binary())
    ids = content.structs(at[present], _TOPIC_ID)
    bounds = np.zeros(len(at) + 1, np.int32)
    np.cumsum(present * _TOPIC_ID_BYTES, out=bounds[1:])
    parts = [validity(present), pa.py_buffer(bounds), pa.py_buffer(ids)]
    return pa.Array.from_buffers(pa.binary(), len(at), parts)
