"""Data directory of a stopped daemon: opened and recovered by a command, as at a start.

Takes the lock, opens the logs, replays the journal and reads the catalog, so that it also works
after the daemon was killed; closes the directory cleanly at the end. A directory that it must not
change is refused in one line.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from config.keys import Config
from config.storage_settings import offsets_log_settings, storage_settings, topic_settings
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC, TopicId
from storage.api import Corrupt, LogSettings, TopicPartition
from storage.data_dir import META_PROPERTIES, DataDir
from storage.disk import Disk, RealDisk
from storage.log.partition_log import PartitionLog
from storage.open import (
    RepairUnfinished,
    Storage,
    lock_data_dir,
    observe_nothing,
    open_storage,
    topics_file,
)
from storage.repair import rollback_journal
from topics.catalog import expected_partitions
from topics.registry import TopicRegistry
from transfer.contents import Contents
from transfer.errors import Unusable
from transfer.file_owner import give_to_owner
from transfer.replay import Replay
from transfer.source_stats import BatchPosition, SourceStats


class RollcallDir:
    """A stopped daemon's data directory, locked until `close`. A `Target` of append.py."""

    def __init__(self, config: Config, *, must_exist: bool) -> None:
        """Raises Unusable, DataDirRefused, Corrupt, OSError."""
        self.path = str(config.data_dir)
        if must_exist and not Path(self.path, META_PROPERTIES).exists():
            raise Unusable(f"{self.path} is not a Rollcall data directory")
        self.disk: Disk = RealDisk()
        self._settings = offsets_log_settings(config)
        self._keeps_history = config.rollcall_history_enable
        self._data_dir = lock(config)
        try:
            self._open(config)
        except BaseException:
            self._data_dir.close()
            raise

    def _open(self, config: Config) -> None:
        self.storage = _open_storage(self.disk, config)
        self._store, journal = self.storage.store, self.storage.journal
        if journal.closed_because is not None:
            raise Unusable(f"{self.path}: {journal.closed_because}")
        self.registry = TopicRegistry(
            self._store, self.storage.topics_file, topic_settings(config), lambda _: None
        )
        topic_id = self.registry.topic_id(OFFSETS_TOPIC)
        count = self.registry.partition_count(OFFSETS_TOPIC)
        assert topic_id is not None
        assert count is not None
        self._topic_id = topic_id
        self.partitions = count  # as the daemon takes it, whatever the configuration says now

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def close(self) -> None:
        """Leave it as a daemon does that was stopped. Raises OSError."""
        try:
            journal = self.storage.journal
            if not journal.close():
                raise OSError(f"{self.path}: {journal.closed_because}")
            for failure in self._store.close():
                raise failure
            give_to_owner(self.path)
        finally:
            self._data_dir.close()

    def abandon(self) -> None:
        """Leave it as it is; the next opening recovers, and undoes what was not finished."""
        self._store.abandon("the command failed")
        self._data_dir.close()

    # --- as a target ---------------------------------------------------------------------------

    def existing(self, partition: int) -> PartitionLog | None:
        return self._store.partition_log(TopicPartition(OFFSETS_TOPIC, partition))

    def log(self, partition: int) -> PartitionLog:
        log = self.existing(partition)
        if log is None:
            key = TopicPartition(OFFSETS_TOPIC, partition)
            log = self._store.create(key, self._topic_id, self._settings)
        log.settings = self._settings
        return log

    def stamp(self, _partitions: Sequence[int]) -> dict[str, object]:
        """A daemon that starts here rolls back what is unfinished, but for what a Kafka did."""
        return rollback_journal.broker_stamp(self.disk, self.path)

    @property
    def logs(self) -> list[PartitionLog]:
        found = (self.existing(partition) for partition in range(self.partitions))
        return [log for log in found if log is not None]

    def history(self) -> list[PartitionLog | None]:
        """The partitions of the groups' history, None for a damaged one; none if it is off."""
        if not self._keeps_history:
            return []
        count = self.registry.partition_count(HISTORY_TOPIC)
        assert count is not None
        keys = (TopicPartition(HISTORY_TOPIC, partition) for partition in range(count))
        return [self._store.partition_log(key) for key in keys]

    def compacted_logs(self) -> dict[TopicPartition, LogSettings]:
        """What a log cleaner has to look after, and by which settings."""
        found = {log.topic_partition: self._settings for log in self.logs}
        for partition in self.registry.partitions():
            log = partition.log
            if log is not None and log.settings.cleanup_compact:
                found[log.topic_partition] = log.settings
        return found

    def topic_ids(self) -> dict[str, TopicId]:
        found = {name: self.registry.topic_id(name) for name in self.registry.names()}
        return {name: topic_id for name, topic_id in found.items() if topic_id is not None}


def lock(config: Config) -> DataDir:
    """The directory's lock alone, until it is closed. Raises DataDirRefused."""
    return lock_data_dir(str(config.data_dir), config.node_id)


def _open_storage(disk: Disk, config: Config) -> Storage:
    """As the daemon opens it. Raises Unusable, Corrupt, OSError."""
    path = str(config.data_dir)
    try:
        settings = storage_settings(config)
    except ValueError as refused:
        raise Unusable(str(refused)) from None
    try:
        return open_storage(
            disk,
            path,
            settings,
            observe_nothing,
            expects=expected_partitions(topics_file(disk, path)),
            may_resume_repair=False,
        )
    except RepairUnfinished:
        raise Unusable(
            f"a repair of {path} was interrupted: start the daemon once to finish it"
        ) from None


def read_logs(logs: Sequence[PartitionLog], contents: Contents, tally: SourceStats) -> None:
    """What a target holds already. Raises Corrupt."""
    for log in logs:
        replay = Replay(contents, tally)
        tally.partitions.append(log.topic_partition.partition)
        for batch in log.batches(log.log_start_offset):
            replay.take(batch, BatchPosition(log.path, 0))
        replay.finish()
    if tally.damaged:
        bad = tally.damaged[0]
        raise Corrupt(bad.file, bad.position, f"offset {bad.offset}: {bad.reason}")
