"""Journaled log: where a coordinator shard appends; encodes, numbers and queues its batches.

A `Log` of storage/api.py, made by `journal.py`. Appends run on the event loop's thread. Everything
that changes the files, retention included, runs on the flusher's thread.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from storage.api import BatchProducer, Corrupt, EndMarker, LogClosed, Position, RecordPair
from storage.batch.control_batch import encode_marker
from storage.batch.record_batch import COORDINATOR_SEQUENCE, TRANSACTIONAL_FLAG, encode_batch
from storage.log.partition_log import PartitionLog

_BASE_SEQUENCES: Final = {"__transaction_state": -1}
"""Of the batches of a coordinator, as Kafka writes them; 0 in all other topics."""

Entry = tuple["JournaledLog", bytes, Position, int]
"""(log, batch, position after it, timestamp)"""


class AppendQueue(Protocol):
    """The journal as its logs use it."""

    @property
    def term(self) -> int:
        """Rises when the journal opens again: logs of an earlier term take no more appends."""

    def has_room(self) -> bool: ...

    def enqueue(self, entry: Entry, term: int) -> None:
        """Raises LogClosed."""

    def run_on_flusher(self, task: Callable[[], None]) -> None: ...

    def retain(self, partition_log: PartitionLog, now_ms: int) -> int: ...


class JournaledLog:
    """One partition of the journal; a `Log` of `storage/api.py`."""

    __slots__ = (
        "_base_sequence",
        "_faults",
        "_queue",
        "_removed",
        "_term",
        "end_position",
        "leader_epoch",
        "partition_log",
        "stored_position",
        "topic_partition",
    )

    def __init__(self, queue: AppendQueue, partition_log: PartitionLog) -> None:
        self._base_sequence = _BASE_SEQUENCES.get(
            partition_log.topic_partition.topic, COORDINATOR_SEQUENCE
        )
        self._queue = queue
        self._term = queue.term
        self._removed = 0  # segments, since the last call of `enforce_retention`
        # The last one. No field: while the one before it is freed, other threads may run (its
        # traceback may hold a file), and mypyc would let them find that one.
        self._faults: deque[OSError | Corrupt] = deque(maxlen=1)
        self.leader_epoch = partition_log.leader_epoch
        self.partition_log = partition_log
        self.topic_partition = partition_log.topic_partition
        self.end_position = partition_log.log_end_offset
        self.stored_position = partition_log.log_end_offset

    def has_room(self) -> bool:
        return self._queue.has_room() and self._term == self._queue.term

    def append(
        self,
        records: Sequence[RecordPair],
        timestamp_ms: int,
        producer: BatchProducer | None = None,
    ) -> Position:
        start = self.end_position
        if producer is None:
            batch = encode_batch(
                records,
                start,
                timestamp_ms,
                self.leader_epoch,
                base_sequence=self._base_sequence,
            )
        else:
            batch = encode_batch(
                records,
                start,
                timestamp_ms,
                self.leader_epoch,
                *producer,
                attributes=TRANSACTIONAL_FLAG,
            )
        end = start + len(records)
        self._queue.enqueue((self, batch, end, timestamp_ms), self._term)
        self.end_position = end
        return end

    def append_marker(self, marker: EndMarker, timestamp_ms: int) -> Position:
        start = self.end_position
        batch = encode_marker(marker, start, timestamp_ms, self.leader_epoch)
        end = start + 1
        self._queue.enqueue((self, batch, end, timestamp_ms), self._term)
        self.end_position = end
        return end

    def enforce_retention(self, now_ms: int) -> int:
        """Have the flusher roll by age and delete the segments that retention.ms and .bytes exceed.

        Returns how many segments earlier calls deleted; raises the error that stopped one of them.
        """
        if self._faults:
            raise self._faults.pop()
        removed, self._removed = self._removed, 0
        self._queue.run_on_flusher(lambda: self._retain(now_ms))
        return removed

    def _retain(self, now_ms: int) -> None:
        """Runs on the flusher's thread."""
        try:
            self._removed += self._queue.retain(self.partition_log, now_ms)
        except (OSError, Corrupt) as fault:
            self._faults.append(fault)
        except LogClosed:
            return  # the journal has failed, or stops
