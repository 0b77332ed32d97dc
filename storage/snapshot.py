"""Snapshot: all groups of a partition as of a position of its log, in a file beside the segments.

A snapshot is one file, `<position>.groups`: everything that the records before that position say,
so that a start reads it and then the log from there on. It is derived: without it the whole log is
read, and deleting it does no harm. Written by `broker/background/snapshot_job.py`, read when a
partition is loaded.

    magic "RollSnp1", crc32c u32 of all that follows, header length u32, header, blobs
    header: a msgpack map: fields of the whole, and each group's id and the length of its blob
    blob:   a group in msgpack, in the order of the header, back to back

So one group can be decoded without the others. The checksum covers every byte, and a file is used
as a whole or not at all. A file that is torn, too new (the log ends before it), of another topic or
of another meaning is skipped, and the reason reported.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, cast
from uuid import UUID

import google_crc32c
import msgpack
import msgspec

from storage.disk import Disk, read_file, replace_file

SNAPSHOT_SUFFIX: Final = ".groups"
NEEDED_FILE: Final = "rollcall-snapshot-needed"
"""An empty file beside the snapshots of a log that a repair could not restore."""


_MAGIC: Final = b"RollSnp1"
_FRONT: Final = Struct(">8sII")  # magic, crc, header length
_CRC_START: Final = 12
_NAME_DIGITS: Final = 20


class InvalidSnapshot(Exception):
    """This file is not used; the text says why."""


class SkippedSnapshot(NamedTuple):
    """A snapshot that was passed over."""

    path: str
    reason: str


class SnapshotHeader(msgspec.Struct, frozen=True):
    """What a snapshot says of itself as a whole."""

    position: int  # the offset of the first record that is not in it
    topic_id: UUID
    leader_epoch: int  # of the last record that is in it
    taken_at_ms: int  # wall clock
    meaning: int  # what the blobs mean; another number cannot be read
    notes: object  # what else its writer wants to know again; as plain as msgpack takes it


class Snapshot:
    """One that is sound, in memory."""

    __slots__ = ("_content", "_places", "about", "path")

    def __init__(self, path: str, content: bytes) -> None:
        """Raises Unsound."""
        self.path = path
        self._content = memoryview(content)
        try:
            magic, crc, header_bytes = _FRONT.unpack_from(content)
        except struct_error:
            raise InvalidSnapshot("it is too short") from None
        if magic != _MAGIC:
            raise InvalidSnapshot("it is no snapshot, or of another version")
        if google_crc32c.value(content[_CRC_START:]) != crc:
            raise InvalidSnapshot("the checksum does not match")
        header = unpacked(self._content[_FRONT.size : _FRONT.size + header_bytes])
        fields = cast("dict[str, object]", header)
        self.about = SnapshotHeader(
            cast("int", fields["position"]),
            UUID(bytes=cast("bytes", fields["topic_id"])),
            cast("int", fields["leader_epoch"]),
            cast("int", fields["taken_at_ms"]),
            cast("int", fields["meaning"]),
            fields["notes"],
        )
        self._places: dict[str, tuple[int, int]] = {}
        at = _FRONT.size + header_bytes
        names = cast("list[str]", fields["names"])
        for name, length in zip(names, cast("list[int]", fields["lengths"]), strict=True):
            self._places[name] = (at, at + length)
            at += length
        if at != len(content):
            raise InvalidSnapshot(f"it ends at byte {len(content)} instead of {at}")

    @property
    def size_bytes(self) -> int:
        return len(self._content)

    def sizes(self) -> dict[str, int]:
        """What is in it, and how many bytes each takes."""
        return {name: end - start for name, (start, end) in self._places.items()}

    def raw(self, name: str) -> bytes:
        start, end = self._places[name]
        return bytes(self._content[start:end])

    def read(self, name: str) -> object:
        start, end = self._places[name]
        return unpacked(self._content[start:end])


def unpacked(packed: bytes | memoryview) -> object:
    """The opposite of `pack`; tuples come back as lists."""
    found: object = msgpack.unpackb(packed, use_list=True, strict_map_key=False)
    return found


def pack(plain: object) -> bytes:
    """A blob: None, bool, int, str, bytes, and lists of these."""
    packed: bytes = msgpack.packb(plain)
    return packed


def snapshot_path(folder: str, position: int) -> str:
    return f"{folder}/{position:0{_NAME_DIGITS}d}{SNAPSHOT_SUFFIX}"


def snapshot_positions(disk: Disk, folder: str) -> list[int]:
    """The positions of the snapshots in a partition's folder, rising."""
    stems = (
        name.removesuffix(SNAPSHOT_SUFFIX)
        for name in disk.listdir(folder)
        if name.endswith(SNAPSHOT_SUFFIX)
    )
    return sorted(int(stem) for stem in stems if len(stem) == _NAME_DIGITS and stem.isdecimal())


