"""Log loader: reads a partition's folder at a start, and removes what a crash left half done.

Opening distinguishes three cases: closed cleanly (nothing is scanned), killed (everything above the
recovery point is scanned, and torn tails are cut and kept aside), damaged (Corrupt, which fails
this partition).
`partition_log.py` takes over the result. Kafka's counterpart: LogLoader.
"""

from typing import NamedTuple
from uuid import UUID

from storage.api import Corrupt, TruncatedLog
from storage.disk import Disk
from storage.log.aborted import MovedLog, all_outcomes, load_moved, write_indexes
from storage.log.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, read_epochs, read_topic_id
from storage.log.index import BadIndex
from storage.log.producer_files import ProducerFiles
from storage.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, Repair, Segment
from storage.log.segment_swap import complete_swaps
from storage.log.transaction_index import TRANSACTION_INDEX_SUFFIX

FIRST_EPOCH = (0, 0)
"""A new log's: term and the offset where it begins."""

COMPACTED_FROM_THE_START = ("__consumer_offsets", "__transaction_state")
"""Topics of which neither retention nor DeleteRecords removes anything."""

_LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)


class Loaded(NamedTuple):
    """A folder as it is now."""

    topic_id: UUID
    epochs: list[tuple[int, int]]
    segments: list[Segment]
    repairs: list[Repair]
    moved: MovedLog


class KnownEnds(NamedTuple):
    """What the checkpoints say of a log."""

    recovery_point: int  # from here on every byte is checked; EVERYTHING after a clean stop
    durable_to: int = 0  # offsets below were durable once
    log_start: int = 0


def load_folder(
    disk: Disk,
    path: str,
    index_interval_bytes: int,
    ends: KnownEnds,
    producer_files: ProducerFiles,
) -> Loaded:
    """Bring a folder in order and its segments into memory. Raises Corrupt, OSError.

    A gap between segments is no damage: compaction leaves them, and so does a segment that a crash
    has cut. Nothing behind a gap is dropped.
    """
    recovery_point, known_end, log_start = ends
    names = complete_swaps(disk, path, disk.listdir(path))
    _check_orphans(path, names, known_end)
    names = _sweep(disk, path, names)
    topic_id = read_topic_id(disk, f"{path}/{PARTITION_METADATA}")
    epochs = _epochs(disk, path, names)
    every = [Segment(disk, path, base, index_interval_bytes) for base in _bases(names)]
    repairs: list[Repair] = []
    for segment, following in zip(every, [*every, None][1:], strict=True):
        next_base = None if following is None else following.base_offset
        repairs += segment.load(recovery_point, sealed_at=next_base)
        if next_base is None:
            break
        if segment.next_offset > next_base:
            raise Corrupt(segment.path, segment.size, f"runs past the next one, {next_base}")
        segment.release()
    _check_end(path, every, known_end, log_start)
    _load_transaction_indexes(disk, names, every)
    moved = load_moved(disk, path, names, every)
    producer_files.load(names, max(every[-1].next_offset if every else 0, log_start))
    return Loaded(topic_id, epochs, every, repairs, moved)


def _load_transaction_indexes(disk: Disk, names: set[str], segments: list[Segment]) -> None:
    """Read those that there are; one that is damaged is made again from the whole log."""
    is_damaged = False
    for segment in segments:
        if segment.aborted.path.rpartition("/")[2] not in names:
            continue
        try:
            segment.aborted.load(disk)
        except BadIndex:
            is_damaged = True
        segment.aborted.truncate(segment.next_offset)  # markers that a crash has cut off
    if is_damaged:
        write_indexes(disk, segments, all_outcomes(disk, segments))


def _bases(names: set[str]) -> list[int]:
    return sorted(int(name.removesuffix(LOG_SUFFIX)) for name in names if _is_log(name))


def _check_orphans(path: str, names: set[str], known_end: int) -> None:
    """Refuse indexes without their log in the middle of durable offsets: the log was removed.

    Segments are removed from the oldest on, and a crash may leave the indexes of one. So indexes
    before the first segment prove nothing, except in a topic that never loses its start. Raises
    TruncatedLog.
    """
    bases = _bases(names)
    if not bases:
        return
    never_loses_its_start = path.rpartition("/")[2].rpartition("-")[0] in COMPACTED_FROM_THE_START
    for name in sorted(names):
        stem, dot, suffix = name.partition(".")
        if dot + suffix not in _INDEX_SUFFIXES or not stem.isdecimal() or int(stem) in bases:
            continue
        base = int(stem)
        if base < known_end and (base > bases[0] or never_loses_its_start):
            last = min([each for each in bases if each > base], default=known_end) - 1
            evidence = tuple(f"{path}/{stem}{suffix}" for suffix in _INDEX_SUFFIXES)
            reason = f"the file is missing, though offsets up to {last} were durable"
            raise TruncatedLog(f"{path}/{stem}{LOG_SUFFIX}", 0, reason, (base, last), evidence)


def _check_end(path: str, segments: list[Segment], known_end: int, log_start: int) -> None:
    """Raises TruncatedLog."""
    end = segments[-1].next_offset if segments else 0
    if end < known_end and log_start < known_end:
        file, size = (segments[-1].path, segments[-1].size) if segments else (path, 0)
        reason = f"the log ends at offset {end}, though offsets up to {known_end - 1} were durable"
        raise TruncatedLog(file, size, reason, (end, known_end - 1))


def _sweep(disk: Disk, path: str, names: set[str]) -> set[str]:
    """Remove files that a crash left half done; returns the names that stay."""
    kept = set(names)
    for name in sorted(names):
        stem, dot, suffix = name.partition(".")
        is_index = dot + suffix in (*_INDEX_SUFFIXES, TRANSACTION_INDEX_SUFFIX)
        orphan = is_index and stem + LOG_SUFFIX not in kept
        if orphan or name.endswith(_LEFTOVER_SUFFIXES):
            disk.remove(f"{path}/{name}")
            kept.discard(name)
    return kept


def _epochs(disk: Disk, path: str, names: set[str]) -> list[tuple[int, int]]:
    if LEADER_EPOCHS not in names:
        return [FIRST_EPOCH]
    try:
        return read_epochs(disk, f"{path}/{LEADER_EPOCHS}") or [FIRST_EPOCH]
    except Corrupt:  # written at creation and not synced by itself: a crash may tear it
        return [FIRST_EPOCH]


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal()
