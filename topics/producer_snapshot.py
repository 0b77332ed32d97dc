"""Producer snapshot: producer states at an offset of each log, so that a start need not read logs.

One file for all partitions. It begins with the full state, and every save appends what changed
since the last one. When the changes are larger than the full state, the next save rewrites the
file. Each frame has a checksum, so a torn end is not read. A partition without producers has an
entry too: it says up to which offset there were none.

A partition's state is needed when its first idempotent batch arrives: the entry and the batches
after it, or the whole log if there is no entry. An entry may be below the log's start, because
retention does not remove the state of a producer. It is never beyond the log's end: `drop_beyond`
ensures that at each start, before anything is appended.

`must_read` and `restore` may be called from any thread. Everything else belongs to the data plane's
appender, except `write`: one at a time may run concurrently with it.
Kafka's counterpart: the `.snapshot` files and `ProducerStateManager.truncateAndReload`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple, Protocol
from zlib import crc32

import msgspec
from msgspec import Struct, structs

from protocol.names import ProducerId
from storage.api import TopicLog
from storage.batch.control_batch import NO_COORDINATOR_EPOCH
from topics.partition import Partition
from topics.producers import ProducerEntry, ProducerStates, SentBatch

MAGIC: Final = b"rollcall producers 2\n"
OLD_FORMAT: Final = 1  # one JSON document, written until version 2

FRAME_PRODUCERS_MAX: Final = 500
"""Producers in one frame: encoding holds the interpreter lock for about a millisecond."""

CHANGES_BYTES_MIN: Final = 1 << 20
"""Changes up to this size never cause a rewrite of the file."""

_FRAME: Final = Layout(">II")  # bytes of the content, CRC-32 of it

_PartitionKey = tuple[str, int]


class ProducerFile(Protocol):
    """A small file that is read once, then replaced or appended to, durably. Raises OSError."""

    def load(self) -> bytes | None:
        """The content; None if there is no file."""

    def save(self, content: bytes) -> None:
        """Replace the content, atomically."""

    def append(self, content: bytes, position: int) -> None:
        """Append after the first `position` bytes; a crash may leave a part of it."""

    def discard(self) -> None:
        """Remove the file, durably."""


class SavedProducer(Struct, frozen=True, array_like=True):
    """One producer; a file of an earlier version ends before the fields of transactions."""

    producer_id: int
    epoch: int
    last_timestamp_ms: int
    batches: list[SentBatch]
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    transaction_first_offset: int | None = None

    def entry(self) -> ProducerEntry:
        return ProducerEntry(
            self.epoch,
            self.last_timestamp_ms,
            self.batches,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )


class SnapshotFrame(Struct, frozen=True, array_like=True):
    """The producer states of one partition at an offset, or what changed of them."""

    topic_id: str
    partition: int
    offset: int
    is_whole: bool  # replaces the state before it
    has_more: bool  # the next frame continues it
    producers: list[SavedProducer]
    removed: list[int]


class SnapshotChanges(NamedTuple):
    """What a save writes."""

    frames: list[SnapshotFrame]
    is_whole: bool


class SavedState(NamedTuple):
    """A partition's entry."""

    offset: int
    entries: dict[ProducerId, ProducerEntry]


