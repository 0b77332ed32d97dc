"""Storage API: records, positions and the two kinds of log that the other packages may use.

`Log` is what a coordinator shard appends to: its answers wait until a position is stored.
`TopicLog` is what the data plane appends whole record batches to and what Fetch reads, the offsets
topic included. The implementations are beside this file; only the shell imports them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from msgspec import Struct

Position = int
"""A log end offset: the offset after the last record of an append. Stored when `stored >= it`."""


JOURNALED_BATCH_BYTES_MAX = 8 << 20
"""Largest append of a coordinator; a request that needs a larger one gets an error."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Record(NamedTuple):
    """One keyed record; `value is None` is a tombstone."""

    key: bytes
    value: bytes | None


RecordPair = tuple[bytes, bytes | None]
"""A record as a log takes it: a `Record`, or a plain pair, four times as fast to make."""


class StoredRecord(NamedTuple):
    """A record read back: with its offset and its timestamp (ms, Unix epoch)."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class BatchProducer(NamedTuple):
    """Who writes a transactional batch."""

    producer_id: int
    producer_epoch: int


class EndMarker(NamedTuple):
    """What a control batch says: the end of a producer's transaction in this log."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int


class TransactionalRecord(NamedTuple):
    """A record of a transaction read back; it counts if a marker commits the transaction."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    producer_id: int
    producer_epoch: int
    sequence: int


class StoredMarker(NamedTuple):
    """A marker read back."""

    offset: int
    timestamp_ms: int
    marker: EndMarker


LoggedRecord = StoredRecord | TransactionalRecord | StoredMarker
"""What a load reads of a log, in its order."""


class AbortedTransaction(NamedTuple):
    """Of one producer in one log: from its first record to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """Once it had ended: where another transaction began that was open, or what follows it."""


class UnendedTransaction(NamedTuple):
    """Of a producer in one log, without a marker so far."""

    producer_id: int
    first_offset: int


class StoredProducer(NamedTuple):
    """A producer with its last batch in a log, as Kafka's `.snapshot` files have it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int  # -1: there is no batch of this epoch
    last_offset: int
    offset_delta: int  # of the last offset to the first
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int | None


class ProducerSnapshotFiles(Protocol):
    """The `.snapshot` files of a log."""

    rolled_at: int
    """Where the last segment begins that this process has begun; -1: none."""

    def write(self, offset: int, producers: Sequence[StoredProducer]) -> None:
        """Write the producers as of an offset; other files stay where a segment begins."""

    def read(self, log_start: int, log_end: int) -> tuple[int, Sequence[StoredProducer]] | None:
        """The newest between these offsets: (offset, producers); None if there is none."""


class LogClosed(Exception):
    """The log takes no more writes (a failed write or fsync, a resignation, a shutdown)."""


class SyncFailed(OSError):
    """An fsync failed: its bytes may be lost, and a second fsync would succeed without them."""


class Corrupt(Exception):
    """What the disk holds is not what was written: fails the partition, never the process.

    `remedy` says what an operator can do, where that is not what most damage calls for.
    """

    remedy: str | None = None

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class TruncatedLog(Corrupt):
    """Offsets that were durable are missing, though no byte that is left is damaged."""

    def __init__(
        self,
        path: str,
        position: int,
        reason: str,
        offsets: tuple[int, int],
        evidence: tuple[str, ...] = (),
    ) -> None:
        """`offsets`: the first and the last that are missing. `evidence`: files that prove it and
        that a repair removes."""
        super().__init__(path, position, reason)
        self.offsets = offsets
        self.evidence = evidence


class NewerFormat(Corrupt):
    """A file is sound, but of a later Rollcall: no repair of ours can help."""

    remedy = (
        "start that newer version again, or bring the whole data directory back from a copy made "
        "before that one used it"
    )

    def __init__(self, path: str, found: int, known: int) -> None:
        words = f"written by a newer Rollcall: it has format {found}, this one knows {known}"
        super().__init__(path, 0, words)


class Log(Protocol):
    """One partition of `__consumer_offsets`, as a coordinator shard sees it. No call waits."""

    @property
    def end_position(self) -> Position:
        """The position that the next append starts at."""

    @property
    def leader_epoch(self) -> int:
        """The epoch that this owner writes with; it grows with each election."""

    @property
    def stored_position(self) -> Position:
        """Everything before this position is as durable as `rollcall.flush` promises."""

    def has_room(self) -> bool:
        """False while the journal is full or closed: then decide nothing that needs a write."""

    def append(
        self,
        records: Sequence[RecordPair],
        timestamp_ms: int,
        producer: BatchProducer | None = None,
    ) -> Position:
        """Queue one atomic batch, all with one timestamp; returns the position after it.

        With a producer it is a batch of its transaction.
        Raises LogClosed. The caller keeps answers that depend on the batch until it is stored.
        """

    def append_marker(self, marker: EndMarker, timestamp_ms: int) -> Position:
        """Queue the control batch that ends a producer's transaction; as `append`."""


