"""Segments for tests: made with the daemon's own encoders, or taken from a real Kafka."""

from collections.abc import Sequence
from pathlib import Path

from coordinator.group import CommittedOffset
from coordinator.records import offset_commit_key, offset_commit_value
from protocol.names import GroupId, TopicName
from storage.api import Record
from storage.batch.record_batch import encode_batch

KAFKAS_OFFSETS = Path(__file__).parents[1] / "storage" / "golden" / "consumer-offsets.log"
"""A segment of `__consumer_offsets` that Kafka 4.3.1 wrote."""

NOON_MS = 1_780_000_000_000


def commit(group: str, topic: str, partition: int, offset: int, at_ms: int = NOON_MS) -> Record:
    key = offset_commit_key(GroupId(group), TopicName(topic), partition)
    return Record(key, offset_commit_value(CommittedOffset(offset, -1, "", at_ms), 4))


def write_log(
    data_dir: Path,
    partition: int,
    batches: Sequence[Sequence[Record]],
    topic: str = "__consumer_offsets",
) -> Path:
    """One segment with these batches; its path."""
    folder = data_dir / f"{topic}-{partition}"
    folder.mkdir(parents=True, exist_ok=True)
    content, offset = [], 0
    for n, records in enumerate(batches):
        content.append(encode_batch(records, offset, NOON_MS + n))
        offset += len(records)
    log = folder / f"{0:020}.log"
    log.write_bytes(b"".join(content))
    return log
