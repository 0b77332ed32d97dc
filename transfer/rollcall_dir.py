"""Data directory of a stopped daemon: opened and recovered by a command, as at a start.

Takes the lock, opens the logs, replays the journal and reads the catalog, so that it also works
after the daemon was killed; closes the directory cleanly at the end. A directory that it must not
change is refused in one line.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from config.keys import Config
from config.settings import journal_limits, offsets_log_settings, topic_settings
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC, TopicId
from storage.api import Corrupt, LogSettings, TopicPartition
from storage.atomic_file import StoredFile
from storage.data_dir import META_PROPERTIES, DataDir
from storage.disk import Disk, RealDisk
from storage.journal.journal import Journal
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.repair import undo
from topics.registry import TopicRegistry
from transfer.contents import Contents
from transfer.errors import Unusable
from transfer.file_owner import give_to_owner
from transfer.replay import Replay
from transfer.source_stats import Place, Tally

TOPICS_FILE: Final = "rollcall-topics.json"


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
        self._data_dir = DataDir(self.path, _node_id(Path(self.path), config.node_id))
        try:
            self._open(config)
        except BaseException:
            self._data_dir.close()
            raise

    def _open(self, config: Config) -> None:
        try:
            limits = journal_limits(config)
        except ValueError as refused:
            raise Unusable(str(refused)) from None
        self._store = LogStore(self.disk, self.path)
        self._store.open()
        if self._store.is_repairing:
            raise Unusable(
                f"a repair of {self.path} was interrupted: start the daemon once to finish it"
            )
        for key, damage in self._store.damaged.items():
            if key.topic == OFFSETS_TOPIC:
                raise damage
        self.rolled_back = self._store.rolled_back
        self._journal = Journal(
            self.disk,
            self._store,
            on_stored=lambda _: None,
            on_failed=lambda _: None,
            limits=limits,
        )
        self._journal.recover()
        if self._journal.closed_because is not None:
            raise Unusable(f"{self.path}: {self._journal.closed_because}")
        self.registry = TopicRegistry(
            self._store,
            StoredFile(self.disk, f"{self.path}/{TOPICS_FILE}"),
            topic_settings(config),
            lambda _: None,
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
            if not self._journal.close():
                raise OSError(f"{self.path}: {self._journal.closed_because}")
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
        return undo.stamp(self.disk, self.path)

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
    path = Path(config.data_dir)
    return DataDir(str(path), _node_id(path, config.node_id))


def _node_id(path: Path, default: int) -> int:
    """The node id of the directory: a command is not a node, and accepts any."""
    meta = path / META_PROPERTIES
    lines = meta.read_text("utf-8", "replace").splitlines() if meta.exists() else []
    said = [line.removeprefix("node.id=") for line in lines if line.startswith("node.id=")]
    return int(said[0]) if said and re.fullmatch(r"[0-9]{1,10}", said[0]) else default


def read_logs(logs: Sequence[PartitionLog], contents: Contents, tally: Tally) -> None:
    """What a target holds already. Raises Corrupt."""
    for log in logs:
        replay = Replay(contents, tally)
        tally.partitions.append(log.topic_partition.partition)
        for batch in log.batches(log.log_start_offset):
            replay.take(batch, Place(log.path, 0))
        replay.finish()
    if tally.damaged:
        bad = tally.damaged[0]
        raise Corrupt(bad.file, bad.position, f"offset {bad.offset}: {bad.reason}")
