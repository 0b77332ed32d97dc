"""Moved log: what is known of the transactions in a log whose folder came from a Kafka.

Such a folder has `.snapshot` files that this broker has not written. At the first start with them
the log is read through once: its aborted transactions are written to the `.txnindex` files, because
Kafka's may be missing; the greatest producer id is noted, because no producer here may get one that
Kafka has given out; and so are the transactions that were open.

An open transaction can only be ended by its coordinator. If its state, `__transaction_state`, came
too, the transaction stays open. Otherwise it counts as aborted: it is `left_open`, and the data
plane appends the ABORT marker when it first uses the log. A consumer would wait forever.

Producers whose records were removed, by retention or DeleteRecords, are in Kafka's snapshots alone.
They may still be alive: their ids count too.

What was found is kept in a file of the folder. The same file is in a folder of ours from the first
file on that could be taken for a Kafka's.
Kafka's counterparts: TransactionIndex.collectAbortedTxns, ProducerStateManager.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from storage.api import AbortedTransaction, UnendedTransaction
from storage.batch.chunks import SegmentSource, no_throttle
from storage.batch.record_batch import NO_PRODUCER_ID
from storage.disk import Disk, parent, read_file, replace_file
from storage.log.producer_state import fault_in, greatest_producer_id, is_signed
from storage.log.segment import Segment
from storage.log.transaction_ends import TransactionOutcomes, find_outcomes
from storage.log.transaction_index import TRANSACTION_INDEX_SUFFIX

ABORTED_FILE: Final = "rollcall-aborted-transactions.json"

_VERSION: Final = 3
"""Of the file; 1 had no producer ids of snapshots, 2 the aborted transactions themselves."""

PRODUCER_SNAPSHOT_SUFFIX: Final = ".snapshot"
KAFKA_SUFFIXES: Final = (PRODUCER_SNAPSHOT_SUFFIX, TRANSACTION_INDEX_SUFFIX)
"""Of files that a Kafka keeps beside its segments, and this broker too."""

_TRANSACTION_STATE: Final = "__transaction_state-"


class MovedLog(Struct, frozen=True):
    """What came with a log from a Kafka; the defaults are of a log of ours."""

    left_open: Sequence[UnendedTransaction] = ()
    last_producer_id: int = NO_PRODUCER_ID
    aborted: int = 0  # transactions, if they were read in this start
    is_newly_read: bool = False  # the log was scanned in this start


OUR_LOG: Final = MovedLog()


def load_moved(
    disk: Disk, path: str, names: Iterable[str], segments: Sequence[Segment]
) -> MovedLog:
    """What a folder says of where it came from, or a scan. Raises Corrupt, OSError."""
    signs = sorted(name for name in names if name.endswith(KAFKA_SUFFIXES))
    if not signs:
        return OUR_LOG
    file = f"{path}/{ABORTED_FILE}"
    known = _read(disk, path, signs) if ABORTED_FILE in names else None
    if known is not None:
        return known
    outcomes = all_outcomes(disk, segments)
    last_producer_id = max(outcomes.last_producer_id, _last_in_snapshots(disk, path, signs))
    begun = [UnendedTransaction(producer_id, first) for first, producer_id in outcomes.begun]
    left_open = [] if _has_transaction_state(disk, parent(path)) else begun
    write_indexes(disk, segments, outcomes)
    with suppress(OSError):  # a full disk: the next start scans again
        content = {
            "version": _VERSION,
            "found_beside": signs,
            "last_producer_id": last_producer_id,
            "open": left_open,
        }
        replace_file(disk, file, json.dumps(content).encode())
    return MovedLog(left_open, last_producer_id, len(outcomes.aborted), is_newly_read=True)


def mark_as_ours(disk: Disk, path: str) -> None:
    """Say that the files which follow are of this broker, durably. Raises OSError."""
    if not disk.exists(f"{path}/{ABORTED_FILE}"):
        content = {
            "version": _VERSION,
            "found_beside": [],
            "last_producer_id": NO_PRODUCER_ID,
            "open": [],
        }
        replace_file(disk, f"{path}/{ABORTED_FILE}", json.dumps(content).encode())


def _has_transaction_state(disk: Disk, data_dir: str) -> bool:
    """Did the state of transaction coordinators come from a Kafka too?"""
    for name in disk.listdir(data_dir):
        if name.startswith(_TRANSACTION_STATE) and name.count(".") == 0:
            files = disk.listdir(f"{data_dir}/{name}")
            if any(file.endswith(PRODUCER_SNAPSHOT_SUFFIX) for file in files):
                return True
    return False


def _last_in_snapshots(disk: Disk, path: str, signs: Sequence[str]) -> int:
    names = [name for name in signs if name.endswith(PRODUCER_SNAPSHOT_SUFFIX)]
    contents = (read_file(disk, f"{path}/{name}") for name in names)
    return max(map(greatest_producer_id, contents), default=NO_PRODUCER_ID)


def all_outcomes(disk: Disk, segments: Sequence[Segment]) -> TransactionOutcomes:
    """Read from the headers of all batches. Raises Corrupt, OSError."""
    sources = [
        SegmentSource(segment.path, segment.base_offset, segment.next_offset, segment.size)
        for segment in segments
    ]
    return find_outcomes(disk, sources, 0, no_throttle)


def write_indexes(disk: Disk, segments: Sequence[Segment], outcomes: TransactionOutcomes) -> None:
    """Give every segment the index that its batches call for."""
    ended = sorted(outcomes.aborted, key=lambda each: each.last_offset)
    for segment in segments:
        index = segment.aborted
        wanted = [
            AbortedTransaction(each.producer_id, each.first_offset, each.last_offset, stable)
            for each in ended
            if segment.base_offset <= each.last_offset < segment.next_offset
            for stable in (each.last_stable_offset,)
        ]
        if [index[number] for number in range(len(index))] != wanted:
            index.clear()
            for aborted in wanted:
                index.append(aborted)
            with suppress(OSError):  # a full disk: they are in memory, and the next start scans
                index.save(disk, sync=True)


def _read(disk: Disk, path: str, signs: Sequence[str]) -> MovedLog | None:
    """What an earlier scan found; None if it is unreadable, or a Kafka has used the log since."""
    try:
        content = json.loads(read_file(disk, f"{path}/{ABORTED_FILE}"))
        if content["version"] != _VERSION:
            return None
        known = set(content["found_beside"])
        others = [
            name for name in signs if name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and name not in known
        ]
        if any(_is_of_kafka(read_file(disk, f"{path}/{name}")) for name in others):
            return None
        left_open = [UnendedTransaction(*map(int, row)) for row in content["open"]]
        return MovedLog(left_open, int(content["last_producer_id"]))
    except (ValueError, KeyError, TypeError):
        return None  # the log still says it


def _is_of_kafka(content: bytes) -> bool:
    """Is this a whole snapshot that another broker wrote? A torn one may be ours."""
    return fault_in(content) is None and not is_signed(content)