class ProducerSnapshots:
    """Restores the producer states of partitions, and writes the file."""

    def __init__(self, file: ProducerFile | None, producer_id_expiration_ms: int) -> None:
        self._file = file
        self.expiration_ms = producer_id_expiration_ms
        content = None if file is None else file.load()
        found = _read(content or b"")
        self._saved = found.states  # of partitions not restored since the start
        self._file_bytes = found.valid_bytes
        self._whole_bytes = 0  # of the full state that it begins with
        self._must_rewrite = not found.is_valid
        self._is_stale = bool(content) and not found.is_valid  # write it even without changes

    @property
    def greatest_producer_id(self) -> int:
        """Of all saved producers; -1 if there is none. Used at the start."""
        return max((entry for saved in self._saved.values() for entry in saved.entries), default=-1)

    def drop_beyond(self, partitions: Iterable[Partition]) -> None:
        """At a start: drop entries beyond the end of their log, which a power failure truncated.

        Durably, before anything is appended: when the log has grown as long again, such an entry
        would describe other batches than the stored ones. Raises OSError.
        """
        logs = [partition.log for partition in partitions]
        there = {_key(log): log for log in logs if log is not None}
        beyond = [
            key
            for key, saved in self._saved.items()
            if key in there and saved.offset > there[key].log_end_offset
        ]
        if None not in logs:
            for key in self._saved.keys() - there.keys():
                del self._saved[key]  # of topics that were deleted
        for key in beyond:
            del self._saved[key]
        if beyond and self._file is not None:
            try:
                self.write(SnapshotChanges(list(self._frames_of_saved()), is_whole=True))
            except OSError:
                self._file.discard()  # needs no disk space; the logs still have it all
                raise

    def must_read(self, log: TopicLog) -> bool:
        """Whether the log has batches after the known offset."""
        return self._known_to(log) < log.log_end_offset

    def is_behind(self, partition: Partition) -> bool:
        """Whether a partition has an entry, and a longer log that was not read yet."""
        log = partition.log
        return (
            log is not None
            and partition.producers is None
            and _key(log) in self._saved
            and self.must_read(log)
        )

    def restore(self, log: TopicLog) -> ProducerStates:
        """The producer states as of the log's end. Raises what reading a log raises."""
        producers = ProducerStates(self._known_to(log))
        saved = self._saved.get(_key(log))
        if saved is not None:
            entries = {
                producer_id: structs.replace(entry, batches=list(entry.batches))
                for producer_id, entry in saved.entries.items()
            }
            producers.restore_entries(entries)
            producers.saved_offset = saved.offset
        else:
            # Of a log that came from a Kafka; or the file of this class was lost.
            found = log.producer_files.read(log.log_start_offset, log.log_end_offset)
            if found is not None:
                producers.use_stored(*found)
        end = log.log_end_offset  # first: the appender may append meanwhile
        if producers.offset < end:
            producers.replay(log.batches(producers.offset))
            # If compaction removed the last batches, no batch has these offsets.
            producers.offset = max(producers.offset, end)
        return producers

    def install(self, partition: Partition, producers: ProducerStates, now_ms: int) -> None:
        """Hand the producer states to the partition; the entry is not needed here any more."""
        producers.expire(now_ms, self.expiration_ms)
        partition.producers = producers
        if partition.log is not None:
            self._saved.pop(_key(partition.log), None)

    def _known_to(self, log: TopicLog) -> int:
        saved = self._saved.get(_key(log))
        return log.log_start_offset if saved is None else max(saved.offset, log.log_start_offset)

    # Saving

    def changes(self, partitions: Sequence[Partition]) -> SnapshotChanges | None:
        """The changes since the last call, for `write`; None if there are none. Raises OSError."""
        if self._file is None:
            return None
        is_whole = self._must_rewrite or (
            self._file_bytes - self._whole_bytes > max(self._whole_bytes, CHANGES_BYTES_MIN)
        )
        # Below the offset of an entry nothing is read again: its aborted transactions are durable.
        for partition in partitions:
            if partition.log is not None and partition.producers is not None:
                partition.log.sync_aborted()
        frames: list[SnapshotFrame] = []
        has_changed = False
        for partition in partitions:
            log, producers = partition.log, partition.producers
            if log is None or producers is None:
                continue
            changed = producers.take_changes()
            has_changed |= changed is not None
            if is_whole:
                frames += _frames(_key(log), producers.offset, producers.entries, is_whole=True)
            elif changed is not None:
                entries = {key: producers.entries.get(key) for key in changed}
                is_new = producers.saved_offset is None
                frames += _frames(_key(log), producers.offset, entries, is_whole=is_new)
            producers.saved_offset = producers.offset
        if not has_changed and not self._is_stale:
            return None
        if is_whole:
            frames += self._frames_of_saved()
        return SnapshotChanges(frames, is_whole)

    def write(self, changes: SnapshotChanges) -> None:
        """Raises OSError; then the next changes are the full state."""
        if self._file is None:
            return
        content = b"".join([b"" if not changes.is_whole else MAGIC, *map(_encoded, changes.frames)])
        try:
            if changes.is_whole:
                self._file.save(content)
            else:
                self._file.append(content, self._file_bytes)
        except OSError:
            self._must_rewrite = self._is_stale = True
            raise
        if changes.is_whole:
            self._file_bytes = self._whole_bytes = len(content)
            self._must_rewrite = self._is_stale = False
        else:
            self._file_bytes += len(content)

    def _frames_of_saved(self) -> Iterator[SnapshotFrame]:
        for key, saved in tuple(self._saved.items()):
            yield from _frames(key, saved.offset, saved.entries, is_whole=True)


