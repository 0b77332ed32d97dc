"""Which partitions lie in the data directory? Opens, creates and deletes their folders.

`broker/main.py` opens one store, then `journal.py` re-applies what its write-ahead file holds; only
after that are the logs complete. A damaged partition is set aside by name and the others open. The
marker of a clean shutdown is written last at a close and removed first at an open, so that a crash
at any moment in between makes the next open scan what lies above the recovery points.
Kafka's counterpart: LogManager.
"""

import re
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from storage import undo
from storage.api import Corrupt, LogSettings, TopicLog, TopicPartition
from storage.checkpoints import (
    LOG_STARTS,
    NO_TOPIC_ID,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from storage.disk import Disk, Reserve, replace_file
from storage.partition_log import PartitionLog
from storage.repair import put_aside, repair_partition
from storage.repair_book import RepairBook, Repaired
from storage.segment import EVERYTHING, Repair
from storage.snapshot import forget_beyond

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
MAX_NAME_BYTES = 255

_CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}\n'
_FOLDER_NAME = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})")


class StoreOpened(NamedTuple):
    """What opening found, for the shell to log."""

    was_clean: bool
    partitions: int
    repairs: tuple[Repair, ...]
    damaged: tuple[Corrupt, ...]
    repaired: tuple[Repaired, ...] = ()


def default_settings(_: TopicPartition) -> LogSettings:
    return LogSettings()


