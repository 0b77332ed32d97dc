"""Producer recovery: restores the producer states of a partition before something needs them.

A start reads no topic logs. A partition's producers, and with them its last stable offset, are
restored when the first request needs them: from the producer snapshot and the batches after it. The
checker thread reads, the appender installs. What the batches say of aborted transactions replaces
what the log's index has of them: a crash may have lost it.

A transaction that a log from a Kafka was left with, without the coordinator that could end it, is
aborted here.
Kafka's counterpart: `UnifiedLog.rebuildProducerState`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.names import ProducerId
from seams.io_executor import IoExecutor
from seams.now import Now
from seams.transactions import TransactionMarker
from storage.api import Corrupt, LogClosed, TopicLog
from storage.batch.record_batch import InvalidBatch
from topics.append_marker import append_marker
from topics.events import PartitionFailed, TopicEvent
from topics.partition import NOT_RESTORED, Partition
from topics.producer_snapshot import ProducerSnapshots
from topics.producers import ProducerStates

READ_FAULTS: Final = (OSError, Corrupt, LogClosed, InvalidBatch)
"""What reading a log may raise."""

_FIRST_COORDINATOR_EPOCH: Final = 0
_NO_EPOCH_PER_TRANSACTION: Final = 0


def install(
    snapshots: ProducerSnapshots, partition: Partition, restored: ProducerStates, now: Now
) -> None:
    """In the appender: hand restored states to the partition. Raises what an append raises."""
    log = partition.log
    assert log is not None, "its producers were restored from it"
    if restored.offset < log.log_end_offset:  # other batches were appended meanwhile
        restored.replay(log.batches(restored.offset))
    log.replace_aborted(restored.replayed_from, restored.replayed_aborted)
    restored.replayed_aborted.clear()
    snapshots.install(partition, restored, now.wall_ms)
    partition.set_first_unstable(restored.first_unstable_offset)
    for producer_id, first_offset in log.left_open:
        entry = restored.entries.get(ProducerId(producer_id))
        if entry is not None and entry.transaction_first_offset == first_offset:
            append_marker(
                partition,
                TransactionMarker(
                    ProducerId(producer_id),
                    entry.epoch,
                    is_commit=False,
                    coordinator_epoch=max(entry.coordinator_epoch, _FIRST_COORDINATOR_EPOCH),
                    transaction_version=_NO_EPOCH_PER_TRANSACTION,
                ),
                now,
            )


class ProducerRecovery:
    """Restores partitions for requests, on the event loop."""

    def __init__(
        self,
        snapshots: ProducerSnapshots,
        *,
        appender: IoExecutor,
        checker: IoExecutor,
        observe: Callable[[TopicEvent], None],
    ) -> None:
        self._snapshots = snapshots
        self._appender = appender
        self._checker = checker
        self._observe = observe
        self._failed: set[Partition] = set()

    def is_needed(self, partition: Partition) -> bool:
        return partition.first_unstable_offset == NOT_RESTORED and partition.log is not None

    def has_failed(self, partition: Partition) -> bool:
        """Whether its log could not be read when it was last tried."""
        return partition in self._failed

    def ensure(self, partitions: Sequence[Partition], now: Now, then: Callable[[], None]) -> None:
        """Restore these, then call `then`: at once if nothing is to be restored.

        One that cannot be read stays as it is; the error is reported.
        """
        missing = [partition for partition in partitions if self.is_needed(partition)]
        if not missing:
            then()
            return
        logs = [(partition, partition.log) for partition in missing if partition.log is not None]
        if any(self._snapshots.must_read(log) for _, log in logs):
            self._checker.submit(
                lambda: [self._restored(log) for _, log in logs],
                lambda found: self._install(missing, found, now, then),
            )
        else:
            self._install(missing, [None] * len(missing), now, then)

    def _restored(self, log: TopicLog) -> ProducerStates | Exception:
        """In the checker."""
        try:
            return self._snapshots.restore(log)
        except READ_FAULTS as fault:
            return fault
        finally:
            self._checker.pause()

    def _install(
        self,
        partitions: list[Partition],
        found: "Sequence[ProducerStates | Exception | None] | Exception",
        now: Now,
        then: Callable[[], None],
    ) -> None:
        assert not isinstance(found, Exception), "an error is of one partition"

        def installed(faults: "list[Exception | None] | Exception") -> None:
            assert not isinstance(faults, Exception), "an error is of one partition"
            for partition, fault in zip(partitions, faults, strict=True):
                if fault is None:
                    self._failed.discard(partition)
                elif not partition.deleted:
                    self._failed.add(partition)
                    reason = f"{type(fault).__name__}: {fault}"
                    self._observe(
                        PartitionFailed(partition.topic_partition, reason, partition.offline)
                    )
            then()

        self._appender.submit(
            lambda: [
                self._installed(partition, restored, now)
                for partition, restored in zip(partitions, found, strict=True)
            ],
            installed,
        )

    def _installed(
        self, partition: Partition, restored: ProducerStates | Exception | None, now: Now
    ) -> Exception | None:
        """In the appender; what went wrong."""
        log = partition.log
        if partition.producers is not None or log is None:
            return None  # an append was faster
        if isinstance(restored, Exception):
            return restored
        try:
            states = self._snapshots.restore(log) if restored is None else restored
            install(self._snapshots, partition, states, now)
        except READ_FAULTS as fault:
            return fault
        return None
