"""Partition log: the segments of one partition; append, read, roll, truncate, flush.

`PartitionLog` is the `TopicLog` of `storage/api.py`; `topics/` appends to it and reads it. To a
partition of the offsets topic only `journal.py` appends, from the flusher thread, with offsets that
were assigned when the shard appended. Nothing is created before it is needed: a new partition is
a folder with two small files, and its first segment comes with its first batch.

The flusher appends while another thread syncs for a checkpoint. `_files_lock` separates the steps
in which segments are added, removed or synced. Reads, and appends to a segment, need no lock.

`log_loader.py` opens a folder. Kafka's counterparts: UnifiedLog, LocalLog.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from uuid import UUID

from storage.api import (
    AbortedTransaction,
    LogClosed,
    LogSettings,
    SyncFailed,
    TopicPartition,
    UnendedTransaction,
)
from storage.batch.record_batch import iter_batches, read_header, with_offsets
from storage.disk import Disk, lacks_room, overwrite, parent, shortage
from storage.log import retention, segment_times
from storage.log.aborted import OUR_LOG, all_outcomes
from storage.log.aborted_lookup import aborted_among, replace_aborted, save_aborted
from storage.log.checkpoints import (
    LEADER_EPOCHS,
    NO_TOPIC_ID,
    PARTITION_METADATA,
    encode_metadata,
    write_epochs,
)
from storage.log.log_loader import FIRST_EPOCH, KnownEnds, load_folder
from storage.log.producer_files import ProducerFiles
from storage.log.segment import EVERYTHING, Placed, Repair, Segment
from storage.reserve import Reserve


class PartitionLog:
    """One partition's folder; a TopicLog."""

    __slots__ = (
        "_aborted_are_dirty",
        "_closed_because",
        "_disk",
        "_epochs",
        "_files_lock",
        "_log_start_offset",
        "_names_are_dirty",
        "_path",
        "_segments",
        "_sync_fault",
        "_sync_lock",
        "_topic_id",
        "_topic_partition",
        "is_new",
        "moved",
        "on_log_start_moved",
        "on_roll",
        "producer_files",
        "recovery_point",
        "repairs",
        "reserve",
        "settings",
    )

    def __init__(
        self, disk: Disk, path: str, topic_partition: TopicPartition, settings: LogSettings
    ) -> None:
        """`create` or `open` must follow."""
        self._disk = disk
        self._path = path
        self._topic_partition = topic_partition
        self._topic_id = NO_TOPIC_ID
        self._segments: list[Segment] = []
        self._epochs = [FIRST_EPOCH]
        self._log_start_offset = 0
        self.is_new = False  # its folder's name and first files were never synced
        self._names_are_dirty = False  # a segment was created or removed since the last sync
        self._aborted_are_dirty = False
        self._closed_because: str | None = None
        self._sync_fault: SyncFailed | None = None
        self._files_lock = threading.RLock()
        self._sync_lock = threading.Lock()  # taken before the other: one fsync at a time
        self.settings = settings
        self.recovery_point = 0  # everything below it is durable
        self.moved = OUR_LOG
        self.producer_files = ProducerFiles(disk, path, lambda: self._segments)
        self.repairs: list[Repair] = []  # done by opening; the shell logs them
        self.reserve: Reserve | None = None  # disk space that `append` leaves to others
        self.on_roll: Callable[[PartitionLog], None] = lambda _: None
        self.on_log_start_moved: Callable[[], None] = lambda: None  # makes it durable

    # --- creating and opening ------------------------------------------------------------------

    def create(self, topic_id: UUID) -> None:
        """Make the folder. Durable once `flush` returned: a partition may hold nothing for long."""
        self._disk.make_dir(self._path)
        self.name_topic(topic_id)

    def name_topic(self, topic_id: UUID) -> None:
        """Write the folder's two small files, also where a crash has lost them."""
        self.is_new = True
        self._topic_id = topic_id
        overwrite(self._disk, f"{self._path}/{PARTITION_METADATA}", encode_metadata(topic_id))
        write_epochs(self._disk, f"{self._path}/{LEADER_EPOCHS}", self._epochs)

    def open(self, recovery_point: int, log_start_offset: int = 0, known_end: int = 0) -> None:
        """Load the folder; EVERYTHING is the recovery point of a log that was closed cleanly.

        `known_end`: offsets below it were durable once. Raises TruncatedLog if some of these are
        missing, Corrupt, OSError.
        """
        ends = KnownEnds(recovery_point, known_end, log_start_offset)
        every = self.settings.index_interval_bytes
        loaded = load_folder(self._disk, self._path, every, ends, self.producer_files)
        self._topic_id, self._epochs, self._segments, self.repairs, self.moved = loaded
        first = self._segments[0].base_offset if self._segments else 0
        self._log_start_offset = max(log_start_offset, first)
        if self._log_start_offset > self.log_end_offset:
            self._restart_at(self._log_start_offset)
        elif self._log_start_offset and not self._segments:
            self._name_log_start()
        self.recovery_point = min(recovery_point, self.log_end_offset)
        # A killed process may have left file names that only the page cache has.
        self._names_are_dirty = recovery_point != EVERYTHING and bool(self._segments)
        # Nothing of it was ever durable, the topic id included.
        self.is_new = not recovery_point

    def _name_log_start(self) -> None:
        """An empty segment records where the log continues, should the checkpoint be lost."""
        try:
            self._create_segment(self._log_start_offset)
        except OSError as failure:
            if not lacks_room(failure):  # without room the checkpoint has to do
                raise

    def _restart_at(self, offset: int) -> None:
        """All segments are below the log start: start with an empty one there.

        They are kept aside: only the checkpoint says so, and it may be of another log.
        """
        for segment in self._segments:
            self.repairs += segment.quarantine(f"it ends below the log start offset, {offset}")
        self._segments = []
        self._create_segment(offset)
        self._disk.sync_dir(self._path)  # at once: should the checkpoint be lost, this says it

    # --- facts ---------------------------------------------------------------------------------

    @property
    def topic_partition(self) -> TopicPartition:
        return self._topic_partition

    @property
    def topic_id(self) -> UUID:
        return self._topic_id

    @property
    def path(self) -> str:
        return self._path

    @property
    def leader_epoch(self) -> int:
        return self._epochs[-1][0]

    def begin_leader_epoch(self) -> int:
        """Begin a leader epoch at the log's end; returns it. Epochs without a batch are removed.

        Not synced: if a power failure takes the line, the epoch of the last batch is enough.
        """
        end, last = self.log_end_offset, self.leader_epoch
        for batch in self.batches(end - 1) if end > self._log_start_offset else ():
            last = max(last, read_header(batch).partition_leader_epoch)
        self._epochs = [(epoch, start) for epoch, start in self._epochs if start < end]
        self._epochs.append((last + 1, end))
        try:
            write_epochs(self._disk, f"{self._path}/{LEADER_EPOCHS}", self._epochs)
        except OSError as failure:
            if shortage(failure) is None:  # on a full disk the batches alone carry the epoch
                raise
        return last + 1

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        segments = self._segments
        return segments[-1].next_offset if segments else self._log_start_offset

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    @property
    def last_producer_id(self) -> int:
        return self.moved.last_producer_id

    def greatest_producer_id(self) -> int:
        return all_outcomes(self._disk, self._segments).last_producer_id

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    # --- appending -----------------------------------------------------------------------------

    def append(self, batches: bytes, now_ms: int) -> int:
        if self.reserve is not None:
            self.reserve.check()
        first_offset = offset = self.log_end_offset
        epoch = self.leader_epoch
        placed: list[Placed] = []
        for position, header in iter_batches(batches):
            batch = with_offsets(batches[position : position + header.size], offset, epoch)
            offset += header.last_offset_delta + 1
            placed.append((batch, offset - 1, header.max_timestamp))
        self.append_placed(placed, now_ms)
        return first_offset

    def append_placed(self, batches: Sequence[Placed], now_ms: int) -> None:
        """Append batches that carry their offsets already, in one write to one segment."""
        self._check_open()
        segment = self.segment_for(batches, now_ms)
        if segment is None:
            segment = self.roll() if self._segments else self._create_segment(self.log_end_offset)
        segment.first_seen_ms(now_ms)
        segment.append(batches)

    def segment_for(self, batches: Sequence[Placed], now_ms: int) -> Segment | None:
        """The active segment if these batches go into it; None: they need a new one."""
        active = self._segments[-1] if self._segments else None
        return retention.segment_for(active, batches, now_ms, self.settings)

    def roll(self, at: int | None = None) -> Segment:
        """Seal the active segment and begin the next; `at` skips the offsets in between."""
        with self._files_lock:
            self._check_open()  # once it is deleted, another log may get its folder
            if self._segments:
                self._segments[-1].seal()
            elif at is not None:
                self._log_start_offset = at
            segment = self._create_segment(self.log_end_offset if at is None else at)
            self.producer_files.rolled_at = segment.base_offset
        self.on_roll(self)
        return segment

    def _check_open(self) -> None:
        if self._closed_because is not None:
            raise LogClosed(f"{self._path}: {self._closed_because}")

    def _create_segment(self, base_offset: int) -> Segment:
        with self._files_lock:
            self._check_open()
            segment = self.segment(base_offset)
            segment.create()
            self._names_are_dirty = True
            self._segments.append(segment)
            return segment

    def segment(self, base_offset: int, suffix: str = "") -> Segment:
        """A Segment of this folder that is not part of the log yet: nothing is read or created."""
        interval = self.settings.index_interval_bytes
        return Segment(self._disk, self._path, base_offset, interval, suffix=suffix)

    def roll_if_old(self, now_ms: int) -> bool:
        """Seal the active segment if its first record is older than segment.ms; True if it did."""
        if not self._segments or not self._segments[-1].size:
            return False
        if retention.is_old(self._segments[-1], now_ms, now_ms, self.settings):
            self.roll()
            return True
        return False

    # --- reading -------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> bytes:
        self._check_range(offset)
        if offset >= up_to:
            return b""
        segments = self._segments
        for number in range(self._segment_number(offset), len(segments)):
            segment = segments[number]
            try:
                content = segment.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
            except FileNotFoundError:
                if not self.was_dropped(segment):
                    raise
                raise IndexError(f"{offset} is below {self._log_start_offset}") from None
            self.release_file(segment)
            if content is not None:
                return content
        return b""

    def read_open(
        self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool
    ) -> bytes | None:
        self._check_range(offset)
        if offset >= up_to or not self._segments:
            return b""
        active = self._segments[-1]
        file = active.opened_file
        if offset < active.base_offset or file is None:
            return None
        content = active.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one, file=file)
        return b"" if content is None else content

    def _check_range(self, offset: int) -> None:
        if not self._log_start_offset <= offset <= self.log_end_offset:
            raise IndexError(f"{offset} not in {self._log_start_offset}..{self.log_end_offset}")

    @property
    def left_open(self) -> Sequence[UnendedTransaction]:
        return self.moved.left_open

    def aborted_among(self, batches: bytes) -> Sequence[AbortedTransaction]:
        return aborted_among(self._segments, batches)

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        with self._files_lock:
            self.segments_from(aborted.last_offset)[0].aborted.append(aborted)
            self._note_aborted()

    def replace_aborted(self, from_offset: int, aborted: Sequence[AbortedTransaction]) -> None:
        with self._files_lock:
            if replace_aborted(self.segments_from(from_offset), from_offset, aborted):
                self._note_aborted()

    def _note_aborted(self) -> None:
        self._aborted_are_dirty = True
        with suppress(OSError):  # without room they are in memory, and the log still says them
            save_aborted(self._disk, self._path, self._segments, sync=False)

    def sync_aborted(self) -> None:
        if self._aborted_are_dirty:
            with self._files_lock:
                save_aborted(self._disk, self._path, self._segments, sync=True)
                self._aborted_are_dirty = False

    def batches(self, from_offset: int, *, check: bool = False) -> Iterator[bytes]:
        segments = self._segments
        for number in range(self._segment_number(from_offset), len(segments)):
            segment = segments[number]
            try:
                yield from segment.batches(segment.position_of(from_offset), check=check)
            except FileNotFoundError:
                if not self.was_dropped(segment):
                    raise
                continue
            self.release_file(segment)

    def checked_batches(self, from_offset: int) -> Iterator[bytes]:
        """As `batches`, for who acts on what they say. Raises Corrupt at a checksum that fails."""
        return self.batches(from_offset, check=True)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        return segment_times.first_at(self, timestamp_ms)

    def max_timestamp(self) -> tuple[int, int] | None:
        return segment_times.latest(self)

    def was_dropped(self, segment: Segment) -> bool:
        """Whether its file is missing because retention has just removed it."""
        return segment not in self._segments

    def bytes_from(self, offset: int) -> int:
        """How many bytes of batches there are from this offset on, give or take an index entry.

        At the end there are none: a reader that has come so far must not read on.
        """
        segments = self.segments_from(offset)
        if not segments or offset >= self.log_end_offset:
            return 0
        return sum(segment.size for segment in segments) - segments[0].offset_index.lookup(offset)

    def segments_from(self, offset: int) -> list[Segment]:
        """The segments that hold offsets from this one on."""
        return self._segments[self._segment_number(offset) :]

    def _segment_number(self, offset: int) -> int:
        number = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset)
        return max(number - 1, 0)

    def release_file(self, segment: Segment) -> None:
        """Close the file, unless it is appended to or has bytes that no fsync has covered."""
        if segment is not self._segments[-1] and not segment.is_dirty:
            segment.release()

    # --- shrinking -----------------------------------------------------------------------------

    def delete_before(self, offset: int) -> int:
        offset = min(offset, self.log_end_offset)
        if offset > self._log_start_offset:
            before, self._log_start_offset = self._log_start_offset, offset
            try:
                self.on_log_start_moved()  # first, so that no crash restores what was deleted
            except OSError:
                self._log_start_offset = before
                raise
            self.remove_oldest(lambda segment: segment.next_offset <= offset)
        return self._log_start_offset

    def enforce_retention(self, now_ms: int) -> int:
        return retention.enforce(self, now_ms)

    def remove_oldest(self, should_go: Callable[[Segment], bool]) -> int:
        """Remove segments from the oldest on while they should go; returns how many went.

        An active segment that should go is sealed first: the empty one after it keeps the offset.
        """
        removed = 0
        while self._segments:
            oldest = self._segments[0]
            is_active = len(self._segments) == 1
            if (is_active and not oldest.size) or not should_go(oldest):
                break
            if is_active:
                self.roll()
            with self._files_lock:
                if is_active or not removed:
                    # Sync the names that stay first: a file system may write the removals before
                    # them, and a log without a segment would assign its offsets again.
                    self._flush_names()
                # First: a reader that misses the file or an aborted transaction checks it.
                self._log_start_offset = max(self._log_start_offset, self._segments[1].base_offset)
                # A new list: readers may iterate over the old one.
                self._segments = self._segments[1:]
                oldest.remove()
                self._names_are_dirty = True
            removed += 1
        return removed

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds an offset at or after `offset`, for a repair."""
        with self._files_lock:
            while self._segments and self._segments[-1].base_offset >= offset:
                self._segments.pop().remove()
                # At once: a segment that a crash restored would overlap with later batches.
                self._disk.sync_dir(self._path)
            if self._segments:
                self._segments[-1].truncate(offset)
            elif self._log_start_offset:
                self._create_segment(self._log_start_offset)
            self.recovery_point = min(self.recovery_point, self.log_end_offset)

    def sync_folder(self) -> None:
        """fsync the folder: segments that a process before this one removed stay removed."""
        with self._files_lock:
            self._disk.sync_dir(self._path)

    # --- for the cleaner ------------------------------------------------------------------------

    @property
    def files_lock(self) -> threading.RLock:
        """Held while segments are added, removed or renamed."""
        return self._files_lock

    @property
    def is_open(self) -> bool:
        return self._closed_because is None

    @property
    def segments(self) -> Sequence[Segment]:
        """All of them, the active one last, as of now."""
        return self._segments

    def exchange(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace several segments by one, for readers that start from now on."""
        at = self._segments.index(old[0])
        self._segments = [*self._segments[:at], new, *self._segments[at + len(old) :]]

    # --- durability ----------------------------------------------------------------------------

    def flush(self) -> None:
        """fsync what was appended, then the names. After a failed fsync every flush fails."""
        with self._sync_lock, self._files_lock:
            if self._sync_fault is not None:
                raise SyncFailed(str(self._sync_fault))
            end_offset = self.log_end_offset
            self._sync(self._segments)
            self.recovery_point = end_offset

    def sync_sealed(self) -> bool:
        """fsync all but the active segment; False if that was done already, or the log is closed.

        Without the files lock, because these segments do not change: a roll need not wait. Raises
        OSError; a failed fsync closes the log for good.
        """
        with self._sync_lock:
            sealed = list(self._segments)  # as of now: a roll appends to the log's own list
            active = sealed.pop() if sealed else None
            if active is None or not self.is_open or self.recovery_point >= active.base_offset:
                return False
            self._sync(sealed)
            self.recovery_point = max(self.recovery_point, active.base_offset)
            return True

    def _sync(self, segments: Sequence[Segment]) -> None:
        try:
            for segment in list(segments):
                if segment.is_dirty:
                    try:
                        segment.sync()
                    except FileNotFoundError:
                        if not self.was_dropped(segment):
                            raise
                        continue
                    self.release_file(segment)
            with self._files_lock:
                self._flush_names()
        except SyncFailed as fault:
            # The kernel may have dropped the pages: a second fsync would succeed without them.
            self._closed_because, self._sync_fault = str(fault), fault
            raise

    def drop_partial_write(self) -> None:
        """Cut off bytes that a failed append may have left after the last batch."""
        if self._segments:
            self._segments[-1].drop_partial_write()

    def _flush_names(self) -> None:
        if self.is_new:
            for name in (PARTITION_METADATA, LEADER_EPOCHS):
                if self._disk.exists(f"{self._path}/{name}"):
                    self._disk.open(f"{self._path}/{name}").sync()
        if self.is_new or self._names_are_dirty:
            self._disk.sync_dir(self._path)
            self._names_are_dirty = False
        if self.is_new:
            self._disk.sync_dir(parent(self._path))
            self.is_new = False

    def close(self) -> None:
        """Flush, complete the indexes and refuse further writes: the next start needs no scan."""
        if self._closed_because is None:
            if self._segments:
                self._segments[-1].seal()
            self.flush()
        self.abandon("closed")

    def abandon(self, reason: str) -> None:
        """Refuse further writes and close the files, as they are."""
        self._closed_because = self._closed_because or reason
        for segment in self._segments:
            segment.retire()
