"""Kafka log directory: appends records to a stopped Kafka, which loads them at its start.

Its offsets topic must exist: Kafka chooses its id and its number of partitions. Batches are
appended to a partition in its latest leader epoch, in its last segment with both indexes; the
checkpoints of the log directory then say that all of it is durable and replicated. The
clean-shutdown marker is removed while we write, so that after a crash the broker checks its logs.
The next write rolls back one that was interrupted, but never if the broker ran in between. Refused:
a running broker, one that was killed, a directory with only some of the partitions. Kafka's
counterparts: LogManager.loadLogs, UnifiedLog, OffsetCheckpointFile.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from protocol.names import OFFSETS_TOPIC, TopicId
from storage.api import LogSettings
from storage.data_dir import LOCK, META_PROPERTIES
from storage.disk import Disk, RealDisk, read_file, replace_file
from storage.log.checkpoints import (
    HIGH_WATERMARKS,
    NO_TOPIC_ID,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    read_offsets,
    read_topic_id,
    write_offsets,
)
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.log.partition_folders import parse_folder_name
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING
from storage.repair import rollback_journal
from transfer.errors import Unusable
from transfer.file_owner import give_to_owner
from transfer.kafka_stamp import Stamp, is_as_stamped, stamp_of

_SEGMENT_BYTES: Final = 104_857_600  # offsets.topic.segment.bytes; rolled only if we fill it


class KafkaDir:
    """A stopped Kafka's log directory, locked until `close`. A `Target` of append.py."""

    def __init__(self, path: str) -> None:
        """Raises Unusable, Corrupt, OSError."""
        self.path = path
        self.disk: Disk = RealDisk()
        self._logs: dict[int, PartitionLog] = {}
        self._topic_ids: dict[str, TopicId] = {}
        self.note = ""  # what was found of an export that was interrupted
        _check_identity(Path(path))
        self._lock_fd = _lock(path)
        try:
            self._open()
        except BaseException:
            os.close(self._lock_fd)
            raise

    def _open(self) -> None:
        interrupted = rollback_journal.read_journal(self.disk, self.path)
        is_ours = interrupted is not None and is_as_stamped(Path(self.path), interrupted.stamp)
        marker = f"{self.path}/{CLEAN_SHUTDOWN}"
        if not is_ours and not self.disk.exists(marker):
            since = " since an export into it was interrupted" if interrupted is not None else ""
            raise Unusable(
                f"the broker of {self.path} was not stopped cleanly{since}: start it once "
                "and stop it"
            )
        self._find_logs()
        for log in self._logs.values():
            log.open(EVERYTHING)
        if interrupted is not None and is_ours:
            rollback_journal.roll_back(
                interrupted.log_ends, lambda key: self._logs.get(key.partition)
            )
            rollback_journal.delete_journal(self.disk, self.path)
            self._save_checkpoints()
            replace_file(self.disk, marker, _MARKER)
            self.note = "an interrupted export was rolled back"
        elif interrupted is not None:
            rollback_journal.delete_journal(self.disk, self.path)
            self.note = (
                "an export was interrupted and the broker has run since: the records that it had "
                "written stay, nothing is rolled back"
            )
        self._marker = read_file(self.disk, marker) if self.disk.exists(marker) else _MARKER

    def _find_logs(self) -> None:
        ids: set[UUID] = set()
        for name in self.disk.listdir(self.path):
            key = parse_folder_name(name)
            if key is None:
                continue
            folder = f"{self.path}/{name}"
            topic_id = read_topic_id(self.disk, f"{folder}/{PARTITION_METADATA}")
            if topic_id != NO_TOPIC_ID:
                self._topic_ids[key.topic] = topic_id
            if key.topic == OFFSETS_TOPIC:
                ids.add(topic_id)
                settings = LogSettings(segment_bytes=_SEGMENT_BYTES)
                self._logs[key.partition] = PartitionLog(self.disk, folder, key, settings)
        self.partitions = len(self._logs)
        if not self._logs:
            raise Unusable(
                f"{self.path} has no {OFFSETS_TOPIC} yet: start the broker, let a consumer group "
                "commit once (or create the topic), and stop it"
            )
        if set(self._logs) != set(range(self.partitions)) or len(ids) != 1:
            raise Unusable(f"{self.path} has only some of the partitions of {OFFSETS_TOPIC}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._lock_fd)
        for log in self._logs.values():
            log.abandon("closed")

    # --- as a target ---------------------------------------------------------------------------

    def existing(self, partition: int) -> PartitionLog | None:
        return self._logs.get(partition)

    def log(self, partition: int) -> PartitionLog:
        return self._logs[partition]

    @property
    def logs(self) -> list[PartitionLog]:
        return [self._logs[number] for number in sorted(self._logs)]

    def topic_ids(self) -> dict[str, TopicId]:
        return self._topic_ids

    def stamp(self, partitions: Sequence[int]) -> Stamp:
        """Without the marker of the clean shutdown: `begin` has taken it away."""
        written = [f"{OFFSETS_TOPIC}-{number}" for number in partitions]
        others = self._logs.keys() - set(partitions)
        untouched = [f"{OFFSETS_TOPIC}-{number}" for number in sorted(others)]
        return stamp_of(Path(self.path), untouched, written)

    def begin(self) -> None:
        """From here on its broker, if it were started, would look at what it finds."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        if self.disk.exists(path):
            self.disk.remove(path)
            self.disk.sync_dir(self.path)

    def finish(self) -> None:
        """Complete the indexes and the checkpoints, and put its marker back. Raises OSError."""
        for log in self._logs.values():
            log.close()
        self._save_checkpoints()
        replace_file(self.disk, f"{self.path}/{CLEAN_SHUTDOWN}", self._marker)
        give_to_owner(self.path)

    def _save_checkpoints(self) -> None:
        for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
            path = f"{self.path}/{name}"
            offsets = read_offsets(self.disk, path)
            for log in self._logs.values():
                offsets[log.topic_partition] = log.log_end_offset
            write_offsets(self.disk, path, offsets)


_MARKER: Final = b'{"version":0,"brokerEpoch":-1}\n'


def _check_identity(path: Path) -> None:
    if not path.is_dir():
        raise Unusable(f"{path} is not a directory")
    meta = path / META_PROPERTIES
    text = meta.read_text("utf-8", "replace") if meta.exists() else ""
    if "cluster.id" not in text:
        raise Unusable(f"{path} is not a Kafka log directory: it has no {META_PROPERTIES}")
    if "rollcall." in text:
        raise Unusable(f"{path} is a Rollcall data directory; use `rollcall offsets import`")


def _lock(path: str) -> int:
    """Kafka's own lock, which is of another kind than ours: Java locks by fcntl."""
    fd = os.open(f"{path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(fd)
        raise Unusable(f"a broker runs on {path}: stop it first") from None
    except OSError:
        os.close(fd)
        raise
    return fd
