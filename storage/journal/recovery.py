"""Journal recovery: replays the write-ahead files into the segments after a crash.

Runs once at a start, after `log_store.py` opened the partitions (which cuts torn tails) and before
anything is appended; and again when a full disk has room. The last passes of the write-ahead files
hold every batch since the partitions' recovery points. What the segments have of it is compared
byte for byte and rewritten, what they lack is appended, and nothing is accepted that would leave a
gap.

Rewritten, because a failed fsync may have preceded the stop: the kernel then holds pages as clean
that the disk has not got, and only another write makes the next fsync write them. Never below a
recovery point, though: that was set after a successful fsync.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple, assert_never

from storage.api import Corrupt, TopicPartition
from storage.batch.compiled_batch import BATCH_ENTRIES_IN_C
from storage.batch.record_batch import InvalidBatch, batch_offsets, read_header
from storage.disk import Disk, lacks_room
from storage.journal import write_ahead
from storage.journal.write_ahead import Declared, Journaled
from storage.journal.write_ahead_pair import RecoveredGroup, WriteAheadPair
from storage.log.checkpoints import NO_TOPIC_ID
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.segment import Placed, TailCut
from storage.repair.repair import keep_copy, lost_of
from storage.repair.repair_plan import Repaired

_PORTIONS_PER_SEGMENT = 16  # appended in portions, so that segments roll near their limit


class Recovered(NamedTuple):
    """What a start replayed, for the shell to log."""

    groups: int
    batches: int  # seen in the journal
    reapplied: int  # of them, those that the segments lacked
    tail: TailCut | None
    left_out: tuple[TopicPartition, ...] = ()  # damaged partitions that a start does without
    kept_as: tuple[str, ...] = ()  # copies of the journal, which has records of those


def recover(
    disk: Disk,
    journal: WriteAheadPair,
    store: LogStore,
    *,
    after_clean_stop: bool,
    dispensable: Collection[str] = (),
) -> tuple[Recovered, list[PartitionLog]]:
    """Replay all whole groups; also returns their logs, which need a sync before the next passes
    may begin. Damaged partitions of `dispensable` topics are left out, and the journal
    is copied first if there is room. Raises Corrupt, OSError."""
    promises = _Replay(store, dispensable)
    groups = 0
    for promise in journal.groups(after_clean_stop=after_clean_stop):
        groups += 1
        promises.add(promise)
    batches = reapplied = 0
    for log, placed in list(promises.batches.items()):
        batches += len(placed)
        try:
            reapplied += reconcile(log, placed, journal.paths[-1])
        except Corrupt as damage:
            if log.topic_partition.topic not in dispensable:
                raise
            promises.leave_out(log.topic_partition, damage)
            del promises.batches[log]
    left_out = tuple(sorted(promises.left_out))
    kept_as = _copies(disk, journal, store) if left_out else ()
    recovered = Recovered(groups, batches, reapplied, journal.tail, left_out, kept_as)
    return recovered, list(promises.batches)


def _copies(disk: Disk, journal: WriteAheadPair, store: LogStore) -> tuple[str, ...]:
    """Copies of the journal; none on a full disk: tolerated damage must not stop a start."""
    try:
        kept = tuple(keep_copy(disk, path) for path in sorted(journal.paths))
        disk.sync_dir(store.path)
    except OSError as failure:
        if not lacks_room(failure):
            raise
        return ()
    return kept


class _Replay:
    """The batches of each log that the groups hold, in their order."""

    __slots__ = ("_dispensable", "_logs", "_store", "batches", "left_out")

    def __init__(self, store: LogStore, dispensable: Collection[str] = ()) -> None:
        self._store = store
        self._dispensable = dispensable
        self._logs: dict[tuple[int, int], PartitionLog | None] = {}  # by pass and reference
        self.left_out: set[TopicPartition] = set()
        self.batches: dict[PartitionLog, list[Placed]] = {}

    def add(self, promise: RecoveredGroup) -> None:
        """Add a group. Raises Corrupt if it is malformed, or leaves a gap."""
        path, _, group = promise
        try:
            for log, base_offset, placed in self._placed(promise):
                _add_next(self.batches[log], base_offset, placed)
        except (ValueError, KeyError, InvalidBatch) as fault:
            raise Corrupt(path, group.position, f"group {group.sequence}: {fault}") from None

    def _placed(self, promise: RecoveredGroup) -> Iterator[tuple[PartitionLog, int, Placed]]:
        """As `entries`, with base offsets; the compiled build reads batches alone in C."""
        _, epoch, group = promise
        found = None if BATCH_ENTRIES_IN_C is None else BATCH_ENTRIES_IN_C(group.payload)
        if found is None:
            for log, batch in self.entries(promise):
                base_offset, last_offset, max_timestamp = batch_offsets(batch)
                yield log, base_offset, (batch, last_offset, max_timestamp)
            return
        for reference, base_offset, placed in found:
            known = self._logs[epoch, reference]
            if known is not None:
                yield known, base_offset, placed

    def entries(self, promise: RecoveredGroup) -> Iterator[tuple[PartitionLog, bytes]]:
        """Each batch of a group with its log. Raises Corrupt, ValueError, KeyError."""
        _, epoch, group = promise
        for entry in write_ahead.read_entries(group.payload):
            match entry:
                case Declared():
                    log = self._logs[epoch, entry.reference] = self._declared(entry)
                    if log is not None:
                        self.batches.setdefault(log, [])
                case Journaled():
                    log = self._logs[epoch, entry.reference]
                    if log is not None:
                        yield log, entry.batch
                case _:
                    assert_never(entry)

    def _declared(self, entry: Declared) -> PartitionLog | None:
        """The log; None if it is damaged and a start does without it."""
        key = entry.topic_partition
        if key not in self.left_out:
            try:
                return _declared_log(self._store, entry)
            except Corrupt as damage:
                if key.topic not in self._dispensable:
                    raise
                self.leave_out(key, damage)
            except ValueError as fault:  # another topic id
                if key.topic not in self._dispensable:
                    raise
                self.leave_out(key, Corrupt(f"{self._store.path}/{key.topic}", 0, str(fault)))
        return None

    def leave_out(self, key: TopicPartition, damage: Corrupt) -> None:
        self.left_out.add(key)
        self._store.fail(key, damage)


def salvage(
    disk: Disk, journal: WriteAheadPair, store: LogStore, *, after_clean_stop: bool
) -> tuple[list[PartitionLog], Repaired | None]:
    """As `recover`, for a repair: leaves out batches that are damaged or leave a gap in their log.

    What was left out is noted, durably, before it returns: the journal's next pass follows.
    """
    promises = _Replay(store)
    later: list[RecoveredGroup] = []
    damage: Corrupt | None = None
    try:
        for promise in journal.groups(after_clean_stop=after_clean_stop):
            promises.add(promise)
    except Corrupt as fault:
        damage = fault
        later += journal.groups_behind(fault)
    left_out: dict[PartitionLog, list[bytes]] = {}
    for log, placed in promises.batches.items():
        if placed and store.has_lost(log.topic_partition):
            first = batch_offsets(placed[0][0])[0]
            if log.log_end_offset < first:
                log.roll(at=first)  # the offsets between them are noted as lost
        try:
            reconcile(log, placed, journal.paths[-1])
        except Corrupt as fault:
            damage = damage or fault
            left_out[log] = [batch for batch, last, _ in placed if last >= log.log_end_offset]
    for promise in later:
        # If the damaged group declared the partition, its batches cannot be assigned: they are in
        # the copy, and in their segments unless the power failed as well.
        with suppress(ValueError, KeyError, InvalidBatch):
            for log, batch in promises.entries(promise):
                if not _continue(log, batch):
                    left_out.setdefault(log, []).append(batch)
    if damage is None:
        return list(promises.batches), None
    lost = tuple(
        lost_of(
            log.topic_partition,
            log.log_end_offset,
            [(read_header(batch), batch) for batch in batches],
        )
        for log, batches in left_out.items()
    )
    kept = tuple(keep_copy(disk, path) for path in sorted(journal.paths))
    disk.sync_dir(store.path)  # the copies' names
    repaired = Repaired(damage.path, damage.position, damage.reason, 0, kept, lost)
    store.note_repair(repaired)
    return list(promises.batches), repaired


def _continue(log: PartitionLog, batch: bytes) -> bool:
    """Append a batch that comes next in its log; False if something is missing before it."""
    base_offset, last_offset, max_timestamp = batch_offsets(batch)
    if base_offset == log.log_end_offset:
        _append(log, [(batch, last_offset, max_timestamp)])
    return last_offset < log.log_end_offset


def _declared_log(store: LogStore, entry: Declared) -> PartitionLog:
    """The partition of a declare entry; created again if a crash took its folder."""
    key = entry.topic_partition
    log = store.partition_log(key)
    if log is None:
        # Raises if it is damaged: the journal has its tail, so its next pass must not begin.
        log = store.create(key, entry.topic_id, store.settings_for(key))
    if log.topic_id == NO_TOPIC_ID:
        log.name_topic(entry.topic_id)
    if log.topic_id != entry.topic_id:
        raise ValueError(f"{log.path} has topic id {log.topic_id}, not {entry.topic_id}")
    return log


def _add_next(batches: list[Placed], base_offset: int, placed: Placed) -> None:
    """Add a partition's next batch; ValueError if it does not begin where the last one ended."""
    if batches and base_offset != batches[-1][1] + 1:
        raise ValueError(f"offset {base_offset} follows {batches[-1][1]}")
    batches.append(placed)


