"""Log store: the partitions of the data directory; opens, creates and deletes their folders.

`storage/open.py` opens one store, then the journal replays what its write-ahead files hold; only
after that are the logs complete. A damaged partition is left out by name and the others open. The
marker of a clean shutdown is written last at a close and removed first at an open, so that after a
crash at any moment in between the next open scans everything above the recovery points.
Kafka's counterpart: LogManager.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from storage.api import Corrupt, LogSettings, TopicLog, TopicPartition, TruncatedLog
from storage.disk import Disk, replace_file
from storage.log.checkpoints import (
    CLEAN_OFFSETS,
    LOG_STARTS,
    NO_TOPIC_ID,
    RECOVERY_POINTS,
    forget_lines,
    readable_topic_id,
    sound_offsets,
    write_offsets,
)
from storage.log.partition_folders import (
    PARTITION_NUMBER_MAX,
    folder_name,
    holds_partition,
    is_deleted,
    is_unused,
    parse_folder_name,
    remove_files,
    rename_to_deleted,
    rename_to_stray,
    try_to_remove,
)
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING, Repair
from storage.repair import rollback_journal
from storage.repair.repair import (
    read_offsets_or_quarantine,
    repair_partition,
    repair_topic_id,
    report_missing_offsets,
)
from storage.repair.repair_plan import Repaired, RepairPlan
from storage.reserve import Reserve
from storage.snapshot import delete_snapshots_after, mark_needed, snapshot_positions

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}\n'


class StoreOpened(NamedTuple):
    """What opening found, for the shell to log."""

    was_clean: bool
    partitions: int
    repairs: tuple[Repair, ...]
    damaged: tuple[Corrupt, ...]
    repaired: tuple[Repaired, ...] = ()


Expects = Callable[[TopicPartition], UUID | None]
"""The topic id of a partition that should be there, NO_TOPIC_ID if not known; or None."""


def expects_nothing(_: TopicPartition) -> UUID | None:
    return None


def default_settings(_: TopicPartition) -> LogSettings:
    return LogSettings()


class LogStore:
    """The partitions under one data directory; a LogStore of `storage/api.py`."""

    __slots__ = (
        "_checkpoint_lock",
        "_damaged_lines",
        "_disk",
        "_durable_to",
        "_logs",
        "_repairs",
        "_reserve",
        "_views",
        "damaged",
        "ignored_folders",
        "is_repairing",
        "kept_import",
        "path",
        "rolled",
        "rolled_back",
        "settings_for",
        "unexpected",
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
        # Both are replaced as a whole when a partition comes or goes, and never changed: a thread
        # makes and removes topics while others walk them.
        self._logs: Mapping[TopicPartition, PartitionLog] = {}
        self._views: dict[TopicPartition, TopicLog] = {}
        # The journal's thread writes the checkpoints, and so does the shell.
        self._checkpoint_lock = threading.Lock()
        self._durable_to: dict[PartitionLog, int] = {}  # recovery points as the disk has them
        # The checkpoints keep the lines of damaged partitions: they tell damage from a torn tail.
        self._damaged_lines: dict[str, dict[TopicPartition, int]] = {}
        self._repairs: RepairPlan  # from `open` on
        self._reserve = Reserve(disk, path, reserve_bytes)
        self.path = path
        self.settings_for = settings_for
        self.damaged: dict[TopicPartition, Corrupt] = {}
        self.ignored_folders: list[str] = []  # folders with a number that no partition has
        # Has records by the checkpoints and no folder, and its topic is not expected.
        self.unexpected: list[TopicPartition] = []
        self.rolled: set[PartitionLog] = set()  # they may have sealed segments that are not synced
        self.was_clean = False
        self.is_repairing = False  # as asked, or because a repair was killed; known once opened
        self.kept_import = False  # one that was interrupted, but others used the directory since
        self.rolled_back = False  # an import that was interrupted; known once opened

    # --- opening and closing -------------------------------------------------------------------

    def open(self, *, repair: bool = False, expects: Expects = expects_nothing) -> StoreOpened:
        """Open every partition; one that is damaged goes to `damaged` instead.

        So does one of a topic that is expected, if its folder is missing though it had records.
        With `repair` every byte is read, and what is damaged is cut first (`repair.py`). Then, and
        if one that was killed has to go on, `finish_repair` must follow the journal's repair.
        """
        book = self._repairs = RepairPlan(self._disk, self.path)
        repair = self.is_repairing = repair or book.is_open
        book.finish_cut()
        repaired: list[Repaired] = []
        names = self._disk.listdir(self.path)
        was_clean = self.was_clean = CLEAN_SHUTDOWN in names
        interrupted, self.kept_import = rollback_journal.pending_rollback(
            self._disk, self.path, was_clean=was_clean
        )
        if was_clean:
            self._disk.remove(f"{self.path}/{CLEAN_SHUTDOWN}")
            self._disk.sync_dir(self.path)
        known = self._read_checkpoint(RECOVERY_POINTS, repaired)
        log_starts = self._read_checkpoint(LOG_STARTS, repaired) or {}
        # Where nobody knows what is durable, a repair reads all and takes no damage for a tail.
        is_lost = known is None
        recovery_points = known or {}
        found: dict[TopicPartition, PartitionLog] = {}
        before_import = {} if interrupted is None else interrupted.log_ends
        for name in sorted(names):
            key = parse_folder_name(name)
            if is_deleted(name):
                try_to_remove(self._disk, f"{self.path}/{name}")
            elif key is not None and self._is_ours(key):
                known_end = recovery_points.get(key, 0)
                recovery_point = EVERYTHING if was_clean or is_lost else known_end
                if repair:
                    folder = self._folder(key)
                    repaired += repair_topic_id(self._disk, folder)
                    repair_partition(self._disk, folder, key, recovery_point, known_end, book=book)
                # What an interrupted import has appended is cut anyway, or was before a kill.
                known_end = min(known_end, before_import.get(key, known_end))
                log = self._open_partition(key, recovery_point, log_starts.get(key, 0), known_end)
                if log is not None:
                    found[key] = log
        self._add(found)
        self._check_missing(recovery_points, log_starts, expects)
        self._damaged_lines = {
            name: {key: lines[key] for key in self.damaged if key in lines}
            for name, lines in ((RECOVERY_POINTS, recovery_points), (LOG_STARTS, log_starts))
        }
        self.rolled_back = self._roll_back(interrupted)
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
        self, name: str, repaired: list[Repaired]
    ) -> dict[TopicPartition, int] | None:
        path = f"{self.path}/{name}"
        return read_offsets_or_quarantine(self._disk, path, repaired if self.is_repairing else None)

    def has_lost(self, topic_partition: TopicPartition) -> bool:
        """Whether the unfinished repair says that this partition has lost records."""
        return self._repairs.mentions(topic_partition)

    def note_repair(self, repaired: Repaired) -> None:
        """Record what was lost of the journal, before its next pass begins."""
        self._repairs.note(repaired)

    def finish_repair(self, repaired: Iterable[Repaired]) -> None:
        """Leave a gap in place of lost offsets: an offset is never assigned twice.

        Called after the journal restored what it had; durable before anything is appended.
        """
        for by, lost in [(each, lost) for each in repaired for lost in each.lost]:
            log = self._logs.get(lost.topic_partition)
            if log is not None and log.log_end_offset <= lost.last_offset:
                if by.bytes_cut:
                    # They know what is lost. Where nothing was cut they are all that is left.
                    delete_snapshots_after(self._disk, log.path, log.log_end_offset)
                elif snapshot_positions(self._disk, log.path):
                    mark_needed(self._disk, log.path)
                log.roll(at=lost.last_offset + 1)
                log.flush()
        self.write_checkpoints()
        self._repairs.close()

    def _roll_back(self, interrupted: rollback_journal.RollbackJournal | None) -> bool:
        """Undo what a command that was killed had appended so far; whether there was one."""
        if interrupted is None:
            return False
        rollback_journal.roll_back(interrupted.log_ends, self._logs.get)
        # The recovery points first: no start may find a log shorter than it was said to be.
        self.write_checkpoints()
        if self.damaged.keys().isdisjoint(interrupted.log_ends):
            rollback_journal.delete_journal(self._disk, self.path)
        return True

    def _is_ours(self, key: TopicPartition) -> bool:
        """Is the folder of this name a partition? An empty one is used when it is needed."""
        folder = self._folder(key)
        if not holds_partition(self._disk, folder):
            return False
        if key.partition > PARTITION_NUMBER_MAX:
            self.ignored_folders.append(folder)
            return False
        return True

    def _open_partition(
        self, key: TopicPartition, recovery_point: int, log_start: int, known_end: int
    ) -> PartitionLog | None:
        if self._repairs.mentions(key):
            known_end = 0  # the missing offsets were reported when they were cut
        while True:
            log = self._new_log(key, self.settings_for(key))
            try:
                log.open(recovery_point, log_start, known_end)
            except TruncatedLog as damage:
                if self.is_repairing:
                    self._repairs.note(
                        report_missing_offsets(self._disk, self._folder(key), key, damage)
                    )
                    remove_files(
                        self._disk, damage.evidence
                    )  # after the note, which alone proves the loss now
                    known_end = 0 if not damage.evidence else known_end
                    continue
                self.damaged[key] = damage
            except Corrupt as damage:
                self.damaged[key] = damage
            else:
                return log
            return None

    def _check_missing(
        self,
        recovery_points: Mapping[TopicPartition, int],
        log_starts: Mapping[TopicPartition, int],
        expects: Expects,
    ) -> None:
        """Partitions that had records, of topics that are still there, and have no folder."""
        for key, known_end in sorted(recovery_points.items()):
            topic_id, start = expects(key), log_starts.get(key, 0)
            if key in self._logs or key in self.damaged or known_end <= start:
                continue
            if topic_id is None:
                self.unexpected.append(key)
                continue
            reason = f"the folder is missing, though offsets up to {known_end - 1} were durable"
            damage = TruncatedLog(self._folder(key), 0, reason, (start, known_end - 1))
            if not self.is_repairing:
                self.damaged[key] = damage
                continue
            if not self._repairs.mentions(key):
                self._repairs.note(
                    report_missing_offsets(self._disk, self._folder(key), key, damage)
                )
            if topic_id != NO_TOPIC_ID:
                self.create(key, topic_id, self.settings_for(key))

    def close(self) -> list[OSError]:
        """Make everything durable and say so by the marker; returns what kept it from that."""
        failures: list[OSError] = []
        for log in self._logs.values():
            if not log.is_open:
                # A start that trusts all of it might trust what is gone.
                failures.append(OSError(f"{log.path} was given up: an fsync of it had failed"))
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
        """Close all files as they are; the next open scans."""
        for log in self._logs.values():
            log.abandon(reason)

    # --- partitions ----------------------------------------------------------------------------

    def partitions(self) -> dict[TopicPartition, TopicLog]:
        """All open partition logs, for readers; a journaled one as its readers may see it.

        The table as of now: one that comes or goes later is in the next one.
        """
        return self._views

    def unserved(self) -> dict[TopicPartition, UUID]:
        """The damaged ones, with the topic ids in their folders; NO_TOPIC_ID if that is damaged."""
        return {key: readable_topic_id(self._disk, self._folder(key)) for key in self.damaged}

    def partition_log(self, topic_partition: TopicPartition) -> PartitionLog | None:
        return self._logs.get(topic_partition)

    def set_view(self, topic_partition: TopicPartition, view: TopicLog) -> None:
        """Have readers use this view of a partition: the journal's, with its high watermark."""
        assert topic_partition in self._logs
        self._views[topic_partition] = view

    def create(
        self, topic_partition: TopicPartition, topic_id: UUID, settings: LogSettings
    ) -> PartitionLog:
        """As `create_all`, of one."""
        return self.create_all([topic_partition], topic_id, settings)[0]

    def create_all(
        self, topic_partitions: Sequence[TopicPartition], topic_id: UUID, settings: LogSettings
    ) -> list[PartitionLog]:
        """Make the folders, or give open ones whose topic id was lost in a crash their id again.

        All of them or none. Durable once `sync` returned or anything in the partition was flushed.
        Raises Corrupt of a damaged one, FileExistsError of an open one with another topic id.
        """
        for key in topic_partitions:
            if key in self.damaged:
                raise self.damaged[key]
        wanted = {key: self._logs.get(key) for key in topic_partitions}
        for other in filter(None, wanted.values()):
            if other.topic_id not in (topic_id, NO_TOPIC_ID):
                raise FileExistsError(f"{other.path} belongs to another topic id")
        self._forget_lines([key for key, log in wanted.items() if log is None])
        made: dict[TopicPartition, PartitionLog] = {}
        try:
            for key, log in wanted.items():
                if log is None:
                    made[key] = self._make(key, topic_id, settings)
                elif log.topic_id == NO_TOPIC_ID:
                    log.name_topic(topic_id)
        except OSError:
            for half in made.values():
                half.abandon("its topic was not made")
                try_to_remove(self._disk, half.path)
            raise
        self._add(made)
        logs = [self._logs[key] for key in topic_partitions]
        for log in logs:
            log.settings = settings
        return logs

    def _make(self, key: TopicPartition, topic_id: UUID, settings: LogSettings) -> PartitionLog:
        """Use a folder that was never written to; any other, of an unknown log, becomes stray."""
        log = self._new_log(key, settings)
        if self._disk.exists(log.path) and not is_unused(self._disk, log.path):
            rename_to_stray(self._disk, log.path)
        try:
            if self._disk.exists(log.path):
                log.name_topic(topic_id)
            else:
                log.create(topic_id)
        except OSError:
            try_to_remove(self._disk, log.path)
            raise
        return log

    def _add(self, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        with self._checkpoint_lock:
            self._logs = {**self._logs, **logs}
            self._views = {**self._views, **logs}

    def _new_log(self, key: TopicPartition, settings: LogSettings) -> PartitionLog:
        log = PartitionLog(self._disk, self._folder(key), key, settings)
        log.reserve = self._reserve
        log.on_log_start_moved = self.write_log_starts
        log.on_roll = self.rolled.add
        return log

    def delete(self, *topic_partitions: TopicPartition) -> None:
        """Delete partitions, damaged ones too. Durable when it returns.

        Their lines in the checkpoints go first: without its folder a line would say of the next
        log of that name where it begins, and how much of it is sound. If the disk refuses, they
        are not served any more, and the folders are left for the next start.
        """
        if not topic_partitions:
            return
        logs = self._take_away(topic_partitions)
        for log in logs.values():
            log.abandon("deleted")
        self._forget_lines(topic_partitions)
        renamed: list[str] = []
        for key in topic_partitions:
            gone = logs.get(key)
            if gone is None:
                renamed.append(rename_to_deleted(self._disk, self._folder(key), NO_TOPIC_ID))
            else:
                with gone.files_lock:  # the cleaner may be renaming
                    renamed.append(rename_to_deleted(self._disk, gone.path, gone.topic_id))
        self._disk.sync_dir(self.path)
        for path in renamed:
            try_to_remove(self._disk, path)

    def mark_stray(self, *topic_partitions: TopicPartition) -> list[str]:
        """Let go of folders that no topic owns, under names that are no partitions'; which names.

        Durable when it returns.
        """
        if not topic_partitions:
            return []
        logs = self._take_away(topic_partitions)
        for log in logs.values():
            log.abandon("set aside")
        self._forget_lines(topic_partitions)
        folders = [self._folder(key) for key in topic_partitions]
        names = [rename_to_stray(self._disk, path) for path in folders if self._disk.exists(path)]
        self._disk.sync_dir(self.path)
        return names

    def fail(self, key: TopicPartition, damage: Corrupt) -> None:
        """Stop serving a partition whose log is damaged; its folder stays as it is."""
        log = self._logs.get(key)
        if log is not None:
            recovery_point, start = self._durable_to.get(log, 0), log.log_start_offset
            self._take_away([key])
            log.abandon("damaged")
            # As for those found damaged at the open: what the checkpoints say of them stays.
            self._damaged_lines.setdefault(RECOVERY_POINTS, {})[key] = recovery_point
            self._damaged_lines.setdefault(LOG_STARTS, {})[key] = start
        self.damaged[key] = damage

    def _take_away(self, keys: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionLog]:
        """Remove them from the tables; returns those that were open."""
        gone = set(keys)
        with self._checkpoint_lock:
            logs = {key: self._logs[key] for key in keys if key in self._logs}
            self._logs = {key: log for key, log in self._logs.items() if key not in gone}
            self._views = {key: log for key, log in self._views.items() if key not in gone}
            for key in keys:
                self.damaged.pop(key, None)
                for lines in self._damaged_lines.values():
                    lines.pop(key, None)
            for log in logs.values():
                self._durable_to.pop(log, None)
        return logs

    def _forget_lines(self, keys: Sequence[TopicPartition]) -> None:
        """Remove their lines from the checkpoints, durably: another log may get the name."""
        with self._checkpoint_lock:
            for name in (RECOVERY_POINTS, LOG_STARTS, CLEAN_OFFSETS) if keys else ():
                forget_lines(self._disk, f"{self.path}/{name}", keys)

    def set_clean_offsets(self, offsets: Mapping[PartitionLog, int]) -> None:
        """Write up to where logs are clean; a log that was deleted meanwhile gets no line."""
        with self._checkpoint_lock:
            known = sound_offsets(self._disk, f"{self.path}/{CLEAN_OFFSETS}")
            lines = {key: offset for key, offset in known.items() if key in self._logs}
            for log, offset in offsets.items():
                if self._logs.get(log.topic_partition) is log:
                    lines[log.topic_partition] = offset
            write_offsets(self._disk, f"{self.path}/{CLEAN_OFFSETS}", lines)

    def sync(self) -> None:
        """Make new partitions durable though nothing was appended to them yet."""
        for log in list(self._logs.values()):
            if log.is_new:
                log.flush()

    def write_checkpoints(self) -> None:
        """Write the recovery points and log starts, which save a start the scan."""
        with self._checkpoint_lock:
            logs = list(self._logs.items())
            recovery_points = {key: log.recovery_point for key, log in logs}
            lines = {**self._damaged_lines.get(RECOVERY_POINTS, {}), **recovery_points}
            write_offsets(self._disk, f"{self.path}/{RECOVERY_POINTS}", lines)
            self._durable_to.update({log: recovery_points[key] for key, log in logs})
            self._write_log_starts(logs)

    def durable_to(self, log: PartitionLog) -> int:
        """The recovery point on the disk: a start after a crash rewrites nothing below it."""
        return self._durable_to.get(log, 0)

    def write_log_starts(self) -> None:
        """Write where each log starts, so that no crash restores what was deleted before."""
        with self._checkpoint_lock:
            self._write_log_starts(list(self._logs.items()))

    def _write_log_starts(self, logs: list[tuple[TopicPartition, PartitionLog]]) -> None:
        log_starts = {key: log.log_start_offset for key, log in logs if log.log_start_offset}
        log_starts = {**self._damaged_lines.get(LOG_STARTS, {}), **log_starts}
        path = f"{self.path}/{LOG_STARTS}"
        if log_starts or self._disk.exists(path):
            write_offsets(self._disk, path, log_starts)

    def _folder(self, key: TopicPartition) -> str:
        return f"{self.path}/{folder_name(key)}"
