"""Tally: counts, transactions, and every damaged place found in a source.

Filled by the readers, printed by `report.py`, and complete with --json.
"""

from collections import Counter
from typing import Final, NamedTuple

from msgspec import Struct, field

ROOM: Final = "only zero bytes: room that was never written"


class BatchPosition(NamedTuple):
    """A batch in a file."""

    file: str
    position: int


class Damaged(NamedTuple):
    """Bytes that are no batch (`offset` is -1), or a record that cannot be understood."""

    file: str
    position: int
    offset: int
    reason: str


class TornTail(NamedTuple):
    """A batch that a killed broker had not written completely: it was never acknowledged."""

    file: str
    position: int
    size: int


class Pending(NamedTuple):
    """An offset that an open transaction holds back."""

    group: str
    topic: str
    partition: int
    offset: int
    producer_id: int


class TransactionCounts(Struct):
    committed: int = 0
    committed_records: int = 0
    aborted: int = 0
    aborted_records: int = 0
    pending: list[Pending] = field(default_factory=list)


class SourceStats(Struct):
    """One reading of a source."""

    source: str
    kind: str  # "kafka", "rollcall", "csv", "json" or "cluster"
    partitions: list[int] = field(default_factory=list)
    segments: int = 0
    batches: int = 0
    empty_batches: int = 0
    compressed_batches: int = 0
    control_batches: int = 0
    records: int = 0
    tombstones: int = 0
    by_type: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(type, "v3" or "tombstone"): those that count, with transactions that committed."""
    transactions: TransactionCounts = field(default_factory=TransactionCounts)
    damaged: list[Damaged] = field(default_factory=list)
    torn_tails: list[TornTail] = field(default_factory=list)
    in_use: list[str] = field(default_factory=list)
    """Directories on which a broker runs: new records may be missed."""
    kept_undecoded: int = 0
    """Records of unknown types and versions: kept unchanged."""

    @property
    def missing_partitions(self) -> list[int]:
        """Gaps: a source that has only some of a topic's partitions lacks their groups."""
        if not self.partitions:
            return []
        return sorted(set(range(max(self.partitions) + 1)) - set(self.partitions))
