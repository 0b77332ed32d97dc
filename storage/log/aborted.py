"""Aborted transactions of a moved log: what a read_committed consumer skips in a log from a Kafka.

Nothing here writes a transaction, but the folder of a topic may have come from a Kafka: it then has
that broker's own files beside its segments. Such a log is read through once, at the first start
with it. The result is kept in a file of the folder, and later appends add nothing to it. The log
itself is read, not Kafka's index, which may be missing. The scan also finds the producer ids that
Kafka has given out: no producer here may get one of those.

A transaction that was open counts as aborted. Its coordinator, which alone could have committed it,
is not here; and a consumer that waited for the end would wait for ever.

Producers whose records were removed, by retention or DeleteRecords, are in Kafka's snapshots alone.
They may still be alive: their ids count too.
Kafka's counterparts: TransactionIndex.collectAbortedTxns, ProducerStateManager.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Final

from storage.api import AbortedTransaction
from storage.batch.chunks import SegmentSource, no_throttle
from storage.batch.record_batch import NO_PRODUCER_ID, iter_batches, read_header
from storage.disk import Disk, read_file, replace_file
from storage.log.producer_state import greatest_producer_id
from storage.log.segment import EVERYTHING, Segment
from storage.log.transaction_ends import TransactionOutcomes, find_outcomes

ABORTED_FILE: Final = "rollcall-aborted-transactions.json"

_VERSION: Final = 2
"""Of the file; 1 had no producer ids of snapshots."""

_SNAPSHOT: Final = ".snapshot"
KAFKA_SUFFIXES: Final = (_SNAPSHOT, ".txnindex")
"""Of files that a Kafka keeps beside its segments and nobody writes here."""


class AbortedTransactions:
    """Those of one log, by where they ended."""

    __slots__ = ("_all", "_ends", "_first_from", "found_open", "is_newly_read", "last_producer_id")

    def __init__(
        self,
        transactions: Iterable[AbortedTransaction],
        *,
        found_open: int = 0,
        last_producer_id: int = NO_PRODUCER_ID,
        is_newly_read: bool = False,
    ) -> None:
        self._all = sorted(transactions, key=lambda each: each.last_offset)
        self._ends = [each.last_offset for each in self._all]
        # The earliest beginning of each and all that end after it: where a search may stop.
        firsts = accumulate((each.first_offset for each in reversed(self._all)), min)
        self._first_from = list(firsts)[::-1]
        self.found_open = found_open  # of them
        self.last_producer_id = last_producer_id  # the greatest in a log that came from elsewhere
        self.is_newly_read = is_newly_read  # the log was scanned in this start

    def __len__(self) -> int:
        return len(self._all)

    def among(self, batches: bytes) -> Sequence[AbortedTransaction]:
        """Those that overlap with these batches, in the order in which they ended."""
        if not self._all or not batches:
            return ()
        first = read_header(batches).base_offset
        up_to = max(header.next_offset for _, header in iter_batches(batches))
        found = []
        for number in range(bisect_left(self._ends, first), len(self._all)):
            if self._first_from[number] >= up_to:
                break
            if self._all[number].first_offset < up_to:
                found.append(self._all[number])
        return found


NONE_ABORTED: Final = AbortedTransactions(())


def load_aborted(
    disk: Disk, path: str, names: Iterable[str], segments: Sequence[Segment]
) -> AbortedTransactions:
    """A log's transactions, from the file or by a scan. Raises Corrupt, OSError."""
    signs = sorted(name for name in names if name.endswith(KAFKA_SUFFIXES))
    if not signs:
        return NONE_ABORTED
    file = f"{path}/{ABORTED_FILE}"
    known = _read(disk, file, signs) if ABORTED_FILE in names else None
    if known is not None:
        return known
    endings = all_outcomes(disk, segments)
    last_producer_id = max(endings.last_producer_id, _last_in_snapshots(disk, path, signs))
    aborted = [
        AbortedTransaction(outcome.producer_id, outcome.first_offset, outcome.last_offset)
        for outcome in endings.aborted
    ]
    still_open = [
        AbortedTransaction(producer_id, first_offset, EVERYTHING)
        for first_offset, producer_id in endings.begun
    ]
    with suppress(OSError):  # a full disk: the next start scans again
        content = {
            "version": _VERSION,
            "found_beside": signs,
            "last_producer_id": last_producer_id,
            "aborted": aborted,
            "open": still_open,
        }
        replace_file(disk, file, json.dumps(content).encode())
    return AbortedTransactions(
        [*aborted, *still_open],
        found_open=len(still_open),
        last_producer_id=last_producer_id,
        is_newly_read=True,
    )


def _last_in_snapshots(disk: Disk, path: str, signs: Sequence[str]) -> int:
    contents = (read_file(disk, f"{path}/{name}") for name in signs if name.endswith(_SNAPSHOT))
    return max(map(greatest_producer_id, contents), default=NO_PRODUCER_ID)


def all_outcomes(disk: Disk, segments: Sequence[Segment]) -> TransactionOutcomes:
    """Read from the headers of all batches. Raises Corrupt, OSError."""
    sources = [
        SegmentSource(segment.path, segment.base_offset, segment.next_offset, segment.size)
        for segment in segments
    ]
    return find_outcomes(disk, sources, 0, no_throttle)


def _read(disk: Disk, file: str, signs: Sequence[str]) -> AbortedTransactions | None:
    """What an earlier scan found; None if it is unreadable, or a Kafka has used the log since."""
    try:
        content = json.loads(read_file(disk, file))
        if content["version"] != _VERSION or not set(content["found_beside"]).issuperset(signs):
            return None
        still_open = content["open"]
        rows = [AbortedTransaction(*map(int, row)) for row in [*content["aborted"], *still_open]]
        return AbortedTransactions(
            rows, found_open=len(still_open), last_producer_id=int(content["last_producer_id"])
        )
    except (ValueError, KeyError, TypeError):
        return None  # the log still says it
