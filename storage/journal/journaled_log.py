"""Where does a shard append? To its partition's end of the journal: encoded, numbered and queued.

A `Log` of storage/api.py, made by `journal.py`. Appends belong to the event loop's thread; what
changes the files, retention among it, is handed to the flusher's.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.api import Corrupt, LogClosed, Position, RecordPair
from storage.batch.record_batch import encode_batch
from storage.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from storage.journal.journal import Journal


class JournaledLog:
    """One partition's end of the journal; a `Log` of `storage/api.py`."""

    __slots__ = (
        "_fault",
        "_journal",
        "_leader_epoch",
        "_removed",
        "_term",
        "end_position",
        "partition_log",
        "stored_position",
        "topic_partition",
    )

    def __init__(self, journal: "Journal", partition_log: PartitionLog) -> None:
        self._journal = journal
        self._term = journal.term
        self._removed = 0  # segments, since somebody asked
        self._fault: OSError | Corrupt | None = None
        self._leader_epoch = partition_log.leader_epoch
        self.partition_log = partition_log
        self.topic_partition = partition_log.topic_partition
        self.end_position = partition_log.log_end_offset
        self.stored_position = partition_log.log_end_offset

    def has_room(self) -> bool:
        return self._journal.has_room() and self._term == self._journal.term

    def append(self, records: Sequence[RecordPair], timestamp_ms: int) -> Position:
        start = self.end_position
        batch = encode_batch(records, start, timestamp_ms, self._leader_epoch)
        end = start + len(records)
        self._journal.enqueue((self, batch, end, timestamp_ms), self._term)
        self.end_position = end
        return end

    def enforce_retention(self, now_ms: int) -> int:
        """Have the flusher roll by age and drop what is too old or too much.

        Returns how many segments went because of earlier calls; raises what went wrong in them.
        """
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        removed, self._removed = self._removed, 0
        self._journal.between_flushes(lambda: self._retain(now_ms))
        return removed

    def _retain(self, now_ms: int) -> None:
        """In the flusher's thread."""
        try:
            self._removed += self._journal.retain(self.partition_log, now_ms)
        except (OSError, Corrupt) as fault:
            self._fault = fault
        except LogClosed:
            return  # the journal has failed, or stops
