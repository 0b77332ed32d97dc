"""Topic registry: the table of topics, with their ids, partitions, configs and logs.

Every change is saved in the catalog first, so after a crash it is made or not made. Then the logs
are created or deleted, and then the listeners are called. A change is an operation of the admin
queue: it yields its disk work, and the table changes on the loop. A start reconciles the catalog
with the folders on the disk, as `catalog_recovery.py` plans it.
Kafka's counterpart: `ReplicationControlManager` for the table, `LogManager` for the logs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from protocol.config_def import ConfigException
from protocol.names import (
    COORDINATOR_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    ProducerId,
    TopicId,
    TopicName,
)
from seams.topic_names import collision_key, is_internal
from storage.api import Corrupt, LogStore, NewerFormat, TopicLog, TopicPartition
from topics.admin_queue import Steps
from topics.broker_properties import BrokerProperties
from topics.catalog import Catalog, CatalogDamaged, CatalogFile, TopicEntry
from topics.catalog_recovery import CatalogRecovery, RecoveryPlan
from topics.configs import EffectiveConfig, TopicConfigs
from topics.coordinator_topics import coordinator_topic_configs
from topics.events import (
    CatalogRebuilt,
    ConfigsLost,
    PartitionFailed,
    PartitionsAdded,
    SaveFailed,
    StrayFolderRenamed,
    TopicChange,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicEvent,
)
from topics.partition import Partition
from topics.settings import TopicSettings
from topics.topic import NewTopic, Topic
from topics.topic_ids import random_topic_id

LOST_CATALOG_SKIP: Final = 1_000_000
"""Producer ids skipped when the catalog is lost: the logs have the greatest one that was used, but
producers may hold greater ones that they have not used yet."""

FORGETTING_MAX: Final = 100_000
"""Deleted topics whose offsets may still exist, some 200 bytes each. There are many only while a
partition of the offsets topic cannot be loaded."""


class TopicRegistry:
    """Implements TopicsView. A change raises OSError if the disk fails; then nothing changed."""

    def __init__(
        self,
        store: LogStore,
        catalog: CatalogFile,
        settings: TopicSettings,
        observe: Callable[[TopicEvent], None],
        new_topic_id: Callable[[], TopicId] = random_topic_id,
        *,
        greatest_producer_id: int = -1,
        repair: bool = False,
    ) -> None:
        """`greatest_producer_id`: the greatest of the producer snapshot. With `repair` a damaged
        catalog is kept as a copy and rebuilt from the folders. Raises Corrupt, OSError."""
        self.configs = TopicConfigs(settings.broker_properties)
        self.new_topic_id = new_topic_id
        self._store = store
        self._file = catalog
        self._observe = observe
        self._settings = settings
        self._listeners: list[Callable[[TopicChange], None]] = []
        self._by_name: dict[TopicName, Topic] = {}
        self._by_id: dict[TopicId, Topic] = {}
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._entries: dict[TopicName, TopicEntry] = {}
        # Deleted; their folders may still exist.
        self._deleting: dict[TopicId, TopicName] = {}
        # Deleted; the coordinator may still have their offsets.
        self._forgetting: dict[TopicId, TopicName] = {}
        self._next_producer_id = greatest_producer_id + 1
        self._version = 0
        # This node has the only replica of every partition.
        self._racks = (settings.broker_rack,) if settings.broker_rack else ()
        self.was_repaired = False
        self._damaged: frozenset[TopicPartition] = frozenset()  # a folder without a readable log
        self._load(repair=repair)

    # Queries

    @property
    def topics_version(self) -> int:
        return self._version

    def topic_names(self) -> Collection[TopicName]:
        return tuple(self._by_name)

    def partition_count(self, name: TopicName) -> int | None:
        topic = self._by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def partition_racks(self, name: TopicName) -> Sequence[Sequence[str]]:
        return (self._racks,) * (self.partition_count(name) or 0)

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
        """The topic whose name is the same but for dots and underscores, or this name itself."""
        key = collision_key(name)
        if key is None:
            return None
        return next((other for other in self.names() if collision_key(other) == key), None)

    # Changes

    def subscribe(self, listener: Callable[[TopicChange], None]) -> None:
        """Call `listener` after every change; listeners are called in this order."""
        self._listeners.append(listener)

    def create(self, new: Sequence[NewTopic], *, automatic: bool = False) -> Steps[None]:
        """Add topics that do not exist yet: all of them or none."""
        topics = [
            self._topic(new_topic.name, new_topic.topic_id, new_topic.configs) for new_topic in new
        ]
        entries = [TopicEntry(t.name, t.topic_id, t.partitions, t.configs) for t in new]
        logs: dict[TopicName, Sequence[TopicLog]] = {}

        def work() -> None:
            for topic, new_topic in zip(topics, new, strict=True):
                keys = [TopicPartition(topic.name, index) for index in range(new_topic.partitions)]
                logs[topic.name] = self._store.create_all(keys, topic.topic_id, topic.effective.log)

        def undo() -> None:
            self._store.delete(*(log.topic_partition for made in logs.values() for log in made))

        yield from self._change(
            {**self._entries, **{entry.name: entry for entry in entries}},
            work,
            undo,
            deleted={topic.topic_id: topic.name for topic in topics},
        )
        for topic in topics:
            self._add(topic)
            self._serve(topic, logs[topic.name])
            self._notify(TopicCreated(topic.name, topic.topic_id, len(topic.partitions), automatic))

    def transaction_state_topic(self) -> NewTopic:
        """`__transaction_state`, to be created when the first client needs it."""
        name, settings = TRANSACTION_STATE_TOPIC, self._settings
        configs = coordinator_topic_configs(settings)[name]
        count = settings.transaction_state_log_num_partitions
        return NewTopic(name, self.new_topic_id(), count, configs)

    def add_partitions(self, topic: Topic, count: int) -> Steps[None]:
        """Add partitions, so that the topic has `count`."""
        before = len(topic.partitions)
        keys = [TopicPartition(topic.name, index) for index in range(before, count)]
        logs: list[TopicLog] = []

        def work() -> None:
            logs.extend(self._store.create_all(keys, topic.topic_id, topic.effective.log))

        entry = replace(self._entries[topic.name], partitions=count)
        # The next start deletes leftover folders: they are empty, and beyond the topic's count.
        yield from self._change({**self._entries, topic.name: entry}, work, _nothing)
        self._serve(topic, logs)
        self._notify(PartitionsAdded(topic.name, topic.topic_id, before, count))

    def _change(
        self,
        entries: dict[TopicName, TopicEntry],
        work: Callable[[], None],
        undo: Callable[[], None],
        deleted: Mapping[TopicId, TopicName] | None = None,
    ) -> Steps[None]:
        """Save the catalog, then do the work; if that fails, the catalog is restored.

        If it cannot be restored either, a start finds the change made; the table does not have it.
        """
        before, after = self._catalog(), self._catalog(entries)
        before.deleting.update(deleted or {})
        is_decided = False

        def both() -> None:
            nonlocal is_decided
            self._file.save(after.dump())
            is_decided = True
            try:
                work()
            except OSError:
                try:
                    self._file.save(before.dump())
                finally:
                    undo()
                raise

        try:
            yield both
        except OSError as fault:
            what = "partitions" if is_decided else "topic catalog"
            self._observe(SaveFailed(what, str(fault)))
            self._deleting.update(deleted or {} if is_decided else {})
            raise
        self._entries = entries

    def change_configs(self, topic: Topic, configs: dict[str, str]) -> Steps[None]:
        """Replace a topic's own configs by these, which are valid. They count at once."""
        effective = self.configs.effective(configs)
        if configs == topic.configs:
            return
        entry = replace(self._entries[topic.name], configs=configs)
        entries = {**self._entries, topic.name: entry}
        yield from self._save(self._catalog(entries))
        self._entries = entries
        topic.configs, topic.effective = configs, effective
        self._use_log_settings(topic)
        self._observe(TopicConfigsChanged(topic.name, dict(configs)))

    def use(self, properties: BrokerProperties) -> None:
        """The broker's properties changed: the values in effect follow at once."""
        self.configs.use(properties)
        resolved: dict[frozenset[tuple[str, str]], EffectiveConfig] = {}  # most topics have none
        for topic in self._by_name.values():
            own = frozenset(topic.configs.items())
            if own not in resolved:
                resolved[own] = self.configs.effective(topic.configs)
            topic.effective = resolved[own]
            self._use_log_settings(topic)

    def _use_log_settings(self, topic: Topic) -> None:
        if topic.name == OFFSETS_TOPIC:
            return  # those of the coordinator, which attaches these logs
        for partition in topic.partitions:
            if partition.log is not None:
                partition.log.settings = topic.effective.log

    def delete(
        self,
        *topics: Topic,
        client_id: str = "",
        client_host: str = "",
        principal: str | None = None,
    ) -> Steps[None]:
        """Remove topics and their records. Raises OSError; then nothing is removed."""
        deleted = {topic.topic_id: topic.name for topic in topics}
        entries = {n: e for n, e in self._entries.items() if e.topic_id not in deleted}
        catalog = self._catalog(entries)
        catalog.deleting.update(deleted)
        catalog.forgetting = self._with_forgetting(deleted)
        yield from self._save(catalog)
        self._entries = entries
        self._deleting.update(deleted)
        self._forgetting = self._with_forgetting(deleted)
        own, others = self._folders_of(topics)
        for topic in topics:
            self._remove(topic)
            count = len(topic.partitions)
            client = (client_id, client_host, principal)
            self._notify(TopicDeleted(topic.name, topic.topic_id, count, *client))

        def work() -> None:
            self._store.delete(*own)
            self._store.mark_stray(*others)

        try:
            yield work
        except OSError as fault:
            # The topics are deleted all the same: the next start removes the remaining folders.
            self._observe(SaveFailed("deletion of partitions", str(fault)))
        else:
            for topic_id in deleted:
                del self._deleting[topic_id]
            # Otherwise a start would delete a folder that was restored from a copy.
            with suppress(OSError):
                yield from self._save(self._catalog())

    def _with_forgetting(self, deleted: Mapping[TopicId, TopicName]) -> dict[TopicId, TopicName]:
        remembered = [*self._forgetting.items(), *deleted.items()]
        return dict(remembered[-FORGETTING_MAX:])

    @property
    def forgetting(self) -> list[tuple[TopicName, TopicId]]:
        """Deleted topics whose committed offsets may still exist."""
        return [(name, topic_id) for topic_id, name in self._forgetting.items()]

    def offsets_forgotten(self, topic_id: TopicId) -> None:
        """The offsets of a deleted topic are removed. The file may still name it: no harm."""
        self._forgetting.pop(topic_id, None)

    def _folders_of(
        self, topics: Sequence[Topic]
    ) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Partitions that have a folder, and those whose folder belongs to another topic."""
        logs = self._store.partitions()
        own: list[TopicPartition] = []
        others: list[TopicPartition] = []
        for topic in topics:
            for key in (partition.topic_partition for partition in topic.partitions):
                log = logs.get(key)
                if log is not None and log.topic_id not in (topic.topic_id, ZERO_TOPIC_ID):
                    others.append(key)
                elif log is not None or key in self._damaged:
                    own.append(key)
        return own, others

    def attach(self, log: TopicLog) -> None:
        """Use the log of a partition that a coordinator writes."""
        partition = self._partitions[log.topic_partition]
        partition.attach(log)

    def reserve_producer_ids(self, count: int) -> Steps[ProducerId]:
        """The first of `count` ids that were never assigned, and will not be after a crash."""
        first = self._next_producer_id
        catalog = self._catalog()
        catalog.next_producer_id = first + count
        yield from self._save(catalog)
        self._next_producer_id = first + count
        return ProducerId(first)

    # The catalog

    def _catalog(self, entries: Mapping[TopicName, TopicEntry] | None = None) -> Catalog:
        topics = list((self._entries if entries is None else entries).values())
        return Catalog(topics, dict(self._deleting), self._next_producer_id, dict(self._forgetting))

    def _save(self, catalog: Catalog) -> Steps[None]:
        try:
            yield lambda: self._file.save(catalog.dump())
        except OSError as fault:
            self._observe(SaveFailed("topic catalog", str(fault)))
            raise

    # The start

    def _load(self, *, repair: bool) -> None:
        settings = self._settings
        content = self._file.load()
        catalog, kept_as = self._read_catalog(content, repair=repair)
        own_configs = coordinator_topic_configs(settings)
        is_lost = content is None or kept_as is not None
        recovery = CatalogRecovery(
            self._store, settings, self.new_topic_id, repair=repair, is_lost=is_lost
        )
        plan = recovery.plan(catalog, own_configs)
        for event in plan.events:
            self._observe(event)
        self.was_repaired = repair and bool(kept_as or plan.strays or plan.recreated)
        self._find_next_producer_id(catalog, plan, is_lost=is_lost)
        self._remove_leftovers(catalog, plan)
        # The coordinators' topics have the configs of this start, which may be a command's.
        entries = [
            self._added(entry, own_configs.get(entry.name, entry.configs), repair=repair)
            for entry in plan.entries
        ]
        self._entries = {entry.name: entry for entry in entries}
        if entries != catalog.topics or is_lost:
            self._file.save(self._catalog().dump())
        elif catalog.deleting and not self._deleting:
            try:
                self._file.save(self._catalog().dump())
            except OSError as fault:  # the old one is as good
                self._observe(SaveFailed("topic catalog", str(fault)))
        if kept_as is not None:
            self._observe(CatalogRebuilt(kept_as, tuple(self._entries)))
        self._damaged = frozenset(self._store.unserved())
        for entry in entries:
            self._open_logs(self._by_name[entry.name], entry, plan.offline)

    def _read_catalog(self, content: bytes | None, *, repair: bool) -> tuple[Catalog, str | None]:
        """The catalog, empty if there is none; and the name of the copy of a damaged one."""
        if content is None:
            return Catalog(), None
        try:
            return Catalog.read(content, self._file.name), None
        except NewerFormat:
            raise
        except Corrupt:
            if not repair:
                raise
            return Catalog(), self._file.keep_copy()

    def _find_next_producer_id(
        self, catalog: Catalog, plan: RecoveryPlan, *, is_lost: bool
    ) -> None:
        """With a reused id, a new producer's batches would be taken for repeated ones."""
        logs = self._store.partitions()
        taken = [log.last_producer_id for log in logs.values()]
        for key in plan.recovered:
            try:
                taken.append(logs[key].greatest_producer_id())
            except Corrupt as damage:
                if key.topic in COORDINATOR_TOPICS:
                    raise
                plan.mark_missing(key, str(damage))
        ours = max(catalog.next_producer_id, self._next_producer_id)
        self._next_producer_id = max(ours, max(taken, default=-1) + 1)
        if is_lost and plan.recovered:
            self._next_producer_id += LOST_CATALOG_SKIP

    def _remove_leftovers(self, catalog: Catalog, plan: RecoveryPlan) -> None:
        """A disk error does not prevent the start: leftovers are not served."""
        self._deleting = dict(catalog.deleting)
        self._forgetting = dict(catalog.forgetting)
        try:
            self._store.delete(*plan.leftovers)
            self._deleting.clear()
        except OSError as fault:
            self._observe(SaveFailed("deletion of partitions", str(fault)))
        try:
            for path in self._store.mark_stray(*plan.strays):
                self._observe(StrayFolderRenamed(path))
        except OSError as fault:
            self._observe(SaveFailed("folders that no topic owns", str(fault)))

    def _added(self, entry: TopicEntry, configs: dict[str, str], *, repair: bool) -> TopicEntry:
        """Add a topic of the catalog; its entry, without configs if they are invalid."""
        try:
            self._add(self._topic(entry.name, entry.topic_id, configs))
        except (ConfigException, ValueError) as fault:
            if not repair:
                raise CatalogDamaged(self._file.name, 0, f"topic {entry.name}: {fault}") from None
            self.was_repaired = True
            self._observe(ConfigsLost(entry.name, str(fault)))
            self._add(self._topic(entry.name, entry.topic_id, {}))
            return replace(entry, configs={})
        return entry

    def _open_logs(
        self, topic: Topic, entry: TopicEntry, offline: Mapping[TopicPartition, str]
    ) -> None:
        """The logs of an existing topic. A log that is missing without a reason is created: its
        creation was interrupted."""
        logs = self._store.partitions()
        missing = set(entry.missing)
        for index in range(entry.partitions):
            key = TopicPartition(topic.name, index)
            log = logs.get(key)
            if topic.name in COORDINATOR_TOPICS:
                log = None  # the coordinator attaches its logs
            elif index in missing or key in offline:
                log = None
                if key in offline:
                    self._observe(PartitionFailed(key, offline[key], offline=True))
            elif key in self._damaged or log is None or log.topic_id == ZERO_TOPIC_ID:
                # A log without an id lost its small files in a crash: they are written again.
                log = self._create_log(topic, key)
            if log is not None:
                log.settings = topic.effective.log
            partition = Partition(key, log)
            partition.offline = log is None and topic.name not in COORDINATOR_TOPICS
            topic.partitions.append(partition)
            self._partitions[key] = partition

    def _create_log(self, topic: Topic, key: TopicPartition) -> TopicLog | None:
        """A new log; None until a restart if a damaged one is there or the disk fails."""
        try:
            return self._store.create(key, topic.topic_id, topic.effective.log)
        except (Corrupt, OSError) as fault:
            self._observe(PartitionFailed(key, str(fault), offline=True))
            return None

    # The table

    def _topic(self, name: TopicName, topic_id: TopicId, configs: Mapping[str, str]) -> Topic:
        return Topic(name, topic_id, configs, self.configs.effective(configs), is_internal(name))

    def _add(self, topic: Topic) -> None:
        self._version += 1
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic

    def _serve(self, topic: Topic, logs: Sequence[TopicLog]) -> None:
        self._version += 1
        is_ours = topic.name not in COORDINATOR_TOPICS  # else the coordinator attaches its logs
        for log in logs:
            partition = Partition(log.topic_partition, log if is_ours else None)
            topic.partitions.append(partition)
            self._partitions[log.topic_partition] = partition

    def _remove(self, topic: Topic) -> None:
        self._version += 1
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        for partition in topic.partitions:
            partition.deleted = True
            del self._partitions[partition.topic_partition]

    def _notify(self, change: TopicChange) -> None:
        self._observe(change)
        for listener in self._listeners:
            listener(change)


def _nothing() -> None:
    pass
