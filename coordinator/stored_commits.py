"""Stored commits: a batch of committed offsets, read back as a whole instead of record by record.

Most of a log is batches that OffsetCommit wrote: the records of a topic are adjacent, with keys of
one length and values of version 4 without metadata. A run of such records is one `Struct`, so a
load reads its columns in one call. Every byte that is no value is compared with what Kafka writes
there. A batch with anything else is read record by record (`logged_records`), which also reports
what is wrong with it. The compiled build reads the same batches in one pass in C
(native/stored_commits.pxi); what is here is its oracle. Kafka's counterpart:
`CoordinatorLoaderImpl`, which reads every record by itself.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import repeat, starmap
from struct import Struct
from typing import Final, NamedTuple

from coordinator.group import CommittedOffset
from coordinator.loaded_record import LoadedRecord, StoredCommits
from coordinator.offsets.committed_offsets import offsets_by_partition
from coordinator.records import OFFSET_COMMIT, one_time, read_offset_key_prefix
from protocol.compiled_codec import function_in_c
from protocol.names import TopicId
from protocol.primitives import read_uuid
from storage.batch.control_batch import logged_records
from storage.batch.record_batch import HEADER_BYTES, BatchHeader, encode_varint, read_header

RUN_RECORDS_MAX: Final = 128
"""Of a longer run the rest is another one: a layout takes 300 bytes for each of its records."""

RUNS_CACHED: Final = 256
"""Layouts of runs that are kept. A log has few; clients could make it have many."""

_SOLE_BYTES_MAX: Final = 1 << 10
"""Of a record that is alone in its batch, to be read in one step."""

_ROW_FIELDS: Final = 10
_VALUE_FRONT: Final = b"\x54\x00\x04"  # 42 bytes follow, of version 4
_NO_METADATA: Final = 1  # its length + 1
_TAG_OF_TOPIC_ID: Final = b"\x01\x00\x10"
_NO_HEADERS: Final = b"\x00"
_TAIL: Final = f"{len(_TAG_OF_TOPIC_ID) + 16 + len(_NO_HEADERS)}s"
_VALUE_BYTES: Final = 42
_PARTITION_BYTES: Final = 4
_KEY_TYPE: Final = OFFSET_COMMIT.to_bytes(2, "big")
_ONE_BYTE: Final = 0x80
"""A varint below it is one byte."""

COMMITS_IN_C: Final[Callable[[bytes], Sequence[LoadedRecord] | None] | None] = function_in_c(
    "read_commits"
)
"""None is its answer to a batch that it leaves to the oracle."""


class _Run(NamedTuple):
    """The layout of adjacent records of one size."""

    rows: Struct
    front: bytes
    """Before the offset's delta: the length of a record, and two zeros."""
    key_length: bytes
    key_front: bytes
    """With the type of the key."""


def loaded_records(batch: bytes) -> Sequence[LoadedRecord]:
    """What a batch says, for the load of a group coordinator's shard.

    Raises InvalidBatch, UnreadableRecord.
    """
    commits = None if COMMITS_IN_C is None else COMMITS_IN_C(batch)
    return commits if commits is not None else records_in_python(batch)


def records_in_python(batch: bytes) -> Sequence[LoadedRecord]:
    """The same: the oracle of what is in C."""
    header = read_header(batch)
    if not header.attributes:
        commits = None
        if header.records_count == 1:
            commits = _read_sole(batch, header)
        commits = commits or _read_commits(batch, header)
        if commits is not None:
            return commits
    return logged_records(batch, header)


def _read_sole(batch: bytes, header: BatchHeader) -> list[StoredCommits] | None:
    """The commit of a batch of one record, of which most logs consist; None if it is not usual."""
    size = header.size - HEADER_BYTES  # the record is all the rest
    run = _run(size, 1, 1) if size < _SOLE_BYTES_MAX else None
    found: list[StoredCommits] = []
    if run is None or not _add_sole(found, run, batch, HEADER_BYTES, 1, header):
        return None
    return found


