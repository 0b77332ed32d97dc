"""Decoder: which rows of a table does a piece of a log hold?

The only code path from bytes to columns. `Slice` is a set of records with their positions, found in
a segment (`of_segment`) or returned by Spark's Kafka connector (`of_messages`); `rows_of` makes the
columns of its tables. Commits, the bulk of a log, are decoded all at once; other records one by
one. Records without a place in a table go to the table "undecodable", by the same checks, so that
nothing is lost between the two.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct, structs

from coordinator.records import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from pipeline.decode import rows as few
from pipeline.decode.batch_boundaries import Undecodable
from pipeline.decode.compiled_commits import usual_records
from pipeline.decode.consumer_rows import consumer_groups
from pipeline.decode.offset_commits import KeyValues, read_offset_commits
from pipeline.decode.record_extents import BatchExtents, RecordExtents, records_in
from pipeline.decode.vector_reads import Bytes, Flags, Ints, numbers, validity
from pipeline.tables import (
    COMMITS,
    CONSUMER_GROUPS,
    GROUP_EVENTS,
    GROUP_METADATA_TABLE,
    GROUP_RECORDS,
    LAG_SAMPLES,
    PLACE,
    TRANSACTION_MARKERS,
    UNDECODABLE,
    Table,
)
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC
from storage.batch.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG

_ONE_BY_ONE: Final[dict[str, few.Decode]] = {
    GROUP_METADATA_TABLE.name: few.group_metadata,
    GROUP_RECORDS.name: few.group_records,
    CONSUMER_GROUPS.name: consumer_groups,
    GROUP_EVENTS.name: few.group_events,
    LAG_SAMPLES.name: few.lag_samples,
}
Between = tuple[int, int | None]
"""Offsets: from the one up to, not including, the other (None: to the end)."""

_MARKERS: Final = {0: False, 1: True}  # abort, commit; other control records are not ours


class Slice(Struct, frozen=True):
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
    damage: Sequence[Undecodable] = ()
    damage_partition: int = -1

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def last_offset(self) -> int:
        """-1: it has no record."""
        return int(self.offset[-1]) if len(self) else -1

    def between(self, begin: int, end: int | None) -> "Slice":
        """Itself without records before the one offset, or from the other on. Bytes that could not
        be read may have no offset: they stay."""
        last = np.iinfo(np.int64).max if end is None else end
        keep: Flags = (self.offset >= begin) & (self.offset < last)
        damage = [
            lost for lost in self.damage if lost.base_offset < 0 or begin <= lost.base_offset < last
        ]
        some = self if keep.all() else self._where(np.flatnonzero(keep))
        return structs.replace(some, damage=damage)

    def _where(self, rows: Ints | slice) -> "Slice":
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return structs.replace(self, records=self.records.where(rows), **columns)

    def parts(self, count: int) -> Iterator["Slice"]:
        """Itself in parts of so many records, which share its memory; the damage is the first's."""
        if len(self) <= count:
            yield self
            return
        for begin in range(0, len(self), count):
            damage = () if begin else self.damage
            yield structs.replace(self._where(slice(begin, begin + count)), damage=damage)

    def batch(self, table: Table, rows: Ints, said: pa.RecordBatch) -> pa.RecordBatch:
        """The table's rows: what these records `said`, and what is known of where they stand."""
        make: dict[str, Callable[[], pa.Array]] = {
            "log_partition": lambda: numbers(self.partition[rows], pa.int32()),
            "log_offset": lambda: numbers(self.offset[rows], pa.int64()),
            "log_timestamp_ms": lambda: numbers(self.timestamp_ms[rows], pa.int64()),
            "producer_id": lambda: _producers(self.producer_id[rows]),
            "producer_epoch": lambda: numbers(self.producer_epoch[rows], pa.int32()),
            "transactional": lambda: pa.array(self.transactional[rows]),
        }
        there = dict(zip(said.schema.names, said.columns, strict=True))
        arrays = [there[name] if name in there else make[name]() for name in table.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=table.schema)

    def key_value(self, row: int) -> tuple[bytes | None, bytes | None]:
        records = self.records
        key = records.keys.one_blob(int(records.key_at[row]), int(records.key_bytes[row]))
        return key, records.values.one_blob(
            int(records.value_at[row]), int(records.value_bytes[row])
        )


_OF_THE_LOG: Final = frozenset(
    [column.name for column in PLACE] + ["producer_id", "producer_epoch", "transactional"]
)
"""Columns of tables that are known of a record's place and batch, not from itself."""


def _said(table: Table) -> pa.Schema:
    """The columns that come from the records themselves."""
    return pa.schema([column for column in table.schema if column.name not in _OF_THE_LOG])


def _producers(ids: Ints) -> pa.Array:
    return numbers(ids, pa.int64(), validity(ids >= 0))


_COLUMNS: Final = tuple(item.name for item in structs.fields(Slice) if item.type in (Ints, Flags))


def of_segment(
    batches: BatchExtents, topic: str, partition: int, *, file: str, position: int
) -> Slice:
    """The records of a chunk that begins at `position` of the file."""
    found = records_in(batches)
    attributes = found.of_batches("attributes")
    damage = [damage._replace(position=damage.position + position) for damage in found.damage]
    return Slice(
        topic,
        _key_values(found),
        np.full(len(found.offset), partition, np.int64),
        found.offset,
        found.timestamp_ms,
        attributes & CONTROL_FLAG != 0,
        attributes & TRANSACTIONAL_FLAG != 0,
        found.of_batches("producer_id"),
        found.of_batches("producer_epoch"),
        found.batches.position[found.batch] + position,
        found.of_batches("length") + 12,
        file,
        damage,
        partition,
    )


