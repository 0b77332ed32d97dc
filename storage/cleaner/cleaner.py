"""How is a log cleaned from choice to swap? The steps, for the daemon and for people offline.

The daemon takes them one by one (`broker/background/log_cleaner.py`): `survey` says what of a log
is dirty, the
worker process does the pass, `finish` swaps its segments in and writes the checkpoint down. For a
folder that nobody else has open, `clean_folder` does all of it in one call.

    broker/background/log_cleaner.py          when, and which log; what an operator hears of it
    storage/cleaner/cleaner.py          this file
    storage/cleaner/selection.py  what is dirty, what may be cleaned
    storage/cleaner/messages.py what a pass must know, and what it says at its end
    storage/cleaner/cleaner_pass.py     the pass: reads segments, writes `.cleaned` files
    storage/cleaner/offset_map.py       key -> newest offset
    storage/cleaner/batch_filter.py     what is left of one batch
    storage/log/transaction_ends.py which transactions were aborted
    storage/log/segment_swap.py     `.cleaned` -> `.swap` -> segment, over any crash

Kafka's counterparts: LogCleaner, LogCleanerManager, Cleaner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from storage.api import LogSettings, TopicPartition
from storage.batch.chunks import Throttle, no_throttle
from storage.cleaner.messages import LastOfProducer, Pass, PassResult
from storage.cleaner.selection import (
    Dirt,
    Range,
    Unread,
    cleanable_range,
    dirt_in,
    extents_of,
    facts_of,
)
from storage.disk import Disk, parent
from storage.log.checkpoints import CLEAN_OFFSETS, LOG_STARTS, read_offsets, write_offsets
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING
from storage.log.segment_swap import remove_cleaned, remove_deleted, swap_in

MAP_BYTES: Final = 128 << 20
"""Kafka's log.cleaner.dedupe.buffer.size."""


class Survey(NamedTuple):
    """What of a log is dirty, and what of that may be cleaned now."""

    found: Range
    dirt: Dirt
    kept_bytes: int = 0
    """What could be cleaned if the pipeline had read it."""


def survey(
    log: PartitionLog,
    *,
    checkpoint: int | None,
    stable_to: int,
    now_ms: int,
    unread: Unread | None = None,
) -> Survey:
    """Reads no more than a header of each segment. Raises OSError, Corrupt."""
    facts, settings = facts_of(log), log.settings

    def cleanable(unread: Unread | None) -> Range:
        return cleanable_range(
            facts,
            settings,
            checkpoint=checkpoint,
            log_start=log.log_start_offset,
            log_end=log.log_end_offset,
            stable_to=stable_to,
            now_ms=now_ms,
            unread=unread,
        )

    found, kept_bytes = cleanable(unread), 0
    if unread is not None:
        all_read = cleanable(None).first_uncleanable
        kept_bytes = sum(
            one.size for one in facts if found.first_uncleanable <= one.base_offset < all_read
        )
    return Survey(found, dirt_in(facts, found, settings, now_ms), kept_bytes)


def plan(
    log: PartitionLog,
    found: Range,
    *,
    stable_to: int,
    now_ms: int,
    map_bytes: int = MAP_BYTES,
    producers: Mapping[int, LastOfProducer] | None = None,
) -> Pass:
    """The pass over what was found cleanable; without `producers` see Pass."""
    settings = log.settings
    return Pass(
        folder=log.path,
        segments=extents_of(log, up_to=stable_to),
        first_dirty=found.first_dirty,
        first_uncleanable=found.first_uncleanable,
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        segment_bytes=settings.segment_bytes,
        segment_index_bytes=settings.segment_index_bytes,
        index_interval_bytes=settings.index_interval_bytes,
        map_bytes=map_bytes,
        producers=producers,
    )


def finish(disk: Disk, log: PartitionLog, result: PassResult) -> list[str]:
    """Swap in what a pass has written; the files of the replaced segments, for remove_deleted.

    Raises SwapRefused or OSError as `swap_in` does; groups before that one are swapped in, which is
    as good as a pass that had ended there. Only then is the log clean up to `result.end_offset`.
    """
    replaced: list[str] = []
    for one in result.replacements:
        replaced += swap_in(disk, log, one.base_offset, one.sources)
    return replaced


