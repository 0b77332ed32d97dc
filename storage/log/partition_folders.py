"""Partition folders: which folders of a data directory are partitions, and how they come and go.

A partition is a folder named `<topic>-<number>` that holds a segment or a `partition.metadata`;
whatever else bears such a name is somebody's own and left alone. A folder that is to go gets
Kafka's suffix `-delete` first, so that a crash cannot leave half a partition; one that belongs to
nobody gets Kafka's `-stray`, and nothing in it is touched. Used by `log_store.py`.
Kafka's counterparts: LogManager.parseTopicPartitionName, UnifiedLog.logDeleteDirName,
UnifiedLog.logStrayDirName.
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
"""A folder with a greater number is no partition of ours, but a copy named by its date or the like:
a topic's table has a line for every number up to the greatest."""

MAX_NAME_BYTES: Final = 255
DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"

_PARTITION: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})", re.ASCII
)
_DELETED: Final = re.compile(r".+\.[0-9a-f]{32}" + DELETE_SUFFIX)


def partition_named(name: str) -> TopicPartition | None:
    """The partition that a folder of this name would be."""
    match = _PARTITION.fullmatch(name)
    return None if match is None else TopicPartition(match["topic"], int(match["partition"]))


def is_deleted(name: str) -> bool:
    """Is it a folder that was to go when the process ended?"""
    return _DELETED.fullmatch(name) is not None


def holds_partition(disk: Disk, folder: str) -> bool:
    """Is there anything that a log leaves? A swap that was interrupted counts."""
    if disk.exists(f"{folder}/{PARTITION_METADATA}"):
        return True
    try:
        return any(LOG_SUFFIX in name for name in disk.listdir(folder))
    except (NotADirectoryError, FileNotFoundError):
        return False


def is_unused(disk: Disk, folder: str) -> bool:
    """Is it the folder of a partition that was never written to, or was not even made in full?"""
    return all(
        name in (PARTITION_METADATA, LEADER_EPOCHS) or name.endswith(TEMPORARY)
        for name in disk.listdir(folder)
    )


def bury(disk: Disk, folder: str, topic_id: UUID) -> str:
    """Rename a partition's folder, so that it is none any more; its name until it is removed,
    which should wait for the sync of the new one: half a partition must not come back."""
    grave = _renamed(folder, topic_id, DELETE_SUFFIX)
    if not disk.exists(folder):
        return grave  # it was found missing
    if disk.exists(grave):
        remove_folder(disk, grave)
    disk.rename(folder, grave)
    return grave


def set_aside(disk: Disk, folder: str) -> str:
    """Rename a folder that no topic owns; its name from now on. Not synced."""
    stray = _renamed(folder, uuid4(), STRAY_SUFFIX)
    disk.rename(folder, stray)
    return stray


def _renamed(folder: str, unique: UUID, suffix: str) -> str:
    directory, _, name = folder.rpartition("/")
    suffix = f".{unique.hex}{suffix}"
    return f"{directory}/{name[: MAX_NAME_BYTES - len(suffix)]}{suffix}"


def remove_files(disk: Disk, paths: Iterable[str]) -> None:
    """Those of them that are there. Raises OSError."""
    for path in paths:
        if disk.exists(path):
            disk.remove(path)


def remove_folder(disk: Disk, path: str) -> None:
    """Remove a folder and the files in it. Raises OSError."""
    for name in disk.listdir(path):
        disk.remove(f"{path}/{name}")
    disk.remove_dir(path)


def try_to_remove(disk: Disk, path: str) -> None:
    """As `remove_folder`; what cannot be removed now goes at the next start."""
    with suppress(OSError):
        remove_folder(disk, path)
