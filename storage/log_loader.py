"""What lies in a partition's folder? Reads it at a start, and clears up what a crash left in it.

Opening tells three cases apart: closed cleanly (nothing is scanned), killed (what lies above the
recovery point is scanned and a torn tail is cut), damaged (Corrupt, which fails this partition).
`partition_log.py` takes over what is found. Kafka's counterpart: LogLoader.
"""

from typing import NamedTuple
from uuid import UUID

from storage.aborted import AbortedTransactions, aborted_in_folder
from storage.api import Corrupt
from storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, read_epochs, read_topic_id
from storage.disk import Disk
from storage.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, Repair, Segment, TailCut
from storage.segment_swap import complete_swaps

FIRST_EPOCH = (0, 0)
"""A new log's: term and the offset where it begins."""

_LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)


class Loaded(NamedTuple):
    """A folder as it is now."""

    topic_id: UUID
    epochs: list[tuple[int, int]]
    segments: list[Segment]
    repairs: list[Repair]
    aborted: AbortedTransactions


def load_folder(disk: Disk, path: str, index_interval_bytes: int, recovery_point: int) -> Loaded:
    """Bring a folder in order and its segments into memory. Raises Corrupt, OSError."""
    names = _sweep(disk, path, complete_swaps(disk, path, disk.listdir(path)))
    topic_id = read_topic_id(disk, f"{path}/{PARTITION_METADATA}")
    epochs = _epochs(disk, path, names)
    bases = sorted(int(name.removesuffix(LOG_SUFFIX)) for name in names if _is_log(name))
    every = [Segment(disk, path, base, index_interval_bytes) for base in bases]
    segments: list[Segment] = []
    repairs: list[Repair] = []
    for segment, following in zip(every, [*every, None][1:], strict=True):
        next_base = None if following is None else following.base_offset
        repairs += segment.load(recovery_point, sealed_at=next_base)
        segments.append(segment)
        if next_base is None:
            break
        if segment.next_offset > next_base:
            raise Corrupt(segment.path, segment.size, f"runs past the next one, {next_base}")
        segment.release()
        # Above the recovery point no cleaner has been: a gap there is a tail that got lost.
        if segment.next_offset < next_base and next_base > recovery_point:
            repairs += _drop(disk, path, every[len(segments) :], segment.next_offset)
            break
    aborted = aborted_in_folder(disk, path, names, segments)
    return Loaded(topic_id, epochs, segments, repairs, aborted)


def _sweep(disk: Disk, path: str, names: set[str]) -> set[str]:
    """Remove what a crash left half done; returns the names that stay."""
    kept = set(names)
    for name in sorted(names):
        stem, dot, suffix = name.partition(".")
        orphan = dot + suffix in _INDEX_SUFFIXES and stem + LOG_SUFFIX not in kept
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


def _drop(disk: Disk, path: str, segments: list[Segment], end_offset: int) -> list[Repair]:
    """Remove the segments that follow a cut: their offsets would leave a gap."""
    repairs: list[Repair] = []
    for segment in segments:
        size = disk.open(segment.path).size()
        segment.remove()
        reason = f"the log before it ends at offset {end_offset}"
        repairs.append(TailCut(segment.path, 0, size, reason))
    # At once: a segment that came back would begin in the middle of what comes next.
    disk.sync_dir(path)
    return repairs


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal()