def read_newest_snapshot(
    disk: Disk,
    folder: str,
    *,
    log_end: int,
    topic_id: UUID,
    meaning: int,
    means_the_same: Callable[[SnapshotHeader], bool] = lambda _: False,
) -> tuple[Snapshot | None, list[SkippedSnapshot]]:
    """The newest snapshot that can be used, and what was passed over on the way to it.

    `means_the_same` is asked about one of another meaning.
    """
    ignored: list[SkippedSnapshot] = []
    for position in reversed(snapshot_positions(disk, folder)):
        path = snapshot_path(folder, position)
        reason: str | None = f"the log ends at {log_end} already"
        if position <= log_end:
            try:
                snapshot = Snapshot(path, read_file(disk, path))
            except (InvalidSnapshot, OSError) as fault:
                reason = str(fault)
            else:
                understood = means_the_same(snapshot.about)
                meant = snapshot.about.meaning if understood else meaning
                reason = _other_than(snapshot.about, position, topic_id, meant)
                if reason is None:
                    return snapshot, ignored
        ignored.append(SkippedSnapshot(path, str(reason)))
    return None, ignored


def _other_than(about: SnapshotHeader, position: int, topic_id: UUID, meaning: int) -> str | None:
    """What kind of snapshot this is, if it is not the one that is wanted."""
    if about.position != position:
        return f"it is one of position {about.position}"
    if about.topic_id != topic_id:
        return f"it is one of topic id {about.topic_id}"
    if about.meaning != meaning:
        return f"its meaning is {about.meaning}, {meaning} is understood"
    return None


def write_snapshot(
    disk: Disk, folder: str, about: SnapshotHeader, blobs: Iterable[tuple[str, bytes]]
) -> int:
    """Write a snapshot, atomically and durably; returns its bytes. Raises OSError."""
    names, packed = [], []
    for name, blob in blobs:
        names.append(name)
        packed.append(blob)
    header = pack(
        {
            "position": about.position,
            "topic_id": about.topic_id.bytes,
            "leader_epoch": about.leader_epoch,
            "taken_at_ms": about.taken_at_ms,
            "meaning": about.meaning,
            "notes": about.notes,
            "names": names,
            "lengths": [len(blob) for blob in packed],
        }
    )
    content = b"".join((len(header).to_bytes(4, "big"), header, *packed))
    front = _MAGIC + google_crc32c.value(content).to_bytes(4, "big")
    replace_file(disk, snapshot_path(folder, about.position), front + content)
    return len(front) + len(content)


def mark_needed(disk: Disk, folder: str) -> None:
    """Mark, durably, that snapshots have more than the log has: records of it were lost.

    The cleaner keeps the newest snapshot then: it waits for one that covers what it cleans.
    """
    replace_file(disk, f"{folder}/{NEEDED_FILE}", b"")


def covers_up_to(disk: Disk, folder: str, position: int) -> bool:
    """Whether the log may be cleaned up to here, and older snapshots removed."""
    if not disk.exists(f"{folder}/{NEEDED_FILE}"):
        return True
    return max(snapshot_positions(disk, folder), default=position) >= position


def delete_snapshots_before(disk: Disk, folder: str, position: int) -> int:
    """Remove the snapshots of earlier positions, durably; how many.

    The log cleaner calls this before it drops tombstones below `position`: with such a snapshot and
    without the tombstones, a load would bring back what was deleted.
    """
    return _remove(disk, folder, [at for at in snapshot_positions(disk, folder) if at < position])


def delete_snapshots_after(disk: Disk, folder: str, log_end: int) -> int:
    """Remove the snapshots of a log that was longer, durably, before it grows again; how many."""
    return _remove(disk, folder, [at for at in snapshot_positions(disk, folder) if at > log_end])


def _remove(disk: Disk, folder: str, gone: list[int]) -> int:
    for position in gone:
        disk.remove(snapshot_path(folder, position))
    if gone:
        disk.sync_dir(folder)
    return len(gone)
