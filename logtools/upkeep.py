"""Cleanable range: which part of a log the cleaner would clean now, and whether it is due.

By the daemon's rules (`storage/cleaner/selection.py`), from what the files show: sizes, times from
the time indexes, the checkpoints of the cleaner and of the recovery.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field

from logtools.layout import DataPlace, PartitionPlace, SegmentFile
from logtools.read_only import ReadOnlyDisk
from logtools.walk import Batch, walk
from storage.api import Corrupt, LogSettings
from storage.cleaner.selection import SegmentSummary, cleanable_range, dirty_ratio_of
from storage.journal.write_ahead_pair import FILE_NAMES
from storage.log.checkpoints import CLEAN_OFFSETS, RECOVERY_POINTS, read_offsets

_TIME_ENTRY: Final = struct.Struct(">qI")
_NOWHERE: Final = 2**63 - 1

_Offsets = Mapping[tuple[str, int | None], int]


class Upkeep(Struct, frozen=True):
    """What a data directory says of cleaning: empty for a folder or a file by itself."""

    first_dirty: _Offsets = field(default_factory=dict)
    recovered: _Offsets | None = None
    """What the journal may still write again begins here; None where there is no journal."""


class Cleanable(NamedTuple):
    """What the cleaner would do with a log now."""

    up_to: int  # the base offset of the first segment that it leaves alone
    dirty_ratio: float
    is_due: bool


def upkeep_of(place: DataPlace) -> Upkeep:
    """The checkpoints beside the logs."""
    data_dir = _data_dir(place)
    recovered = _checkpoint(data_dir / RECOVERY_POINTS) if has_journal(place) else None
    return Upkeep(_checkpoint(data_dir / CLEAN_OFFSETS), recovered)


def has_journal(place: DataPlace) -> bool:
    """Is it Rollcall's, and not a real Kafka's?"""
    return any((_data_dir(place) / name).exists() for name in FILE_NAMES)


def _data_dir(place: DataPlace) -> Path:
    return place.path if place.is_data_dir else place.path.absolute().parent


def _checkpoint(path: Path) -> _Offsets:
    try:
        offsets = read_offsets(ReadOnlyDisk(), str(path))
    except (Corrupt, OSError):
        return {}
    return {(key.topic, key.partition): offset for key, offset in offsets.items()}


def cleanable(
    place: PartitionPlace, upkeep: Upkeep, settings: LogSettings, now_ms: int
) -> Cleanable:
    """What may be cleaned of this partition now."""
    facts = [_facts(segment) for segment in place.segments]
    key = (place.topic, place.partition)
    stable_to = _NOWHERE if upkeep.recovered is None else upkeep.recovered.get(key, 0)
    if not facts:
        return Cleanable(0, 0.0, is_due=False)
    found = cleanable_range(
        facts,
        settings,
        checkpoint=upkeep.first_dirty.get(key),
        log_start=facts[0].base_offset,
        log_end=_NOWHERE,
        stable_to=stable_to,
        now_ms=now_ms,
    )
    dirty = dirty_ratio_of(facts, found, settings, now_ms)
    is_due = dirty.is_enough(settings) and found.first_uncleanable > found.first_dirty
    return Cleanable(found.first_uncleanable, dirty.ratio, is_due)


def _facts(segment: SegmentFile) -> SegmentSummary:
    first, size = -1, segment.path.stat().st_size
    for found in walk(segment.path):
        if isinstance(found, Batch):
            first = found.header.max_timestamp
            break
    return SegmentSummary(segment.base_offset, size, first, max(first, _latest(segment)))


def _latest(segment: SegmentFile) -> int:
    """The time index's last entry: a sealed segment's greatest timestamp."""
    path = Path(segment.stem + ".timeindex")
    content = path.read_bytes() if path.exists() else b""
    latest = -1
    for timestamp_ms, _ in _TIME_ENTRY.iter_unpack(content[: len(content) // 12 * 12]):
        latest = max(latest, timestamp_ms)
    return latest
