"""Load progress: what is done, and an estimate of the rest, for /readyz and the log.

A load reads logs and restores groups; both are counted in units of work that take about as long
each, so that the rest can be estimated from what is done.
"""

from typing import Final

from msgspec import Struct

UNITS_PER_LOG_BYTE: Final = 1
UNITS_PER_BLOB_BYTE: Final = 2
"""A group's offsets in columns are a tenth of their records, and take a fifth of the time."""

ESTIMATE_AFTER_MS: Final = 200
"""Before that an estimate would say more about the first partition than about the others."""


class LoadReport(Struct, frozen=True):
    """A load, as it is now. `left_ms` is an estimate; None while too little is done."""

    partitions: int
    partitions_read: int
    groups_found: int
    groups_ready: int
    records: int
    bytes: int
    bytes_total: int
    elapsed_ms: int
    left_ms: int | None


class LoadProgress:
    """One load: the partitions of its beginning, and those that were added while it ran."""

    __slots__ = (
        "_began_ms", "_groups_found", "_groups_ready", "_read", "_records", "_total",
        "_units_done", "_units_total", "bytes_read", "bytes_total",
    )  # fmt: skip

    def __init__(self, began_ms: int) -> None:
        self._began_ms = began_ms
        self._read = self._total = 0  # partitions
        self._groups_found = self._groups_ready = self._records = 0
        self._units_done = self._units_total = 0
        self.bytes_read = self.bytes_total = 0

    def expect(self, log_bytes: int, blob_bytes: int) -> None:
        """Add a partition of this size."""
        self._total += 1
        self.bytes_total += log_bytes
        self._units_total += UNITS_PER_LOG_BYTE * log_bytes + UNITS_PER_BLOB_BYTE * blob_bytes

    def took(self, records: int, log_bytes: int) -> None:
        """A slice of a log was read."""
        self._records += records
        self.bytes_read += log_bytes
        self._units_done += UNITS_PER_LOG_BYTE * log_bytes

    def read(self, groups: int) -> None:
        """A partition's log was read; its groups are restored from now on."""
        self._read += 1
        self._groups_found += groups

    def ready(self, groups: int, blob_bytes: int) -> None:
        self._groups_ready += groups
        self._units_done += UNITS_PER_BLOB_BYTE * blob_bytes

    def report(self, now_ms: int) -> LoadReport:
        elapsed_ms = now_ms - self._began_ms
        left_ms = None
        if elapsed_ms >= ESTIMATE_AFTER_MS and self._units_done:
            left = max(self._units_total - self._units_done, 0)
            left_ms = elapsed_ms * left // self._units_done
        return LoadReport(
            self._total,
            self._read,
            self._groups_found,
            self._groups_ready,
            self._records,
            min(self.bytes_read, self.bytes_total),
            self.bytes_total,
            elapsed_ms,
            left_ms,
        )
