"""Compiled commits: the rows of usual offset commits, in C if the compiled build is there.

commit_reader.c reads the batches of a chunk in one pass, where numpy needs some hundred: five times
as fast. It reads what is usual. If anything is not, it gives up, and the whole chunk is read by
numpy (lockstep.py, offset_commits.py), which also says what is wrong. So both give the same rows;
tests/pipeline/test_compiled_commits.py compares them. Without the compiled build, as on the
executors of most clusters, numpy reads everything.
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.decode.offset_commits import KeyValues
from pipeline.decode.record_extents import BatchExtents
from pipeline.decode.vector_reads import Ints, Octets, numbers, validity
from pipeline.tables import Table
from rollcall.compiled import load_extension
from rollcall.program import program_path

READER: Final = "rollcall_commit_reader"
_NO_END: Final = np.iinfo(np.int64).max
_BYTES_MAX: Final = np.iinfo(np.int32).max

_NUMBERS: Final = {
    "log_offset": np.int64,
    "log_timestamp_ms": np.int64,
    "partition": np.int32,
    "committed_offset": np.int64,
    "leader_epoch": np.int32,
    "commit_timestamp_ms": np.int64,
    "value_version": np.int16,
    "tombstone": np.uint8,  # the other way round: whether there is a value
    "producer_id": np.int64,
    "transactional": np.uint8,
    "log_partition": np.int32,
}
_TEXTS: Final = frozenset({"group", "topic", "metadata", "topic_id"})
_OF_KEYS: Final = frozenset({"group", "topic"})
_ORDER: Final = (
    "log_offset", "log_timestamp_ms", "group", "topic", "partition", "committed_offset",
    "leader_epoch", "metadata", "commit_timestamp_ms", "topic_id", "value_version", "tombstone",
    "producer_id", "transactional", "log_partition",
)  # fmt: skip
"""The columns in the order of commit_reader.c. `expire_timestamp_ms` is null in all usual rows."""

_NEEDS_LIVING: Final = frozenset(
    {"committed_offset", "metadata", "commit_timestamp_ms", "value_version"}
)
"""Null in a tombstone."""


@cache
def compiled_reader() -> ModuleType | None:
    """commit_reader.c, if it was compiled for this Python from the present source."""
    return load_extension(READER, program_path())


class UsualCommits(NamedTuple):
    rows: pa.RecordBatch
    last_offset: int  # of all records; -1: there is none


def usual_commits(
    found: BatchExtents, table: Table, partition: int, begin: int, end: int | None
) -> UsualCommits | None:
    """The commits of these batches from the one offset up to the other, with the columns of the
    table. None: they must be read with numpy."""
    reader, content = compiled_reader(), found.content
    if reader is None or len(content.octets) > _BYTES_MAX:
        return None
    batches = found.batches
    possible = np.minimum(batches.column("count"), batches.end - batches.begin)
    columns = _Columns(table, content.size, content.size, int(possible.sum()))
    said = reader.read_batches(
        content.octets, batches.position, batches.begin, batches.end,
        partition, begin, _NO_END if end is None else end, columns.room, columns.in_order(),
    )  # fmt: skip
    return columns.commits(said)


def usual_records(
    records: KeyValues, partition: Ints, offset: Ints, timestamp_ms: Ints, table: Table
) -> UsualCommits | None:
    """The same of records whose batches are not known, as a broker's consumer has them."""
    reader, keys, values = compiled_reader(), records.keys, records.values
    if reader is None or max(len(keys.octets), len(values.octets)) > _BYTES_MAX:
        return None
    columns = _Columns(table, keys.size, values.size, len(records))
    said = reader.read_records(
        keys.octets, records.key_at, records.key_bytes,
        values.octets, records.value_at, records.value_bytes,
        partition, offset, timestamp_ms, columns.room, columns.in_order(),
    )  # fmt: skip
    return columns.commits(said)


class _Columns:
    """What the reader fills: for a text the end of each, and the bytes of all."""

    def __init__(self, table: Table, key_bytes: int, value_bytes: int, room: int) -> None:
        """For so many rows, whose keys and values have so many bytes."""
        self._table = table
        self.room = room
        wanted = set(table.schema.names)
        if wanted & _NEEDS_LIVING:
            wanted.add("tombstone")
        self._numbers = {
            name: np.empty(room, kind) for name, kind in _NUMBERS.items() if name in wanted
        }
        self._ends = {name: np.empty(room + 1, np.int32) for name in _TEXTS & wanted}
        self._octets: dict[str, Octets] = {
            name: np.empty(key_bytes if name in _OF_KEYS else value_bytes, np.uint8)
            for name in self._ends
        }

    def in_order(self) -> tuple[object, ...]:
        """As read_batches wants them; None: not wanted."""
        given: list[object] = []
        for name in _ORDER:
            if name in _TEXTS:
                given += self._ends.get(name), self._octets.get(name)
            else:
                given.append(self._numbers.get(name))
        return tuple(given)

    def commits(self, said: tuple[int, int] | None) -> UsualCommits | None:
        """What the reader has made of them; `said`: how many rows, and the last offset."""
        if said is None:
            return None
        arrays = self._arrays(said[0])
        if arrays is None:
            return None
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._table.schema)
        return UsualCommits(rows, said[1])

    def _arrays(self, rows: int) -> list[pa.Array] | None:
        """The table's, of so many rows. None: a text is not UTF-8."""
        living = self._numbers.get("tombstone", np.empty(0, np.uint8))[:rows].view(np.bool_)
        present = validity(living)

        def number(name: str, known: pa.Buffer | None = None) -> pa.Array:
            kind = self._table.schema.field(name).type
            return numbers(self._numbers[name][:rows], kind, known)

        def unless_negative(name: str) -> pa.Array:
            return number(name, validity(self._numbers[name][:rows] >= 0))

        make: dict[str, Callable[[], pa.Array]] = {
            "committed_offset": lambda: number("committed_offset", present),
            "leader_epoch": lambda: unless_negative("leader_epoch"),
            "commit_timestamp_ms": lambda: number("commit_timestamp_ms", present),
            "expire_timestamp_ms": lambda: pa.nulls(rows, pa.int64()),
            "topic_id": lambda: self._topic_ids(rows),
            "value_version": lambda: number("value_version", present),
            "tombstone": lambda: pa.array(~living),
            "producer_id": lambda: unless_negative("producer_id"),
            "transactional": lambda: pa.array(self._numbers["transactional"][:rows].view(np.bool_)),
        }
        arrays = []
        for name in self._table.schema.names:
            if name in ("group", "topic", "metadata"):
                made = self._texts(name, rows, present if name == "metadata" else None)
                if made is None:
                    return None
                arrays.append(made)
            else:
                arrays.append(make[name]() if name in make else number(name))
        return arrays

    def _texts(self, name: str, rows: int, present: pa.Buffer | None) -> pa.Array | None:
        ends = self._ends[name][: rows + 1]
        octets = self._octets[name][: ends[-1]]
        made = pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(octets), present)
        if octets.max(initial=0) >= 0x80:
            try:
                made.validate(full=True)
            except pa.ArrowInvalid:
                return None
        return made

    def _topic_ids(self, rows: int) -> pa.Array:
        ends = self._ends["topic_id"][: rows + 1]
        if not ends[-1]:
            return pa.nulls(rows, pa.binary())
        octets = self._octets["topic_id"][: ends[-1]]
        parts = [validity(ends[1:] > ends[:-1]), pa.py_buffer(ends), pa.py_buffer(octets)]
        return pa.Array.from_buffers(pa.binary(), rows, parts)
