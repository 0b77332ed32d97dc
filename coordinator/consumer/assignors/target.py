"""Target assignment: what of the current one stays, and which partitions nobody has."""

from collections.abc import Collection, Iterable, Mapping

from coordinator.consumer.assignors.assignor import (
    Assignment,
    AssignorFailed,
    AssignorInput,
    Partitions,
)
from coordinator.consumer.assignors.by_object import by_object
from protocol.names import TopicId


def partition_count(given: AssignorInput, topic_id: TopicId) -> int:
    topic = given.topics.get(topic_id)
    if topic is None:
        raise AssignorFailed(f"Members subscribe to topic {topic_id}, which does not exist.")
    return topic.partitions


def subscribed_part(assigned: Assignment, subscribed: frozenset[TopicId]) -> Assignment:
    """The assignment without topics that are not subscribed: itself if it has none of these."""
    # From dict to set, and between sets, the hashes are taken along: an UUID's is slow.
    if set(assigned) <= subscribed:
        return assigned
    return {topic_id: held for topic_id, held in assigned.items() if topic_id in subscribed}


def assignment_size(assigned: Assignment) -> int:
    return sum(map(len, assigned.values()))


def unassigned_partitions(
    counts: Mapping[TopicId, int], assignments: Iterable[Assignment]
) -> dict[TopicId, list[int]]:
    """Of each topic that has some, the partitions that are in no assignment, ascending."""
    unassigned = {}
    for topic_id, held in _held_by_topic(counts, assignments).items():
        count = counts[topic_id]
        if not held and count:
            unassigned[topic_id] = [*range(count)]
            continue
        missing = count - sum(map(len, held))
        if not missing:
            continue
        free = sorted(set(range(count)).difference(*held))
        if len(free) != missing:
            raise AssignorFailed(
                f"The target assignment has a partition of topic {topic_id} twice, or one that"
                " does not exist."
            )
        unassigned[topic_id] = free
    return unassigned


def _held_by_topic(
    topic_ids: Collection[TopicId], assignments: Iterable[Assignment]
) -> dict[TopicId, list[Partitions]]:
    held: dict[TopicId, list[Partitions]] = {topic_id: [] for topic_id in topic_ids}
    adders = by_object((topic_id, of_topic.append) for topic_id, of_topic in held.items())
    for assigned in assignments:
        for add, partitions in zip(adders(assigned), assigned.values(), strict=True):
            add(partitions)
    return held
