"""Journal limits: how much may wait, and how large the write-ahead files are."""

from typing import Final

from msgspec import Struct

from storage.api import JOURNALED_BATCH_BYTES_MAX
from storage.journal import write_ahead
from storage.journal.group_commit import ADAPTIVE

MAX_DECLARE_BYTES: Final = write_ahead.DECLARE_OVERHEAD + 249
"""A topic's name is no longer than these bytes."""


class JournalLimits(Struct, frozen=True):
    queue_bytes: int = 16 << 20  # waiting for a flush; above it shards accept no new writes
    queue_entries: int = 20_000
    batch_bytes: int = JOURNALED_BATCH_BYTES_MAX  # one append; shards answer an error before
    group_bytes: int = 4 << 20  # taken into one flush, so that answers come in even portions
    group_entries: int = 4_000  # likewise: the loop makes the flush of them in 5 ms
    file_bytes: int = 32 << 20  # each of the two write-ahead files
    pass_bytes: int = 8 << 20  # in one file, then a checkpoint; what a start has to replay
    linger_ms: int = ADAPTIVE  # how long a flush waits for more; see group_commit.py
    idle_ms: int = 5_000  # without an append, then a checkpoint: a start replays nothing
    reserve_bytes: int = 0  # of the disk, that commits leave free
    retry_ms: int = 1_000  # between two attempts to open again after a shortage

    def __post_init__(self) -> None:
        overhead = (write_ahead.BATCH_OVERHEAD + MAX_DECLARE_BYTES) * self.queue_entries
        largest = write_ahead.FIRST_GROUP + self.group_bytes + self.batch_bytes + overhead
        if self.file_bytes < largest:
            raise ValueError(f"one flush may take {largest} bytes")
