"""Where does each record of many batches lie, and what is in it? All batches are walked at once.

Within a batch a record's place is known only from the one before it, so step k finds the end of
record k of every batch. A step is two look-ups: the two bytes at which a record begins, and a table
of how far such a record reaches. No step checks anything: who goes astray does not end where its
batch ends, and that is looked at once. Long records (more than 8 KiB) are not in the table; they,
and batches that are far longer than all others, are followed in plain Python.

Then the fields: nearly every record has its numbers in one or two bytes each, and these are read
for all records alike; the others are read again, with every check. Kafka's counterpart:
DefaultRecord.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.gather import PAIRS, Bytes, Flags, Ints, ShortVarints

_ALONE: Final = 20
"""With fewer batches than this in step, a record costs less in plain Python than in numpy."""

_RECORD_MIN: Final = 7
"""Each of a record's seven fields takes a byte at least."""


def _make_reaches() -> Ints:
    """By its first two bytes, how far a record reaches; zero where they do not tell."""
    length, bits = PAIRS >> 8, PAIRS & 0xFF
    return np.where((length < 0) | (bits > 16), 0, length + bits // 8).astype(np.int16)


_REACHES: Final = _make_reaches()


@dataclass(slots=True)
class Extents:
    """Where each record begins, and ends; those of batches that are not sound are of no use."""

    batch: Ints  # the index of each record's batch
    start: Ints
    end: Ints
    sound: Flags  # by batch


def walk(content: Bytes, begin: Ints, bound: Ints, counts: Ints) -> Extents:
    """The extents of batches whose records lie from `begin` to `bound`, so many in each."""
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
    """The ends of so many records; fewer where they do not lie within their batch."""
    octets = content.octets[begin : bound + 1].tobytes()
    position, size = 0, bound - begin
    ends: list[int] = []
    note = ends.append
    for _ in range(count):
        length = octets[position]
        position += 1
        if length >= 0x80:
            octet = octets[position] if position < size else 0x80
            position += 1
            length += (octet << 7) - 0x80
            shift = 14
            while octet >= 0x80:
                if position >= size or shift > 28:
                    return ends
                octet = octets[position]
                position += 1
                length += (octet - 1) << shift
                shift += 7
        position += length >> 1
        if length & 1 or position > size:
            return ends
        note(begin + position)
    return ends


@dataclass(slots=True)
class Fields:
    """What stands in each record; of those that are wrong, nothing is to be used."""

    timestamp_delta: Ints
    offset_delta: Ints
    key_at: Ints
    key_bytes: Ints  # -1: no key
    value_at: Ints
    value_bytes: Ints  # -1: a tombstone


def read_fields(content: Bytes, start: Ints, end: Ints) -> tuple[Fields, Ints]:
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
    fields = Fields(timestamp_delta, offset_delta, key_at, key_bytes, value_at, value_bytes)
    odd = np.flatnonzero(~plain)
    if not len(odd):
        return fields, odd
    return fields, odd[_read_odd(content, start[odd], end[odd], fields, odd)]


def _read_odd(content: Bytes, start: Ints, end: Ints, fields: Fields, rows: Ints) -> Flags:
    """Numbers of any length, record headers, and what is wrong: which of the rows are."""
    wrong = np.zeros(len(rows), np.bool_)

    def following(at: Ints) -> tuple[Ints, Ints]:
        nonlocal wrong
        wrong = wrong | (at >= end)
        number, width = content.varint(np.where(wrong, 0, at))
        wrong |= (width == 0) | (at + width > end)
        return number, at + width

    _, at = following(start)
    fields.timestamp_delta[rows], at = following(at + 1)
    fields.offset_delta[rows], at = following(at)
    key_bytes, key_at = following(at)
    value_bytes, value_at = following(key_at + np.maximum(key_bytes, 0))
    following(value_at + np.maximum(value_bytes, 0))  # how many headers; they are not read
    fields.key_at[rows], fields.key_bytes[rows] = key_at, key_bytes
    fields.value_at[rows], fields.value_bytes[rows] = value_at, value_bytes
    return wrong | (key_bytes < -1) | (value_bytes < -1)
