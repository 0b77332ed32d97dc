"""Producer state: the sequence numbers of idempotent producers, per partition.

An idempotent producer numbers its records per partition. The last five batches of each producer are
kept: a repeated batch is answered with its offsets, one that leaves a gap is refused. Pure:
`append.py` calls `check` before an append and `appended` after it. After a restart the state is
restored from a snapshot and the batches after it.
Kafka's counterpart: `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct, field

from protocol.names import ErrorCode, ProducerId
from storage.batch.record_batch import NO_PRODUCER_ID, BatchHeader, read_header

BATCHES_REMEMBERED: Final = 5
"""What a producer may have in flight (max.in.flight.requests.per.connection with idempotence)."""

SEQUENCE_MAX: Final = 2**31 - 1


class SentBatch(NamedTuple):
    """An appended batch: the range of its sequence numbers, and its offset."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    timestamp_ms: int


class ProducerEntry(Struct):
    """The state of one producer in one partition."""

    epoch: int
    last_timestamp_ms: int
    batches: list[SentBatch] = field(default_factory=list)


class RejectedSequence(NamedTuple):
    error_code: ErrorCode
    reason: str


def last_sequence(first: int, last_offset_delta: int) -> int:
    """The last sequence number of a batch; 2^31 - 1 is followed by 0."""
    return (first + last_offset_delta) & SEQUENCE_MAX


class ProducerStates:
    """The producers of one partition, as of the offset `offset`."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.entries: dict[ProducerId, ProducerEntry] = {}
        self.saved_offset: int | None = None  # as of the last save; None if there was none
        self._changed: set[ProducerId] = set()  # since then

    def check(self, header: BatchHeader) -> SentBatch | RejectedSequence | None:
        """The batch that it repeats, or the error; None if it may be appended."""
        entry = self.entries.get(ProducerId(header.producer_id))
        if entry is None:
            # Unknown, or its records were removed by retention: any number is accepted.
            return None
        first = header.base_sequence
        if header.producer_epoch == entry.epoch:
            last = last_sequence(first, header.last_offset_delta)
            for sent in entry.batches:
                if sent.first_sequence == first and sent.last_sequence == last:
                    return sent
        return _check_order(header, entry)

    def appended(self, header: BatchHeader, first_offset: int, timestamp_ms: int) -> None:
        """Record a batch that was appended."""
        self.offset = first_offset + header.last_offset_delta + 1
        if header.producer_id == NO_PRODUCER_ID or header.is_control:
            return
        producer_id = ProducerId(header.producer_id)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(header.producer_epoch, timestamp_ms)
        elif entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches.clear()
        self._changed.add(producer_id)
        entry.last_timestamp_ms = timestamp_ms
        last = last_sequence(header.base_sequence, header.last_offset_delta)
        entry.batches.append(SentBatch(header.base_sequence, last, first_offset, timestamp_ms))
        del entry.batches[:-BATCHES_REMEMBERED]

    def replay(self, batches: Iterable[bytes]) -> None:
        """Update from stored batches; those before `offset` are known already."""
        for batch in batches:
            header = read_header(batch)
            if header.base_offset >= self.offset:
                self.appended(header, header.base_offset, header.max_timestamp)

    def expire(self, now_ms: int, producer_id_expiration_ms: int) -> int:
        """Remove producers that were idle for this long; how many."""
        idle = [
            producer_id
            for producer_id, entry in self.entries.items()
            if now_ms - entry.last_timestamp_ms >= producer_id_expiration_ms
        ]
        for producer_id in idle:
            del self.entries[producer_id]
        self._changed.update(idle)
        return len(idle)

    def take_changes(self) -> set[ProducerId] | None:
        """The producers changed or removed since the last call; None if nothing changed."""
        if not self._changed and self.offset == self.saved_offset:
            return None
        changed, self._changed = self._changed, set()
        return changed


def _check_order(header: BatchHeader, entry: ProducerEntry) -> RejectedSequence | None:
    first = header.base_sequence
    producer = f"producer {header.producer_id}"
    if header.producer_epoch < entry.epoch:
        return RejectedSequence(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"{producer} has epoch {header.producer_epoch}, {entry.epoch} was seen",
        )
    if header.producer_epoch > entry.epoch:
        if first == 0:
            return None
        return RejectedSequence(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"{producer} begins epoch {header.producer_epoch} with sequence number {first}, not 0",
        )
    if not entry.batches or first == last_sequence(entry.batches[-1].last_sequence, 1):
        return None
    return RejectedSequence(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"{producer} sent sequence number {first} after {entry.batches[-1].last_sequence}",
    )
