"""What has to be done to topics although nobody asks? Retention, late flushes, old producers.

Each chore has its own next time on the monotonic clock; the data plane's tick runs those that are
due. A fault of one partition is told and does not keep the others waiting.
Kafka's counterpart: the tasks that `LogManager.startup` schedules.
"""

from collections.abc import Callable
from dataclasses import dataclass

from protocol.names import OFFSETS_TOPIC, TopicName
from purgatory.now import Now
from storage.api import Corrupt, LogClosed
from topics.events import PartitionFailed, SaveFailed, SegmentsDeleted, TopicEvent
from topics.partition import Partition
from topics.producer_snapshot import ProducerSnapshots
from topics.registry import TopicRegistry
from topics.settings import TopicSettings


@dataclass(slots=True)
class Chore:
    """Done every so often; the first time one interval after the first tick."""

    interval_ms: int
    run: Callable[[Now], None]
    next_ms: int = 0


class Upkeep:
    def __init__(
        self,
        registry: TopicRegistry,
        snapshots: ProducerSnapshots,
        settings: TopicSettings,
        observe: Callable[[TopicEvent], None],
    ) -> None:
        self._registry = registry
        self._snapshots = snapshots
        self._expiration_ms = settings.producer_id_expiration_ms
        self._observe = observe
        self._chores = (
            Chore(settings.log_retention_check_interval_ms, self._enforce_retention),
            Chore(settings.producer_id_expiration_check_interval_ms, self._expire_producers),
            Chore(settings.producer_snapshot_interval_ms, self._save_producers),
        )
        self._flush_at_ms: dict[Partition, int] = {}  # topics with a flush.ms of their own
        self.next_deadline_ms = 0

    def flush_by(self, partition: Partition, deadline_ms: int) -> None:
        """A partition has records that must be on the disk by then."""
        self._flush_at_ms.setdefault(partition, deadline_ms)
        self.next_deadline_ms = min(self.next_deadline_ms, self._flush_at_ms[partition])

    def tick(self, now: Now) -> None:
        for chore in self._chores:
            if chore.next_ms <= now.mono_ms:
                if chore.next_ms:
                    chore.run(now)
                chore.next_ms = now.mono_ms + chore.interval_ms
        self._flush_late(now)
        self.next_deadline_ms = min(
            *(chore.next_ms for chore in self._chores), *self._flush_at_ms.values()
        )

    def close(self, now: Now) -> None:
        """Leave everything on the disk as a clean stop should."""
        for partition in self._registry.partitions():
            self._flush(partition)
        self._flush_at_ms.clear()
        self._save_producers(now)

    def _enforce_retention(self, now: Now) -> None:
        for partition in self._registry.partitions():
            topic = self._registry.by_name(TopicName(partition.topic_partition.topic))
            log = partition.log
            if log is None or partition.offline or topic is None or topic.name == OFFSETS_TOPIC:
                continue  # the offsets topic's log belongs to the coordinator
            try:
                segments = log.enforce_retention(now.wall_ms)
            except (OSError, Corrupt, LogClosed) as fault:
                self._failed(partition, fault)
                continue
            if segments:
                self._observe(
                    SegmentsDeleted(partition.topic_partition, segments, log.log_start_offset)
                )

    def _expire_producers(self, now: Now) -> None:
        for partition in self._registry.partitions():
            if partition.producers is not None:
                partition.producers.expire(now.wall_ms, self._expiration_ms)

    def _save_producers(self, now: Now) -> None:  # noqa: ARG002 - as of every chore
        try:
            self._snapshots.save(self._registry.partitions())
        except OSError as fault:
            self._observe(SaveFailed("producer snapshot", str(fault)))

    def _flush_late(self, now: Now) -> None:
        for partition, deadline_ms in tuple(self._flush_at_ms.items()):
            if deadline_ms <= now.mono_ms:
                del self._flush_at_ms[partition]
                self._flush(partition)

    def _flush(self, partition: Partition) -> None:
        if partition.deleted or partition.offline:
            return
        try:
            partition.flush()
        except OSError as fault:
            self._failed(partition, fault)

    def _failed(self, partition: Partition, fault: Exception) -> None:
        reason = f"{type(fault).__name__}: {fault}"
        self._observe(PartitionFailed(partition.topic_partition, reason, partition.offline))
