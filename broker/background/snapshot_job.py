"""Snapshot job: makes a snapshot of a partition from the snapshot before it and the log since then.

A job of the worker process (jobs.py): the daemon only says up to which position. It applies each
record as a load does, with the same functions; groups without a new record are copied unread. It
reads the files while the daemon appends to them, and writes one file of its own, complete and
durable, before it removes the older snapshots. See ADR 0008.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, cast
from uuid import UUID

from coordinator.consumer.restore import CONSUMER_RECORDS
from coordinator.group_types import plain_of
from coordinator.image import (
    BEFORE_CONSUMER_GROUPS,
    BEFORE_TRANSACTIONS,
    MEANING,
    SKIPPED_KEPT_MAX,
    Image,
    LoadStart,
)
from coordinator.loaded_record import StoredCommits
from coordinator.offsets.transactions import plain_transactions, transactions_of_plain
from coordinator.records import OFFSET_COMMIT, offset_key_prefix
from coordinator.stored_commits import loaded_records
from coordinator.stored_records import RecordSkipped
from protocol.names import OFFSETS_TOPIC
from storage import snapshot
from storage.api import Corrupt, StoredRecord, TopicPartition
from storage.batch.record_batch import (
    read_header,
    read_keys,
    read_sole_key,
    records_count,
    stored_records,
)
from storage.cleaner.cleaner import read_clean_offsets
from storage.disk import Disk
from storage.log.log_files import FilePosition, LogFiles
from storage.snapshot import SkippedSnapshot, Snapshot, SnapshotHeader, pack

KEYS_KEPT_MAX: Final = 100_000
"""Keys of commits that are kept in memory; beyond that all are applied, and the set is cleared."""

PRODUCERS_KEPT_MS: Final = 7 * 86_400_000
"""Producers that wrote no transaction for so long are left out, or they would only become more. The
default of transactional.id.expiration.ms: then their transactional ids are gone too."""

_OF_A_COMMIT: Final = OFFSET_COMMIT.to_bytes(2, "big")
_INT32: Final = Struct(">i")


class SnapshotAbandoned(Exception):
    """The files have changed during the read: no snapshot this time."""


def read_snapshot(
    disk: Disk, folder: str, *, log_end: int, topic_id: UUID
) -> tuple[Snapshot | None, list[SkippedSnapshot]]:
    """The newest one that a load, or the next snapshot, may begin with; and the ignored ones."""
    return snapshot.read_newest_snapshot(
        disk,
        folder,
        log_end=log_end,
        topic_id=topic_id,
        meaning=MEANING,
        means_the_same=_means_the_same,
    )


def _means_the_same(about: SnapshotHeader) -> bool:
    """An older one means the same if nothing was passed over that is read today."""
    if about.meaning not in (BEFORE_CONSUMER_GROUPS, BEFORE_TRANSACTIONS):
        return False
    skipped, open_records = cast("tuple[list[_Skipped], list[object]]", about.notes)
    if open_records:
        return False
    return about.meaning == BEFORE_TRANSACTIONS or (
        len(skipped) < SKIPPED_KEPT_MAX
        and all(record_type not in CONSUMER_RECORDS for _, record_type, _ in skipped)
    )


def load_start_of(base: Snapshot | None, log_start: int) -> LoadStart:
    """What is known before the log is read: from a snapshot, if there is one."""
    if base is None:
        return LoadStart(None, log_start, ())
    skipped, transactions = cast("tuple[list[_Skipped], object]", base.about.notes)
    return LoadStart(
        base,
        base.about.position,
        [RecordSkipped(*fields) for fields in skipped],
        # An older one has a list without an entry there.
        transactions_of_plain(transactions) if transactions else None,
    )


_Skipped = tuple[int, int, str | None]


def _notes(image: Image) -> object:
    skipped: list[_Skipped] = [
        (record.offset, record.record_type, record.name) for record in image.skipped
    ]
    return skipped, plain_transactions(image.transactions)


def take_snapshot(disk: Disk, arguments: dict[str, object]) -> dict[str, object]:
    """The job. Raises SnapshotAbandoned, UnreadableRecord, Corrupt, InvalidBatch, OSError."""
    try:
        return _take_snapshot(disk, arguments)
    except FileNotFoundError as gone:
        raise SnapshotAbandoned(f"a file was removed meanwhile: {gone}") from None


def _take_snapshot(disk: Disk, arguments: dict[str, object]) -> dict[str, object]:
    folder = str(arguments["folder"])
    up_to = int(str(arguments["up_to"]))
    topic_id = UUID(str(arguments["topic_id"]))
    base, ignored = read_snapshot(disk, folder, log_end=up_to, topic_id=topic_id)
    load_start = load_start_of(base, 0)
    position = load_start.position
    image = Image(load_start)
    epoch = 0 if base is None else base.about.leader_epoch
    files = LogFiles(disk, folder)
    newest = _NewestCommits(image)
    last = newest.write_all(files.batches(position, up_to, _end_of_last(arguments, position)))
    taken_at_ms = int(str(arguments["now_ms"]))
    image.transactions.producers.forget(taken_at_ms - PRODUCERS_KEPT_MS)
    _forget_aborted(disk, folder, image)
    if last is not None:
        header = read_header(last)
        position, epoch = header.next_offset, header.partition_leader_epoch
    about = SnapshotHeader(position, topic_id, epoch, taken_at_ms, MEANING, _notes(image))
    blobs = {group_id: pack(plain_of(group)) for group_id, group in image.read()}
    if base is not None:
        blobs.update((group_id, base.raw(group_id)) for group_id in image.unread())
        if not disk.exists(base.path):
            raise SnapshotAbandoned(f"{base.path} was removed meanwhile")
    if not files.is_unchanged():
        raise SnapshotAbandoned(f"segments of {folder} were replaced meanwhile")
    size = snapshot.write_snapshot(disk, folder, about, blobs.items())
    snapshot.delete_snapshots_before(disk, folder, position)
    return {
        "position": position,
        "groups": len(blobs),
        "records": newest.records,
        "bytes": size,
        "ignored": [list(snapshot_ignored) for snapshot_ignored in ignored],
        "end": files.end and (position, files.end),
    }


def _forget_aborted(disk: Disk, folder: str, image: Image) -> None:
    """Of the part that the cleaner has cleaned: their records are gone, nobody reads them."""
    data_dir, _, name = folder.rpartition("/")
    _, _, partition = name.rpartition("-")
    try:
        offsets = read_clean_offsets(disk, data_dir)
    except (OSError, Corrupt):
        return  # then the list is longer than it need be
    clean = offsets.get(TopicPartition(OFFSETS_TOPIC, int(partition)), 0)
    image.transactions.producers.forget_aborted(clean)


def _end_of_last(arguments: dict[str, object], position: int) -> FilePosition | None:
    """Where in the files the last job ended, if this one begins with its snapshot."""
    ended = cast("tuple[int, FilePosition] | None", arguments.get("ended"))
    return None if ended is None or ended[0] != position else FilePosition._make(ended[1])


class _NewestCommits:
    """Applies batches to the image; of commits with the same key only the newest.

    Most of a log is members that commit the same partitions again and again, a batch each; to
    decode all of that would cost a third of what the commits cost the daemon itself. Deferred
    commits are applied before a tombstone, a record of a group, and what a transaction wrote, which
    may depend on them. The first commit of a key is not deferred: it sets the age of a new group.
    """

    __slots__ = ("_committed", "_deferred", "_image", "_seen", "records")

    def __init__(self, image: Image) -> None:
        self._image = image
        self._seen: set[bytes] = set()  # keys of commits
        self._deferred: dict[bytes, bytes] = {}  # of these, the newest plain batch that has them
        self.records = 0

    def write_all(self, batches: Iterable[tuple[bytes, int]]) -> bytes | None:
        """Apply batches, each with its number of plain records; return the last one.

        Raises InvalidBatch, UnreadableRecord.
        """
        seen, deferred = self._seen, self._deferred
        batch, records = None, 0
        for batch, count in batches:
            if count == 1:
                key = read_sole_key(batch)
                if key in seen:
                    deferred[key] = batch
                    records += 1
                    continue
            elif count > 1:
                keys = read_keys(batch, count)
                if keys is not None and seen.issuperset(keys):
                    deferred.update(dict.fromkeys(keys, batch))
                    records += count
                    continue
            records += self._write(batch)
        self._apply_deferred()
        self.records = records
        return batch

    def _write(self, batch: bytes) -> int:
        """Apply a batch of any kind; return its number of records."""
        for record in loaded_records(batch):
            if isinstance(record, StoredCommits):
                self._write_commits(record)
            elif isinstance(record, StoredRecord):
                self._write_record(record)
            else:
                self._apply_deferred()  # They were before it: which one counts depends on that.
                self._image.apply(record)
        return records_count(batch)

    def _write_commits(self, commits: StoredCommits) -> None:
        prefix = offset_key_prefix(commits.group_id, commits.topic)
        self._have_seen({prefix + _INT32.pack(partition) for partition in commits.commits})
        self._image.apply(commits)

    def _write_record(self, record: StoredRecord) -> None:
        key = record.key
        if record.value is None or key is None or key[:2] != _OF_A_COMMIT:
            self._apply_deferred()
        else:
            self._have_seen({key})
        self._image.apply(record)

    def _have_seen(self, keys: set[bytes]) -> None:
        """These commits are applied: older ones that were deferred are not."""
        if len(self._seen) >= KEYS_KEPT_MAX:
            self._apply_deferred()
        for key in keys & self._deferred.keys():
            del self._deferred[key]
        self._seen |= keys

    def _apply_deferred(self) -> None:
        read, newest = b"", {}
        for key, batch in self._deferred.items():
            if batch is not read:
                read, newest = batch, {record.key: record for record in stored_records(batch)}
            self._image.apply(newest[key])
        self._deferred.clear()
        self._seen.clear()
