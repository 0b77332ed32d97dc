"""Changed topics: whose partitions changed lately? A rebalance of their readers may come of it."""

from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from protocol.names import TopicName
from purgatory.now import Now

TOPICS_REMEMBERED: Final = 10_000
"""The last ones."""


class ChangedTopics:
    def __init__(self) -> None:
        self._topics: OrderedDict[TopicName, int] = OrderedDict()  # -> wall clock ms

    def note(self, names: AbstractSet[TopicName], now: Now) -> None:
        """Topics came, went, or got more partitions."""
        for name in names:
            self._topics[name] = now.wall_ms
            self._topics.move_to_end(name)
        while len(self._topics) > TOPICS_REMEMBERED:
            self._topics.popitem(last=False)

    def any_since(self, names: Iterable[TopicName], since_ms: int) -> bool:
        return any(self._topics.get(name, -1) >= since_ms for name in names)
