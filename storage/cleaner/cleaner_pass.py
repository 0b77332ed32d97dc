"""Cleaner pass: compacts one log; builds the map of newest offsets, then copies what it keeps.

`run_pass` reads the sealed segments that a `Pass` names and writes `.cleaned` files beside them:
nothing else, so it may be killed at any moment. The daemon runs it in its worker process
(`broker/background/jobs.py`) and then swaps the files in (`segment_swap.py`); tests and the offline
command call it in their own process. Every batch that is copied was read whole and its checksum
matches; a damaged one raises Corrupt, and nothing is swapped.

Segments are merged as long as they fit into one (segment.bytes, the index, the range of offsets),
so that a log of few live records does not become a folder of many small files.
Kafka's counterparts: Cleaner.doClean, cleanSegments, cleanInto, groupSegmentsBySize.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

import google_crc32c

from storage.batch.chunks import SegmentSource, Throttle, no_throttle, read_segment_chunks
from storage.batch.record_batch import (
    BATCH_HEADER,
    CRC_START,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BadChecksum,
    BadRecords,
    BatchHeader,
    InvalidBatch,
    read_header,
)
from storage.cleaner.batch_filter import BatchFilter
from storage.cleaner.messages import LastOfProducer, Pass, PassResult, Replacement, SegmentExtent
from storage.cleaner.offset_map import NOT_PLAIN, OffsetMap, build_offset_map
from storage.disk import Disk
from storage.log.index import MAX_RELATIVE_OFFSET, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from storage.log.segment import LOG_SUFFIX, Placed, Segment
from storage.log.segment_swap import CLEANED_SUFFIX, remove_cleaned
from storage.log.transaction_ends import (
    NO_OUTCOMES,
    CleanedTransactions,
    TransactionOutcomes,
    TransactionsFound,
    find_outcomes,
)

_FIXED_FIELDS: Final = Struct(">qi9xhi16xq6xi")
"""Base offset, length, attributes, last offset delta, producer id, number of records."""

_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD

SYNC_BYTES: Final = 4 << 20
"""Written, then synced: a whole segment at once would keep the disk from the journal for long."""


def run_pass(disk: Disk, job: Pass, throttle: Throttle = no_throttle) -> PassResult:
    """Write what compaction leaves of a log into `.cleaned` files. Raises Corrupt, OSError."""
    remove_cleaned(disk, job.folder)
    sources = [_source(job.folder, extent) for extent in job.segments]
    round_end = job.first_uncleanable
    endings = NO_OUTCOMES
    try:
        offset_map = _map(disk, job, sources, round_end, None, throttle)
    except TransactionsFound:
        endings = find_outcomes(disk, sources, job.first_dirty, throttle)
        round_end = _stable_end(job, endings)
        offset_map = _map(disk, job, sources, round_end, endings, throttle)
    result = PassResult(
        offset_map.end,
        map_bytes_read=offset_map.bytes_read,
        map_records_read=offset_map.records_read,
        map_utilization=offset_map.utilization,
    )
    if offset_map.end <= job.first_dirty:
        return result  # everything dirty belongs to transactions that have not ended
    producers = job.producers
    if producers is None:
        producers = last_of_producers(disk, sources, throttle)
    batch_filter = BatchFilter(
        offset_map,
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
        round_end=round_end,
        producers=producers,
        transactions=CleanedTransactions(endings.aborted),
    )
    copier = _Copier(disk, job, offset_map, batch_filter, round_end, throttle, result)
    for group in grouped(job, offset_map.end):
        copier.copy(group)
    result.records_without_key = batch_filter.without_key
    return result


def _source(folder: str, extent: SegmentExtent) -> SegmentSource:
    path = f"{folder}/{extent.base_offset:020d}{LOG_SUFFIX}"
    return SegmentSource(path, extent.base_offset, extent.next_base, extent.size)


def _map(
    disk: Disk,
    job: Pass,
    sources: Sequence[SegmentSource],
    round_end: int,
    endings: TransactionOutcomes | None,
    throttle: Throttle,
) -> OffsetMap:
    return build_offset_map(
        disk,
        sources,
        start=job.first_dirty,
        end=round_end,
        map_bytes=job.map_bytes,
        transactions=None if endings is None else CleanedTransactions(endings.aborted),
        throttle=throttle,
    )


def _stable_end(job: Pass, endings: TransactionOutcomes) -> int:
    """The first uncleanable offset, or the segment where an open transaction begins."""
    if endings.first_open is None or endings.first_open >= job.first_uncleanable:
        return job.first_uncleanable
    bases = [
        extent.base_offset for extent in job.segments if extent.base_offset <= endings.first_open
    ]
    return max(bases[-1], job.first_dirty)


def grouped(job: Pass, end_offset: int) -> Iterator[list[SegmentExtent]]:
    """The segments that hold offsets below `end_offset`, in groups that become one each."""
    group: list[SegmentExtent] = []
    size = offset_entries = time_entries = 0
    for extent in job.segments:
        if extent.base_offset >= min(end_offset, job.first_uncleanable):
            break
        fits = (
            size + extent.size <= job.segment_bytes
            and (offset_entries + extent.offset_entries) * OFFSET_ENTRY_BYTES
            <= job.segment_index_bytes
            and (time_entries + extent.time_entries) * TIME_ENTRY_BYTES <= job.segment_index_bytes
            and (
                extent.size == 0
                or extent.next_base - 1 - (group[0] if group else extent).base_offset
                <= MAX_RELATIVE_OFFSET
            )
        )
        if group and not fits:
            yield group
            group, size, offset_entries, time_entries = [], 0, 0, 0
        group.append(extent)
        size += extent.size
        offset_entries += extent.offset_entries
        time_entries += extent.time_entries
    if group:
        yield group


def last_of_producers(
    disk: Disk, sources: Sequence[SegmentSource], throttle: Throttle
) -> dict[int, LastOfProducer]:
    """Every producer in the log and what it sent last: as if all of them were active."""
    last: dict[int, LastOfProducer] = {}

    def take(chunk: bytes, _position: int) -> int:
        at, latest, end = 0, len(chunk) - HEADER_BYTES, len(chunk)
        while at <= latest:
            after = at + BATCH_HEADER.unpack_from(chunk, at)[1] + LOG_OVERHEAD
            if after > end:
                break
            header = read_header(chunk, at)
            if header.producer_id >= 0:
                before = last.get(header.producer_id)
                offset: int | None = header.last_offset
                if header.is_control:
                    offset = None if before is None else before.last_offset
                last[header.producer_id] = LastOfProducer(offset, header.producer_epoch)
            at = after
        return at

    for source in sources:
        read_segment_chunks(disk, source, take, throttle)
    return last


class _Copier:
    """Copies group after group, and keeps count."""

    def __init__(
        self,
        disk: Disk,
        job: Pass,
        offset_map: OffsetMap,
        batch_filter: BatchFilter,
        round_end: int,
        throttle: Throttle,
        result: PassResult,
    ) -> None:
        self._disk = disk
        self._job = job
        self._filter = batch_filter
        self._round_end = round_end
        self._throttle = throttle
        self._result = result
        # What the map has read is known by its offset alone: no key need be looked at again.
        self._mapped = range(offset_map.start, offset_map.end)
        self._newest = frozenset(offset_map.offsets.values())
        self._next_offset = 0
        self._output: Segment
        self._is_changed = False
        self._unsynced_bytes = 0

    def copy(self, group: Sequence[SegmentExtent]) -> None:
        """One `.cleaned` segment out of these."""
        job, folder = self._job, self._job.folder
        base_offset = group[0].base_offset
        output = Segment(
            self._disk, folder, base_offset, job.index_interval_bytes, suffix=CLEANED_SUFFIX
        )
        output.create()
        self._output, self._is_changed = output, len(group) > 1
        for extent in group:
            self._next_offset = extent.base_offset
            read_segment_chunks(self._disk, _source(folder, extent), self._take, self._throttle)
        if not self._is_changed:
            output.remove()  # all of it stays: then so may the file
            return
        output.seal()
        output.sync()
        self._disk.copy_mtime(_source(folder, group[-1]).path, output.path)
        output.release()
        sources = tuple(extent.base_offset for extent in group)
        self._result.replacements.append(Replacement(base_offset, sources, output.size))

    def _take(self, chunk: bytes, _position: int) -> int:
        try:
            taken, placed, dropped = self._filtered(chunk)
        except IndexError:
            raise BadRecords(0, "a record runs past the end of its batch") from None
        result = self._result
        result.bytes_read += taken
        if dropped:
            self._is_changed = True
        if placed:
            self._output.append(placed)
            written = sum([len(batch[0]) for batch in placed])
            result.bytes_written += written
            self._unsynced_bytes += written
            self._throttle(written)
            if self._unsynced_bytes >= SYNC_BYTES:
                self._output.sync()
                self._unsynced_bytes = 0
        return taken

    def _filtered(self, chunk: bytes) -> tuple[int, list[Placed], bool]:
        """(bytes looked at, what stays of them, whether anything did not)."""
        unpack, fields_of, crc32c = (
            BATCH_HEADER.unpack_from,
            _FIXED_FIELDS.unpack_from,
            google_crc32c.value,
        )
        newest, mapped, round_end = self._newest, self._mapped, self._round_end
        next_offset = self._next_offset
        at, end, last = 0, len(chunk), len(chunk) - HEADER_BYTES
        placed: list[Placed] = []
        is_changed = False
        read = written = superseded = 0
        while at <= last:
            base_offset, length, attributes, last_delta, producer_id, count = fields_of(chunk, at)
            after = at + length + LOG_OVERHEAD
            if (
                count == 1
                and base_offset not in newest
                and not last_delta
                and base_offset in mapped
                and not attributes & NOT_PLAIN
                and producer_id < 0
                and base_offset + 1 != round_end
                and after <= end
                and base_offset >= next_offset
            ):
                # One record that is not the newest of its key, in a batch that was checked when
                # the map was built.
                next_offset = base_offset + 1
                superseded += 1
                at = after
                continue
            fields = unpack(chunk, at)
            if fields[3] != 2 or fields[1] < _LENGTH_MIN or last_delta < 0 or count < 0:
                read_header(chunk, at)  # says what is wrong
            if after > end:
                break
            batch = chunk[at:after]
            if crc32c(batch[CRC_START:]) != fields[4]:
                raise BadChecksum(at, f"stored crc {fields[4]}, the content has another one")
            if base_offset < next_offset:
                raise InvalidBatch(at, f"offset {base_offset} comes after {next_offset - 1}")
            next_offset = base_offset + last_delta + 1
            read += count
            try:
                left = self._filter.filter(BatchHeader._make(fields), batch)
            except InvalidBatch as fault:
                raise InvalidBatch(at, fault.reason) from None
            if left.batch is not batch:
                is_changed = True
            if left.batch is not None:
                placed.append((left.batch, next_offset - 1, left.max_timestamp))
                written += left.records
            at = after
        self._next_offset = next_offset
        self._result.records_read += read + superseded
        self._result.records_written += written
        return at, placed, is_changed or superseded > 0
