"""Released partitions: who had the partitions that nobody owns now, and since when?

By topic and then by partition: the hash of a topic id costs more than all else that is done with
one partition, and a member may own thousands of a topic.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from history.recording.consumer_turn import OwnedByTopic
from protocol.names import TopicId


class Released(NamedTuple):
    """The last owner of a partition, by instance id or else member id, and since when it has none.

    `since_ms` is monotonic.
    """

    owner: str
    since_ms: int


class ReleasedPartitions:
    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[TopicId, dict[int, Released]] = {}

    def release(self, owned: OwnedByTopic, owner: str, at_ms: int) -> None:
        released = Released(owner, at_ms)
        for topic_id, partitions in owned.items():
            here = self._by_topic.setdefault(topic_id, {})
            here.update(dict.fromkeys(partitions, released))

    def take_all(self, others: "ReleasedPartitions") -> None:
        """Those of another time, which has them no more. They are newer than these."""
        for topic_id, released in others._by_topic.items():
            self._by_topic.setdefault(topic_id, {}).update(released)
        others._by_topic = {}

    def take(self, topic_id: TopicId, partition: int) -> Released | None:
        """It has an owner again. None: it was not released."""
        here = self._by_topic.get(topic_id)
        return None if here is None else here.pop(partition, None)

    def of_topic(self, topic_id: TopicId) -> Mapping[int, Released]:
        """By partition."""
        return self._by_topic.get(topic_id, {})

    def all(self) -> Iterator[Released]:
        for here in self._by_topic.values():
            yield from here.values()
