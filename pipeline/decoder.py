"""Which rows of a table does a piece of a log hold? The one road from bytes to columns.

`Slice` is a set of records with their places, found in a segment (`of_segment`) or brought by
Spark's Kafka connector (`of_messages`); `rows_of` makes the columns of one table of it. Commits, a
log's bulk, are decoded all at once; the rest one by one. What has a place in no table comes out of
the table "undecodable", from the very same checks, so that nothing is lost between the two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline import rows as few
from pipeline.gather import Bytes, Flags, Ints, numbers, validity
from pipeline.hops import Damage
from pipeline.offset_commits import (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    KeyValues,
    read_offset_commits,
)
from pipeline.records import Found, find_records
from pipeline.tables import (
    COMMITS,
    GROUP_EVENTS,
    GROUP_METADATA,
    GROUP_RECORDS,
    HISTORY_TOPIC,
    LAG_SAMPLES,
    LAG_TOPIC,
    OFFSETS_TOPIC,
    PLACE,
    TRANSACTION_MARKERS,
    UNDECODABLE,
    Table,
)
from storage.record_batch import CONTROL, TRANSACTIONAL

_ONE_BY_ONE: Final[dict[str, few.Decode]] = {
    GROUP_METADATA.name: few.group_metadata,
    GROUP_RECORDS.name: few.group_records,
    GROUP_EVENTS.name: few.group_events,
    LAG_SAMPLES.name: few.lag_samples,
}
_MARKERS: Final = {0: False, 1: True}  # abort, commit; other control records are not ours


@dataclass(slots=True)
class Slice:
    """Records of one topic's log, and where they stand; one entry of each array for each record."""

    topic: str
    records: KeyValues
    partition: Ints
    offset: Ints
    timestamp_ms: Ints
    control: Flags
    transactional: Flags
    producer_id: Ints
    producer_epoch: Ints
    position: Ints  # of the batch in its file; -1 where there is no file
    size: Ints  # of the batch
    file: str | None = None
    damage: Sequence[Damage] = ()
    damage_partition: int = -1

    def __len__(self) -> int:
        return len(self.offset)

    def parts(self, count: int) -> Iterator["Slice"]:
        """Itself in parts of so many records, which share its memory; the damage is the first's."""
        if len(self) <= count:
            yield self
            return
        columns = {name: getattr(self, name) for name in _COLUMNS}
        for begin in range(0, len(self), count):
            some = slice(begin, begin + count)
            yield replace(
                self,
                records=self.records.where(some),
                damage=() if begin else self.damage,
                **{name: column[some] for name, column in columns.items()},
            )

    def place(self, keep: Flags | Ints) -> list[pa.Array]:
        return [
            numbers(self.partition[keep], pa.int32()),
            numbers(self.offset[keep], pa.int64()),
            numbers(self.timestamp_ms[keep], pa.int64()),
        ]

    def key_value(self, row: int) -> tuple[bytes | None, bytes | None]:
        one = self.records
        key = one.keys.one_blob(int(one.key_at[row]), int(one.key_bytes[row]))
        return key, one.values.one_blob(int(one.value_at[row]), int(one.value_bytes[row]))


_COLUMNS: Final = tuple(one.name for one in fields(Slice) if one.type in (Ints, Flags))


def of_segment(
    chunk: bytes,
    topic: str,
    partition: int,
    *,
    file: str,
    position: int,
    end: int,
    is_last: bool,
    check_crc: bool = True,
) -> tuple[Slice, int]:
    """(the records of a chunk that begins at `position` of the file, bytes that were read)

    Where damage hides the rest of the log, all of it counts as read: up to `end`.
    """
    found = find_records(chunk, is_last=is_last, check_crc=check_crc)
    attributes = found.of_batches("attributes")
    damage = [one._replace(position=one.position + position) for one in found.damage]
    if found.is_lost:
        damage[-1] = damage[-1]._replace(size=end - damage[-1].position)
    return (
        Slice(
            topic,
            _key_values(found),
            np.full(len(found.offset), partition, np.int64),
            found.offset,
            found.timestamp_ms,
            attributes & CONTROL != 0,
            attributes & TRANSACTIONAL != 0,
            found.of_batches("producer_id"),
            found.of_batches("producer_epoch"),
            found.batches.position[found.batch] + position,
            found.of_batches("length") + 12,
            file,
            damage,
            partition,
        ),
        end - position if found.is_lost else found.consumed,
    )


def _key_values(found: Found) -> KeyValues:
    return KeyValues(
        found.content, found.key_at, found.key_bytes,
        found.content, found.value_at, found.value_bytes,
    )  # fmt: skip


def of_messages(topic: str, messages: pa.RecordBatch) -> Slice:
    """Rows of Spark's Kafka source: key, value, partition, offset, timestamp (ms).

    The connector tells nothing of batches: it leaves out control records, and with
    `isolation.level=read_committed` also what was aborted.
    """
    count = messages.num_rows

    def ints(name: str) -> Ints:
        numbers: Ints = messages.column(name).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return numbers

    keys, values = (_binary(messages.column(name)) for name in ("key", "value"))
    none = np.full(count, -1, np.int64)
    no = np.zeros(count, np.bool_)
    return Slice(
        topic, KeyValues(*keys, *values), ints("partition"), ints("offset"), ints("timestamp_ms"),
        no, no, none, none, none, none,
    )  # fmt: skip


