"""How is a snapshot made? From the one before it and the log since then: nobody's memory is asked.

A job of the worker process (jobs.py): the daemon's loop only says up to where. Record by record it
does what a load does, with the same functions; groups that no record was about are copied as they
are. It reads the files beside the daemon that appends to them, and writes one file of its own,
whole and durable, before the older snapshots go. See ADR 0008.
"""

from typing import Final, cast
from uuid import UUID

from coordinator.image import MEANING, Beginning, Image, plain_of
from coordinator.records import OFFSET_COMMIT
from coordinator.restore import RecordSkipped
from storage import snapshot
from storage.api import StoredRecord
from storage.disk import Disk
from storage.log_files import LogFiles
from storage.record_batch import BatchHeader, read_keys, stored_records
from storage.snapshot import About, Ignored, Snapshot, pack
from storage.transactions import CommittedRecords, Withheld

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
    image = Image(Beginning(base, position, skipped))
    epoch = 0 if base is None else base.about.leader_epoch
    files = LogFiles(disk, folder)
    newest = _Newest(image, committed)
    for header, batch in files.batches(position, up_to):
        newest.write(header, batch)
        position, epoch = header.next_offset, header.partition_leader_epoch
    newest.settle()
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
    }


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
        self._later: dict[bytes, tuple[bytes, int]] = {}  # the batch, and which of its records
        self.records = 0

    def write(self, header: BatchHeader, batch: bytes) -> None:
        """The next batch. Raises InvalidBatch, UnreadableRecord."""
        if not self._committed.is_holding:
            keys = read_keys(batch, header)
            if keys is not None and self._seen.issuperset(keys):
                for number, key in enumerate(keys):
                    self._later[key] = batch, number
                self.records += len(keys)
                return
        for record in self._committed.take(batch, header):
            self.records += 1
            self._write(record)

    def _write(self, record: StoredRecord) -> None:
        key = record.key
        if record.value is None or key is None or key[:2] != _OF_A_COMMIT:
            self.settle()
        else:
            if len(self._seen) >= KEYS_KEPT_MAX:
                self.settle()
            self._seen.add(key)
            self._later.pop(key, None)
        self._image.apply(record)

    def settle(self) -> None:
        """Write what waits. Raises InvalidBatch, UnreadableRecord."""
        last, records = b"", []
        for batch, number in self._later.values():
            if batch is not last:
                last, records = batch, stored_records(batch)
            self._image.apply(records[number])
        self._later.clear()
        self._seen.clear()
