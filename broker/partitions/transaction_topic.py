"""Transaction topic: when `__transaction_state` is created, and when its partitions are taken over.

The first FindCoordinator for a transactional id creates it, as in Kafka: a daemon that never saw a
transaction has no folder of it and loads nothing. Metadata and CreateTopics may create it too. A
start that finds it loads it, beside the offsets topic.
Kafka's counterparts: `AutoTopicCreationManager`, `TransactionCoordinator.onElection`.
"""

from collections.abc import Callable
from typing import Protocol

from broker.partitions.coordinator_logs import CoordinatorLogs
from broker.partitions.ownership import Ownership
from protocol.names import TRANSACTION_STATE_TOPIC, ErrorCode
from topics.registry import TopicRegistry


class PartitionedCoordinator(Protocol):
    """The transaction coordinator. Its partitions never change once the topic exists."""

    partition_count: int


class TransactionTopic:
    """On the event loop."""

    def __init__(
        self,
        registry: TopicRegistry,
        create: Callable[[], None],
        logs: CoordinatorLogs,
        ownership: Ownership,
    ) -> None:
        """`create` begins to create the topic; it may be called again before that is done."""
        self.coordinator: PartitionedCoordinator  # set by build.py
        self._registry = registry
        self._create = create
        self._logs = logs
        self.ownership = ownership

    def find(self) -> ErrorCode:
        """NONE if there is a coordinator of transactions; else there soon will be."""
        if self._registry.by_name(TRANSACTION_STATE_TOPIC) is not None:
            return ErrorCode.NONE
        self._create()
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def open(self) -> None:
        """At a start: take the partitions over, if there are any; returns when they are loaded."""
        partitions = self._adopt()
        if partitions:
            await self.ownership.elect(range(partitions))

    def created(self) -> None:
        """The registry has created the topic."""
        partitions = self._adopt()
        self._logs.fresh.update(range(partitions))
        self.ownership.elect_soon(range(partitions))

    def _adopt(self) -> int:
        """Tell the logs and the coordinator of the topic; how many partitions it has."""
        topic = self._registry.by_name(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return 0
        self._logs.topic_id = topic.topic_id
        self._logs.settings = topic.effective.log
        self.coordinator.partition_count = len(topic.partitions)
        return len(topic.partitions)