def _key(log: TopicLog) -> _PartitionKey:
    return log.topic_id.hex, log.topic_partition.partition


def _frames(
    key: _PartitionKey,
    offset: int,
    entries: "dict[ProducerId, ProducerEntry] | dict[ProducerId, ProducerEntry | None]",
    *,
    is_whole: bool,
) -> Iterator[SnapshotFrame]:
    """Copies, because the entries keep changing. None stands for a removed producer."""
    ids = list(entries)
    for first in range(0, len(ids) or 1, FRAME_PRODUCERS_MAX):
        part = ids[first : first + FRAME_PRODUCERS_MAX]
        found = [(producer_id, entries[producer_id]) for producer_id in part]
        yield SnapshotFrame(
            *key,
            offset,
            is_whole=is_whole and not first,
            has_more=first + FRAME_PRODUCERS_MAX < len(ids),
            producers=[
                SavedProducer(
                    producer_id,
                    entry.epoch,
                    entry.last_timestamp_ms,
                    list(entry.batches),
                    entry.coordinator_epoch,
                    entry.transaction_first_offset,
                )
                for producer_id, entry in found
                if entry is not None
            ],
            removed=[producer_id for producer_id, entry in found if entry is None],
        )


def _encoded(frame: SnapshotFrame) -> bytes:
    content = msgspec.msgpack.encode(frame)
    return _FRAME.pack(len(content), crc32(content)) + content


class _Content(NamedTuple):
    states: dict[_PartitionKey, SavedState]
    valid_bytes: int
    is_valid: bool  # complete and of this format: more may be appended


def _read(content: bytes) -> _Content:
    """The content of the file; empty if it cannot be read, because the logs have it all."""
    if not content.startswith(MAGIC):
        return _Content(_read_old(content), len(content), is_valid=False)
    decode: Callable[[memoryview], SnapshotFrame] = msgspec.msgpack.Decoder(SnapshotFrame).decode
    view, at = memoryview(content), len(MAGIC)
    states: dict[_PartitionKey, SavedState] = {}
    pending: list[SnapshotFrame] = []
    while at < len(content):
        if len(content) - at < _FRAME.size:
            break
        size, checksum = _FRAME.unpack_from(content, at)
        blob = view[at + _FRAME.size : at + _FRAME.size + size]
        if len(blob) < size or crc32(blob) != checksum:
            break
        try:
            pending.append(decode(blob))
        except msgspec.MsgspecError:
            break
        at += _FRAME.size + size
        if not pending[-1].has_more:
            _apply(states, pending)
            pending = []
    return _Content(states, at, is_valid=at == len(content) and not pending)


def _apply(states: dict[_PartitionKey, SavedState], frames: list[SnapshotFrame]) -> None:
    first, last = frames[0], frames[-1]
    key = first.topic_id, first.partition
    known = states.get(key)
    entries = {} if first.is_whole or known is None else known.entries
    for frame in frames:
        for producer_id in frame.removed:
            entries.pop(ProducerId(producer_id), None)
        for row in frame.producers:
            entries[ProducerId(row.producer_id)] = row.entry()
    states[key] = SavedState(last.offset, entries)


def _read_old(content: bytes) -> dict[_PartitionKey, SavedState]:
    """The file of an earlier version, a JSON document; empty for any other content."""
    try:
        document = json.loads(content)
        if document["format"] != OLD_FORMAT:
            return {}
        return {
            (str(topic_id), int(partition)): SavedState(
                int(offset),
                {
                    ProducerId(producer_id): ProducerEntry(
                        epoch, last_timestamp_ms, [SentBatch(*sent) for sent in batches]
                    )
                    for producer_id, epoch, last_timestamp_ms, batches in entries
                },
            )
            for topic_id, partition, offset, entries in document["partitions"]
        }
    except (ValueError, KeyError, TypeError):
        return {}
