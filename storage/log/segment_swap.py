"""Segment swap: crash-safe replacement of segments by the compacted segment made from them.

    .cleaned    a cleaner pass has written and synced it; a start removes it
    .swap       the commit point: from here on a start completes the swap
    .deleted    a source that was replaced; removed after file.delete.delay.ms, or at a start

In this order, each line durable before the next: `.cleaned` becomes `.swap` / the sources become
`.deleted` / `.swap` becomes the segment. These are Kafka's suffixes and Kafka's order, so either
broker completes what the other has begun. Groups are swapped in the order of their offsets: a
tombstone must not be removed while an older value of its key stays in a segment before it.

Readers of a source are not disturbed: both files are held open while names change, and the log's
list of segments is replaced as a whole. Kafka's counterparts: LocalLog.replaceSegments,
LogLoader.removeTempFilesAndCollectSwapFiles.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from storage.disk import Disk
from storage.log.segment import EVERYTHING, LOG_SUFFIX, Segment
from storage.snapshot import covers_up_to, delete_snapshots_before

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
DELETED_SUFFIX: Final = ".deleted"


class SwapRefused(Exception):
    """The log has changed since the pass read it: segments of it were removed, or it was closed."""


class SwappableLog(Protocol):
    """What a swap needs of a `PartitionLog`."""

    @property
    def files_lock(self) -> AbstractContextManager[object]: ...

    @property
    def is_open(self) -> bool: ...

    @property
    def path(self) -> str: ...

    @property
    def segments(self) -> Sequence[Segment]: ...

    def segment(self, base_offset: int, suffix: str = "") -> Segment: ...

    def exchange(self, old: Sequence[Segment], new: Segment) -> None: ...


def swap_in(disk: Disk, log: SwappableLog, base_offset: int, sources: Sequence[int]) -> list[str]:
    """Put a `.cleaned` segment in the place of its sources; returns their files, now `.deleted`.

    Syncs the folder, so it runs in a thread. Raises SwapRefused, and nothing was changed; or
    OSError, after which readers see the log as before or as after, but it must not be cleaned
    again before a start has completed the swap or removed its files.
    """
    with log.files_lock:
        if not log.is_open:
            raise SwapRefused(f"{log.path} is closed")
        old = _sealed_run(log, sources)
        if old is None:
            raise SwapRefused(f"{log.path} has lost segments of {list(sources)}")
        new = log.segment(base_offset, CLEANED_SUFFIX)
        new.load(EVERYTHING, sealed_at=_base_after(log, old[-1]))
        if not covers_up_to(disk, log.path, new.next_offset):
            raise SwapRefused(f"{log.path}: a snapshot alone knows what a repair could not restore")
        # With an older snapshot and without the tombstones that the pass removed, a load would
        # restore what was deleted.
        delete_snapshots_before(disk, log.path, new.next_offset)
        for segment in old:
            for number in range(len(segment.aborted)):
                new.aborted.append(segment.aborted[number])
        new.aborted.save(disk, sync=True)
        new.pin()
        new.rename(SWAP_SUFFIX)
        disk.sync_dir(log.path)
        for segment in old:
            segment.pin()
        log.exchange(old, new)
        for segment in old:
            segment.rename(DELETED_SUFFIX)
        disk.sync_dir(log.path)
        new.rename("")
        disk.sync_dir(log.path)
        new.unpin()
        new.release()
        return [path for segment in old for path in segment.paths if disk.exists(path)]


def _sealed_run(log: SwappableLog, bases: Sequence[int]) -> list[Segment] | None:
    """The sealed segments that begin at these offsets; None if the log has other ones."""
    found = [each for each in log.segments[:-1] if bases[0] <= each.base_offset <= bases[-1]]
    return found if [each.base_offset for each in found] == list(bases) else None


def _base_after(log: SwappableLog, segment: Segment) -> int:
    return log.segments[list(log.segments).index(segment) + 1].base_offset


def remove_deleted(disk: Disk, log: SwappableLog, paths: Iterable[str]) -> None:
    """Remove the files after file.delete.delay.ms, unless the log is closed. Raises OSError."""
    with log.files_lock:
        for path in paths if log.is_open else ():
            if disk.exists(path):
                disk.remove(path)


def remove_cleaned(disk: Disk, folder: str) -> None:
    """Remove what an unfinished pass or a refused swap has left."""
    for name in disk.listdir(folder):
        if name.endswith(CLEANED_SUFFIX):
            disk.remove(f"{folder}/{name}")


def complete_swaps(disk: Disk, folder: str, listed: Iterable[str]) -> set[str]:
    """At a start: complete interrupted swaps; returns the file names of the folder after that."""
    names = set(listed)
    unfinished = [base for name in names if (base := _base(name, CLEANED_SUFFIX)) is not None]
    swaps = {name: base for name in names if (base := _base(name, SWAP_SUFFIX)) is not None}
    for name, base in tuple(swaps.items()):
        # While a `.cleaned` file is left, all sources are there: the swap was not committed.
        # Kafka splits a segment in the same way, from its end on; the same holds there.
        if unfinished and base >= min(unfinished):
            disk.remove(f"{folder}/{name}")
            names.discard(name)
            del swaps[name]
    replaced = [
        range(base, _next_offset(disk, folder, base))
        for name, base in swaps.items()
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
    ]
    for name in sorted(names - swaps.keys()):
        base_text, dot, _ = name.partition(".")
        if dot and base_text.isdecimal() and any(int(base_text) in offsets for offsets in replaced):
            disk.remove(f"{folder}/{name}")
            names.discard(name)
    if swaps:
        disk.sync_dir(folder)
    # The indexes first: until the log has its name, the next start repeats all of this.
    for name in sorted(swaps, key=lambda name: (name.endswith(LOG_SUFFIX + SWAP_SUFFIX), name)):
        final = name.removesuffix(SWAP_SUFFIX)
        disk.rename(f"{folder}/{name}", f"{folder}/{final}")
        names.discard(name)
        names.add(final)
    if swaps:
        disk.sync_dir(folder)
    return names


def _base(name: str, suffix: str) -> int | None:
    base, dot, _ = name.partition(".")
    return int(base) if dot and base.isdecimal() and name.endswith(suffix) else None


def _next_offset(disk: Disk, folder: str, base_offset: int) -> int:
    segment = Segment(disk, folder, base_offset, 0, suffix=SWAP_SUFFIX)
    segment.load(EVERYTHING)
    return max(segment.next_offset, base_offset + 1)
