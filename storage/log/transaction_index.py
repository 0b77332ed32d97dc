"""Transaction index: the aborted transactions of a segment, the `.txnindex` file beside it.

Kafka's format: entries of 34 bytes (version, producer id, first offset, last offset, last stable
offset), in the order of the markers, in the segment that holds the marker. A segment without
aborted transactions has no file.

Entries are kept in memory as they are in the file. One thread appends while others look up: an
entry is visible once the bytes are there as a whole, so readers need no lock.
Kafka's counterparts: TransactionIndex, AbortedTxn.
"""

from bisect import bisect_left
from struct import Struct
from typing import Final

from storage.api import AbortedTransaction
from storage.disk import Disk
from storage.log.index import BadIndex, read_whole_entries, write_entries

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class TransactionIndex:
    """The aborted transactions of one segment, by where they ended."""

    __slots__ = ("_content", "_saved", "_synced", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._content = bytearray()
        self._saved = 0  # bytes that the file has; none: there is no file
        self._synced = 0  # that were synced; -1 while the file has other bytes too

    def __len__(self) -> int:
        return len(self._content) // _ENTRY.size

    def __getitem__(self, number: int) -> AbortedTransaction:
        _, *fields = _ENTRY.unpack_from(self._content, number * _ENTRY.size)
        return AbortedTransaction(*fields)

    @property
    def has_file(self) -> bool:
        return self._saved > 0 or self._synced < 0

    def first_from(self, offset: int) -> int:
        """The number of the first entry that ended at or after `offset`."""
        return bisect_left(range(len(self)), offset, key=lambda number: self[number].last_offset)

    def append(self, aborted: AbortedTransaction) -> None:
        self._content += _ENTRY.pack(_VERSION, *aborted)

    def truncate(self, offset: int) -> None:
        """Forget the transactions that ended at or after `offset`."""
        keep = self.first_from(offset) * _ENTRY.size
        del self._content[keep:]
        if keep < self._saved:
            self._saved, self._synced = keep, -1

    def load(self, disk: Disk) -> None:
        """Read the file; BadIndex unless it rises and has whole entries."""
        content = read_whole_entries(disk, self.path, 1)
        self._content = bytearray(content[: len(content) - len(content) % _ENTRY.size])
        self._saved, self._synced = len(self._content), -1
        if len(self._content) != len(content):
            raise BadIndex(f"{self.path} ends within an entry")
        previous = -1
        for version, producer_id, first, last, stable in _ENTRY.iter_unpack(self._content):
            is_sound = (
                version == _VERSION
                and producer_id >= 0
                and 0 <= first <= last
                and previous < last
                and 0 <= stable <= last + 1
            )
            if not is_sound:
                raise BadIndex(f"{self.path} has an entry that cannot be")
            previous = last

    def clear(self) -> None:
        """Drop all entries, whatever the file has: the next save writes the whole file."""
        self._content.clear()
        self._saved, self._synced = 0, -1

    def save(self, disk: Disk, *, sync: bool) -> None:
        """Write the entries that the file lacks; cut what it has too much. Raises OSError."""
        if self._saved == len(self._content) and (not sync or self.is_durable):
            return
        end = len(self._content)
        lacking = bytes(self._content[self._saved : end])
        write_entries(disk, self.path, lacking, self._saved, sync=sync)
        self._saved = end
        self._synced = end if sync else -1

    @property
    def is_durable(self) -> bool:
        return self._synced == len(self._content)