def read_clean_offsets(disk: Disk, data_dir: str) -> dict[TopicPartition, int]:
    """Up to where each log is clean, as Kafka keeps it too. Raises Corrupt, OSError."""
    return read_offsets(disk, f"{data_dir}/{CLEAN_OFFSETS}")


def write_clean_offsets(disk: Disk, data_dir: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_offsets(disk, f"{data_dir}/{CLEAN_OFFSETS}", offsets)


@dataclass(slots=True)
class FolderCleaned:
    """What `clean_folder` did, or would have done."""

    first_dirty: int
    end_offset: int  # the log is clean up to here now
    log_end: int
    bytes_before: int
    bytes_after: int
    passes: list[PassResult] = field(default_factory=list)
    """More than one where the keys did not fit into one map."""


def clean_folder(
    disk: Disk,
    folder: str,
    settings: LogSettings,
    now_ms: int,
    *,
    topic_partition: TopicPartition,
    roll: bool = False,
    dry_run: bool = False,
    map_bytes: int = MAP_BYTES,
    recovery_point: int = EVERYTHING,
    throttle: Throttle = no_throttle,
) -> FolderCleaned:
    """Clean one partition's folder that nobody else has open: for the offline command.

    All that may be cleaned is cleaned, whatever min.cleanable.dirty.ratio says; the compaction lag
    holds (`settings` says how long), and so does the active segment, unless `roll` seals it first.
    Whoever calls this holds the data directory's lock. It must have been stopped cleanly, for what
    is in the journal only is not in the segments yet; else `recovery_point` says up to where they
    are known to be durable. With `dry_run` the log stays as it is, and `bytes_after` says what a
    pass would leave; it needs room for the copy all the same. The checkpoint beside the folder is
    kept. Raises Corrupt (a damaged batch: nothing was swapped in after it), OSError, SwapRefused.
    """
    data_dir = parent(folder)
    log = PartitionLog(disk, folder, topic_partition, settings)
    log_starts = read_offsets(disk, f"{data_dir}/{LOG_STARTS}")
    log.open(recovery_point, log_starts.get(topic_partition, 0))
    try:
        if roll and not dry_run and log.segments and log.segments[-1].size:
            log.roll()
            log.flush()
        return _clean(disk, log, data_dir, now_ms, map_bytes, throttle, dry_run=dry_run)
    finally:
        log.abandon("cleaned offline")


def _clean(
    disk: Disk,
    log: PartitionLog,
    data_dir: str,
    now_ms: int,
    map_bytes: int,
    throttle: Throttle,
    *,
    dry_run: bool,
) -> FolderCleaned:
    offsets = read_clean_offsets(disk, data_dir)
    key = log.topic_partition
    done: FolderCleaned | None = None
    while True:
        stable_to = min(log.recovery_point, log.log_end_offset)
        found = survey(log, checkpoint=offsets.get(key), stable_to=stable_to, now_ms=now_ms).found
        if done is None:
            size = log.size_bytes
            done = FolderCleaned(
                found.first_dirty, found.first_dirty, log.log_end_offset, size, size
            )
        if found.first_uncleanable <= found.first_dirty:
            return done
        job = plan(log, found, stable_to=stable_to, now_ms=now_ms, map_bytes=map_bytes)
        from storage.cleaner.cleaner_pass import run_pass  # a daemon has it in its worker process

        result = run_pass(disk, job, throttle)
        done.passes.append(result)
        if dry_run:
            sizes = {extent.base_offset: extent.size for extent in job.segments}
            for one in result.replacements:
                done.bytes_after += one.size - sum(sizes[base] for base in one.sources)
            done.end_offset = result.end_offset
            remove_cleaned(disk, log.path)
            return done
        if result.end_offset <= found.first_dirty:
            return done
        remove_deleted(disk, log, finish(disk, log, result))
        offsets[key] = done.end_offset = result.end_offset
        write_clean_offsets(disk, data_dir, offsets)
        done.bytes_after = log.size_bytes
