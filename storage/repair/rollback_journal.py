"""Rollback journal: makes many appends to many partitions atomic, for commands offline.

A command that writes to a stopped data directory first writes, in one small file, where each log
ends. When all that it appended is durable the file is removed. If the next opening finds the file,
the command was interrupted: every log is truncated to its noted end, and then the file is removed.
Truncating twice does no harm, so a crash in the middle of a rollback repeats it.

`log_store.py` checks for the file whenever it opens a data directory. If the directory was closed
cleanly since, or a Kafka has run on it (the stamp tells), a broker that knows nothing of the file
has appended behind the unfinished change: then nothing is truncated. `transfer/` checks for it
itself in a Kafka's log directory, with a stamp of its own (`kafka_stamp.py`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from storage.api import Corrupt, TopicPartition
from storage.disk import Disk, parent, read_file, replace_file
from storage.log.checkpoints import HIGH_WATERMARKS
from storage.log.partition_log import PartitionLog

ROLLBACK_JOURNAL_FILE: Final = "rollcall-unfinished-import.json"

_FORMAT: Final = 1


def write_journal(
    disk: Disk,
    directory: str,
    ends: Mapping[TopicPartition, int],
    stamp: Mapping[str, object] | None = None,
) -> None:
    """From here on an interrupted change is rolled back; a partition not created yet ends at 0.

    `stamp` is what tells whether a broker ran meanwhile that knows nothing of this file.
    """
    document: dict[str, object] = {
        "format": _FORMAT,
        "log_ends": [[key.topic, key.partition, end] for key, end in sorted(ends.items())],
    }
    if stamp is not None:
        document["stamp"] = stamp
    replace_file(
        disk, f"{directory}/{ROLLBACK_JOURNAL_FILE}", json.dumps(document, indent=1).encode()
    )


def delete_journal(disk: Disk, directory: str) -> None:
    """Everything appended is durable: the change is committed."""
    path = f"{directory}/{ROLLBACK_JOURNAL_FILE}"
    disk.remove(path)
    disk.sync_dir(parent(path))


class RollbackJournal(NamedTuple):
    """A change that was begun and not finished."""

    log_ends: dict[TopicPartition, int]
    stamp: object  # None if none was taken


def read_journal(disk: Disk, directory: str) -> RollbackJournal | None:
    """Where the logs ended before a change that was never finished; None if there is none."""
    path = f"{directory}/{ROLLBACK_JOURNAL_FILE}"
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
        return RollbackJournal(ends, document.get("stamp"))
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise Corrupt(path, 0, f"{type(fault).__name__}: {fault}") from None


def broker_stamp(disk: Disk, directory: str) -> dict[str, object]:
    """Facts that change if a Kafka runs on this data directory."""
    path = f"{directory}/{HIGH_WATERMARKS}"
    if not disk.exists(path):
        return {HIGH_WATERMARKS: None}
    return {HIGH_WATERMARKS: [len(read_file(disk, path)), disk.modified_ms(path)]}


def pending_rollback(
    disk: Disk, directory: str, *, was_clean: bool
) -> tuple[RollbackJournal | None, bool]:
    """The journal to roll back; and whether later appends forbid it, so that the change stays.

    With the file there, Rollcall never closes cleanly. Called before the clean-shutdown marker is
    removed, so that a killed start does not change the decision. Earlier versions took no stamp.
    """
    found = read_journal(disk, directory)
    if found is None:
        return None, False
    if not was_clean and found.stamp in (None, broker_stamp(disk, directory)):
        return found, False
    delete_journal(disk, directory)
    return None, True


def roll_back(
    ends: Mapping[TopicPartition, int], log_of: Callable[[TopicPartition], PartitionLog | None]
) -> int:
    """Truncate what was appended, durably; returns how many logs were longer."""
    logs = [(log, end) for key, end in ends.items() if (log := log_of(key)) is not None]
    longer = [(log, end) for log, end in logs if log.log_end_offset > end]
    for log, end in longer:
        log.truncate_to(end)
    _flush(log for log, _ in longer)
    return len(longer)


def _flush(logs: Iterable[PartitionLog]) -> None:
    for log in logs:
        log.flush()
