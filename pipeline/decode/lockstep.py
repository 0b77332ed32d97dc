"""Lockstep decoding: walks the records of many batches at once.

Within a batch a record's position is known only from the one before it, so step k finds the end of
record k of every batch. A step is two look-ups: the two bytes at which a record begins, and a table
of record lengths. No step checks anything: a wrong path does not end where its batch ends, and that
is checked once. Long records (more than 8 KiB) are not in the table; they, and batches that are far
longer than all others, are followed in plain Python.

Then the fields: nearly every record has its numbers in one or two bytes each and no headers, and is
read together with all others; the exceptions are read again one by one. Kafka's counterpart:
DefaultRecord.
"""

from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from pipeline.decode.vector_reads import PAIRS, Bytes, Flags, Ints, ShortVarints
from storage.batch.record_batch import read_varint

_ALONE: Final = 20
"""With fewer batches than this in step, a record costs less in plain Python than in numpy."""

_RECORD_MIN: Final = 7
"""Each of a record's seven fields takes a byte at least."""


def _make_reaches() -> Ints:
    """By its first two bytes, how far a record reaches; zero where they do not tell."""
    length, bits = PAIRS >> 8, PAIRS & 0xFF
    return np.where((length < 0) | (bits > 16), 0, length + bits // 8).astype(np.int16)


_REACHES: Final = _make_reaches()


class Extents(Struct, frozen=True):
    """Where each record begins, and ends; those of batches that are not sound are of no use."""

    batch: Ints  # the index of each record's batch
    start: Ints
    end: Ints
    sound: Flags  # by batch


def walk_records(content: Bytes, begin: Ints, bound: Ints, counts: Ints) -> Extents:
    """The extents of batches with records from `begin` to `bound`, and this many in each."""
    if (counts == 1).all():
        return _walk_one(content, begin, bound)
    possible = counts * _RECORD_MIN <= bound - begin
    counts = np.where(possible, counts, 0)  # before anything is reserved for them
    order = np.argsort(-counts, kind="stable")
    rising = counts[order[::-1]]
    steps = int(rising[-_ALONE]) if len(rising) >= _ALONE else 0
    active = len(rising) - np.searchsorted(rising, np.arange(steps), side="right")
    ends = _in_step(content, begin[order], active.tolist())

    batch = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    number = np.arange(len(batch)) - first[batch]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    step_at = np.zeros(int(rising[-1]) if len(rising) else 0, np.int64)
    step_at[1:steps] = np.cumsum(active)[:-1]
    end = ends[step_at[number] + rank[batch]] if steps else np.zeros(len(batch), np.int64)

    def follow(index: int, done: int) -> None:
        where = first[index] + done
        position = int(begin[index] if not done else end[where - 1])
        found = _follow(content, position, int(bound[index]), int(counts[index]) - done)
        end[where : where + len(found)] = found

    for index in order[: len(rising) - np.searchsorted(rising, steps, side="right")].tolist():
        follow(index, steps)
    last = np.where(counts > 0, first + counts - 1, -1)
    for index in np.flatnonzero(_missed(end, begin, bound, last)).tolist():
        if counts[index]:
            follow(index, 0)
    start = np.empty_like(end)
    start[1:] = end[:-1]
    start[first[counts > 0]] = begin[counts > 0]
    return Extents(batch, start, end, possible & ~_missed(end, begin, bound, last))


def _walk_one(content: Bytes, begin: Ints, bound: Ints) -> Extents:
    """The same of batches of one record each, as single commits are written."""
    end = _in_step(content, begin, [len(begin)])
    for index in np.flatnonzero(end != bound).tolist():
        found = _follow(content, int(begin[index]), int(bound[index]), 1)
        end[index] = found[0] if found else begin[index]
    return Extents(np.arange(len(begin)), begin, end, end == bound)


def _in_step(content: Bytes, at: Ints, active: list[int]) -> Ints:
    """The ends of the records, step by step; `active` tells how many batches are in each."""
    pairs = content.everywhere("<u2")
    ends = []
    for count in active:
        at = at[:count]
        at = at + _REACHES.take(pairs[np.minimum(at, content.size)])
        ends.append(at)
    return np.concatenate(ends) if ends else at[:0]


def _missed(end: Ints, begin: Ints, bound: Ints, last: Ints) -> Flags:
    """Whose last record does not end where its batch does."""
    reached = begin.copy()
    some = last >= 0
    reached[some] = end[last[some]]
    missed: Flags = reached != bound
    return missed


def _follow(content: Bytes, begin: int, bound: int, count: int) -> list[int]:
    """The ends of so many records; fewer if they are not within their batch."""
    octets = content.octets[begin:bound].tobytes()
    size = len(octets)
    position = 0
    ends: list[int] = []
    try:
        for _ in range(count):
            first = octets[position]
            if first < 0x80:
                position += 1 + (first >> 1)
            elif octets[position + 1] < 0x80:
                position += 2 + ((octets[position + 1] << 7 | first & 0x7F) >> 1)
            else:
                length, position = read_varint(octets, position)
                position += length
            if first & 1 or position > size:  # odd: the length is negative
                break
            ends.append(begin + position)
    except (IndexError, ValueError):
        pass  # the batch ends within a length, or that is none
    return ends


class FieldPositions(Struct, frozen=True):
    """What stands in each record; of those that are wrong, nothing is to be used."""

    timestamp_delta: Ints
    offset_delta: Ints
    key_at: Ints
    key_bytes: Ints  # -1: no key
    value_at: Ints
    value_bytes: Ints  # -1: a tombstone


def read_fields(content: Bytes, start: Ints, end: Ints) -> tuple[FieldPositions, Ints]:
    """(the fields of the records with these extents, which records are wrong)"""
    head = ShortVarints(content.words(start))
    head.next()  # the length
    head.skip(1)  # the attributes, of which none is defined
    timestamp_delta, offset_delta, key_bytes = head.next(), head.next(), head.next()
    key_at = start + head.taken()
    value_begins = key_at + np.maximum(key_bytes, 0)
    rest = ShortVarints(content.everywhere("<u2")[value_begins].astype(np.uint64))
    value_bytes = rest.next()
    value_at = value_begins + rest.taken()
    after = value_at + np.maximum(value_bytes, 0)
    # No headers, and then the end; else it is looked at more closely.
    plain = (content.octets[after] == 0) & (after + 1 == end)
    plain &= ~(head.long() | rest.long()) & (key_bytes >= -1) & (value_bytes >= -1)
    wrong = []
    for row in np.flatnonzero(~plain).tolist():
        position = int(start[row])
        read = _read_odd(content.octets[position : int(end[row])].tobytes())
        if read is None:
            wrong.append(row)
        else:
            timestamp_delta[row], offset_delta[row], key_bytes[row], value_bytes[row] = read[:4]
            key_at[row], value_at[row] = position + read.key_at, position + read.value_at
    fields = FieldPositions(timestamp_delta, offset_delta, key_at, key_bytes, value_at, value_bytes)
    return fields, np.array(wrong, np.int64)


class _Odd(NamedTuple):
    """A record's fields; places are in the record."""

    timestamp_delta: int
    offset_delta: int
    key_bytes: int
    value_bytes: int
    key_at: int
    value_at: int


def _read_odd(record: bytes) -> _Odd | None:
    """Numbers of any length, and headers: with every check. None: it is not a record."""
    try:
        _, at = read_varint(record, 0)
        timestamp_delta, at = read_varint(record, at + 1)
        offset_delta, at = read_varint(record, at)
        key_bytes, key_at = read_varint(record, at)
        value_bytes, value_at = read_varint(record, key_at + max(key_bytes, 0))
        headers, at = read_varint(record, value_at + max(value_bytes, 0))
        sizes = [key_bytes, value_bytes, headers - 1]
        for _ in range(headers):
            name_bytes, at = read_varint(record, at)
            size, at = read_varint(record, at + max(name_bytes, 0))
            at += max(size, 0)
            sizes += name_bytes - 1, size
    except (IndexError, ValueError):
        return None
    is_long = max(abs(timestamp_delta), abs(offset_delta)) >= 1 << 62
    if is_long or min(sizes) < -1 or at != len(record):
        return None
    return _Odd(timestamp_delta, offset_delta, key_bytes, value_bytes, key_at, value_at)