def reconcile(log: PartitionLog, batches: list[Placed], journal_path: str) -> int:
    """Make these batches the log's tail; returns how many of them it lacked."""
    batches = [placed for placed in batches if placed[1] >= log.recovery_point]
    if not batches:
        return 0
    agreed, surplus = _rewrite(log, batches)
    missing = batches[agreed:]
    if not missing:
        return 0  # without fsync the segments may be ahead of the journal: then they stay so
    start = batch_offsets(missing[0][0])[0]
    if surplus or log.log_end_offset > start:
        # Other bytes there were never acknowledged: an earlier crash restored them. Or the log was
        # compacted and the recovery points are lost: then the journal has the batches.
        log.truncate_to(start)
        if log.log_end_offset < start:
            log.roll(at=start)  # the log went on after it: a gap, and no lost tail
    if log.log_end_offset != start:
        reason = f"{log.path} ends at offset {log.log_end_offset}, the journal goes on at {start}"
        raise Corrupt(journal_path, 0, reason)
    try:
        _append(log, missing)
    except OSError as failure:
        if not lacks_room(failure):
            raise
        size = sum(len(batch) for batch, _, _ in missing)
        words = f"no room for {size} bytes that were acknowledged and only the journal has"
        raise OSError(failure.errno, words, log.path) from None
    return len(missing)


def _rewrite(log: PartitionLog, batches: list[Placed]) -> tuple[int, bool]:
    """Write what the log has of the batches in place; (how many, whether other bytes follow)."""
    agreed = 0
    for segment in log.segments_from(batch_offsets(batches[0][0])[0]):
        start = segment.position_of(batch_offsets(batches[agreed][0])[0])
        content = segment.pread(start, segment.size)
        matched = 0
        while agreed < len(batches) and content.startswith(batches[agreed][0], matched):
            matched += len(batches[agreed][0])
            agreed += 1
        if matched:
            segment.rewrite(content[:matched], start)
        if matched < len(content):
            return agreed, True
        if agreed == len(batches):
            break
    return agreed, False


def _append(log: PartitionLog, batches: list[Placed]) -> None:
    # A start that was killed in `truncate_to` may have removed a segment whose name only the next
    # sync takes off the disk. Should it come back, it would overlap what is appended here.
    log.sync_folder()
    portion: list[Placed] = []
    size = 0
    for placed in batches:
        portion.append(placed)
        size += len(placed[0])
        if size >= log.settings.segment_bytes // _PORTIONS_PER_SEGMENT or placed is batches[-1]:
            log.append_placed(portion, placed[2])
            portion, size = [], 0
