"""Log folders: reads a broker's `__consumer_offsets-*` folders, and never writes to them.

Folders of any broker: a Kafka of 2.x to 4.x, stopped, killed or copied. It reads what a start of
that broker would load: unused preallocated space, a tail torn by a kill and the unfinished output
of a cleaner are ignored; finished output that is not yet in place counts. Indexes are not needed.
Kafka's counterparts: LogLoader, LogSegments.
"""

import fcntl
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from logtools.walk import Batch, DamagedBytes, walk
from protocol import java_text
from protocol.names import OFFSETS_TOPIC
from storage.data_dir import LOCK
from storage.log.checkpoints import LOG_STARTS, RECOVERY_POINTS
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.log.partition_folders import PARTITION_NUMBER_MAX, parse_folder_name
from transfer.contents import Contents
from transfer.errors import NoOffsets
from transfer.replay import Replay
from transfer.source_stats import ROOM, BatchPosition, Damaged, SourceStats, TornTail

_SEGMENT: Final = re.compile(r"([0-9]{20})\.log(\.swap)?")


class PartitionFolder(NamedTuple):
    """One folder, and what the directory above it says of it."""

    number: int
    folder: Path
    log_start: int
    durable_to: int
    """Below this offset nothing can be a torn tail: it was synced once."""


class SourceSegment(NamedTuple):
    base_offset: int
    path: Path


def partitions_in(directories: Sequence[Path]) -> list[PartitionFolder]:
    """Every partition of the offsets topic in these directories, in order. Raises NoOffsets.

    A directory is a broker's log directory, or the folder of one partition.
    """
    found: dict[int, PartitionFolder] = {}
    for directory in directories:
        for number, folder in _folders(directory):
            other = found.get(number)
            if other is not None:
                raise NoOffsets(f"partition {number} is in both {other.folder} and {folder}")
            found[number] = _partition_folder(number, folder)
    if not found:
        names = ", ".join(str(directory) for directory in directories)
        raise NoOffsets(f"no folder {OFFSETS_TOPIC}-N in {names}")
    return [found[number] for number in sorted(found)]


def is_in_use(directory: Path) -> bool:
    """Does a Kafka hold the lock of this log directory? Java locks by fcntl."""
    try:
        with (directory / LOCK).open("rb") as lock:
            fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _folders(directory: Path) -> Iterator[tuple[int, Path]]:
    number = _partition_number(directory.name)
    if number is not None:
        yield number, directory
        return
    for path in directory.iterdir():
        number = _partition_number(path.name)
        if number is not None and path.is_dir():
            yield number, path


def _partition_number(name: str) -> int | None:
    """The partition of the offsets topic whose folder has this name; None of any other name.

    A number that no broker uses is that of a copy, named by its date or the like.
    """
    key = parse_folder_name(name)
    if key is None or key.topic != OFFSETS_TOPIC or key.partition > PARTITION_NUMBER_MAX:
        return None
    return key.partition


def _partition_folder(number: int, folder: Path) -> PartitionFolder:
    above = folder.parent
    is_clean = (above / CLEAN_SHUTDOWN).exists()
    durable_to = sys.maxsize if is_clean else _checkpoint(above / RECOVERY_POINTS, number)
    return PartitionFolder(number, folder, _checkpoint(above / LOG_STARTS, number), durable_to)


def _checkpoint(path: Path, number: int) -> int:
    """What an offset checkpoint says of this partition; 0 when it says nothing that can be read.

    Not by way of `storage/`: a backup may be read-only.
    """
    if not path.exists():
        return 0
    for words in map(str.split, path.read_text("utf-8", "replace").splitlines()):
        if len(words) == 3 and words[:2] == [OFFSETS_TOPIC, str(number)]:
            return java_text.parse_integer(words[2], 0) or 0
    return 0


def read_partition(partition: PartitionFolder, contents: Contents, tally: SourceStats) -> None:
    """Add one partition to the contents. Raises OSError."""
    tally.partitions.append(partition.number)
    replay = Replay(contents, tally)
    segments = segments_of(partition.folder)
    for segment in segments:
        tally.segments += 1
        for part in walk(segment.path):
            if isinstance(part, DamagedBytes):
                is_last = segment is segments[-1]
                _note_damage(part, segment, partition, replay, tally, is_last=is_last)
            elif part.header.next_offset > partition.log_start:
                replay.take(part.content, BatchPosition(str(segment.path), part.position))
    replay.finish()


def _note_damage(
    damage: DamagedBytes,
    segment: SourceSegment,
    partition: PartitionFolder,
    replay: Replay,
    tally: SourceStats,
    *,
    is_last: bool,
) -> None:
    reaches_end = damage.position + damage.size >= segment.path.stat().st_size
    if is_last and reaches_end:
        if damage.reason == ROOM:
            return
        if replay.next_offset >= partition.durable_to:
            tally.torn_tails.append(TornTail(str(segment.path), damage.position, damage.size))
            return
    tally.damaged.append(Damaged(str(segment.path), damage.position, -1, damage.reason))


def segments_of(folder: Path) -> list[SourceSegment]:
    """The files that make up the log, in order; what a cleaner finished takes its place."""
    files: dict[int, Path] = {}
    swaps: dict[int, Path] = {}
    for path in folder.iterdir():
        match = _SEGMENT.fullmatch(path.name)
        if match is not None:
            (swaps if match[2] else files)[int(match[1])] = path
    for base_offset, path in swaps.items():
        end = _end_of(path, base_offset)
        for covered in [base for base in files if base_offset <= base < end]:
            del files[covered]
    files |= swaps
    return [SourceSegment(base_offset, files[base_offset]) for base_offset in sorted(files)]


def _end_of(path: Path, base_offset: int) -> int:
    end = base_offset + 1
    for part in walk(path):
        if isinstance(part, Batch):
            end = max(end, part.header.next_offset)
    return end
