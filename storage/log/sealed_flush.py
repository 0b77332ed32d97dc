"""Sealed flush: syncs segments that were rolled, and writes the recovery points.

A segment that was sealed is synced within a second, in a thread of its own, and the recovery points
are written every `log.flush.offset.checkpoint.interval.ms`. So a start after a kill scans the
active segments and little else, and a bad byte in a sealed one is no torn tail. Logs that the
journal writes are skipped: its checkpoints sync them (`checkpointer.py`).
Kafka's counterparts: UnifiedLog.roll (which schedules the flush),
LogManager.checkpointLogRecoveryOffsets.
"""

import threading
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Final

from storage.api import TopicPartition
from storage.disk import shortage
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog

SEALED_FLUSH_INTERVAL_S: Final = 1.0
"""How often rolled segments are searched for."""

_REST: Final = 4.0  # times as long as the sync took: the disk is shared with the commits
_REST_MAX_S: Final = 0.1

OnFailure = Callable[[TopicPartition | None, OSError], None]


class SealedFlush:
    """`flush_due` does what is due; `start` has a thread do it until `stop`."""

    __slots__ = (
        "_checkpoint_at_s",
        "_interval_s",
        "_is_checkpoint_due",
        "_on_failure",
        "_stopping",
        "_store",
        "_thread",
    )

    def __init__(self, store: LogStore, interval_ms: int, on_failure: OnFailure) -> None:
        """`on_failure` is called in the thread, with no partition where a checkpoint failed."""
        self._store = store
        self._interval_s = interval_ms / 1000
        self._on_failure = on_failure
        self._is_checkpoint_due = False
        self._checkpoint_at_s = monotonic() + self._interval_s
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        for key in self._store.partitions():  # a killed process may have left segments unsynced
            log = self._store.partition_log(key)
            if log is not None:
                self._store.rolled.add(log)
        self._thread = threading.Thread(target=self._run, name="sealed-flush", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Return when the thread has ended; False if the disk keeps it for longer than that."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(SEALED_FLUSH_INTERVAL_S):
            self.flush_due()

    def flush_due(self) -> None:
        """Sync segments sealed since the last call; write the checkpoints when they are due."""
        waiting = self._store.rolled
        again: list[PartitionLog] = []
        while waiting and not self._stopping.is_set():
            log = waiting.pop()
            started = perf_counter()
            try:
                is_synced = self._is_own(log) and log.sync_sealed()
            except MemoryError:
                again.append(log)
                continue
            except OSError as failure:
                if shortage(failure) is not None:
                    again.append(log)
                elif self._is_there(log):  # else its topic has just been deleted
                    self._on_failure(log.topic_partition, failure)
                continue
            if is_synced:
                self._is_checkpoint_due = True
                self._stopping.wait(min(_REST * (perf_counter() - started), _REST_MAX_S))
        waiting.update(again)
        if self._is_checkpoint_due and monotonic() >= self._checkpoint_at_s:
            self._write_checkpoints()

    def _is_there(self, log: PartitionLog) -> bool:
        return self._store.partition_log(log.topic_partition) is log

    def _is_own(self, log: PartitionLog) -> bool:
        if not self._is_there(log) or not log.is_open:
            return False
        return self._store.partitions().get(log.topic_partition) is log  # else a journaled view

    def _write_checkpoints(self) -> None:
        self._checkpoint_at_s = monotonic() + self._interval_s
        try:
            self._store.write_checkpoints()
        except MemoryError:
            return  # as after any shortage: with the next call
        except OSError as failure:
            if shortage(failure) is None:
                self._on_failure(None, failure)
        else:
            self._is_checkpoint_due = False
