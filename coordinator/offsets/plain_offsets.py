"""Plain offsets: committed offsets in columns, as a snapshot keeps them.

Offsets are the bulk of a snapshot. Each topic is a row of columns, and a column whose values are
all equal is one value. `plain_offsets` and `offsets_of_plain` are inverse to each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat, starmap
from sys import intern
from typing import TypeVar

from msgspec.structs import astuple

from coordinator.group import CommittedOffset
from protocol.names import TopicName
from protocol.primitives import read_uuid

V = TypeVar("V")

OffsetColumns = tuple[
    str, list[int], list[int], list[int], list[str], list[int], list[int], list[bytes]
]  # topic, partitions, and the fields of CommittedOffset


def plain_offsets(
    offsets: Mapping[TopicName, dict[int, CommittedOffset]],
) -> list[OffsetColumns]:
    return [_columns(topic, commits) for topic, commits in offsets.items()]


def offsets_of_plain(
    plain: Sequence[OffsetColumns],
) -> dict[TopicName, dict[int, CommittedOffset]]:
    found: dict[TopicName, dict[int, CommittedOffset]] = {}
    for topic, partitions, offsets, epochs, metadata, committed, expire, ids in plain:
        rows = zip(
            offsets,
            _values(epochs),
            _values(metadata),
            _values(committed),
            _values(expire),
            _values([read_uuid(raw) for raw in ids]),
            strict=False,  # what stands once has no end
        )
        # Interned: thousands of groups that read one topic share its name.
        found[TopicName(intern(topic))] = dict(
            zip(partitions, starmap(CommittedOffset, rows), strict=True)
        )
    return found


def _columns(topic: TopicName, commits: dict[int, CommittedOffset]) -> OffsetColumns:
    rows = map(astuple, commits.values())
    offsets, epochs, metadata, committed, expire, ids = zip(*rows, strict=True)
    return (
        topic,
        list(commits),
        list(offsets),
        _column(epochs),
        _column(metadata),
        _column(committed),
        _column(expire),
        [topic_id.bytes for topic_id in _column(ids)],
    )


def _column(values: Sequence[V]) -> list[V]:
    """All of them, or one that stands for all."""
    first = values[0]
    return [first] if values.count(first) == len(values) else list(values)


def _values(column: list[V]) -> Iterable[V]:
    return repeat(column[0]) if len(column) == 1 else column
