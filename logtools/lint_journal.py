"""Lint of the journal: its entries must be intact, and the segments must have what it made durable.

The journal's own code reads it, over a read-only disk. Each entry above a partition's recovery
point must be in the segments byte for byte, or must be what they lack at their end: then a start
appends it. A torn last group is no finding: it was never acknowledged.
"""

from pathlib import Path

from msgspec import Struct, field

from logtools.findings import Finding, Findings, LintCounts
from logtools.layout import after_offset
from logtools.lint_files import Known
from logtools.read_only import ReadOnlyDisk
from logtools.walk import Batch, walk
from storage.api import Corrupt, TopicPartition
from storage.batch.record_batch import InvalidBatch, check_crc
from storage.journal import write_ahead
from storage.journal.write_ahead import Declared
from storage.journal.write_ahead_pair import FILE_NAMES, RecoveredGroup, WriteAheadPair
from storage.log.checkpoints import RECOVERY_POINTS, read_offsets
from storage.log.log_store import CLEAN_SHUTDOWN


class _Promised(Struct):
    """What the journal holds of one partition."""

    where: str
    position: int
    batches: dict[int, bytes] = field(default_factory=dict)  # by base offset
    next_offset: int | None = None


def lint_journal(data_dir: Path, known: Known, tally: LintCounts) -> Findings:
    """Both journal files against themselves and against the segments."""
    files = [data_dir / name for name in FILE_NAMES if (data_dir / name).exists()]
    if not files:
        return  # a real Kafka's data
    tally.files += len(files)
    promised: dict[TopicPartition, _Promised] = {}
    pair = WriteAheadPair(ReadOnlyDisk(), str(data_dir), 0, is_synced=True)
    try:
        declared: dict[tuple[int, int], TopicPartition] = {}
        was_clean = (data_dir / CLEAN_SHUTDOWN).exists()
        for promise in pair.groups(after_clean_stop=was_clean):
            yield from _group(promise, declared, promised)
    except Corrupt as damage:
        yield Finding(damage.path, damage.position, "journal", damage.reason)
    finally:
        pair.close()
    try:
        recovery_points = read_offsets(ReadOnlyDisk(), str(data_dir / RECOVERY_POINTS))
    except Corrupt:
        recovery_points = {}  # lint_files.py reports this
    for key, content in promised.items():
        yield from _against_segments(key, content, known, recovery_points.get(key, 0))


def _group(
    promise: RecoveredGroup,
    declared: dict[tuple[int, int], TopicPartition],
    promised: dict[TopicPartition, _Promised],
) -> Findings:
    position, number = promise.group.position, promise.group.sequence
    try:
        for entry in write_ahead.read_entries(promise.group.payload):
            if isinstance(entry, Declared):
                declared[promise.epoch, entry.reference] = entry.topic_partition
                continue
            key = declared[promise.epoch, entry.reference]
            header = check_crc(entry.batch)
            held = promised.setdefault(key, _Promised(promise.path, position))
            if held.next_offset not in (None, header.base_offset):
                problem = f"group {number}: {key.topic}-{key.partition} goes on at offset "
                problem += f"{header.base_offset} instead of {held.next_offset}"
                yield Finding(promise.path, position, "journal", problem)
            held.batches[header.base_offset] = entry.batch
            held.next_offset = header.next_offset
    except (ValueError, KeyError, InvalidBatch) as fault:
        yield Finding(promise.path, position, "journal", f"group {number}: {fault}")


def _against_segments(
    key: TopicPartition, content: _Promised, known: Known, recovery_point: int
) -> Findings:
    lint = known.get(key)
    if lint is None or not content.batches:
        return  # not looked at, or made again by the next start
    first = min(content.batches)
    for segment in after_offset(lint.place.segments, first):
        for found in walk(segment.path):
            if not isinstance(found, Batch) or found.header.last_offset < recovery_point:
                continue
            promised = content.batches.get(found.header.base_offset)
            if promised is not None and promised != found.content:
                problem = f"offset {found.header.base_offset} is not the batch that was promised"
                yield Finding(str(segment.path), found.position, "journal", problem)
    missing = [offset for offset in content.batches if offset >= lint.next_offset]
    if missing and min(missing) != lint.next_offset:
        problem = f"{key.topic}-{key.partition} ends before offset {lint.next_offset}, the "
        problem += f"journal goes on at {min(missing)}: what lies between is lost"
        yield Finding(content.where, content.position, "journal", problem)
