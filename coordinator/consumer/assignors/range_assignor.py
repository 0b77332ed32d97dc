"""Range assignor: each subscriber of a topic gets a range of consecutive partitions.

Static members come first, by their instance id; then the others, by their member id. The first of
them get one partition more where a topic's partitions cannot be shared out evenly. Members that
subscribe to topics with equally many partitions get the same numbers of each: co-partitioning.
The current assignment and racks play no part.
Kafka's counterpart: `RangeAssignor` of 4.3.1, with the same result.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from coordinator.consumer.assignors.assignor import (
    Assignment,
    AssignorInput,
    AssignorMember,
    Partitions,
)
from coordinator.consumer.assignors.subscriptions import topic_classes
from coordinator.consumer.assignors.target import partition_count
from protocol.names import MemberId, TopicId


class RangeAssignor:
    """`range`."""

    @property
    def name(self) -> str:
        return "range"

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        order = sorted(given.members, key=lambda member_id: _rank(given.members, member_id))
        target: list[dict[TopicId, Partitions]] = [{} for _ in order]
        subscriptions = [given.members[member_id].subscribed_topic_ids for member_id in order]
        ranges_of = cache(_ranges)
        for of_class in topic_classes(subscriptions):
            for partitions, topics in _by_count(given, of_class.topics).items():
                ranges = ranges_of(partitions, len(of_class.subscribers))
                # From dict to dict the hashes are taken along: an UUID's is slow.
                template = dict.fromkeys(topics)
                for subscriber, held in zip(of_class.subscribers, ranges, strict=False):
                    target[subscriber] |= dict.fromkeys(template, held)
        return dict(zip(order, target, strict=True))


def _rank(
    members: Mapping[MemberId, AssignorMember], member_id: MemberId
) -> tuple[bool, bytes, bytes]:
    instance_id = members[member_id].instance_id
    return instance_id is None, _compared(instance_id or ""), _compared(member_id)


def _compared(text: str) -> bytes:
    """Java compares strings by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _by_count(given: AssignorInput, topic_ids: Sequence[TopicId]) -> dict[int, list[TopicId]]:
    by_count: dict[int, list[TopicId]] = {}
    for topic_id in topic_ids:
        by_count.setdefault(partition_count(given, topic_id), []).append(topic_id)
    return by_count


def _ranges(partitions: int, subscribers: int) -> list[Partitions]:
    """The range of each subscriber; without the last ones if there are too few partitions."""
    least, extras = divmod(partitions, subscribers)
    ranges = []
    start = 0
    for place in range(min(partitions, subscribers)):
        end = start + least + (place < extras)
        ranges.append(frozenset(range(start, end)))
        start = end
    return ranges
