"""Topic folders: where do the logs of a data directory begin and end?

A log ends after the last whole batch of its last segment, as Kafka's own recovery finds it: batches
are read from the last sound entry of the segment's index on. A torn end does not count, and an
empty segment ends where it begins. A log begins at its first segment, or later where
`log-start-offset-checkpoint` says so (records were deleted).

The ends are those of the newest change: of a segment, or of a file beside the folders. (A broker
that runs writes its checkpoints every few seconds; of one that was stopped, or of a copy, nothing
changes any more.) They are ends of this replica: a follower may be behind its leader.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final

from pipeline.read.log_ends import FOLDERS, LogEndReading, LogPlace, MeasuredLog
from pipeline.read.segments import LogSegment, end_offset
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC
from storage.log.partition_folders import parse_folder_name
from storage.log.segment import LOG_SUFFIX

_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
_OLD_HEAD: Final = Struct(">8xi4xb")  # length, magic, after an offset and before the attributes
_OLD_LENGTH_MIN: Final = 14  # of a message without a key or a value

_OWN: Final = frozenset({OFFSETS_TOPIC, HISTORY_TOPIC, LAG_TOPIC})
"""Topics without which nothing can be said of others: a copy may have them alone."""


def has_topic_folders(root: Path) -> bool:
    """Whether it is a data directory with the folder of a topic that a group may read."""
    return any(place[0] not in _OWN for place, _ in _folders(root))


def measure_folders(root: Path) -> LogEndReading:
    """Of all partitions in a data directory. Never raises: what cannot be read is unknown."""
    starts = _start_checkpoint(root)
    newest_ms = max(map(_changed_ms, [root, *_files(root)]), default=0)
    found: dict[LogPlace, tuple[int | None, int | None, str | None]] = {}
    for place, folder in _folders(root):
        try:
            segments = _segments(place, folder)
            if not segments:
                found[place] = None, None, "its folder has no segment"
                continue
            newest_ms = max(newest_ms, _changed_ms(Path(segments[-1].path)))
            start = max(segments[0].base_offset, starts.get(place, 0))
            end = end_offset(segments[-1])
            if end == segments[-1].base_offset and _is_old_format(Path(segments[-1].path)):
                found[place] = start, None, "its newest records have Kafka's format before 0.11"
                continue
            # Records can be deleted up to an end that a crash has taken back.
            found[place] = start, max(start, end), None
        except OSError as fault:
            found[place] = None, None, f"its folder cannot be read: {fault.strerror or fault}"
    measured = {
        place: MeasuredLog(*place, newest_ms, start, end, FOLDERS, problem)
        for place, (start, end, problem) in found.items()
    }
    return LogEndReading(FOLDERS, newest_ms, measured, _no_folder)


def _no_folder(topics: Collection[str]) -> Mapping[str, str]:
    return dict.fromkeys(topics, "no folder of the topic")


def _folders(root: Path) -> Iterator[tuple[LogPlace, Path]]:
    for folder in _entries(root):
        key = parse_folder_name(folder.name)
        if key is not None and folder.is_dir():
            yield (key.topic, key.partition), folder


def _entries(root: Path) -> list[Path]:
    try:
        return sorted(root.iterdir())
    except OSError:
        return []


def _files(root: Path) -> list[Path]:
    return [file for file in _entries(root) if file.is_file()]


def _segments(place: LogPlace, folder: Path) -> list[LogSegment]:
    """In order. Raises OSError."""
    found = [
        LogSegment(str(file), *place, int(file.stem), file.stat().st_size)
        for file in folder.iterdir()
        if file.suffix == LOG_SUFFIX and file.stem.isdecimal()
    ]
    return sorted(found, key=lambda segment: segment.base_offset)


def _is_old_format(path: Path) -> bool:
    """Whether it begins with a message of version 0 or 1. Kafka still reads them; we do not.

    Raises OSError.
    """
    with path.open("rb") as log:
        head = log.read(_OLD_HEAD.size)
    if len(head) < _OLD_HEAD.size:
        return False
    length, magic = _OLD_HEAD.unpack(head)
    return magic in (0, 1) and length >= _OLD_LENGTH_MIN


def _changed_ms(path: Path) -> int:
    with suppress(OSError):  # it was just deleted
        return path.stat().st_mtime_ns // 1_000_000
    return 0


def _start_checkpoint(root: Path) -> dict[LogPlace, int]:
    """A version, a count, then lines of topic, partition and offset; damage says nothing."""
    starts: dict[LogPlace, int] = {}
    with suppress(OSError, ValueError):
        for line in (root / _START_CHECKPOINT).read_text().splitlines()[2:]:
            topic, partition, offset = line.split()
            starts[topic, int(partition)] = int(offset)
    return starts