class LogSettings(Struct, frozen=True):
    """Settings of one log: Kafka's topic configs of the same names."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4_096
    retention_ms: int = 604_800_000  # -1: no limit; not applied when compacted only
    retention_bytes: int = -1
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_compaction_lag_max_bytes: int = -1  # ours: the lag protects no more; -1: no limit
    max_compaction_lag_ms: int = 2**63 - 1
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000


class TopicLog(Protocol):
    """One partition of any topic: whole record batches (v2) by offset."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def topic_id(self) -> UUID: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int:
        """Readers see nothing at or after it. Equals the log end except for journaled logs."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def last_producer_id(self) -> int:
        """The greatest that another broker gave out and this log has; -1 for a log of ours."""

    def greatest_producer_id(self) -> int:
        """The greatest in any batch; -1 if there is none. Reads the whole log's headers.

        Raises OSError, Corrupt.
        """

    settings: LogSettings

    def append(self, batches: bytes, now_ms: int) -> int:
        """Append complete, already checked v2 batches; returns the first base offset assigned.

        Rewrites each batch's base offset and partition leader epoch (both outside its CRC). Goes to
        the page cache before it returns. Raises LogClosed or OSError; then nothing was appended.
        """

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> bytes:
        """Whole batches as stored, from the one that holds `offset`, below the offset `up_to`.

        Empty when `offset >= up_to`. With `at_least_one` the first batch comes even if it is larger
        than `max_bytes`; otherwise never more than `max_bytes`. Raises IndexError when `offset` is
        below the log start or above the log end.
        """

    def read_open(
        self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool
    ) -> bytes | None:
        """As `read`, for the event loop: None if a file would have to be opened first."""

    def aborted_among(self, batches: bytes) -> Sequence[AbortedTransaction]:
        """Those that overlap with batches that were read, for a consumer that asks for them."""

    @property
    def left_open(self) -> Sequence[UnendedTransaction]:
        """Transactions that were open when the log came from another broker, without that broker's
        transaction coordinator: nobody else will end them."""

    @property
    def producer_files(self) -> ProducerSnapshotFiles: ...

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """Note a transaction whose ABORT marker was appended. Not synced."""

    def replace_aborted(self, from_offset: int, aborted: Sequence[AbortedTransaction]) -> None:
        """Note these instead of what is known of the markers at or after an offset."""

    def sync_aborted(self) -> None:
        """fsync what is known of aborted transactions. Raises OSError."""

    def batches(self, from_offset: int) -> Iterator[bytes]:
        """Every stored batch from the one holding `from_offset` on, in order, one at a time."""

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record with a timestamp >= this one; None if none."""

    def max_timestamp(self) -> tuple[int, int] | None:
        """(timestamp, offset) of the record with the greatest timestamp; None when empty."""

    def delete_before(self, offset: int) -> int:
        """Move the log start offset up (DeleteRecords, retention); returns the new log start."""

    def enforce_retention(self, now_ms: int) -> int:
        """Roll by age, drop what retention.ms/retention.bytes say; returns segments deleted."""

    def flush(self) -> None:
        """fsync what was appended."""

    def close(self) -> None: ...


class LogStore(Protocol):
    """The partitions under one data directory."""

    def partitions(self) -> dict[TopicPartition, TopicLog]:
        """All open partition logs, as of now."""

    @property
    def unexpected(self) -> Sequence[TopicPartition]:
        """Partitions that a start found to be gone, of topics that it did not know of."""

    def unserved(self) -> dict[TopicPartition, UUID]:
        """Those that are damaged, with the topic id in their folders; all zeros if it has none."""

    def create(
        self, topic_partition: TopicPartition, topic_id: UUID, settings: LogSettings
    ) -> TopicLog:
        """As `create_all`, of one."""

    def create_all(
        self, topic_partitions: Sequence[TopicPartition], topic_id: UUID, settings: LogSettings
    ) -> Sequence[TopicLog]:
        """Make partitions, all or none. Raises OSError."""

    def delete(self, *topic_partitions: TopicPartition) -> None:
        """Rename each folder to `<topic>-<n>.<hex>-delete`, then remove it; and durably forget
        the log starts and recovery points, because other partitions may get these names."""

    def mark_stray(self, *topic_partitions: TopicPartition) -> Sequence[str]:
        """Rename each folder to `<topic>-<n>.<hex>-stray` and close its log; the new paths."""
