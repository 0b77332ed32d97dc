"""How is a snapshot made? From the one before it and the log since then: nobody's memory is asked.

A job of the worker process (jobs.py): the daemon's loop only says up to where. Record by record it
does what a load does, with the same functions; groups that no record was about are copied as they
are. It reads the files beside the daemon that appends to them, and writes one file of its own,
whole and durable, before the older snapshots go. See ADR 0008.
"""

from collections.abc import Iterable
from typing import Final, cast
from uuid import UUID

from coordinator.group_types import plain_of
from coordinator.image import MEANING, Image, LoadStart
from coordinator.records import OFFSET_COMMIT, RecordSkipped
from storage import snapshot
from storage.api import StoredRecord
from storage.batch.record_batch import read_header, read_keys, read_sole_key, stored_records
from storage.disk import Disk
from storage.log.log_files import LogFiles, Place
from storage.log.transactions import CommittedRecords, Withheld
from storage.snapshot import About, Ignored, Snapshot, pack

KEYS_KEPT_MAX: Final = 100_000
"""Of commits; more of them are written down, and their keys forgotten."""

_OF_A_COMMIT: Final = OFFSET_COMMIT.to_bytes(2, "big")


class FoldAbandoned(Exception):
    """What was read has changed meanwhile: no snapshot this time."""


def read_snapshot(
    disk: Disk, folder: str, *, log_end: int, topic_id: UUID
) -> tuple[Snapshot | None, list[Ignored]]:
    """The newest one that a load, or the next fold, may begin with; and what was passed over."""
    return snapshot.read_newest(disk, folder, log_end=log_end, topic_id=topic_id, meaning=MEANING)


def carried_on(base: Snapshot | None) -> tuple[list[RecordSkipped], CommittedRecords]:
    """What a reading of the log from a snapshot's position on has to know besides the groups."""
    committed = CommittedRecords()
    if base is None:
        return [], committed
    skipped, withheld = cast("tuple[list[_Skipped], list[_Withheld]]", base.about.notes)
    for producer_id, epoch, offset, at_ms, key, value in withheld:
        committed.hold(Withheld(producer_id, epoch, StoredRecord(offset, at_ms, key, value)))
    return [RecordSkipped(*one) for one in skipped], committed


_Skipped = tuple[int, int, str | None]
_Withheld = tuple[int, int, int, int, bytes | None, bytes | None]


def _notes(image: Image, committed: CommittedRecords) -> object:
    skipped: list[_Skipped] = [(one.offset, one.record_type, one.name) for one in image.skipped]
    withheld: list[_Withheld] = [
        (one.producer_id, one.producer_epoch, *one.record) for one in committed.withheld
    ]
    return skipped, withheld


def fold(disk: Disk, arguments: dict[str, object]) -> dict[str, object]:
    """The job. Raises FoldAbandoned, UnreadableRecord, Corrupt, InvalidBatch, OSError."""
    try:
        return _fold(disk, arguments)
    except FileNotFoundError as gone:
        raise FoldAbandoned(f"a file went meanwhile: {gone}") from None


def _fold(disk: Disk, arguments: dict[str, object]) -> dict[str, object]:
    folder = str(arguments["folder"])
    up_to = int(str(arguments["up_to"]))
    topic_id = UUID(str(arguments["topic_id"]))
    base, ignored = read_snapshot(disk, folder, log_end=up_to, topic_id=topic_id)
    skipped, committed = carried_on(base)
    position = 0 if base is None else base.about.position
    image = Image(LoadStart(base, position, skipped))
    epoch = 0 if base is None else base.about.leader_epoch
    files = LogFiles(disk, folder)
    newest = _Newest(image, committed)
    last = newest.write_all(files.batches(position, up_to, _end_of_last(arguments, position)))
    if last is not None:
        header = read_header(last)
        position, epoch = header.next_offset, header.partition_leader_epoch
    taken_at_ms = int(str(arguments["now_ms"]))
    about = About(position, topic_id, epoch, taken_at_ms, MEANING, _notes(image, committed))
    blobs = {group_id: pack(plain_of(group)) for group_id, group in image.read()}
    if base is not None:
        blobs.update((group_id, base.raw(group_id)) for group_id in image.unread())
        if not disk.exists(base.path):
            raise FoldAbandoned(f"{base.path} is not to be used any more")
    if not files.is_unchanged():
        raise FoldAbandoned(f"segments of {folder} were replaced meanwhile")
    size = snapshot.write(disk, folder, about, blobs.items())
    snapshot.forget_before(disk, folder, position)
    return {
        "position": position,
        "groups": len(blobs),
        "records": newest.records,
        "bytes": size,
        "ignored": [list(one) for one in ignored],
        "end": files.end and (position, files.end),
    }


def _end_of_last(arguments: dict[str, object], position: int) -> Place | None:
    """Where in the files the last fold ended, if it is that one whose snapshot this begins with."""
    ended = cast("tuple[int, Place] | None", arguments.get("ended"))
    return None if ended is None or ended[0] != position else Place._make(ended[1])


class _Newest:
    """The way of batches into the image: of commits that replace each other only the last.

    Most of a log is members that commit the same partitions again and again, a batch each; to
    decode all of that would cost a third of what the commits cost the daemon itself. Tombstones
    and records of groups say what becomes of a commit besides its successor, so what waits is
    written before them. The first commit of a key does not wait: a group that begins with it is as
    old as it is.
    """

    __slots__ = ("_committed", "_image", "_later", "_seen", "records")

    def __init__(self, image: Image, committed: CommittedRecords) -> None:
        self._image = image
        self._committed = committed
        self._seen: set[bytes] = set()  # keys of commits
        self._later: dict[bytes, bytes] = {}  # of these, the newest plain batch that has them
        self.records = 0

    def write_all(self, batches: Iterable[tuple[bytes, int]]) -> bytes | None:
        """Batches, each with its number of plain records; returns the last one.

        Raises InvalidBatch, UnreadableRecord.
        """
        seen, later = self._seen, self._later
        is_holding = self._committed.is_holding
        batch, records = None, 0
        for batch, count in batches:
            if count == 1 and not is_holding:
                key = read_sole_key(batch)
                if key in seen:
                    later[key] = batch
                    records += 1
                    continue
            elif count > 1 and not is_holding:
                keys = read_keys(batch, count)
                if keys is not None and seen.issuperset(keys):
                    later.update(dict.fromkeys(keys, batch))
                    records += count
                    continue
            records += self._write(batch)
            is_holding = self._committed.is_holding
        self._settle()
        self.records = records
        return batch

    def _write(self, batch: bytes) -> int:
        """A batch of any kind; how many records that were."""
        records = self._committed.take(batch)
        for record in records:
            self._write_record(record)
        return len(records)

    def _write_record(self, record: StoredRecord) -> None:
        key = record.key
        if record.value is None or key is None or key[:2] != _OF_A_COMMIT:
            self._settle()
        else:
            if len(self._seen) >= KEYS_KEPT_MAX:
                self._settle()
            self._seen.add(key)
            self._later.pop(key, None)
        self._image.apply(record)

    def _settle(self) -> None:
        """Write what waits."""
        read, newest = b"", {}
        for key, batch in self._later.items():
            if batch is not read:
                read, newest = batch, {one.key: one for one in stored_records(batch)}
            self._image.apply(newest[key])
        self._later.clear()
        self._seen.clear()