def _binary(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """(the buffer, where each begins, how long it is) of an Arrow column of byte strings."""
    column = column.cast(pa.large_binary())
    _, bounds, content = column.buffers()
    offsets = np.frombuffer(bounds, np.int64)[column.offset : column.offset + len(column) + 1]
    sizes = np.where(
        column.is_null().to_numpy(zero_copy_only=False), -1, offsets[1:] - offsets[:-1]
    )
    return Bytes(b"" if content is None else memoryview(content)), offsets[:-1].copy(), sizes


# --- one table at a time -----------------------------------------------------------------------

Problem = tuple[int, str]
"""(row, why)"""


def rows_of(table: Table, records: Slice) -> pa.RecordBatch:
    """The columns of the table's schema, for those records that belong into it."""
    # By name: a table that came to a worker is a copy.
    if table.name == UNDECODABLE.name:
        return _undecodable(records)
    if table.topic != records.topic:
        return table.schema.empty_table().to_batches()[0]
    if table.name == COMMITS.name:
        return _commits(records)[0]
    if table.name == TRANSACTION_MARKERS.name:
        return _markers(records)
    return _listed(table, records)[0]


def _is_commit(records: Slice) -> Flags:
    types = records.records.types()
    of_type: Flags = (types == OFFSET_COMMIT) | (types == LEGACY_OFFSET_COMMIT)
    return of_type & ~records.control


def _commits(records: Slice) -> tuple[pa.RecordBatch, list[Problem]]:
    """All at once; what is not as usual (a tag of a later Kafka's, ...) as the daemon reads it."""
    mine = np.flatnonzero(_is_commit(records))
    sound, columns = read_offset_commits(records.records.where(mine))
    usual = _of_commits(records, mine[sound], columns)
    if sound.all():
        return usual, []
    own = pa.schema(list(COMMITS.schema)[len(PLACE) : -len(_OF_THE_BATCH)])
    rows, others, problems = _one_by_one(few.offset_commit, records, mine[~sound], own)
    if not len(rows):
        return usual, problems
    both = pa.Table.from_batches([usual, _of_commits(records, rows, others)])
    return both.combine_chunks().to_batches()[0], problems


_OF_THE_BATCH: Final = ("producer_id", "transactional")


def _of_commits(records: Slice, rows: Ints, columns: pa.RecordBatch) -> pa.RecordBatch:
    producers = records.producer_id[rows]
    arrays = [
        *records.place(rows),
        *columns.columns,
        numbers(producers, pa.int64(), validity(producers >= 0)),
        pa.array(records.transactional[rows]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=COMMITS.schema)


def _markers(records: Slice) -> pa.RecordBatch:
    rows, committed = [], []
    for row in np.flatnonzero(records.control & records.transactional).tolist():
        key, _ = records.key_value(row)
        kind = -1 if key is None or len(key) < 4 else int.from_bytes(key[2:4], signed=True)
        if kind in _MARKERS:
            rows.append(row)
            committed.append(_MARKERS[kind])
    at = np.array(rows, np.int64)
    arrays = [
        *records.place(at),
        pa.array(records.producer_id[at], pa.int64()),
        pa.array(records.producer_epoch[at], pa.int32()),
        pa.array(committed, pa.bool_()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TRANSACTION_MARKERS.schema)


def _listed(table: Table, records: Slice) -> tuple[pa.RecordBatch, list[Problem]]:
    """The rows of a table whose records are read one by one, and what could not be read."""
    mine: Flags = ~records.control
    if table.topic == OFFSETS_TOPIC:
        mine &= ~_is_commit(records)
    own = pa.schema(list(table.schema)[len(PLACE) :])
    decode = _ONE_BY_ONE[table.name]
    at, rows, problems = _one_by_one(decode, records, np.flatnonzero(mine), own)
    made_of = pa.RecordBatch.from_arrays([*records.place(at), *rows.columns], schema=table.schema)
    return made_of, problems


def _one_by_one(
    decode: few.Decode, records: Slice, mine: Ints, columns: pa.Schema
) -> tuple[Ints, pa.RecordBatch, list[Problem]]:
    """(of which record each row is, the rows, what could not be read)"""
    listed: list[few.Row] = []
    sources: list[int] = []
    problems: list[Problem] = []
    for row in mine.tolist():
        made = decode(*records.key_value(row))
        listed.extend(made.rows)
        sources.extend([row] * len(made.rows))
        if made.problem is not None:
            problems.append((row, made.problem))
    rows = pa.RecordBatch.from_pylist(list(listed), schema=columns)
    return np.array(sources, np.int64), rows, problems


def _undecodable(records: Slice) -> pa.RecordBatch:
    rows: list[dict[str, object]] = [
        {
            "log_partition": records.damage_partition,
            "file": records.file,
            "position": damage.position,
            "size": damage.size,
            "log_offset": None if damage.base_offset < 0 else damage.base_offset,
            "reason": damage.reason,
        }
        for damage in records.damage
    ]
    types = records.records.types()
    for row, reason in sorted(_problems(records)):
        key, value = records.key_value(row)
        rows.append(
            {
                "log_partition": int(records.partition[row]),
                "file": records.file,
                "position": None if records.file is None else int(records.position[row]),
                "size": None if records.file is None else int(records.size[row]),
                "log_offset": int(records.offset[row]),
                "record_type": None if types[row] < 0 else int(types[row]),
                "reason": reason,
                "key": key,
                "value": value,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=UNDECODABLE.schema)


def _problems(records: Slice) -> list[Problem]:
    if records.topic == HISTORY_TOPIC:
        return _listed(GROUP_EVENTS, records)[1]
    if records.topic == LAG_TOPIC:
        return _listed(LAG_SAMPLES, records)[1]
    if records.topic != OFFSETS_TOPIC:
        return []
    # Every record that is no commit goes through this table's reader, whichever table it is of.
    return _listed(GROUP_RECORDS, records)[1] + _commits(records)[1]
