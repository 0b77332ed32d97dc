"""Topics view: what the coordinator may ask about topics: names, ids, partitions and racks."""

from collections.abc import Collection, Sequence
from typing import Protocol

from protocol.names import TopicId, TopicName


class TopicsView(Protocol):
    @property
    def topics_version(self) -> int:
        """Rises whenever a topic is created, deleted or gets partitions.

        While it stays, every answer of this view stays. It is not kept over a restart.
        """

    def topic_names(self) -> Collection[TopicName]:
        """All topics that exist now, internal ones too, in no order. Later changes do not show."""

    def partition_count(self, name: TopicName) -> int | None:
        """How many partitions; None when there is no such topic."""

    def partition_racks(self, name: TopicName) -> Sequence[Sequence[str]]:
        """For each partition the racks of its replicas, without replicas that have no rack.

        Empty when there is no such topic.
        """

    def topic_id(self, name: TopicName) -> TopicId | None: ...

    def topic_name(self, topic_id: TopicId) -> TopicName | None: ...
