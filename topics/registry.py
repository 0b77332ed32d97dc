"""Which topics are there, with which ids, partitions and configs? The one table of them.

Every change is saved in the catalog before it is made, so a crash leaves it done or not done; then
the logs follow, then the listeners are told. At the start the catalog and what lies on the disk are
brought together: missing logs are made, those of deleted topics removed, and logs that the catalog
does not know are adopted, for to delete records is never a guess.
Kafka's counterpart: `ReplicationControlManager` for the table, `LogManager` for the logs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from protocol.names import OFFSETS_TOPIC, ZERO_TOPIC_ID, ProducerId, TopicId, TopicName
from storage.api import Corrupt, LogStore, TopicLog, TopicPartition
from topics.catalog import Catalog, CatalogFile, TopicEntry
from topics.configs import INTERNAL_SEGMENT_BYTES, EffectiveConfig, TopicConfigs
from topics.events import (
    PartitionFailed,
    PartitionsAdded,
    SaveFailed,
    TopicAdopted,
    TopicChange,
    TopicCreated,
    TopicDeleted,
    TopicEvent,
)
from topics.partition import Partition
from topics.settings import InternalTopic, TopicSettings
from topics.topic_ids import random_topic_id
from topics.topic_names import collision_key, is_internal


class Topic(Struct):
    """One topic. `configs` are its own; `effective` is what holds with the broker's."""

    name: TopicName
    topic_id: TopicId
    configs: Mapping[str, str]
    effective: EffectiveConfig
    is_internal: bool
    partitions: list[Partition] = field(default_factory=list)


class NewTopic(Struct, frozen=True):
    """A topic that was found fit to be created."""

    name: TopicName
    topic_id: TopicId
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)