class LogStore:
    """The partitions under one data directory; a LogStore of `storage/api.py`."""

    __slots__ = (
        "_checkpoint_lock",
        "_disk",
        "_durable_to",
        "_logs",
        "_repairs",
        "_reserve",
        "_views",
        "damaged",
        "is_repairing",
        "path",
        "rolled_back",
        "settings_for",
        "was_clean",
    )

    def __init__(
        self,
        disk: Disk,
        path: str,
        settings_for: Callable[[TopicPartition], LogSettings] = default_settings,
        *,
        reserve_bytes: int = 0,
    ) -> None:
        """`reserve_bytes` of the disk are not for the data plane's appends."""
        self._disk = disk
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._views: dict[TopicPartition, TopicLog] = {}
        # The journal's thread writes the checkpoints, and so does the shell.
        self._checkpoint_lock = threading.Lock()
        self._durable_to: dict[PartitionLog, int] = {}  # recovery points as the disk has them
        self._repairs: RepairBook  # from `open` on
        self._reserve = Reserve(disk, path, reserve_bytes)
        self.path = path
        self.settings_for = settings_for
        self.damaged: dict[TopicPartition, Corrupt] = {}
        self.was_clean = False
        self.is_repairing = False  # as asked, or because a repair was killed; known once opened
        self.rolled_back = False  # an import that was interrupted; known once opened

    # --- opening and closing -------------------------------------------------------------------

    def open(self, *, repair: bool = False) -> StoreOpened:
        """Open every partition; one that is damaged goes to `damaged` instead.

        With `repair` every byte is read, and what is damaged is cut first (`repair.py`). Then, and
        if one that was killed has to go on, `finish_repair` must follow the journal's repair.
        """
        book = self._repairs = RepairBook(self._disk, self.path)
        repair = self.is_repairing = repair or book.is_open
        book.finish_cut()
        repaired: list[Repaired] = []
        names = self._disk.listdir(self.path)
        was_clean = self.was_clean = CLEAN_SHUTDOWN in names
        if was_clean:
            self._disk.remove(f"{self.path}/{CLEAN_SHUTDOWN}")
            self._disk.sync_dir(self.path)
        known = self._read_checkpoint(RECOVERY_POINTS, repaired if repair else None)
        log_starts = self._read_checkpoint(LOG_STARTS, repaired if repair else None) or {}
        # Where nobody knows what is durable, a repair reads all and takes no damage for a tail.
        is_lost = known is None
        recovery_points = known or {}
        for name in sorted(names):
            match = _FOLDER_NAME.fullmatch(name)
            if name.endswith(DELETE_SUFFIX):
                self._remove_folder(f"{self.path}/{name}")
            elif match is not None:
                key = TopicPartition(match["topic"], int(match["partition"]))
                known_end = recovery_points.get(key, 0)
                recovery_point = EVERYTHING if was_clean or is_lost else known_end
                if repair:
                    folder = self._folder(key)
                    repair_partition(self._disk, folder, key, recovery_point, known_end, book=book)
                self._open_partition(key, recovery_point, log_starts.get(key, 0))
        self.rolled_back = self._roll_back()
        for key, log in self._logs.items():
            self._durable_to[log] = min(recovery_points.get(key, 0), log.log_end_offset)
        if is_lost and not was_clean:
            for log in self._logs.values():
                for segment in log.segments:
                    segment.is_dirty = True  # a killed process may have left it in the page cache
                log.flush()
        if book.is_open:
            # What the journal puts back behind a cut is not durable, whatever was there before.
            self.write_checkpoints()
        if not was_clean and self._logs:
            # A killed process may have left folders that nobody made durable; now they are.
            self._disk.sync_dir(self.path)
        repairs = [repair for log in self._logs.values() for repair in log.repairs]
        return StoreOpened(
            was_clean,
            len(self._logs),
            tuple(repairs),
            tuple(self.damaged.values()),
            (*repaired, *book.entries),
        )

    def _read_checkpoint(
        self, name: str, repaired: list[Repaired] | None
    ) -> dict[TopicPartition, int] | None:
        """None if it is damaged and a repair puts it aside; otherwise raises Corrupt."""
        try:
            return read_offsets(self._disk, f"{self.path}/{name}")
        except Corrupt as damage:
            if repaired is None:
                raise
            repaired.append(put_aside(self._disk, damage))
            return None

    def note_repair(self, repaired: Repaired) -> None:
        """What was lost of the journal, before that begins anew."""
        self._repairs.note(repaired)

    def finish_repair(self, repaired: Iterable[Repaired]) -> None:
        """What was lost stays a gap: an offset that was given away once is given to no other.

        After the journal has put back what it had; durable before anything is appended.
        """
        for lost in [one for each in repaired for one in each.lost]:
            log = self._logs.get(lost.topic_partition)
            if log is not None and log.log_end_offset <= lost.last_offset:
                forget_beyond(self._disk, log.path, log.log_end_offset)  # they know what is lost
                log.roll(at=lost.last_offset + 1)
                log.flush()
        self.write_checkpoints()
        self._repairs.close()

    def _roll_back(self) -> bool:
        """Undo what a command that was killed had appended so far; whether there was one."""
        interrupted = undo.unfinished(self._disk, self.path)
        if interrupted is None:
            return False
        undo.roll_back(interrupted.log_ends, self._logs.get)
        if self.damaged.keys().isdisjoint(interrupted.log_ends):
            undo.finish(self._disk, self.path)
        return True

    def _open_partition(self, key: TopicPartition, recovery_point: int, log_start: int) -> None:
        log = self._new_log(key, self.settings_for(key))
        try:
            log.open(recovery_point, log_start)
        except NotADirectoryError:
            return  # a file of that name is none of ours
        except Corrupt as damage:
            self.damaged[key] = damage
            return
        self._logs[key] = self._views[key] = log

    def close(self) -> list[OSError]:
        """Make everything durable and say so by the marker; returns what kept it from that."""
        failures: list[OSError] = []
        for log in self._logs.values():
            try:
                log.close()
            except OSError as failure:
                failures.append(failure)
        if not failures:
            try:
                self.write_checkpoints()
                replace_file(self._disk, f"{self.path}/{CLEAN_SHUTDOWN}", _CLEAN_SHUTDOWN_CONTENT)
            except OSError as failure:
                failures.append(failure)
        return failures

    def abandon(self, reason: str) -> None:
        """Let go of all files as they are; the next open scans."""
        for log in self._logs.values():
            log.abandon(reason)

    # --- partitions ----------------------------------------------------------------------------

    def partitions(self) -> dict[TopicPartition, TopicLog]:
        """All open partition logs, for readers; a journaled one as its readers may see it."""
        return self._views

    def partition_log(self, topic_partition: TopicPartition) -> PartitionLog | None:
        return self._logs.get(topic_partition)

    def show_as(self, topic_partition: TopicPartition, view: TopicLog) -> None:
        """Let readers see another face of a partition: the journal's, with its high watermark."""
        assert topic_partition in self._logs
        self._views[topic_partition] = view

    def create(
        self, topic_partition: TopicPartition, topic_id: UUID, settings: LogSettings
    ) -> PartitionLog:
        """Make the folder, or give an open one whose topic id was lost in a crash its id again.

        Durable once `sync` returned or anything in the partition was flushed.
        """
        if topic_partition in self.damaged:
            raise self.damaged[topic_partition]
        log = self._logs.get(topic_partition)
        if log is not None:
            if log.topic_id not in (topic_id, NO_TOPIC_ID):
                raise FileExistsError(f"{log.path} belongs to another topic id")
            if log.topic_id == NO_TOPIC_ID:
                log.name_topic(topic_id)
            log.settings = settings
            return log
        log = self._new_log(topic_partition, settings)
        log.create(topic_id)
        self._logs[topic_partition] = self._views[topic_partition] = log
        return log

    def _new_log(self, key: TopicPartition, settings: LogSettings) -> PartitionLog:
        log = PartitionLog(self._disk, self._folder(key), key, settings)
        log.reserve = self._reserve
        log.start_moved = self.write_log_starts
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Also one that is damaged: nobody wants it any more."""
        log = self._logs.pop(topic_partition, None)
        if log is None:
            del self.damaged[topic_partition]
            self._bury(topic_partition, NO_TOPIC_ID)
            return
        del self._views[topic_partition]
        self._durable_to.pop(log, None)
        with log.files_lock:  # the cleaner may be renaming
            log.abandon("deleted")
            self._bury(topic_partition, log.topic_id)

    def _bury(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        suffix = f".{topic_id.hex}{DELETE_SUFFIX}"
        name = f"{topic_partition.topic}-{topic_partition.partition}"
        grave = f"{self.path}/{name[: MAX_NAME_BYTES - len(suffix)]}{suffix}"
        if self._disk.exists(grave):
            self._remove_folder(grave)
        self._disk.rename(self._folder(topic_partition), grave)
        self._remove_folder(grave)

    def sync(self) -> None:
        """Make new partitions durable though nothing was appended to them yet."""
        for log in list(self._logs.values()):
            if log.is_new:
                log.flush()

    def write_checkpoints(self) -> None:
        """Write down what is durable and where each log starts; then a start need not find out."""
        with self._checkpoint_lock:
            logs = list(self._logs.items())
            recovery_points = {key: log.recovery_point for key, log in logs}
            write_offsets(self._disk, f"{self.path}/{RECOVERY_POINTS}", recovery_points)
            self._durable_to.update({log: recovery_points[key] for key, log in logs})
            self._write_log_starts(logs)

    def durable_to(self, log: PartitionLog) -> int:
        """No start after a crash writes anything below this again, whatever the journal holds."""
        return self._durable_to.get(log, 0)

    def write_log_starts(self) -> None:
        """Write down where each log starts: of what was deleted before, nothing comes back."""
        with self._checkpoint_lock:
            self._write_log_starts(list(self._logs.items()))

    def _write_log_starts(self, logs: list[tuple[TopicPartition, PartitionLog]]) -> None:
        log_starts = {key: log.log_start_offset for key, log in logs if log.log_start_offset}
        path = f"{self.path}/{LOG_STARTS}"
        if log_starts or self._disk.exists(path):
            write_offsets(self._disk, path, log_starts)

    def _folder(self, key: TopicPartition) -> str:
        return f"{self.path}/{key.topic}-{key.partition}"

    def _remove_folder(self, path: str) -> None:
        for name in self._disk.listdir(path):
            self._disk.remove(f"{path}/{name}")
        self._disk.remove_dir(path)
