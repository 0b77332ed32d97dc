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
from coordinator.offsets.committed_offsets import (
    CommittedOffsets,
    OffsetsByTopic,
    offsets_by_partition,
)
from protocol.names import TopicName
from protocol.primitives import read_uuid

V = TypeVar("V")

OffsetColumns = tuple[
    str, list[int], list[int], list[int], list[str], list[int], list[int], list[bytes]
]  # topic, partitions, and the fields of CommittedOffset


def plain_offsets(offsets: Mapping[TopicName, CommittedOffsets]) -> list[OffsetColumns]:
    return [_columns(topic, commits) for topic, commits in offsets.items()]


def offsets_of_plain(plain: Sequence[OffsetColumns] | OffsetsByTopic) -> OffsetsByTopic:
    """The compiled build has read the columns of a snapshot already."""
    if isinstance(plain, dict):
        return plain
    # Interned: thousands of groups that read one topic share its name.
    return {TopicName(intern(columns[0])): _commits(*columns[1:]) for columns in plain}


def _commits(
    partitions: list[int],
    offsets: list[int],
    epochs: list[int],
    metadata: list[str],
    committed: list[int],
    expire: list[int],
    ids: list[bytes],
) -> CommittedOffsets:
    rows = zip(
        offsets,
        _values(epochs),
        _values(metadata),
        _values(committed),
        _values(expire),
        _values([read_uuid(raw) for raw in ids]),
        strict=False,  # what stands once has no end
    )
    return offsets_by_partition(dict(zip(partitions, starmap(CommittedOffset, rows), strict=True)))


def _columns(topic: TopicName, commits: CommittedOffsets) -> OffsetColumns:
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