class TopicRegistry:
    """Implements TopicsView. A change raises OSError if the disk refuses; then nothing changed."""

    def __init__(
        self,
        store: LogStore,
        catalog: CatalogFile,
        settings: TopicSettings,
        observe: Callable[[TopicEvent], None],
        new_topic_id: Callable[[], TopicId] = random_topic_id,
    ) -> None:
        self.configs = TopicConfigs(settings.broker_properties)
        self.new_topic_id = new_topic_id
        self._store = store
        self._file = catalog
        self._observe = observe
        self._listeners: list[Callable[[TopicChange], None]] = []
        self._by_name: dict[TopicName, Topic] = {}
        self._by_id: dict[TopicId, Topic] = {}
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._deleting: list[TopicId] = []
        self._next_producer_id = 0
        self._load(settings)

    # Questions

    def partition_count(self, name: TopicName) -> int | None:
        topic = self._by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def topic_id(self, name: TopicName) -> TopicId | None:
        topic = self._by_name.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: TopicId) -> TopicName | None:
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.name

    def by_name(self, name: TopicName) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: TopicId) -> Topic | None:
        return self._by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    def names(self) -> list[TopicName]:
        return sorted(self._by_name)

    def partitions(self) -> Iterator[Partition]:
        return iter(tuple(self._partitions.values()))

    def colliding(self, name: TopicName) -> TopicName | None:
        """The topic whose name differs only in dots and underscores, or is this very name."""
        key = collision_key(name)
        if key is None:
            return None
        return next((other for other in self.names() if collision_key(other) == key), None)

    # Changes

    def subscribe(self, listener: Callable[[TopicChange], None]) -> None:
        """Be told of every change, once it is made; in the order of subscription."""
        self._listeners.append(listener)

    def create(self, new: Sequence[NewTopic], *, automatic: bool = False) -> None:
        """Add topics that do not exist yet: all of them or none."""
        self._save(
            [
                *self._entries(),
                *(TopicEntry(t.name, t.topic_id, t.partitions, t.configs) for t in new),
            ]
        )
        topics = [self._add(t.name, t.topic_id, t.configs) for t in new]
        try:
            for topic, fresh in zip(topics, new, strict=True):
                self._open_logs(topic, fresh.partitions)
        except OSError:
            for topic in topics:
                self._forget(topic)
            self._save(self._entries())
            raise
        for topic in topics:
            self._tell(TopicCreated(topic.name, topic.topic_id, len(topic.partitions), automatic))

    def delete(self, topic: Topic) -> None:
        """Remove a topic and its records."""
        self._deleting.append(topic.topic_id)
        try:
            self._save([e for e in self._entries() if e.topic_id != topic.topic_id])
        except OSError:
            self._deleting.remove(topic.topic_id)
            raise
        partitions = len(topic.partitions)
        self._forget(topic)
        self._deleting.remove(topic.topic_id)  # the file may still name it: that does no harm
        self._tell(TopicDeleted(topic.name, topic.topic_id, partitions))

    def add_partitions(self, topic: Topic, count: int) -> None:
        """Let a topic have `count` partitions, more than it has."""
        before = len(topic.partitions)
        self._save(
            [
                TopicEntry(e.name, e.topic_id, count, e.configs) if e.name == topic.name else e
                for e in self._entries()
            ]
        )
        try:
            self._open_logs(topic, count)
        except OSError:
            self._remove_logs(topic.partitions[before:])
            del topic.partitions[before:]
            self._save(self._entries())
            raise
        self._tell(PartitionsAdded(topic.name, topic.topic_id, before, count))

    def attach(self, log: TopicLog) -> None:
        """Take the log of a partition that somebody else writes: the offsets topic's."""
        partition = self._partitions[log.topic_partition]
        partition.attach(log)

    def reserve_producer_ids(self, count: int) -> ProducerId:
        """The first of `count` ids that nobody was given and nobody will be, not after a crash."""
        first = self._next_producer_id
        self._next_producer_id += count
        try:
            self._save(self._entries())
        except OSError:
            self._next_producer_id = first
            raise
        return ProducerId(first)

    # The catalog

    def _entries(self) -> list[TopicEntry]:
        return [
            TopicEntry(topic.name, topic.topic_id, len(topic.partitions), dict(topic.configs))
            for topic in self._by_name.values()
        ]

    def _save(self, entries: list[TopicEntry]) -> None:
        try:
            self._file.save(Catalog(entries, self._deleting, self._next_producer_id).dump())
        except OSError as fault:
            self._observe(SaveFailed("topic catalog", str(fault)))
            raise

    def _load(self, settings: TopicSettings) -> None:
        content = self._file.load()
        catalog = Catalog() if content is None else Catalog.read(content)
        self._remove_deleted(catalog)
        # A new producer under an old one's id would be taken for it, and its batches for repeated.
        taken = [log.last_producer_id for log in self._store.partitions().values()]
        self._next_producer_id = max(catalog.next_producer_id, max(taken, default=-1) + 1)
        known = {entry.name for entry in catalog.topics}
        entries = [*catalog.topics, *self._adopted(known)]
        offsets_configs = offsets_topic_configs(settings)
        if OFFSETS_TOPIC not in known:
            entries.append(
                TopicEntry(
                    OFFSETS_TOPIC,
                    self.new_topic_id(),
                    settings.offsets_topic_num_partitions,
                    offsets_configs,
                )
            )
        for name, topic in settings.internal_topics.items():
            _place_internal(entries, name, topic, self.new_topic_id)
        if entries != catalog.topics or content is None:
            self._save(entries)
        for entry in entries:
            # The offsets topic's are those of this start, which may be a command's rehearsal.
            configs = offsets_configs if entry.name == OFFSETS_TOPIC else entry.configs
            self._open_logs(self._add(entry.name, entry.topic_id, configs), entry.partitions)

    def _remove_deleted(self, catalog: Catalog) -> None:
        logs = self._store.partitions()
        doomed = [key for key, log in logs.items() if log.topic_id in catalog.deleting]
        if doomed:
            self._store.delete(*doomed)

    def _adopted(self, known: set[TopicName]) -> list[TopicEntry]:
        """Topics made of logs that no catalog names: it was lost, or folders were put here."""
        found: dict[TopicName, TopicEntry] = {}
        for (topic, index), log in sorted(self._store.partitions().items()):
            name = TopicName(topic)
            if name not in known and name != OFFSETS_TOPIC:
                topic_id = found[name].topic_id if name in found else log.topic_id
                if topic_id == ZERO_TOPIC_ID:
                    topic_id = self.new_topic_id()
                found[name] = TopicEntry(name, topic_id, index + 1)
        entries = list(found.values())
        for entry in entries:
            self._observe(TopicAdopted(entry.name, entry.topic_id, entry.partitions))
        return entries

    # The table and the logs

    def _add(self, name: TopicName, topic_id: TopicId, configs: Mapping[str, str]) -> Topic:
        topic = Topic(name, topic_id, configs, self.configs.effective(configs), is_internal(name))
        self._by_name[name] = topic
        self._by_id[topic_id] = topic
        return topic

    def _open_logs(self, topic: Topic, count: int) -> None:
        logs = self._store.partitions()
        for index in range(len(topic.partitions), count):
            topic_partition = TopicPartition(topic.name, index)
            log: TopicLog | None = None
            if topic.name != OFFSETS_TOPIC:
                log = logs.get(topic_partition)
                # A log without an id is one whose small files a crash took: it gets them again.
                if log is None or log.topic_id == ZERO_TOPIC_ID:
                    log = self._create_log(topic, topic_partition)
                if log is not None:
                    _check_id(topic, log)
                    log.settings = topic.effective.log
            partition = Partition(topic_partition, log)
            partition.offline = log is None and topic.name != OFFSETS_TOPIC
            topic.partitions.append(partition)
            self._partitions[topic_partition] = partition

    def _create_log(self, topic: Topic, topic_partition: TopicPartition) -> TopicLog | None:
        """A new log; None where a damaged one lies, which is left for people to look at."""
        try:
            return self._store.create(topic_partition, topic.topic_id, topic.effective.log)
        except Corrupt as damage:
            self._observe(PartitionFailed(topic_partition, str(damage), offline=True))
            return None
        except OSError as fault:
            self._observe(SaveFailed(f"{topic.name}-{topic_partition.partition}", str(fault)))
            raise

    def _forget(self, topic: Topic) -> None:
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self._remove_logs(topic.partitions)

    def _remove_logs(self, partitions: Sequence[Partition]) -> None:
        for partition in partitions:
            partition.deleted = True
            del self._partitions[partition.topic_partition]
        # A damaged one has no log to show, but a folder.
        there = [one for one in partitions if one.log is not None or one.offline]
        self._store.delete(*(one.topic_partition for one in there))

    def _tell(self, change: TopicChange) -> None:
        self._observe(change)
        for listener in self._listeners:
            listener(change)


