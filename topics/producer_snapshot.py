"""What did producers send before the restart? Their state as of an offset, and the batches since.

The snapshot is one small JSON file, written now and then and at a clean stop. A partition's state
is read when its first idempotent batch arrives, not at the start: the snapshot's entry and the tail
of the log behind it, or the whole log if there is no entry that fits.
Kafka's counterpart: the `.snapshot` files and `ProducerStateManager.truncateAndReload`.
"""

import json
from collections.abc import Iterable
from typing import Final

from protocol.names import ProducerId, TopicId
from storage.api import TopicLog
from topics.catalog import CatalogFile
from topics.partition import Partition
from topics.producers import ProducerEntry, Producers, SentBatch

FORMAT: Final = 1

_PartitionKey = tuple[str, int]
_Saved = tuple[int, list[list[object]]]


class ProducerSnapshots:
    """Restores the producers of partitions, and keeps the file."""

    def __init__(self, file: CatalogFile | None, producer_id_expiration_ms: int) -> None:
        self._file = file
        self._expiration_ms = producer_id_expiration_ms
        self._saved = _read(file.load()) if file is not None else {}

    def producers_of(self, partition: Partition, log: TopicLog, now_ms: int) -> Producers:
        """The partition's producers, restored on first use."""
        if partition.producers is None:
            partition.producers = self._restore(log)
            partition.producers.expire(now_ms, self._expiration_ms)
        return partition.producers

    def save(self, partitions: Iterable[Partition]) -> None:
        """Write down every partition's producers; raises OSError."""
        if self._file is None:
            return
        saved = {}
        for partition in partitions:
            log, producers = partition.log, partition.producers
            if log is None:
                continue
            key = _key(log.topic_id, log.topic_partition.partition)
            if producers is not None:
                if producers.entries:
                    saved[key] = (producers.offset, [_dump(*e) for e in producers.entries.items()])
            elif key in self._saved:
                saved[key] = self._saved[key]  # not asked for since the start: still true
        self._file.save(
            json.dumps(
                {"format": FORMAT, "partitions": [[*key, *state] for key, state in saved.items()]},
                separators=(",", ":"),
            ).encode()
        )
        self._saved = saved

    def _restore(self, log: TopicLog) -> Producers:
        producers = Producers(log.log_start_offset)
        key = _key(log.topic_id, log.topic_partition.partition)
        offset, entries = self._saved.get(key, (0, []))
        # Beyond the log's end: records were lost with a power failure, and the snapshot with them.
        if log.log_start_offset <= offset <= log.log_end_offset:
            producers.offset = offset
            producers.entries = dict(_undump(entry) for entry in entries)
        if producers.offset < log.log_end_offset:
            producers.replay(log.batches(producers.offset))
        return producers


def _key(topic_id: TopicId, partition: int) -> _PartitionKey:
    return topic_id.hex, partition


def _dump(producer_id: ProducerId, entry: ProducerEntry) -> list[object]:
    return [producer_id, entry.epoch, entry.last_timestamp_ms, [list(b) for b in entry.batches]]


def _undump(dumped: list[object]) -> tuple[ProducerId, ProducerEntry]:
    producer_id, epoch, last_timestamp_ms, batches = dumped
    assert isinstance(producer_id, int)
    assert isinstance(epoch, int)
    assert isinstance(last_timestamp_ms, int)
    assert isinstance(batches, list)
    sent = [SentBatch(*batch) for batch in batches]
    return ProducerId(producer_id), ProducerEntry(epoch, last_timestamp_ms, sent)


def _read(content: bytes | None) -> dict[_PartitionKey, _Saved]:
    """The saved states; none of them if the file is not ours to read: the logs know it all."""
    if content is None:
        return {}
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            return {}
        return {
            (topic_id, partition): (offset, entries)
            for topic_id, partition, offset, entries in document["partitions"]
        }
    except (ValueError, KeyError, TypeError):
        return {}
