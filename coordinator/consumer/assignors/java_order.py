"""Java iteration order: in which order Kafka's assignors walk through members, topics, partitions.

Where one partition more has to go to somebody, Kafka's `uniform` gives it to the first in the order
of a Java hash table. For equal content this order is fixed, up to entries that share a slot; these
follow the order of insertion, for which the order of the ids stands here.
Kafka's counterpart: `HashMap` and `HashSet` of Java 17, `TimelineHashMap`, `Uuid.hashCode`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from protocol.names import MemberId, TopicId
from seams.java_hash import java_hash

_SMALLEST_TABLE: Final = 16
_MEMBERS_CACHED: Final = 16_384
"""Of groups that are assigned again and again."""

_MASK_32: Final = (1 << 32) - 1
_MASK_64: Final = (1 << 64) - 1
_TIMELINE_FACTOR: Final = -7_046_029_254_386_353_131 & _MASK_64
"""`BaseHashTable.findSlot` multiplies with it, and takes the highest bits."""


def member_order(member_ids: Collection[MemberId]) -> list[MemberId]:
    """Of the map that `TargetAssignmentBuilder` fills from the members of the group."""
    buckets = _grown(len(member_ids)) - 1
    slots = 64 - (_timeline_slots(len(member_ids)).bit_length() - 1)

    def place(member_id: MemberId) -> int:
        bucket, slot = _hashes(member_id)
        return (bucket & buckets) << 64 | slot >> slots

    return sorted(sorted(member_ids, reverse=True), key=place)


def timeline_order(member_ids: Sequence[MemberId], entries: int) -> list[MemberId]:
    """Of a `TimelineHashMap` that has held so many entries; of a slot the newest comes first."""
    slots = 64 - (_timeline_slots(entries).bit_length() - 1)
    newest_first = member_ids[::-1]
    return sorted(newest_first, key=lambda member_id: _hashes(member_id)[1] >> slots)


def assigned_topic_order(topic_ids: Collection[TopicId]) -> list[TopicId]:
    """Of the map that `Assignment.fromRecord` makes."""
    return _topics_by_bucket(topic_ids, _grown(len(topic_ids)))


def subscribed_topic_order(topic_ids: Iterable[TopicId], subscribed: int) -> list[TopicId]:
    """Of some topics in a copied `HashSet` of as many topics as are subscribed."""
    return _topics_by_bucket(topic_ids, _copied(subscribed))


def partition_order(partitions: Collection[int]) -> list[int]:
    """Of the `HashSet` that `Assignment.fromRecord` makes for a topic."""
    buckets = _copied(len(partitions)) - 1
    return sorted(sorted(partitions), key=lambda partition: _spread(partition) & buckets)


def assignor_order(votes: Mapping[str, int], withdrawn: str | None, given: str | None) -> list[str]:
    """Of the copied map of votes, after one member has withdrawn its vote and voted again.

    `HashMap.compute` removes an entry that has no vote left. It puts a new one before the others of
    its bucket, and does not grow a map for the first entry too many.
    """
    size = 1 << (len(votes) * 4 // 3).bit_length() if votes else _SMALLEST_TABLE
    buckets = size - 1
    names: list[str] = [*timeline_order([MemberId(name) for name in votes], len(votes))]
    if withdrawn is not None and votes[withdrawn] == 1:
        names.remove(withdrawn)
    if given is not None and given not in names:
        names.insert(0, given)
    return sorted(names, key=lambda name: _spread(java_hash(name) & _MASK_32) & buckets)


@lru_cache(maxsize=_MEMBERS_CACHED)
def _hashes(member_id: MemberId) -> tuple[int, int]:
    value = java_hash(member_id)
    return _spread(value & _MASK_32), value * _TIMELINE_FACTOR & _MASK_64


def _topics_by_bucket(topic_ids: Iterable[TopicId], buckets: int) -> list[TopicId]:
    return sorted(topic_ids, key=lambda id_: (_topic_spread(id_) & buckets - 1, id_.int))


def _topic_spread(topic_id: TopicId) -> int:
    number = topic_id.int
    halves = number >> 64 ^ number
    return _spread((halves >> 32 ^ halves) & _MASK_32)


def _spread(value: int) -> int:
    return value ^ value >> 16


def _grown(entries: int) -> int:
    """The size of a hash map that grew from its default size."""
    size = _SMALLEST_TABLE
    while entries * 4 > size * 3:
        size *= 2
    return size


def _copied(entries: int) -> int:
    """The size of a `HashSet` that is a copy of another collection: Java 17 reserves one more."""
    return max(_SMALLEST_TABLE, 1 << (entries * 4 // 3).bit_length())


def _timeline_slots(entries: int) -> int:
    slots = 2
    while entries * 3 > slots * 4:
        slots *= 2
    return slots
