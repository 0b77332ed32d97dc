"""Repair: cuts a damaged log where it is still sound, keeps the cut bytes, and reports the loss.

Only on demand (`rollcall serve --repair`): a start refuses otherwise, because the bytes to be cut
were stored once, and a copy or a better disk may still have them. Every byte below the recovery
point is read. At the first batch whose checksum, length or offset is wrong the segment is cut. Its
rest, and the segments that follow, stay in the folder under names that end in `.damaged`; the
batches that can still be read there show which records were lost. `repair_plan.py` makes sure that
a repair which was killed is finished.
"""

from collections.abc import Sequence
from typing import NamedTuple

from storage.api import Corrupt, TopicPartition, TruncatedLog
from storage.batch.batch_walk import checked_batches
from storage.batch.record_batch import (
    BatchHeader,
    InvalidBatch,
    peek_header,
    stored_records,
)
from storage.batch.sound_batches import sound_batches
from storage.disk import Disk, read_file
from storage.log.checkpoints import PARTITION_METADATA, read_offsets, read_topic_id
from storage.log.index import MAX_RELATIVE_OFFSET
from storage.log.kept_copies import free_name, keep_bytes
from storage.log.segment import LOG_SUFFIX
from storage.repair.repair_plan import Cut, Lost, Repaired, RepairPlan
from storage.snapshot import snapshot_positions


class _Damage(NamedTuple):
    segment: int  # which of them
    position: int
    offset: int  # that should come there
    reason: str


def repair_partition(
    disk: Disk,
    folder: str,
    key: TopicPartition,
    trusted_to: int,
    known_end: int = 0,
    *,
    book: RepairPlan,
) -> None:
    """Cut a partition at its first damage below `trusted_to`, if there is any.

    `known_end`: the log once went so far at least, whatever can be read of it.
    What is torn above it is no damage: opening cuts that, and the journal has it.
    """
    names = [name for name in disk.listdir(folder) if name.endswith(LOG_SUFFIX)]
    bases = sorted(int(stem) for name in names if (stem := name[: -len(LOG_SUFFIX)]).isdecimal())
    paths = [f"{folder}/{base:020d}" for base in bases]
    damage = _first_damage(disk, paths, bases, trusted_to)
    if damage is None:
        return
    path = paths[damage.segment] + LOG_SUFFIX
    file = disk.open(path)
    cut = file.pread(file.size(), damage.position)
    kept = [keep_bytes(disk, path, cut)]
    found = list(sound_batches(cut))
    moved: list[tuple[str, str]] = []
    for later in paths[damage.segment + 1 :]:
        content = read_file(disk, later + LOG_SUFFIX)
        found += sound_batches(content)
        cut += content
        kept.append(free_name(disk, later + LOG_SUFFIX))
        moved.append((later + LOG_SUFFIX, kept[-1]))
    disk.sync_dir(folder)  # the copy's name
    end = max(known_end, bases[-1] if moved else 0, _end_it_says(cut, damage.offset))
    lost = lost_of(key, damage.offset, found, at_least=end - 1)
    book.cut(
        Repaired(path, damage.position, damage.reason, len(cut), tuple(kept), (lost,)),
        Cut(path, damage.position, tuple(moved)),
    )


def _first_damage(
    disk: Disk, paths: Sequence[str], bases: Sequence[int], trusted_to: int
) -> _Damage | None:
    for number, base in enumerate(bases):
        file = disk.open(paths[number] + LOG_SUFFIX)
        position, offset = 0, base
        next_base = bases[number + 1] if number + 1 < len(bases) else None
        reason = None
        try:
            for at, header in checked_batches(file, 0, file.size()):
                reason = _misplaced(header, base, offset, next_base)
                if reason is not None:
                    break
                position, offset = at + header.size, header.next_offset
        except InvalidBatch as fault:
            # What is torn above the recovery point is cut by opening; a wrong offset never is.
            return _Damage(number, position, offset, fault.reason) if offset < trusted_to else None
        if reason is not None:
            return _Damage(number, position, offset, reason)
    return None


