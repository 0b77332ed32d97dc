"""Which transactions of a log will a consumer pass over that asks for what was committed?

Nothing here writes a transaction, but the folder of a topic may have come from a Kafka: it has that
broker's own files beside its segments, and says so. Then the log is read through once, at the first
start with it; what was found is kept in a file of the folder, and what is appended from then on
adds nothing to it. The log itself is asked, not Kafka's index, which may be missing. The reading
also tells which producer ids that Kafka has given out: nobody here may be taken for one of those.

A transaction that was open counts as aborted. Its coordinator, who alone could have committed it,
did not come along; and a consumer that waited for the end would wait for ever.

Producers whose records are gone, by retention or DeleteRecords, are in Kafka's snapshots alone.
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
from storage.batch.chunks import Source, no_throttle
from storage.batch.record_batch import NO_PRODUCER_ID, iter_batches, read_header
from storage.disk import Disk, read_file, replace_file
from storage.log.producer_state import greatest_producer_id
from storage.log.segment import EVERYTHING, Segment
from storage.log.transaction_ends import Endings, find_endings

FILE: Final = "rollcall-aborted-transactions.json"

_VERSION: Final = 2
"""Of the file; 1 had no producer ids of snapshots."""

_SNAPSHOT: Final = ".snapshot"
KAFKAS_SUFFIXES: Final = (_SNAPSHOT, ".txnindex")
"""Of files that a Kafka keeps beside its segments and nobody writes here."""


class AbortedTransactions:
    """Those of one log, by where they ended."""

    __slots__ = ("_all", "_ends", "_first_from", "found_open", "is_news", "last_producer_id")

    def __init__(
        self,
        transactions: Iterable[AbortedTransaction],
        *,
        found_open: int = 0,
        last_producer_id: int = NO_PRODUCER_ID,
        is_news: bool = False,
    ) -> None:
        self._all = sorted(transactions, key=lambda one: one.last_offset)
        self._ends = [one.last_offset for one in self._all]
        # The earliest beginning of each and all that end after it: where a search may stop.
        firsts = accumulate((one.first_offset for one in reversed(self._all)), min)
        self._first_from = list(firsts)[::-1]
        self.found_open = found_open  # of them
        self.last_producer_id = last_producer_id  # the greatest in a log that came from elsewhere
        self.is_news = is_news  # the log was read through just now

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


def aborted_in_folder(
    disk: Disk, path: str, names: Iterable[str], segments: Sequence[Segment]
) -> AbortedTransactions:
    """What is known of a log's transactions, or found out now. Raises Corrupt, OSError."""
    signs = sorted(name for name in names if name.endswith(KAFKAS_SUFFIXES))
    if not signs:
        return NONE_ABORTED
    file = f"{path}/{FILE}"
    known = _read(disk, file, signs) if FILE in names else None
    if known is not None:
        return known
    endings = all_endings(disk, segments)
    last_producer_id = max(endings.last_producer_id, _last_in_snapshots(disk, path, signs))
    aborted = [
        AbortedTransaction(one.producer_id, one.first_offset, one.last_offset)
        for one in endings.aborted
    ]
    still_open = [
        AbortedTransaction(producer_id, first_offset, EVERYTHING)
        for first_offset, producer_id in endings.begun
    ]
    with suppress(OSError):  # a full disk: found out once more at the next start
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
        is_news=True,
    )


def _last_in_snapshots(disk: Disk, path: str, signs: Sequence[str]) -> int:
    contents = (read_file(disk, f"{path}/{one}") for one in signs if one.endswith(_SNAPSHOT))
    return max(map(greatest_producer_id, contents), default=NO_PRODUCER_ID)


def all_endings(disk: Disk, segments: Sequence[Segment]) -> Endings:
    """Read from the headers of all batches. Raises Corrupt, OSError."""
    sources = [Source(one.path, one.base_offset, one.next_offset, one.size) for one in segments]
    return find_endings(disk, sources, 0, no_throttle)


def _read(disk: Disk, file: str, signs: Sequence[str]) -> AbortedTransactions | None:
    """What was found before; None if that is unreadable, or a Kafka has had the log since then."""
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
