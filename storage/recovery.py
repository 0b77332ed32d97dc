"""What did a crash leave undone? Brings the segments up to what the write-ahead file promised.

Runs once at a start, after `log_store.py` opened the partitions (which cuts torn tails) and before
anything is appended; and again when a full disk has room. The last passes of the write-ahead files
hold every batch since the partitions' recovery points; what the segments have of it is compared
byte for byte and written once more, what they lack is appended, and nothing is accepted that would
leave a gap.

Written once more, because a failed fsync may have gone before the stop: the kernel then holds pages
that it takes for written though the disk has not got them, and only writing them again makes the
next fsync mean them. Never below a recovery point, though: that was set after a sound fsync.
"""

from typing import NamedTuple

from storage import write_ahead
from storage.api import Corrupt
from storage.checkpoints import NO_TOPIC_ID
from storage.log_store import LogStore
from storage.partition_log import PartitionLog
from storage.record_batch import InvalidBatch, placing
from storage.segment import Placed, TailCut
from storage.write_ahead import Declared
from storage.write_ahead_pair import WriteAheadPair

_PORTIONS_PER_SEGMENT = 16  # appended in portions, so that segments roll near their limit


class Recovered(NamedTuple):
    """What a start re-applied, for the shell to log."""

    groups: int
    batches: int  # seen in the journal
    reapplied: int  # of them, those that the segments lacked
    tail: TailCut | None


def recover(
    journal: WriteAheadPair, store: LogStore, *, after_clean_stop: bool
) -> tuple[Recovered, list[PartitionLog]]:
    """Re-apply what counts; also returns the logs it speaks of, which need a sync before the
    next passes may begin. Raises Corrupt, OSError."""
    logs: dict[tuple[int, int], PartitionLog] = {}  # by pass and reference
    promised: dict[PartitionLog, list[Placed]] = {}
    groups = 0
    path = ""
    for path, epoch, group in journal.groups(after_clean_stop=after_clean_stop):
        groups += 1
        try:
            for entry in write_ahead.read_entries(group.payload):
                if isinstance(entry, Declared):
                    log = logs[epoch, entry.reference] = _declared_log(store, entry)
                    promised.setdefault(log, [])
                else:
                    _follow(promised[logs[epoch, entry.reference]], entry.batch)
        except (ValueError, KeyError, InvalidBatch) as fault:
            raise Corrupt(path, group.position, f"group {group.sequence}: {fault}") from None
    batches = reapplied = 0
    for log, placed in promised.items():
        batches += len(placed)
        reapplied += reconcile(log, placed, path)
    return Recovered(groups, batches, reapplied, journal.tail), list(promised)


def _declared_log(store: LogStore, entry: Declared) -> PartitionLog:
    """The partition that the journal speaks of; made again if a crash took its folder."""
    key = entry.topic_partition
    log = store.partition_log(key)
    if log is None:
        # Raises if it is damaged: the journal has its tail, and so must not begin anew.
        log = store.create(key, entry.topic_id, store.settings_for(key))
    if log.topic_id == NO_TOPIC_ID:
        log.name_topic(entry.topic_id)
    if log.topic_id != entry.topic_id:
        raise ValueError(f"{log.path} has topic id {log.topic_id}, not {entry.topic_id}")
    return log


def _follow(batches: list[Placed], batch: bytes) -> None:
    """Add a partition's next batch; ValueError if it does not begin where the last one ended."""
    base_offset, last_offset, max_timestamp = placing(batch)
    if batches and base_offset != batches[-1][1] + 1:
        raise ValueError(f"offset {base_offset} follows {batches[-1][1]}")
    batches.append((batch, last_offset, max_timestamp))


def reconcile(log: PartitionLog, batches: list[Placed], journal_path: str) -> int:
    """Make these batches the log's tail; returns how many of them it lacked."""
    batches = [placed for placed in batches if placed[1] >= log.recovery_point]
    if not batches:
        return 0
    agreed, surplus = _write_again(log, batches)
    missing = batches[agreed:]
    if not missing:
        return 0  # and if there was no fsync, the segments may be ahead: then they stay so
    start = placing(missing[0][0])[0]
    if surplus:
        # What stands there instead was never promised: an earlier crash brought it back.
        log.truncate_to(start)
    if log.log_end_offset != start:
        reason = f"{log.path} ends at offset {log.log_end_offset}, the journal goes on at {start}"
        raise Corrupt(journal_path, 0, reason)
    _append(log, missing)
    return len(missing)


def _write_again(log: PartitionLog, batches: list[Placed]) -> tuple[int, bool]:
    """Write what the log has of the batches in place; (how many, whether other bytes follow)."""
    agreed = 0
    for segment in log.segments_from(placing(batches[0][0])[0]):
        start = segment.position_of(placing(batches[agreed][0])[0])
        content = segment.pread(start, segment.size)
        matched = 0
        while agreed < len(batches) and content.startswith(batches[agreed][0], matched):
            matched += len(batches[agreed][0])
            agreed += 1
        if matched:
            segment.write_again(content[:matched], start)
        if matched < len(content):
            return agreed, True
        if agreed == len(batches):
            break
    return agreed, False


def _append(log: PartitionLog, batches: list[Placed]) -> None:
    portion: list[Placed] = []
    size = 0
    for placed in batches:
        portion.append(placed)
        size += len(placed[0])
        if size >= log.settings.segment_bytes // _PORTIONS_PER_SEGMENT or placed is batches[-1]:
            log.append_placed(portion, placed[2])
            portion, size = [], 0
