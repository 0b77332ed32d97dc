"""Partition folders: their names, which folders are partitions, and how they come and go.

A partition is a folder named `<topic>-<number>` that holds a segment or a `partition.metadata`. Any
other folder with such a name belongs to somebody else and is left alone. Kafka's suffixes name the
folders that are not, or not any more, partitions, each behind a UUID: `-delete` before a folder is
removed, so that a crash cannot leave half a partition; `-stray` where no topic owns it, and nothing
in it is touched; `-future` for a copy that a Kafka was moving to another disk.

This is the one place that knows these names: `log_store.py`, the data directory, the log tools, the
transfer to and from a Kafka's directory and the pipeline ask here.
Kafka's counterparts: UnifiedLog.parseTopicPartitionName, logDirName, logDeleteDirName,
logStrayDirName, logFutureDirName.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from uuid import UUID, uuid4

from storage.api import TopicPartition
from storage.disk import TEMPORARY, Disk
from storage.log.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from storage.log.segment import LOG_SUFFIX

PARTITION_NUMBER_MAX: Final = 99_999
"""A folder with a greater number is no partition, but a copy named by its date or the like:
a topic's table has a line for every number up to the greatest."""

MAX_NAME_BYTES: Final = 255
DELETE_SUFFIX: Final = "-delete"
FUTURE_SUFFIX: Final = "-future"
STRAY_SUFFIX: Final = "-stray"

_PARTITION: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})", re.ASCII
)
_RENAMED: Final = re.compile(
    rf".+\.[0-9a-f]{{32}}(?P<suffix>{DELETE_SUFFIX}|{FUTURE_SUFFIX}|{STRAY_SUFFIX})"
)


def folder_name(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def parse_folder_name(name: str) -> TopicPartition | None:
    """The partition whose folder has this name; None of any other name, renamed folders included.

    The number follows the last dash, for a topic may have dashes and dots. Kafka differs: it also
    takes leading zeros, which no broker writes, and so two folders could be one partition.
    """
    match = _PARTITION.fullmatch(name)
    return None if match is None else TopicPartition(match["topic"], int(match["partition"]))


def renamed_suffix(name: str) -> str | None:
    """The suffix of a folder that was a partition: DELETE_, FUTURE_ or STRAY_SUFFIX."""
    match = _RENAMED.fullmatch(name)
    return None if match is None else match["suffix"]


def is_deleted(name: str) -> bool:
    """Whether the folder was being removed when the process ended."""
    return renamed_suffix(name) == DELETE_SUFFIX


def holds_partition(disk: Disk, folder: str) -> bool:
    """Whether the folder has files of a log. Those of an interrupted swap count."""
    if disk.exists(f"{folder}/{PARTITION_METADATA}"):
        return True
    try:
        return any(LOG_SUFFIX in name for name in disk.listdir(folder))
    except (NotADirectoryError, FileNotFoundError):
        return False


def is_unused(disk: Disk, folder: str) -> bool:
    """Whether nothing was ever appended to the partition; its creation may be incomplete."""
    return all(
        name in (PARTITION_METADATA, LEADER_EPOCHS) or name.endswith(TEMPORARY)
        for name in disk.listdir(folder)
    )


def rename_to_deleted(disk: Disk, folder: str, topic_id: UUID) -> str:
    """Rename a folder to `<topic>-<n>.<topic id>-delete`; its new name.

    Remove it only after the new name was synced: half a partition must not come back.
    """
    renamed = _renamed(folder, topic_id, DELETE_SUFFIX)
    if not disk.exists(folder):
        return renamed  # the partition was damaged because its folder is missing
    if disk.exists(renamed):
        delete_folder(disk, renamed)
    disk.rename(folder, renamed)
    return renamed


def rename_to_stray(disk: Disk, folder: str) -> str:
    """Rename a folder that no topic owns to `<topic>-<n>.<uuid>-stray`. Not synced."""
    stray = _renamed(folder, uuid4(), STRAY_SUFFIX)
    disk.rename(folder, stray)
    return stray


def _renamed(folder: str, unique: UUID, suffix: str) -> str:
    directory, _, name = folder.rpartition("/")
    suffix = f".{unique.hex}{suffix}"
    return f"{directory}/{name[: MAX_NAME_BYTES - len(suffix)]}{suffix}"


def remove_files(disk: Disk, paths: Iterable[str]) -> None:
    """Remove the files that exist. Raises OSError."""
    for path in paths:
        if disk.exists(path):
            disk.remove(path)


def delete_folder(disk: Disk, path: str) -> None:
    """Remove a folder and the files in it. Raises OSError."""
    for name in disk.listdir(path):
        disk.remove(f"{path}/{name}")
    disk.remove_dir(path)


def try_to_remove(disk: Disk, path: str) -> None:
    """As `delete_folder`; the next start removes what cannot be removed now."""
    with suppress(OSError):
        delete_folder(disk, path)
