"""Aborted lookup: the aborted transactions of a log, across the indexes of its segments.

An index has the transactions that ended in its segment. A reader of some batches needs those that
overlap with them, which may have ended in a later segment: the search ends at the first entry after
which no earlier transaction was open.
Kafka's counterparts: UnifiedLog.collectAbortedTransactions, TransactionIndex.collectAbortedTxns.
"""

from collections.abc import Sequence

from storage.api import AbortedTransaction
from storage.batch.record_batch import iter_batches, read_header
from storage.disk import Disk
from storage.log.aborted import mark_as_ours
from storage.log.segment import Segment


def aborted_among(segments: Sequence[Segment], batches: bytes) -> Sequence[AbortedTransaction]:
    """Those that overlap with these batches, in the order in which they ended."""
    if not batches or not any(len(segment.aborted) for segment in segments):
        return ()
    first = read_header(batches).base_offset
    up_to = max(header.next_offset for _, header in iter_batches(batches))
    found: list[AbortedTransaction] = []
    for segment in segments:
        if segment.next_offset <= first:
            continue
        index = segment.aborted
        for entry in range(index.first_from(first), len(index)):
            aborted = index[entry]
            if aborted.first_offset < up_to:
                found.append(aborted)
            if aborted.last_stable_offset >= up_to:
                return found
    return found


def replace_aborted(
    segments: Sequence[Segment], from_offset: int, aborted: Sequence[AbortedTransaction]
) -> bool:
    """Have these instead of all entries that ended at or after an offset; False if they are.

    `segments` begin with the one that holds the offset.
    """
    known = [
        index[number]
        for index in [segment.aborted for segment in segments]
        for number in range(index.first_from(from_offset), len(index))
    ]
    if known == list(aborted):
        return False
    for segment in segments:
        segment.aborted.truncate(from_offset)
    for each in aborted:
        holder = [segment for segment in segments if segment.base_offset <= each.last_offset]
        holder[-1].aborted.append(each)
    return True


def save_aborted(disk: Disk, path: str, segments: Sequence[Segment], *, sync: bool) -> None:
    """Write what the files in a log's folder lack. Raises OSError."""
    mark_as_ours(disk, path)
    for segment in segments:
        if len(segment.aborted) or segment.aborted.has_file:
            segment.aborted.save(disk, sync=sync)
    if sync:
        disk.sync_dir(path)
