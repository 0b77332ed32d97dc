"""Maintenance: periodic work on topics: retention, delayed flushes, expiry of producers.

Each task has its own next time on the monotonic clock; the data plane's tick runs those that are
due. The work itself runs in the appender, which owns what it changes. An error of one partition is
reported and does not delay the others.
Kafka's counterpart: the tasks that `LogManager.startup` schedules.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from protocol.names import COORDINATOR_TOPICS
from seams.io_executor import IoExecutor
from seams.next_deadline import unwatched
from seams.now import Now
from storage.api import Corrupt, LogClosed
from storage.batch.record_batch import InvalidBatch
from topics.append_marker import write_producers
from topics.events import PartitionFailed, SaveFailed, SegmentsDeleted, TopicEvent
from topics.partition import Partition
from topics.producer_recovery import install
from topics.producer_snapshot import ProducerSnapshots, SnapshotChanges
from topics.registry import TopicRegistry
from topics.settings import TopicSettings

RETAINED_AT_ONCE: Final = 50
"""Partitions of one retention job: appends wait for no more than these."""

FLUSH_AGAIN_MS: Final = 1_000
"""Delay until a flush is retried that failed by a full disk or without a file descriptor."""

_SNAPSHOT: Final = "producer snapshot"


class MaintenanceTask(Struct):
    """A periodic task; it runs first one interval after the first tick."""

    interval_ms: int
    run: Callable[[Now], None]
    next_ms: int = 0


class TopicMaintenance:
    def __init__(
        self,
        registry: TopicRegistry,
        snapshots: ProducerSnapshots,
        settings: TopicSettings,
        observe: Callable[[TopicEvent], None],
        *,
        appender: IoExecutor,
        snapshot_writer: IoExecutor,
    ) -> None:
        """`appender` works on logs and producers, `snapshot_writer` writes the snapshot."""
        self._registry = registry
        self._snapshots = snapshots
        self._expiration_ms = settings.producer_id_expiration_ms
        self._observe = observe
        self._appender = appender
        self._snapshot_writer = snapshot_writer
        self._tasks = (
            MaintenanceTask(settings.log_retention_check_interval_ms, self._enforce_retention),
            MaintenanceTask(
                settings.producer_id_expiration_check_interval_ms, self._expire_producers
            ),
            MaintenanceTask(settings.producer_snapshot_interval_ms, self._save_producers),
        )
        self._flush_at_ms: dict[Partition, int] = {}  # of topics with flush.ms
        self._saves: deque[Callable[[], None]] = (
            deque()
        )  # what follows each save; the first save is running
        self.next_deadline_ms = 0
        self.on_earlier: Callable[[], None] = unwatched  # the deadline became earlier

    def start(self) -> None:
        """Before anything is appended, in the caller's thread."""
        try:
            self._snapshots.drop_beyond(self._registry.partitions())
        except OSError as fault:
            self._observe(SaveFailed(_SNAPSHOT, str(fault)))

    def expire_producers_after(self, expiration_ms: int) -> None:
        self._expiration_ms = self._snapshots.expiration_ms = expiration_ms

    def flush_by(self, partition: Partition, deadline_ms: int) -> None:
        """A partition has records that must be on the disk at the deadline."""
        self._flush_at_ms.setdefault(partition, deadline_ms)
        if self._flush_at_ms[partition] < self.next_deadline_ms:
            self.next_deadline_ms = self._flush_at_ms[partition]
            self.on_earlier()

    def tick(self, now: Now) -> None:
        for task in self._tasks:
            if task.next_ms <= now.mono_ms:
                if task.next_ms:
                    task.run(now)
                task.next_ms = now.mono_ms + task.interval_ms
        self._flush_due(now)
        self.next_deadline_ms = min(
            *(task.next_ms for task in self._tasks), *self._flush_at_ms.values()
        )

    def close(self) -> None:
        """Flush everything for a clean stop; done when the appender has done its work.

        Both executors must still run, and no other work may be pending.
        """
        partitions = tuple(self._registry.partitions())
        self._flush_at_ms.clear()
        self._in_appender(
            lambda: [self._flush(partition) for partition in partitions], self._report
        )
        self._save(lambda: None)
        self._in_appender(lambda: _leave_producers(partitions), self._report)

    # Retention

    def _enforce_retention(self, now: Now) -> None:
        """The snapshot first: producer states must not be deleted with the records."""
        partitions = [
            partition
            for partition in self._registry.partitions()
            if partition.topic_partition.topic not in COORDINATOR_TOPICS
        ]

        self.save_producers_of(partitions, now, lambda: self._retain(partitions, now))

    def save_producers_of(
        self, partitions: Sequence[Partition], now: Now, then: Callable[[], None]
    ) -> None:
        """Save their producer states, then call `then`, which may delete their records."""

        def save(events: list[TopicEvent | None]) -> None:
            self._report(events)
            self._save(then)

        self._in_appender(
            lambda: [self._restore_producers(partition, now) for partition in partitions], save
        )

    def _restore_producers(self, partition: Partition, now: Now) -> TopicEvent | None:
        """In the appender: read what a killed daemon appended after the last snapshot."""
        log = partition.log
        if log is None or partition.offline or not self._snapshots.is_behind(partition):
            return None
        try:
            install(self._snapshots, partition, self._snapshots.restore(log), now)
        except (OSError, Corrupt, LogClosed, InvalidBatch) as fault:
            return _failed(partition, fault)
        return None

    def _retain(self, partitions: list[Partition], now: Now) -> None:
        """A few partitions at a time, so that producers do not wait for all of it."""
        some, rest = partitions[:RETAINED_AT_ONCE], partitions[RETAINED_AT_ONCE:]

        def done(events: list[TopicEvent | None]) -> None:
            self._report(events)
            if rest:
                self._retain(rest, now)

        self._in_appender(
            lambda: [self._retain_partition(partition, now) for partition in some], done
        )

    def _retain_partition(self, partition: Partition, now: Now) -> TopicEvent | None:
        """In the appender."""
        log = partition.log
        if log is None or partition.offline or partition.deleted:
            return None
        try:
            segments = log.enforce_retention(now.wall_ms)
        except (OSError, Corrupt, LogClosed) as fault:
            return _failed(partition, fault)
        if not segments:
            return None
        return SegmentsDeleted(partition.topic_partition, segments, log.log_start_offset)

    # Producers

    def _expire_producers(self, now: Now) -> None:
        partitions = tuple(self._registry.partitions())

        def expire() -> list[TopicEvent | None]:
            for partition in partitions:
                if partition.producers is not None:
                    partition.producers.expire(now.wall_ms, self._expiration_ms)
            return []

        self._in_appender(expire, self._report)

    def _save_producers(self, now: Now) -> None:  # noqa: ARG002 - as of every task
        self._save(lambda: None)

    def _save(self, then: Callable[[], None]) -> None:
        """Save the changes of producer states; then call `then`, even if that failed."""
        is_running = bool(self._saves)
        self._saves.append(then)
        if not is_running:
            self._begin_save()

    def _begin_save(self) -> None:
        partitions = tuple(self._registry.partitions())
        self._appender.submit(lambda: self._snapshots.changes(partitions), self._write)

    def _write(self, changes: SnapshotChanges | Exception | None) -> None:
        if isinstance(changes, SnapshotChanges):
            self._snapshot_writer.submit(lambda: self._snapshots.write(changes), self._saved)
        else:
            self._saved(changes)

    def _saved(self, fault: Exception | None) -> None:
        if fault is not None:
            self._observe(SaveFailed(_SNAPSHOT, str(fault)))
        then = self._saves.popleft()
        try:
            then()
        finally:  # a bug in one task must not end the saves
            if self._saves:
                self._begin_save()

    # Flushes

    def _flush_due(self, now: Now) -> None:
        due = [
            partition
            for partition, deadline_ms in self._flush_at_ms.items()
            if deadline_ms <= now.mono_ms
        ]
        for partition in due:
            del self._flush_at_ms[partition]

        def then(events: list[TopicEvent | None]) -> None:
            for partition, event in zip(due, events, strict=True):
                if event is not None and not partition.offline:
                    self.flush_by(partition, now.mono_ms + FLUSH_AGAIN_MS)
            self._report(events)

        if due:
            self._in_appender(lambda: [self._flush(partition) for partition in due], then)

    def _flush(self, partition: Partition) -> TopicEvent | None:
        """In the appender."""
        if partition.deleted or partition.offline:
            return None
        try:
            partition.flush()
        except (OSError, LogClosed) as fault:
            return _failed(partition, fault)
        return None

    # The appender

    def _in_appender(
        self,
        work: Callable[[], list[TopicEvent | None]],
        then: Callable[[list[TopicEvent | None]], object],
    ) -> None:
        def done(events: list[TopicEvent | None] | Exception) -> None:
            if isinstance(events, Exception):
                raise events
            then(events)

        self._appender.submit(work, done)

    def _report(self, events: list[TopicEvent | None]) -> None:
        for event in events:
            if event is not None:
                self._observe(event)


def _failed(partition: Partition, fault: Exception) -> PartitionFailed | None:
    if partition.deleted:
        return None  # meanwhile
    reason = f"{type(fault).__name__}: {fault}"
    return PartitionFailed(partition.topic_partition, reason, partition.offline)


def _leave_producers(partitions: Sequence[Partition]) -> list[TopicEvent | None]:
    """In the appender: for a Kafka that gets the logs after a clean stop."""
    for partition in partitions:
        if partition.log is not None and partition.producers is not None and not partition.deleted:
            write_producers(partition.log, partition.producers)
    return []
