"""Deleted topics: whose committed offsets are still to be deleted, and in which partitions.

What was committed for a topic goes with it. That takes time: a partition may be loading when the
topic is deleted, its groups are looked at a slice at a time, and the tombstones have to be stored.
Until all partitions have done so the topic is remembered: here, and in the catalog of topics, from
which a start brings it back (`remembered`). So neither a kill nor a load that fails leaves offsets
behind that a topic of the same name would find.

What goes is what is known to be of that topic: a commit that carries its id. A commit without an id
(offsets.value.version 3, or imported) goes only where it was there before the deletion, which is
not known after a restart. Offsets for topics that never were here, as a Kafka's folders or an
import may bring them, are never touched. Kafka's counterpart:
`OffsetMetadataManager.onTopicsDeleted`, which asks the partitions that are loaded at that moment.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from protocol.names import GroupId, TopicId, TopicName
from seams.now import Now
from storage.api import Position

_GROUPS_PER_SLICE: Final = 500
"""How many groups a partition looks at in one tick."""


class DeletedTopic(NamedTuple):
    """`before_now`: no commit is younger than the deletion, so those without an id go too.

    The client is the one that deleted it, for the history; after a restart nobody knows.
    """

    name: TopicName
    topic_id: TopicId
    before_now: bool
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class DeletedTopics:
    """Of all partitions: who has forgotten what."""

    def __init__(
        self,
        partitions: int,
        remembered: Iterable[tuple[TopicName, TopicId]],
        forgotten: Callable[[TopicId], None],
    ) -> None:
        """`forgotten` is called when nothing of a topic is left in any partition's log."""
        self._partitions = partitions
        self._forgotten = forgotten
        self._topics: dict[TopicId, DeletedTopic] = {}
        self._pending: dict[TopicId, set[int]] = {}
        self._served_since: set[tuple[TopicId, int]] = set()  # commits may be younger there
        for name, topic_id in remembered:
            self._add(DeletedTopic(name, topic_id, before_now=False))

    def add(
        self,
        name: TopicName,
        topic_id: TopicId,
        client_id: str,
        client_host: str,
        principal: str | None = None,
    ) -> DeletedTopic:
        """It was deleted just now, by this client."""
        client = (client_id, client_host, principal)
        topic = DeletedTopic(name, topic_id, True, *client)  # noqa: FBT003
        self._add(topic)
        return topic

    def _add(self, topic: DeletedTopic) -> None:
        self._topics[topic.topic_id] = topic
        self._pending[topic.topic_id] = set(range(self._partitions))

    def pending(self, partition: int) -> list[DeletedTopic]:
        """What a partition that was loaded has to forget."""
        return [
            self._topics[topic_id]._replace(
                before_now=self._topics[topic_id].before_now
                and (topic_id, partition) not in self._served_since
            )
            for topic_id, left in self._pending.items()
            if partition in left
        ]

    def closed(self, partition: int) -> None:
        """It was served until now, and may have to be loaded again."""
        for topic_id, left in self._pending.items():
            if partition in left:
                self._served_since.add((topic_id, partition))

    def done(self, partition: int, topic_id: TopicId) -> None:
        """A partition has forgotten it, and that is stored."""
        left = self._pending.get(topic_id)
        if left is None:
            return
        left.discard(partition)
        self._served_since.discard((topic_id, partition))
        if not left:
            del self._pending[topic_id], self._topics[topic_id]
            self._forgotten(topic_id)


class Forgetting:
    """Of one partition: the groups that are still to be looked at, a slice at a time."""

    __slots__ = ("_done", "_end_position", "_forget", "_queue", "_unstored")

    def __init__(
        self,
        forget: Callable[[GroupId, DeletedTopic, Now], None],
        end_position: Callable[[], Position],
        done: Callable[[TopicId], None],
    ) -> None:
        """`done` is called when what `forget` appended for a topic is stored."""
        self._forget = forget
        self._end_position = end_position
        self._done = done
        self._queue: deque[tuple[DeletedTopic, list[GroupId]]] = deque()
        self._unstored: deque[tuple[Position, TopicId]] = deque()

    def __bool__(self) -> bool:
        """Are there groups to look at?"""
        return bool(self._queue)

    def add(self, topic: DeletedTopic, group_ids: list[GroupId]) -> None:
        self._queue.append((topic, group_ids))

    def next_slice(self, now: Now, stored: Position) -> None:
        topic, group_ids = self._queue[0]
        for group_id in group_ids[-_GROUPS_PER_SLICE:]:
            self._forget(group_id, topic, now)
        del group_ids[-_GROUPS_PER_SLICE:]
        if not group_ids:
            self._queue.popleft()
            self._unstored.append((self._end_position(), topic.topic_id))
            self.on_stored(stored)

    def on_stored(self, stored: Position) -> None:
        while self._unstored and self._unstored[0][0] <= stored:
            self._done(self._unstored.popleft()[1])

    def clear(self) -> None:
        self._queue.clear()
        self._unstored.clear()
