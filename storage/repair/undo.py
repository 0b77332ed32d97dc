"""How do many appends to many partitions become all or nothing, without the daemon's journal?

A command that writes to a stopped data directory says first, in one small file, where each log
ends. When all that it appended is durable the file goes. If it is found at the next opening, the
command died half way: every log is cut back to where it ended, and then the file goes. Cutting
twice does no harm, so a crash in the middle of that is cut again.

`log_store.py` looks for the file whenever it opens a data directory. If the directory was closed
cleanly since, or a Kafka has run on it (the stamp tells), somebody who knows nothing of the file
has appended behind what is unfinished: then nothing is cut. `transfer/` looks for it itself in a
Kafka's log directory, with a stamp of its own (`kafka_stamp.py`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from storage.api import Corrupt, TopicPartition
from storage.disk import Disk, parent, read_file, replace_file
from storage.log.partition_log import PartitionLog

UNDO_FILE: Final = "rollcall-unfinished-import.json"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""A Kafka that runs rewrites this file of its log directory every five seconds, Rollcall never."""

_FORMAT: Final = 1


def begin(
    disk: Disk,
    directory: str,
    ends: Mapping[TopicPartition, int],
    stamp: Mapping[str, object] | None = None,
) -> None:
    """From here on an interrupted change is undone; a partition yet to be made ends at 0.

    `stamp` is what tells whether a broker ran meanwhile that knows nothing of this file.
    """
    document: dict[str, object] = {
        "format": _FORMAT,
        "log_ends": [[key.topic, key.partition, end] for key, end in sorted(ends.items())],
    }
    if stamp is not None:
        document["stamp"] = stamp
    replace_file(disk, f"{directory}/{UNDO_FILE}", json.dumps(document, indent=1).encode())


def finish(disk: Disk, directory: str) -> None:
    """Everything appended is durable: it stays."""
    path = f"{directory}/{UNDO_FILE}"
    disk.remove(path)
    disk.sync_dir(parent(path))


class Unfinished(NamedTuple):
    """A change that was begun and not finished."""

    log_ends: dict[TopicPartition, int]
    stamp: object  # None if none was taken


def unfinished(disk: Disk, directory: str) -> Unfinished | None:
    """Where the logs ended before a change that was never finished; None if there is none."""
    path = f"{directory}/{UNDO_FILE}"
    if not disk.exists(path):
        return None
    try:
        document = json.loads(read_file(disk, path))
        if document["format"] != _FORMAT:
            raise Corrupt(path, 0, f"format {document['format']} is not known")
        ends = {
            TopicPartition(str(topic), int(partition)): int(end)
            for topic, partition, end in document["log_ends"]
        }
        return Unfinished(ends, document.get("stamp"))
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise Corrupt(path, 0, f"{type(fault).__name__}: {fault}") from None


def stamp(disk: Disk, directory: str) -> dict[str, object]:
    """What would be different if a Kafka ran on this data directory of ours."""
    path = f"{directory}/{HIGH_WATERMARKS}"
    if not disk.exists(path):
        return {HIGH_WATERMARKS: None}
    return {HIGH_WATERMARKS: [len(read_file(disk, path)), disk.modified_ms(path)]}


def to_roll_back(disk: Disk, directory: str, *, was_clean: bool) -> tuple[Unfinished | None, bool]:
    """What is to be undone in a data directory of ours; and whether others built on it instead.

    While the file is there we never close cleanly. Asked before the marker of that goes, so that a
    start which is killed does not decide otherwise. Earlier versions took no stamp.
    """
    found = unfinished(disk, directory)
    if found is None:
        return None, False
    if not was_clean and found.stamp in (None, stamp(disk, directory)):
        return found, False
    finish(disk, directory)
    return None, True


def roll_back(
    ends: Mapping[TopicPartition, int], log_of: Callable[[TopicPartition], PartitionLog | None]
) -> int:
    """Cut what was appended, durably; returns how many logs were longer than that."""
    logs = [(log, end) for key, end in ends.items() if (log := log_of(key)) is not None]
    longer = [(log, end) for log, end in logs if log.log_end_offset > end]
    for log, end in longer:
        log.truncate_to(end)
    _flush(log for log, _ in longer)
    return len(longer)


def _flush(logs: Iterable[PartitionLog]) -> None:
    for log in logs:
        log.flush()
