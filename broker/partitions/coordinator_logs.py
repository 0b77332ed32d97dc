"""Coordinator logs: the partitions of a coordinator's topic in the log store, for ownership.py.

Makes a partition's folder when it is first elected, begins a leader epoch (in Kafka's
leader-epoch-checkpoint), and opens the journal's end of the log for the shard and the stored log
for readers. Finds the snapshots beside the segments, and which of them still belong to the log:
only `__consumer_offsets` has some.
"""

from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from broker.background.snapshot_job import read_snapshot
from broker.partitions.loading import LoadSize
from protocol.names import OFFSETS_TOPIC, TopicName
from storage.api import Log, LogSettings, TopicLog, TopicPartition
from storage.batch.record_batch import read_header
from storage.disk import TEMPORARY, Disk
from storage.journal.journal import Journal
from storage.log.checkpoints import NO_TOPIC_ID
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.snapshot import (
    SNAPSHOT_SUFFIX,
    SkippedSnapshot,
    Snapshot,
    delete_snapshots_after,
    snapshot_path,
    snapshot_positions,
)


class CoordinatorLogs:
    """Implements OwnedLogs of loading.py."""

    def __init__(
        self,
        disk: Disk,
        store: LogStore,
        journal: Journal,
        topic_id: UUID,
        settings: LogSettings,
        topic: TopicName = OFFSETS_TOPIC,
    ) -> None:
        """Of a topic that does not exist yet, `topic_id` and `settings` are set later."""
        self._disk = disk
        self._store = store
        self._journal = journal
        self.topic = topic
        self.topic_id = topic_id
        self.settings = settings
        self.fresh: set[int] = set()
        """Created with the topic since the start: their first epoch is the first election's."""

    def use(self, settings: LogSettings) -> None:
        """These settings for all partitions, from now on."""
        self.settings = settings
        for key in self._store.partitions():
            log = self._store.partition_log(key)
            if log is not None and key.topic == self.topic:
                log.settings = settings

    def elect(self, partition: int) -> int:
        """Begin a leader epoch; which one. Raises OSError or Corrupt."""
        key = TopicPartition(self.topic, partition)
        log = self._store.partition_log(key)
        if log is None:
            return self._store.create(key, self.topic_id, self.settings).leader_epoch
        if log.topic_id == NO_TOPIC_ID:  # a crash, or a repair, has taken it
            self._store.create(key, self.topic_id, self.settings)
        log.settings = self.settings
        if partition in self.fresh:
            self.fresh.discard(partition)
            return log.leader_epoch
        return log.begin_leader_epoch()

    def open(self, partition: int) -> tuple[Log, TopicLog]:
        """The end to append to, and the view to read. Raises OSError or Corrupt."""
        key = TopicPartition(self.topic, partition)
        log = self._journal.log(key)
        return log, self._store.partitions()[key]

    def log(self, partition: int) -> PartitionLog | None:
        return self._store.partition_log(TopicPartition(self.topic, partition))

    def load_sizes(self, partitions: Iterable[int]) -> dict[int, LoadSize]:
        """How much there is to load; reads no content. Raises OSError."""
        return {partition: self._survey(partition) for partition in partitions}

    def _survey(self, partition: int) -> LoadSize:
        log = self.log(partition)
        if log is None:
            return LoadSize(0, 0)
        known = snapshot_positions(self._disk, log.path)
        position = max((at for at in known if at <= log.log_end_offset), default=0)
        size = 0
        if position:
            file = self._disk.open(snapshot_path(log.path, position))
            size = file.size()
            file.close()
        return LoadSize(log.bytes_from(position), size)

    def snapshot(self, partition: int) -> tuple[Snapshot | None, list[SkippedSnapshot]]:
        """The newest usable one, and those that were removed as unusable. Raises OSError."""
        log = self.log(partition)
        if log is None:
            return None, []
        end = log.log_end_offset
        # Before anything is appended: a snapshot beyond the end would match other records later.
        delete_snapshots_after(self._disk, log.path, end)
        snapshot, ignored = read_snapshot(self._disk, log.path, log_end=end, topic_id=self.topic_id)
        if snapshot is not None and not _has_epoch(log, snapshot):
            ignored.append(
                SkippedSnapshot(snapshot.path, "the log before it is of another leader epoch")
            )
            snapshot = None
        for unused in ignored:
            self._disk.remove(unused.path)
        return snapshot, ignored

    def remove_partial_snapshots(self) -> None:
        """After a stop that may have ended the worker while it wrote a snapshot."""
        logs = (self._store.partition_log(key) for key in self._store.partitions())
        for log in logs:
            if log is None or log.topic_partition.topic != self.topic:
                continue
            with suppress(OSError):  # then the next start removes it
                for name in self._disk.listdir(log.path):
                    if name.endswith(f"{SNAPSHOT_SUFFIX}{TEMPORARY}"):
                        self._disk.remove(f"{log.path}/{name}")

    def stands(self, snapshot: Snapshot) -> bool:
        """Whether it still belongs to the log: a cleaning removes it."""
        return self._disk.exists(snapshot.path)


def _has_epoch(log: PartitionLog, snapshot: Snapshot) -> bool:
    """Whether the last record before its position is of the snapshot's leader epoch."""
    last = snapshot.about.position - 1
    for batch in log.batches(last) if last >= log.log_start_offset else ():
        header = read_header(batch)
        return (
            header.base_offset > last
            or header.partition_leader_epoch == snapshot.about.leader_epoch
        )
    return True
