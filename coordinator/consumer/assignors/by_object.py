"""Lookup by object: what belongs to many topic ids, without hashing each.

An UUID computes its hash each time, in Python. The ids of a topic are mostly one object in all
subscriptions and assignments, and an object is found faster. An id that is an object of its own is
hashed once. All of them must live as long as the lookup: else another object may get their place.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from protocol.names import TopicId

_Found = TypeVar("_Found")


def by_object(
    entries: Iterable[tuple[TopicId, _Found]],
) -> Callable[[Collection[TopicId]], Sequence[_Found]]:
    """A function from topic ids to what belongs to each; KeyError for others."""
    by_id = dict(entries)
    objects = {id(topic_id): found for topic_id, found in by_id.items()}

    def look_up(topic_ids: Collection[TopicId]) -> Sequence[_Found]:
        try:
            return [*map(objects.__getitem__, map(id, topic_ids))]
        except KeyError:
            objects.update((id(topic_id), by_id[topic_id]) for topic_id in topic_ids)
            return [objects[id(topic_id)] for topic_id in topic_ids]

    return look_up
