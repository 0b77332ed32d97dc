"""Topic cache: what consumer groups need to know of topics, computed once for each topic.

The metadata hash of a group and the input of an assignor go over all its topics, often for many
groups after one change. Everything here is dropped when the version of the topics view moves.
Kafka's counterpart: `topicHashCache` of `GroupMetadataManager`.
"""

from collections.abc import Iterable

from coordinator.consumer.assignors.assignor import AssignorTopic
from coordinator.consumer.metadata_hash import group_hash, topic_hash
from coordinator.consumer.regex_cache import RegexCache
from protocol.names import TopicId, TopicName
from seams.topics_view import TopicsView


class TopicCache:
    """One for all groups of a coordinator."""

    __slots__ = (
        "_created_version",
        "_hashes",
        "_names",
        "_regexes",
        "_topics",
        "_version",
        "view",
    )

    def __init__(self, view: TopicsView) -> None:
        self.view = view
        self._version = self._created_version = view.topics_version
        self._names = frozenset(view.topic_names())
        self._hashes: dict[TopicName, int] = {}
        self._topics: dict[TopicName, AssignorTopic] = {}
        self._regexes = RegexCache()

    @property
    def created_version(self) -> int:
        """The version of the view in which a topic was seen that had not been there before.

        Kafka's counterpart: `lastMetadataImageWithNewTopics`.
        """
        self._refresh()
        return self._created_version

    def ids_of(self, names: Iterable[TopicName]) -> dict[TopicId, TopicName]:
        """Those that exist, by their ids."""
        topic_id = self.view.topic_id
        return {found: name for name in names if (found := topic_id(name)) is not None}

    def metadata_hash(self, names: Iterable[TopicName]) -> int:
        """The hash of these topics, as far as they exist."""
        self._refresh()
        hashes = {}
        for name in names:
            hash_of_topic = self._hashes.get(name)
            if hash_of_topic is None:
                topic_id = self.view.topic_id(name)
                if topic_id is None:
                    continue
                count, racks = self.view.partition_count(name), self.view.partition_racks(name)
                hash_of_topic = topic_hash(topic_id, name, count or 0, racks)
                self._hashes[name] = hash_of_topic
            hashes[name] = hash_of_topic
        return group_hash(hashes)

    def assignor_topic(self, name: TopicName) -> AssignorTopic:
        """A topic that exists, as an assignor sees it."""
        self._refresh()
        topic = self._topics.get(name)
        if topic is None:
            of_partitions = self.view.partition_racks(name)
            racks = tuple(map(frozenset, of_partitions)) if any(of_partitions) else None
            count = self.view.partition_count(name) or 0
            topic = self._topics[name] = AssignorTopic(count, racks)
        return topic

    def matching(self, patterns: Iterable[str]) -> dict[str, frozenset[TopicName]]:
        """The topics that each regular expression matches."""
        self._refresh()
        return self._regexes.resolve(patterns, self._names, self._version)

    def _refresh(self) -> None:
        version = self.view.topics_version
        if version != self._version:
            self._version = version
            names = frozenset(self.view.topic_names())
            if not names <= self._names:
                self._created_version = version
            self._names = names
            self._hashes.clear()
            self._topics.clear()