def _check_id(topic: Topic, log: TopicLog) -> None:
    if log.topic_id != topic.topic_id:
        name, index = log.topic_partition
        ids = f"topic id {log.topic_id}, the catalog says {topic.topic_id}"
        raise Corrupt(f"{name}-{index}", 0, ids)


def _place_internal(
    entries: list[TopicEntry],
    name: TopicName,
    topic: InternalTopic,
    new_topic_id: Callable[[], TopicId],
) -> None:
    """Its configs are the daemon's, which may have changed; partitions are never taken away."""
    for place, entry in enumerate(entries):
        if entry.name == name:
            partitions = max(entry.partitions, topic.partitions)
            entries[place] = TopicEntry(name, entry.topic_id, partitions, topic.configs)
            return
    entries.append(TopicEntry(name, new_topic_id(), topic.partitions, topic.configs))


def offsets_topic_configs(settings: TopicSettings) -> dict[str, str]:
    """As this start has them, whatever an earlier one had: its logs go by them from now on."""
    size = settings.offsets_topic_segment_bytes
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        # The broker's key may be smaller than a topic's own, which has a least value.
        (INTERNAL_SEGMENT_BYTES if size < 1 << 20 else "segment.bytes"): str(size),
        # Its own key, whatever the broker's says: shown is what the cleaner goes by.
        "min.compaction.lag.ms": str(settings.offsets_history_ms),
    }
