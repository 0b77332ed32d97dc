"""What was committed? Keys and values of offset commits to columns, all records at once.

Takes the places of keys and values in two buffers (of a segment they are the same one; of rows
that Spark's Kafka connector brought they are two), so both roads share every rule. Reads versions 0
to 4 of `OffsetCommitValue` and the legacy keys of type 0: every one that a Kafka ever wrote.
Kafka's counterpart: OffsetCommitKey, OffsetCommitValue, CoordinatorRecordSerde.

A record is `sound` when key and value are to the last byte what their version says. What is not
goes to the caller, who keeps it aside with its position.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.gather import Bytes, Flags, Ints

LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
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


@dataclass(slots=True)
class KeyValues:
    """Where keys and values lie; one entry of each array for each record. -1 bytes: null."""

    keys: Bytes
    key_at: Ints
    key_bytes: Ints
    values: Bytes
    value_at: Ints
    value_bytes: Ints

    def __len__(self) -> int:
        return len(self.key_at)

    def where(self, keep: Flags | Ints) -> "KeyValues":
        return KeyValues(
            self.keys, self.key_at[keep], self.key_bytes[keep],
            self.values, self.value_at[keep], self.value_bytes[keep],
        )  # fmt: skip

    def types(self) -> Ints:
        """The record type that opens each key."""
        has_type = self.key_bytes >= 2
        at = np.where(has_type, self.key_at, 0)
        return np.where(has_type, self.keys.int16(at), NO_TYPE)


@dataclass(slots=True)
class _Values:
    """What the values say; filled in version by version."""

    version: Ints
    offset: Ints
    epoch: Ints
    metadata_at: Ints
    metadata_bytes: Ints
    committed: Ints
    expires: Ints
    topic_id_at: Ints  # -1: none
    sound: Flags

    @classmethod
    def blank(cls, count: int) -> "_Values":
        def minus() -> Ints:
            return np.full(count, -1, np.int64)

        return cls(
            minus(), minus(), minus(), minus(), minus(), minus(), minus(), minus(),
            np.zeros(count, np.bool_),
        )  # fmt: skip


def read_offset_commits(records: KeyValues) -> tuple[Flags, pa.RecordBatch]:
    """(which of the records are sound, the columns of those). All have type 0 or 1."""
    keys = records.keys
    group_bytes, group_at, fits = _short_string(records, records.key_at + 2)
    topic_bytes, topic_at, topic_fits = _short_string(records, group_at + group_bytes)
    partition_at = topic_at + topic_bytes
    fits &= topic_fits & (partition_at + 4 == records.key_at + records.key_bytes)
    tombstone = records.value_bytes < 0
    values = _read_values(records, fits & ~tombstone)
    sound = fits & (tombstone | values.sound)
    living = ~tombstone[sound]

    def texts(at: Ints, size: Ints) -> pa.Array:
        return keys.texts(at[sound], size[sound])

    def numbers(column: Ints, kind: pa.DataType, mask: Flags = living) -> pa.Array:
        return pa.array(column[sound], kind, mask=~mask)

    metadata_bytes = np.where(tombstone, 0, values.metadata_bytes)[sound]
    metadata_at = np.where(metadata_bytes > 0, values.metadata_at[sound], 0)
    columns = [
        texts(group_at, group_bytes),
        texts(topic_at, topic_bytes),
        pa.array(keys.int32(partition_at[sound]), pa.int32()),
        numbers(values.offset, pa.int64()),
        numbers(values.epoch, pa.int32(), values.epoch[sound] >= 0),
        _nullable_texts(records.values, metadata_at, metadata_bytes, living),
        numbers(values.committed, pa.int64()),
        numbers(values.expires, pa.int64(), values.expires[sound] >= 0),
        _topic_ids(records.values, values.topic_id_at[sound]),
        numbers(values.version, pa.int16()),
        pa.array(tombstone[sound]),
    ]
    return sound, pa.RecordBatch.from_arrays(columns, schema=VALUE_COLUMNS)


def _short_string(records: KeyValues, at: Ints) -> tuple[Ints, Ints, Flags]:
    """(bytes, place, whether it lies within its key) of a string with a length of two bytes."""
    key_end = records.key_at + records.key_bytes
    fits = at + 2 <= key_end
    length = records.keys.int16(np.where(fits, at, 0))
    fits = fits & (length >= 0) & (at + 2 + length <= key_end)
    return np.where(fits, length, 0), np.where(fits, at + 2, 0), fits


def _read_values(records: KeyValues, wanted: Flags) -> _Values:
    values = _Values.blank(len(records))
    rows = np.flatnonzero(wanted & (records.value_bytes >= 2))
    if not len(rows):
        return values
    version = records.values.int16(records.value_at[rows])
    values.version[rows] = version
    legacy = records.types()[rows] == LEGACY_OFFSET_COMMIT
    for number, read in ((0, _read_fixed), (1, _read_fixed), (2, _read_fixed), (3, _read_fixed),
                         (4, _read_flexible)):  # fmt: skip
        of_version = rows[(version == number) & ~(legacy & (number != 0))]
        if len(of_version):
            read(records, values, of_version, number)
    return values


def _read_fixed(records: KeyValues, values: _Values, rows: Ints, version: int) -> None:
    """Versions 0 to 3: a length of two bytes before the metadata, nothing after the last field."""
    content = records.values
    at = records.value_at[rows]
    end = at + records.value_bytes[rows]
    metadata_at = at + 2 + 8 + (4 if version >= 3 else 0) + 2
    fits = metadata_at <= end
    length = content.int16(np.where(fits, metadata_at - 2, 0))
    rest = 8 + (8 if version == 1 else 0)
    fits &= (length >= 0) & (metadata_at + length + rest == end)
    rows, at, metadata_at, length = rows[fits], at[fits], metadata_at[fits], length[fits]
    values.offset[rows] = content.int64(at + 2)
    if version >= 3:
        values.epoch[rows] = content.int32(at + 10)
    values.metadata_at[rows], values.metadata_bytes[rows] = metadata_at, length
    values.committed[rows] = content.int64(metadata_at + length)
    if version == 1:
        values.expires[rows] = content.int64(metadata_at + length + 8)
    values.sound[rows] = True


def _read_flexible(records: KeyValues, values: _Values, rows: Ints, _version: int) -> None:
    """Version 4: a compact string, and tagged fields, of which Kafka knows the topic id alone."""
    content = records.values
    at = records.value_at[rows]
    end = at + records.value_bytes[rows]
    fits = at + 2 + 8 + 4 + 1 <= end
    length, width = content.uvarint(np.where(fits, at + 14, 0))
    metadata_at = at + 14 + width
    length = length - 1
    tags_at = metadata_at + length + 8
    fits &= (width > 0) & (length >= 0) & (tags_at < end)
    tags = content.int8(np.where(fits, tags_at, 0))
    plain = (tags == 0) & (tags_at + 1 == end)
    head = content.int32(np.where(fits, tags_at, 0)) >> 8
    with_id = (head == 0x01_00_10) & (tags_at + _TOPIC_ID_TAGS == end)
    fits &= plain | with_id
    rows, at, metadata_at = rows[fits], at[fits], metadata_at[fits]
    length, tags_at, with_id = length[fits], tags_at[fits], with_id[fits]
    values.offset[rows] = content.int64(at + 2)
    values.epoch[rows] = content.int32(at + 10)
    values.metadata_at[rows], values.metadata_bytes[rows] = metadata_at, length
    values.committed[rows] = content.int64(metadata_at + length)
    values.topic_id_at[rows] = np.where(with_id, tags_at + 3, -1)
    values.sound[rows] = True


def _nullable_texts(content: Bytes, at: Ints, size: Ints, present: Flags) -> pa.Array:
    """Nearly all metadata is empty: only what is not is read."""
    filled = np.flatnonzero(size > 0)
    if not len(filled):
        no_text = pa.py_buffer(np.zeros(len(at) + 1, np.int32))
        return pa.StringArray.from_buffers(len(at), no_text, pa.py_buffer(b""), _validity(present))
    texts = content.texts(at[filled], size[filled])
    # The empty ones take the text after the last.
    texts = pa.concat_arrays([texts, pa.array([""], pa.string())])
    which = np.full(len(at), len(filled), np.int64)
    which[filled] = np.arange(len(filled))
    return texts.take(pa.array(which, mask=~present))


def _topic_ids(content: Bytes, at: Ints) -> pa.Array:
    """Sixteen bytes each, null where there is none."""
    present = at >= 0
    if not present.any():
        return pa.nulls(len(at), pa.binary())
    rows = content.rows(np.where(present, at, 0), _TOPIC_ID_BYTES)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_TOPIC_ID_BYTES), len(at), [_validity(present), pa.py_buffer(rows)]
    )
    return fixed.cast(pa.binary())


def _validity(present: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(present, bitorder="little"))