def _read_commits(batch: bytes, header: BatchHeader) -> list[StoredCommits] | None:
    """The commits of a plain batch; None if it has anything else."""
    found: list[StoredCommits] = []
    at, end, left = HEADER_BYTES, header.size, header.records_count
    while left:
        size = _record_size(batch, at, end)
        if size == 0:
            return None
        # Each record begins with its length, so those of one run begin with the same byte.
        firsts = batch[at : min(end, at + size * RUN_RECORDS_MAX) : size]
        same_size = len(firsts) - len(firsts.lstrip(firsts[:1]))
        count = min(same_size, left, (end - at) // size, RUN_RECORDS_MAX)
        if not _add_run(found, batch, at, size, count, header):
            return None
        at += size * count
        left -= count
    return found if at == end and found else None


def _record_size(batch: bytes, at: int, end: int) -> int:
    """Of the record that begins here, with its length, if that has up to two bytes; or 0.

    0 too if it is too short for a commit: then its fields may be beyond the end of the batch.
    """
    if at + 2 > end:
        return 0
    length = batch[at]
    size = (length >> 1) + 1
    if length >= _ONE_BYTE:
        second = batch[at + 1]
        size = ((length & 0x7F | second << 7) >> 1) + 2
        if second >= _ONE_BYTE:
            return 0
    return 0 if length & 1 or size <= _VALUE_BYTES or at + size > end else size


def _add_run(
    found: list[StoredCommits],
    batch: bytes,
    at: int,
    size: int,
    count: int,
    header: BatchHeader,
) -> bool:
    """Add the commits of adjacent records of one size; False if they are anything else."""
    front_bytes = 3 if size <= _ONE_BYTE // 2 else 4
    delta_bytes = 1 if batch[at + front_bytes] < _ONE_BYTE else 2
    run = _run(size, delta_bytes, count)
    if run is None:
        return False
    if count == 1:
        return _add_sole(found, run, batch, at, delta_bytes, header)
    columns = run.rows.unpack_from(batch, at)
    deltas = columns[1::_ROW_FIELDS]
    tails = columns[9::_ROW_FIELDS]
    if (
        columns[0::_ROW_FIELDS].count(run.front) != count
        or columns[4::_ROW_FIELDS].count(_VALUE_FRONT) != count
        or columns[7::_ROW_FIELDS].count(_NO_METADATA) != count
        or not _are_varints(deltas, delta_bytes)
    ):
        return False
    keys, partitions = columns[2::_ROW_FIELDS], columns[3::_ROW_FIELDS]
    topic_ids = _topic_ids(tails)
    if topic_ids is None:
        return False
    times = columns[8::_ROW_FIELDS]
    if times.count(times[0]) == count:
        times = (one_time(times[0]),) * count  # one number for all of them
    commits = tuple(
        starmap(
            CommittedOffset,
            zip(
                columns[5::_ROW_FIELDS],
                columns[6::_ROW_FIELDS],
                repeat(""),
                times,
                repeat(-1),
                topic_ids,
                strict=False,
            ),
        )
    )
    first = 0
    while first < count:
        key: bytes = keys[first]
        after = count if keys.count(key) == count else _end_of_equal(keys, first)
        if not key.startswith(run.key_front):
            return False
        group_id, topic = read_offset_key_prefix(key[len(run.key_length) :])
        found.append(
            StoredCommits(
                group_id,
                topic,
                offsets_by_partition(
                    dict(zip(partitions[first:after], commits[first:after], strict=True))
                ),
                header.base_timestamp,
            )
        )
        first = after
    return True


def _add_sole(
    found: list[StoredCommits],
    run: _Run,
    batch: bytes,
    at: int,
    delta_bytes: int,
    header: BatchHeader,
) -> bool:
    """The same of one record."""
    front, delta, key, partition, value_front, offset, epoch, metadata, time, tail = (
        run.rows.unpack_from(batch, at)
    )
    if (
        front != run.front
        or value_front != _VALUE_FRONT
        or metadata != _NO_METADATA
        or not tail.startswith(_TAG_OF_TOPIC_ID)
        or not tail.endswith(_NO_HEADERS)
        or not key.startswith(run.key_front)
        or not _are_varints((delta,), delta_bytes)
    ):
        return False
    group_id, topic = read_offset_key_prefix(key[len(run.key_length) :])
    topic_id = read_uuid(tail[len(_TAG_OF_TOPIC_ID) : -1])
    commit = CommittedOffset(offset, epoch, "", time, -1, topic_id)
    commits = offsets_by_partition({partition: commit})
    found.append(StoredCommits(group_id, topic, commits, header.base_timestamp))
    return True


def _end_of_equal(keys: tuple[bytes, ...], first: int) -> int:
    after = first + 1
    while after < len(keys) and keys[after] == keys[first]:
        after += 1
    return after


def _are_varints(deltas: tuple[int, ...], delta_bytes: int) -> bool:
    if delta_bytes == 1:
        return max(deltas) < _ONE_BYTE
    return all(delta >= _ONE_BYTE << 8 and not delta & _ONE_BYTE for delta in deltas)


def _topic_ids(tails: tuple[bytes, ...]) -> Iterable[TopicId] | None:
    """From the ends of the records: a tag with the topic id, and no headers."""
    ends = tails[:1] if tails.count(tails[0]) == len(tails) else tails
    for tail in ends:
        if not tail.startswith(_TAG_OF_TOPIC_ID) or not tail.endswith(_NO_HEADERS):
            return None
    topic_ids = [read_uuid(tail[len(_TAG_OF_TOPIC_ID) : -1]) for tail in ends]
    return repeat(topic_ids[0]) if len(topic_ids) == 1 else topic_ids


@lru_cache(maxsize=RUNS_CACHED)
def _run(size: int, delta_bytes: int, count: int) -> _Run | None:
    """The layout of so many records of this size; None if no record of a commit has it.

    A record: its length, attributes and the timestamp's delta (both zero), the offset's delta, the
    key and the value, each after its length, and the number of headers.
    """
    length_bytes = 1 if size <= _ONE_BYTE // 2 else 2
    front = encode_varint(size - length_bytes) + b"\x00\x00"
    key_bytes = size - len(front) - delta_bytes - len(_VALUE_FRONT[:1]) - _VALUE_BYTES - 2
    if key_bytes >= _ONE_BYTE // 2:
        key_bytes -= 1  # its length has two bytes
    prefix_bytes = key_bytes - _PARTITION_BYTES
    if prefix_bytes < len(_KEY_TYPE):
        return None
    key_length = encode_varint(key_bytes)
    delta = "B" if delta_bytes == 1 else "H"
    row = f"{len(front)}s{delta}{len(key_length) + prefix_bytes}si{len(_VALUE_FRONT)}sqiBq{_TAIL}"
    rows = Struct(">" + row * count)
    return (
        _Run(rows, front, key_length, key_length + _KEY_TYPE) if rows.size == size * count else None
    )
