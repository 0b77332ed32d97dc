"""Log cleaning: the steps from the choice of a log to the swap, for the daemon and offline.

The daemon takes them one by one (`broker/background/log_cleaner.py`): `inspect_log` measures what
of a log is dirty, the worker process does the pass, `swap_in_pass` swaps its segments in, and
`write_clean_offsets` writes the checkpoint. `clean_folder` does all of it in one call, for a folder
that no other process has open.

    broker/background/log_cleaner.py  when, and which log; log lines and metrics
    storage/cleaner/cleaner.py        this file
    storage/cleaner/selection.py      what is dirty, what may be cleaned
    storage/cleaner/messages.py       input and result of a pass
    storage/cleaner/cleaner_pass.py   the pass: reads segments, writes `.cleaned` files
    storage/cleaner/offset_map.py     key -> newest offset
    storage/cleaner/batch_filter.py   what is left of one batch
    storage/log/transaction_ends.py   which transactions were aborted
    storage/log/segment_swap.py       `.cleaned` -> `.swap` -> segment, crash-safe

Kafka's counterparts: LogCleaner, LogCleanerManager, Cleaner.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field

from storage.api import LogSettings, TopicPartition
from storage.batch.chunks import Throttle, no_throttle
from storage.cleaner.messages import LastOfProducer, Pass, PassResult
from storage.cleaner.selection import (
    CleanableRange,
    DirtyRatio,
    Unread,
    cleanable_range,
    dirty_ratio_of,
    segment_extents,
    summarize_segments,
)
from storage.disk import Disk, parent
from storage.log.checkpoints import CLEAN_OFFSETS, LOG_STARTS, read_offsets, write_offsets
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING
from storage.log.segment_swap import remove_cleaned, remove_deleted, swap_in

MAP_BYTES: Final = 128 << 20
"""Kafka's log.cleaner.dedupe.buffer.size."""


class LogToClean(NamedTuple):
    """What of a log is dirty, and what of that may be cleaned now: Kafka's LogToClean."""

    found: CleanableRange
    dirty: DirtyRatio
    kept_bytes: int = 0
    """Bytes that could be cleaned if the pipeline had read them."""


def inspect_log(
    log: PartitionLog,
    *,
    checkpoint: int | None,
    stable_to: int,
    now_ms: int,
    unread: Unread | None = None,
) -> LogToClean:
    """Reads no more than a header of each segment. Raises OSError, Corrupt."""
    facts, settings = summarize_segments(log), log.settings

    def cleanable(unread: Unread | None) -> CleanableRange:
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
            segment.size
            for segment in facts
            if found.first_uncleanable <= segment.base_offset < all_read
        )
    return LogToClean(found, dirty_ratio_of(facts, found, settings, now_ms), kept_bytes)


def plan_pass(
    log: PartitionLog,
    found: CleanableRange,
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
        segments=segment_extents(log, up_to=stable_to),
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


def swap_in_pass(disk: Disk, log: PartitionLog, result: PassResult) -> list[str]:
    """Swap in what a pass has written; the files of the replaced segments, for remove_deleted.

    Raises SwapRefused or OSError as `swap_in` does; groups before that one are swapped in, which is
    as good as a pass that had ended there. Only then is the log clean up to `result.end_offset`.
    """
    replaced: list[str] = []
    for replacement in result.replacements:
        replaced += swap_in(disk, log, replacement.base_offset, replacement.sources)
    return replaced


def read_clean_offsets(disk: Disk, data_dir: str) -> dict[TopicPartition, int]:
    """Up to where each log is clean, as Kafka keeps it too. Raises Corrupt, OSError."""
    return read_offsets(disk, f"{data_dir}/{CLEAN_OFFSETS}")


def write_clean_offsets(disk: Disk, data_dir: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_offsets(disk, f"{data_dir}/{CLEAN_OFFSETS}", offsets)


class FolderCleaned(Struct):
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
    The caller holds the data directory's lock. The directory was stopped cleanly (else the journal
    alone has the last batches), or `recovery_point` says up to where the segments are durable.
    With `dry_run` the log stays as it is, and `bytes_after` says what a pass would leave; it needs
    room for the copy all the same. The checkpoint beside the folder is kept. Raises Corrupt (a
    damaged batch: nothing was swapped in after it), OSError, SwapRefused.
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
        found = inspect_log(
            log, checkpoint=offsets.get(key), stable_to=stable_to, now_ms=now_ms
        ).found
        if done is None:
            size = log.size_bytes
            done = FolderCleaned(
                found.first_dirty, found.first_dirty, log.log_end_offset, size, size
            )
        if found.first_uncleanable <= found.first_dirty:
            return done
        job = plan_pass(log, found, stable_to=stable_to, now_ms=now_ms, map_bytes=map_bytes)
        from storage.cleaner.cleaner_pass import run_pass  # a daemon has it in its worker process

        result = run_pass(disk, job, throttle)
        done.passes.append(result)
        if dry_run:
            sizes = {extent.base_offset: extent.size for extent in job.segments}
            for replacement in result.replacements:
                done.bytes_after += replacement.size - sum(
                    sizes[base] for base in replacement.sources
                )
            done.end_offset = result.end_offset
            remove_cleaned(disk, log.path)
            return done
        if result.end_offset <= found.first_dirty:
            return done
        remove_deleted(disk, log, swap_in_pass(disk, log, result))
        offsets[key] = done.end_offset = result.end_offset
        write_clean_offsets(disk, data_dir, offsets)
        done.bytes_after = log.size_bytes
