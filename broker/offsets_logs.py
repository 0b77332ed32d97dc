"""Where are the coordinator's logs? The partitions of `__consumer_offsets` in the log store.

What ownership.py elects and loads: makes a partition's folder when it is first elected, begins a
leader epoch (kept in Kafka's leader-epoch-checkpoint), and hands out the journal's end of the log
for the shard and the view of what is stored for readers.
"""

from uuid import UUID

from protocol.names import OFFSETS_TOPIC
from storage.api import Log, LogSettings, TopicLog, TopicPartition
from storage.journal import Journal
from storage.log_store import LogStore


class OffsetsLogs:
    """Implements ownership's OwnedLogs."""

    def __init__(
        self, store: LogStore, journal: Journal, topic_id: UUID, settings: LogSettings
    ) -> None:
        self._store = store
        self._journal = journal
        self._topic_id = topic_id
        self._settings = settings

    def elect(self, partition: int) -> int:
        """Begin a leader epoch; which one. Raises OSError or Corrupt."""
        key = TopicPartition(OFFSETS_TOPIC, partition)
        log = self._store.partition_log(key)
        if log is None:
            return self._store.create(key, self._topic_id, self._settings).leader_epoch
        log.settings = self._settings
        return log.begin_epoch()

    def open(self, partition: int) -> tuple[Log, TopicLog]:
        """The end to append to, and the view to read. Raises OSError or Corrupt."""
        key = TopicPartition(OFFSETS_TOPIC, partition)
        log = self._journal.log(key)
        return log, self._store.partitions()[key]
