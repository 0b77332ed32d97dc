"""Topics view: what the coordinator may ask about topics: names, ids, partition counts."""

from typing import Protocol

from protocol.names import TopicId, TopicName


class TopicsView(Protocol):
    def partition_count(self, name: TopicName) -> int | None:
        """How many partitions; None when there is no such topic."""

    def topic_id(self, name: TopicName) -> TopicId | None: ...

    def topic_name(self, topic_id: TopicId) -> TopicName | None: ...
