"""How is a snapshot made? From the one before it and the log since then: nobody's memory is asked.

A job of the worker process (jobs.py): the daemon's loop only says up to where. Record by record it
does what a load does, with the same functions; groups that no record was about are copied as they
are. It reads the files beside the daemon that appends to them, and writes one file of its own,
whole and durable, before the older snapshots go. See ADR 0008.
"""

from typing import cast
from uuid import UUID

from coordinator.image import MEANING, Beginning, Image, plain_of
from coordinator.restore import RecordSkipped
from storage import snapshot
from storage.api import StoredRecord
from storage.disk import Disk
from storage.log_files import LogFiles
from storage.snapshot import About, Ignored, Snapshot, pack
from storage.transactions import CommittedRecords, Withheld


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
    records = 0
    for next_offset, leader_epoch, batch in files.batches(position, up_to):
        for record in committed.take(batch):
            image.apply(record)
            records += 1
        position, epoch = next_offset, leader_epoch
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
        "records": records,
        "bytes": size,
        "ignored": [list(one) for one in ignored],
    }
