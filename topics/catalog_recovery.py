"""Catalog recovery: which topics a start makes of the catalog and the partition folders.

For topics that it contains, the catalog decides. Unknown folders are kept as topics, because
records are never deleted on a guess: the catalog may be lost, or the folders restored from a copy.
This module only plans; `registry.py` executes the plan, in an order that may be interrupted by a
crash anywhere.

A folder with another topic id than its topic's is not served, and no new log replaces it: clients
would take that for a partition that restarts at offset 0. With a repair it is renamed to `-stray`.
Kafka differs: it renames such a folder to `-stray` and starts an empty partition.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from protocol.names import (
    COORDINATOR_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    TopicId,
    TopicName,
)
from seams.topic_names import name_fault
from storage.api import LogStore, TopicLog, TopicPartition
from topics.catalog import Catalog, TopicEntry
from topics.events import PartitionsFoundMissing, PartitionsRecreated, TopicEvent, TopicRecovered
from topics.settings import InternalTopic, TopicSettings

_NOT_OURS: Final = (
    "its folder has topic id {found}, the topic has {wanted}: bring the right folder back, or "
    "start once with --repair, which sets this one aside as *-stray and begins the partition anew"
)


class _Folder(NamedTuple):
    topic_id: TopicId
    log: TopicLog | None  # None of a damaged one

    @property
    def is_empty(self) -> bool:
        return self.log is not None and not self.log.log_end_offset


class RecoveryPlan(Struct):
    """What a start does before it serves requests."""

    entries: list[TopicEntry] = field(default_factory=list)
    leftovers: list[TopicPartition] = field(default_factory=list)
    """Folders of deleted topics, or of creations that failed: they are deleted."""
    strays: list[TopicPartition] = field(default_factory=list)
    """Folders that no topic owns, or another one: they are renamed to `-stray`."""
    offline: dict[TopicPartition, str] = field(default_factory=dict)
    """Partitions whose folder cannot be served, with the reason."""
    recovered: list[TopicPartition] = field(default_factory=list)
    """Logs that were not in the catalog: their producer ids are not known yet."""
    recreated: list[PartitionsRecreated] = field(default_factory=list)
    """Missing partitions that a repair creates."""
    events: list[TopicEvent] = field(default_factory=list)

    def mark_missing(self, key: TopicPartition, reason: str) -> None:
        """A recovered log cannot be read: it counts as missing until it can."""
        self.offline[key] = reason
        for place, entry in enumerate(self.entries):
            if entry.name == key.topic:
                missing = tuple(sorted({*entry.missing, key.partition}))
                self.entries[place] = replace(entry, missing=missing)


class CatalogRecovery:
    """Makes the plan; used once."""

    def __init__(
        self,
        store: LogStore,
        settings: TopicSettings,
        new_topic_id: Callable[[], TopicId],
        *,
        repair: bool,
        is_lost: bool,
    ) -> None:
        """`is_lost`: there is no readable catalog."""
        self._settings = settings
        self._new_topic_id = new_topic_id
        self._repair = repair
        self._internal_names = {*COORDINATOR_TOPICS, *settings.internal_topics}
        self._plan = RecoveryPlan()
        self._ids: set[TopicId] = set()
        self._folders: dict[str, dict[int, _Folder]] = {}
        for key, log in store.partitions().items():
            self._folders.setdefault(key.topic, {})[key.partition] = _Folder(log.topic_id, log)
        self._lost: dict[str, set[int]] = {}  # partitions that existed
        for key in store.unexpected if is_lost else ():
            self._lost.setdefault(key.topic, set()).add(key.partition)
        for key, topic_id in store.unserved().items():
            self._folders.setdefault(key.topic, {})[key.partition] = _Folder(topic_id, None)

    def plan(
        self, catalog: Catalog, coordinator_configs: Mapping[TopicName, dict[str, str]]
    ) -> RecoveryPlan:
        plan = self._plan
        self._leave_out_deleted(catalog)
        for entry in catalog.topics:
            plan.entries.append(self._known(entry, self._folders.pop(entry.name, {})))
        self._ids = {entry.topic_id for entry in plan.entries}
        # The largest first: of two topics with one id the smaller one is taken for a copy.
        rest = sorted(self._folders.items(), key=lambda item: (-len(item[1]), item[0]))
        found = [self._unknown(TopicName(name), folders) for name, folders in rest]
        plan.entries += sorted(filter(None, found), key=lambda entry: entry.name)
        for name, topic in self._internal(coordinator_configs).items():
            self._place_internal(name, topic)
        plan.events += plan.recreated
        for entry in plan.entries:
            if entry.missing:
                plan.events.append(PartitionsFoundMissing(entry.name, entry.missing))
        return plan

    def _leave_out_deleted(self, catalog: Catalog) -> None:
        known = {entry.name for entry in catalog.topics}
        # A crash may have lost the id of a folder: then its name identifies the topic.
        names = set(catalog.deleting.values()) - known
        for name, folders in self._folders.items():
            for index, folder in tuple(folders.items()):
                nameless = folder.topic_id == ZERO_TOPIC_ID and name in names
                if nameless or folder.topic_id in catalog.deleting:
                    del folders[index]
                    self._plan.leftovers.append(TopicPartition(name, index))

    def _known(self, entry: TopicEntry, folders: Mapping[int, _Folder]) -> TopicEntry:
        plan, partitions, missing = self._plan, entry.partitions, set(entry.missing)
        for index, folder in sorted(folders.items()):
            key = TopicPartition(entry.name, index)
            is_same = folder.topic_id == entry.topic_id
            if entry.name in COORDINATOR_TOPICS:
                continue  # the coordinator owns its logs
            if index >= entry.partitions and is_same and not folder.is_empty:
                missing |= {*range(partitions, index)}
                partitions = index + 1
                self._take(key, folder, missing)
            elif index >= entry.partitions and is_same:
                plan.leftovers.append(key)  # a failed CreatePartitions
            elif index >= entry.partitions:
                self._mark_stray(key)
            elif is_same or folder.topic_id == ZERO_TOPIC_ID:
                if index in missing:
                    self._take(key, folder, missing)
            else:
                self._refuse(key, folder, entry.topic_id)
        if self._repair and missing.intersection(entry.missing):
            made = tuple(sorted(missing.intersection(entry.missing)))
            missing.difference_update(made)
            plan.recreated.append(PartitionsRecreated(entry.name, made))
        if entry.name in self._internal_names:
            missing.clear()  # their writer creates them
        return replace(entry, partitions=partitions, missing=tuple(sorted(missing)))

    def _take(self, key: TopicPartition, folder: _Folder, missing: set[int]) -> None:
        """Serve an unknown log. One that cannot be read counts as missing."""
        if folder.log is None:
            missing.add(key.partition)
        else:
            missing.discard(key.partition)
            self._plan.recovered.append(key)

    def _refuse(self, key: TopicPartition, folder: _Folder, wanted: TopicId) -> None:
        if self._repair:
            self._mark_stray(key)
        else:
            self._plan.offline[key] = _NOT_OURS.format(found=folder.topic_id, wanted=wanted)

    def _mark_stray(self, *keys: TopicPartition) -> None:
        self._plan.strays.extend(keys)

    def _unknown(self, name: TopicName, folders: Mapping[int, _Folder]) -> TopicEntry | None:
        if not folders:
            return None
        keys = [TopicPartition(name, index) for index in sorted(folders)]
        ids = Counter(
            folder.topic_id for folder in folders.values() if folder.topic_id != ZERO_TOPIC_ID
        )
        topic_id = ids.most_common(1)[0][0] if ids else self._new_topic_id()
        if name_fault(name) is not None or topic_id in self._ids:
            self._mark_stray(*keys)
            return None
        self._ids.add(topic_id)
        partitions = max(*folders, *self._lost.get(name, ()), 0) + 1
        missing = {*range(partitions)} - folders.keys()
        for key in keys:
            folder = folders[key.partition]
            if name not in COORDINATOR_TOPICS and folder.topic_id not in (topic_id, ZERO_TOPIC_ID):
                self._refuse(key, folder, topic_id)
            else:
                self._take(key, folder, missing)
        if name in COORDINATOR_TOPICS and missing:
            # The count is part of the hash that locates a key, and the folders do not show it.
            partitions = max(partitions, self._coordinator_partitions()[name])
        if name in self._internal_names:
            missing.clear()
        self._plan.events.append(TopicRecovered(name, topic_id, partitions))
        return TopicEntry(name, topic_id, partitions, {}, tuple(sorted(missing)))

    def _coordinator_partitions(self) -> dict[TopicName, int]:
        return {
            OFFSETS_TOPIC: self._settings.offsets_topic_num_partitions,
            TRANSACTION_STATE_TOPIC: self._settings.transaction_state_log_num_partitions,
        }

    def _internal(
        self, coordinator_configs: Mapping[TopicName, dict[str, str]]
    ) -> dict[TopicName, InternalTopic]:
        own = {
            name: InternalTopic(count, coordinator_configs[name])
            for name, count in self._coordinator_partitions().items()
        }
        if all(entry.name != TRANSACTION_STATE_TOPIC for entry in self._plan.entries):
            del own[TRANSACTION_STATE_TOPIC]  # the first producer with a transactional id makes it
        return {**own, **self._settings.internal_topics}

    def _place_internal(self, name: TopicName, topic: InternalTopic) -> None:
        """Its configs are the daemon's, which may have changed; partitions are never removed."""
        entries = self._plan.entries
        for place, entry in enumerate(entries):
            if entry.name == name:
                if name not in COORDINATOR_TOPICS:
                    partitions = max(entry.partitions, topic.partitions)
                    entries[place] = TopicEntry(name, entry.topic_id, partitions, topic.configs)
                elif not entry.configs:
                    entries[place] = TopicEntry(
                        name, entry.topic_id, entry.partitions, topic.configs
                    )
                return
        entries.append(TopicEntry(name, self._new_topic_id(), topic.partitions, topic.configs))