def _key_values(found: RecordExtents) -> KeyValues:
    return KeyValues(
        found.content, found.key_at, found.key_bytes,
        found.content, found.value_at, found.value_bytes,
    )  # fmt: skip


def of_messages(topic: str, messages: pa.RecordBatch) -> Slice:
    """Rows of Spark's Kafka source: key, value, partition, offset, timestamp (ms).

    The connector returns no batches: it leaves out control records, and with
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


def schema_of(tables: Sequence[Table]) -> pa.Schema:
    """The columns of a table; of several, each is a column."""
    if len(tables) == 1:
        return tables[0].schema
    return pa.schema([pa.field(table.name, pa.struct(list(table.schema))) for table in tables])


def rows_of(tables: Sequence[Table], records: Slice) -> pa.RecordBatch:
    """As `schema_of` has them: of several tables a row is of the one that is not null."""
    found = [_rows_of(table, records) for table in tables]
    if len(found) == 1:
        return found[0]
    count = sum(rows.num_rows for rows in found)
    before, columns = 0, []
    for rows in found:
        kind = pa.struct(list(rows.schema))
        own = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
        after = count - before - rows.num_rows
        columns.append(pa.concat_arrays([pa.nulls(before, kind), own, pa.nulls(after, kind)]))
        before += rows.num_rows
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(tables))


def _rows_of(table: Table, records: Slice) -> pa.RecordBatch:
    """The columns of the table's schema, for those records that belong into it."""
    # By name: a table that came to a worker is a copy.
    if table.name == UNDECODABLE.name:
        return _undecodable(records)
    if table.topic != records.topic:
        return table.schema.empty_table().to_batches()[0]
    if table.name == COMMITS.name:
        return _commits(table, records)[0]
    if table.name == TRANSACTION_MARKERS.name:
        return _markers(table, records)
    return _listed(table, records)[0]


def _is_commit(records: Slice) -> Flags:
    types = records.records.types()
    of_type: Flags = (types == OFFSET_COMMIT) | (types == LEGACY_OFFSET_COMMIT)
    return of_type & ~records.control


def _commits(table: Table, records: Slice) -> tuple[pa.RecordBatch, list[Problem]]:
    """All at once; what is not as usual (a tag of a later Kafka's, ...) as the daemon reads it."""
    if records.file is None:  # of a segment's it was tried before there were records
        where = records.partition, records.offset, records.timestamp_ms
        if (made := usual_records(records.records, *where, table)) is not None:
            return made.rows, []
    commits, own = np.flatnonzero(_is_commit(records)), _said(table)
    sound, columns = read_offset_commits(records.records.where(commits), own)
    usual = records.batch(table, commits[sound], columns)
    if sound.all():
        return usual, []
    rows, others, problems = _one_by_one(few.offset_commit, records, commits[~sound], own)
    if not len(rows):
        return usual, problems
    both = pa.Table.from_batches([usual, records.batch(table, rows, others)])
    return both.combine_chunks().to_batches()[0], problems


def _markers(table: Table, records: Slice) -> pa.RecordBatch:
    rows, committed = [], []
    for row in np.flatnonzero(records.control & records.transactional).tolist():
        key, _ = records.key_value(row)
        kind = -1 if key is None or len(key) < 4 else int.from_bytes(key[2:4], signed=True)
        if kind in _MARKERS:
            rows.append(row)
            committed.append(_MARKERS[kind])
    said = pa.RecordBatch.from_pydict({"committed": pa.array(committed, pa.bool_())})
    return records.batch(table, np.array(rows, np.int64), said)


def _listed(table: Table, records: Slice) -> tuple[pa.RecordBatch, list[Problem]]:
    """The rows of a table whose records are read one by one, and what could not be read."""
    chosen: Flags = ~records.control
    if table.topic == OFFSETS_TOPIC:
        chosen &= ~_is_commit(records)
    decode = _ONE_BY_ONE[table.name]
    at, said, problems = _one_by_one(decode, records, np.flatnonzero(chosen), _said(table))
    return records.batch(table, at, said), problems


def _one_by_one(
    decode: few.Decode, records: Slice, chosen: Ints, columns: pa.Schema
) -> tuple[Ints, pa.RecordBatch, list[Problem]]:
    """(of which record each row is, the rows, what could not be read)"""
    listed: list[few.Row] = []
    sources: list[int] = []
    problems: list[Problem] = []
    for row in chosen.tolist():
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


_PLACED: Final = COMMITS.only("log_offset")


def _problems(records: Slice) -> list[Problem]:
    if records.topic == HISTORY_TOPIC:
        return _listed(GROUP_EVENTS, records)[1]
    if records.topic == LAG_TOPIC:
        return _listed(LAG_SAMPLES, records)[1]
    if records.topic != OFFSETS_TOPIC:
        return []
    # Every record except commits goes through this table's reader, whichever table it is of.
    return _listed(GROUP_RECORDS, records)[1] + _commits(_PLACED, records)[1]