def _misplaced(header: BatchHeader, base: int, offset: int, next_base: int | None) -> str | None:
    """Why a sound batch cannot come here, as opening sees it."""
    if header.base_offset < offset:
        return f"offset {header.base_offset} comes after {offset - 1}"
    if header.last_offset - base > MAX_RELATIVE_OFFSET:
        return f"offset {header.last_offset} is too far from the first, {base}"
    if next_base is not None and header.next_offset > next_base:
        return f"offset {header.last_offset} runs past the next segment, {next_base}"
    return None


def _end_it_says(cut: bytes, offset: int) -> int:
    """Where the damaged batch ends, if that much of its header makes sense; else 0."""
    try:
        header = peek_header(cut, 0)
    except InvalidBatch:
        return 0
    makes_sense = header.base_offset == offset and header.records_count == (
        header.last_offset_delta + 1
    )
    return header.next_offset if makes_sense else 0


def lost_of(
    key: TopicPartition,
    first_offset: int,
    batches: Sequence[tuple[BatchHeader, bytes]],
    at_least: int = -1,
) -> Lost:
    """The lost records, as far as batches that were cut show them."""
    last_offset = max(at_least, first_offset)
    keys: dict[bytes, None] = {}
    records = 0
    for header, batch in batches:
        last_offset = max(last_offset, header.last_offset)
        try:
            for record in stored_records(batch):
                records += 1
                if record.key is not None:
                    keys.pop(record.key, None)
                    keys[record.key] = None
        except InvalidBatch:
            continue  # sound by its checksum, and yet unreadable: its offsets are all it says
    return Lost(key, first_offset, last_offset, records, tuple(keys))


def report_missing_offsets(
    disk: Disk, folder: str, key: TopicPartition, damage: TruncatedLog
) -> Repaired:
    """The report of durable offsets that are missing where nothing is left to cut."""
    first, last = damage.offsets
    reason = damage.reason
    snapshot = max(snapshot_positions(disk, folder) if disk.exists(folder) else [], default=0)
    if snapshot > first:
        last = max(last, snapshot - 1)
        reason += f"; the snapshot of offset {snapshot} has the groups as they were there"
    lost = Lost(key, first, last, 0, ())
    return Repaired(damage.path, damage.position, reason, 0, (), (lost,))


def quarantine(disk: Disk, damage: Corrupt) -> Repaired:
    """Copy a small file aside that is not needed; the next write replaces it."""
    kept = keep_copy(disk, damage.path)
    return Repaired(damage.path, damage.position, damage.reason, 0, (kept,), ())


def read_offsets_or_quarantine(
    disk: Disk, path: str, repaired: list[Repaired] | None
) -> dict[TopicPartition, int] | None:
    """An offset checkpoint; None if it is damaged and was put aside, into `repaired`.

    With no list for that raises Corrupt.
    """
    try:
        return read_offsets(disk, path)
    except Corrupt as damage:
        if repaired is None:
            raise
        repaired.append(quarantine(disk, damage))
        return None


def repair_topic_id(disk: Disk, folder: str) -> list[Repaired]:
    """Quarantine a topic id that cannot be read: the catalog has it, and it is written again."""
    path = f"{folder}/{PARTITION_METADATA}"
    try:
        read_topic_id(disk, path)
    except Corrupt as damage:
        repaired = quarantine(disk, damage)
        disk.remove(path)
        return [repaired]
    return []


def keep_copy(disk: Disk, path: str, *, is_private: bool = False) -> str:
    """A copy of a whole file beside it; its name."""
    return keep_bytes(disk, path, read_file(disk, path), is_private=is_private)


def repair_hint(damage: Corrupt) -> str:
    """What an operator can do about the damage, in one line."""
    if damage.remedy is not None:
        return f"{damage}; {damage.remedy}"
    return (
        f"{damage}; these bytes were stored correctly before, so they are not cut automatically: "
        "restore the file from a copy, or start once with --repair, which cuts there, keeps the "
        "cut bytes as *.damaged and reports what was lost"
    )
