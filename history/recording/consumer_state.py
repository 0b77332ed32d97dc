"""Consumer recording state: what the recorder of consumer groups keeps between turns."""

from collections.abc import Callable, Sequence
from typing import Final

from coordinator.group import GroupType
from history.entry_values import TopicPartitionCounts
from history.index import HistoryIndex
from history.recording.reconciliation import Reconciliations
from history.recording.record_limits import RecordLimits
from history.repeats import Repeats
from protocol.names import GroupId, MemberId, TopicId, TopicName

CONSUMER_GROUP: Final = str(GroupType.CONSUMER)

TOPIC_NAMES_MAX: Final = 10_000
"""Names of topics that are remembered beyond their deletion."""

Numbers = Callable[[Sequence[TopicName]], tuple[TopicPartitionCounts, ...]]
"""How many partitions topics had before their last change, and have now."""


class ConsumerRecordingState:
    """Not thread-safe: one for the whole coordinator, on its loop."""

    def __init__(self, index: HistoryIndex, limits: RecordLimits, numbers: Numbers) -> None:
        self.index = index
        self.limits = limits
        self.numbers = numbers
        self.topic_name: Callable[[TopicId], TopicName | None] = lambda _: None
        self.reconciliations = Reconciliations(index, limits)
        # Static members that left for a while, and when; no more of them than members.
        self.left_ms: dict[tuple[GroupId, MemberId], int] = {}
        self.repeats = Repeats()
        self._names: dict[TopicId, TopicName] = {}

    def clear(self) -> None:
        self.reconciliations.clear()
        self.left_ms.clear()

    def name(self, topic_id: TopicId) -> str:
        """A topic's name, also for some time after its deletion; else its id."""
        name = self.topic_name(topic_id)
        if name is None:
            return self._names.get(topic_id) or str(topic_id)
        if topic_id not in self._names and len(self._names) >= TOPIC_NAMES_MAX:
            del self._names[next(iter(self._names))]
        self._names[topic_id] = name
        return name
