"""Producer state: sequence numbers and open transactions of producers, per partition.

An idempotent producer numbers its records per partition. The last five batches of each producer are
kept: a repeated batch is answered with its offsets, one that leaves a gap is refused. A
transactional batch opens a transaction of its producer, a marker ends it. Pure: `append.py` asks
`check` or `check_marker` before an append and calls `appended` or `marker_appended` after it. After
a restart the state is restored from a snapshot and the batches after it.
Kafka's counterpart: `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`,
`VerificationStateEntry`.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct, field

from protocol.names import ErrorCode, ProducerId
from seams.transactions import TransactionMarker
from storage.api import AbortedTransaction, EndMarker, StoredProducer
from storage.batch.control_batch import NO_COORDINATOR_EPOCH, NO_SEQUENCE, read_marker
from storage.batch.record_batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    BatchHeader,
    read_header,
)

BATCHES_REMEMBERED: Final = 5
"""What a producer may have in flight (max.in.flight.requests.per.connection with idempotence)."""

SEQUENCE_MAX: Final = 2**31 - 1
EPOCH_MAX: Final = 2**15 - 1
NO_OFFSET: Final = -1
EPOCH_PER_TRANSACTION: Final = 2
"""The first transaction version whose markers have a greater epoch than the records."""


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
    coordinator_epoch: int = NO_COORDINATOR_EPOCH  # of its last marker
    transaction_first_offset: int | None = None  # of the open transaction

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Verification(Struct, eq=False):
    """A transactional batch was received and is being verified (KIP-890).

    It stays until a batch of the transaction was appended, or a marker has ended the transaction: a
    batch whose verification is gone must not be appended.
    """

    epoch: int
    lowest_sequence: int  # of the batches that were tried
    bumps_epoch: bool  # the client uses an epoch per transaction
    began_ms: int

    def add(self, epoch: int, sequence: int) -> None:
        """Another batch of the producer was received."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


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
        self.verifications: dict[ProducerId, Verification] = {}  # the event loop adds to it
        self._open: dict[ProducerId, int] = {}  # first offsets, in their order
        self._changed: set[ProducerId] = set()  # since the last save
        self.replayed_from = offset
        self.replayed_aborted: list[AbortedTransaction] = []  # from there on

    # Transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open.values()), None)

    def has_open(self, producer_id: int) -> bool:
        """Whether the producer has an open transaction here, of whatever epoch."""
        return ProducerId(producer_id) in self._open

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has an open transaction of this epoch here."""
        entry = self.entries.get(ProducerId(producer_id))
        return (
            entry is not None
            and entry.transaction_first_offset is not None
            and entry.epoch == epoch
        )

    def restore_entries(self, entries: dict[ProducerId, ProducerEntry]) -> None:
        """Begin with these, from a snapshot."""
        self.entries = entries
        begun = [
            (entry.transaction_first_offset, producer_id)
            for producer_id, entry in entries.items()
            if entry.transaction_first_offset is not None
        ]
        self._open = {producer_id: first for first, producer_id in sorted(begun)}

    def stored(self) -> list[StoredProducer]:
        """In the form of Kafka's snapshots, with the last batch of each."""
        return [
            StoredProducer(
                producer_id,
                entry.epoch,
                entry.last_sequence,
                sent.first_offset + delta if sent else NO_OFFSET,
                delta,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            for producer_id, entry in self.entries.items()
            for sent in (entry.batches[-1] if entry.batches else None,)
            for delta in ((sent.last_sequence - sent.first_sequence) & SEQUENCE_MAX if sent else 0,)
        ]

    def use_stored(self, offset: int, producers: Iterable[StoredProducer]) -> None:
        """Begin with these, as of an offset, from a snapshot of Kafka."""
        self.offset = self.replayed_from = offset
        self.restore_entries({ProducerId(each.producer_id): _entry_of(each) for each in producers})

    def verification(
        self, header: BatchHeader, now_ms: int, *, bumps_epoch: bool
    ) -> Verification | None:
        """Before a transactional batch is verified; None if its transaction is open here."""
        producer_id = ProducerId(header.producer_id)
        if self.is_open(producer_id, header.producer_epoch):
            return None
        epoch, sequence = header.producer_epoch, header.base_sequence
        found = self.verifications.get(producer_id)
        if found is None:
            found = Verification(epoch, sequence, bumps_epoch, now_ms)
            self.verifications[producer_id] = found
        else:
            found.add(epoch, sequence)
        return found

    # Before an append

    def check(
        self,
        header: BatchHeader,
        verification: Verification | None = None,
        *,
        must_verify: bool = False,
    ) -> SentBatch | RejectedSequence | None:
        """The batch that it repeats, or the error; None if it may be appended."""
        entry = self.entries.get(ProducerId(header.producer_id))
        if entry is not None and header.producer_epoch == entry.epoch:
            first = header.base_sequence
            last = last_sequence(first, header.last_offset_delta)
            for sent in entry.batches:
                if sent.first_sequence == first and sent.last_sequence == last:
                    return sent
        if header.is_transactional and not self.is_open(header.producer_id, header.producer_epoch):
            if entry is not None and header.producer_epoch < entry.epoch:
                return _old_epoch(header, entry)
            current = self.verifications.get(ProducerId(header.producer_id))
            if must_verify and (verification is None or current is not verification):
                return RejectedSequence(
                    ErrorCode.INVALID_TXN_STATE,
                    f"the transaction of producer {header.producer_id} has ended",
                )
        return self._check_order(header, entry)

    def _check_order(
        self, header: BatchHeader, entry: ProducerEntry | None
    ) -> RejectedSequence | None:
        first, producer = header.base_sequence, f"producer {header.producer_id}"
        if header.producer_epoch < (NO_PRODUCER_EPOCH if entry is None else entry.epoch):
            return _old_epoch(header, entry)
        verification = self.verifications.get(ProducerId(header.producer_id))
        if verification is not None and verification.bumps_epoch and entry is None and first:
            return _out_of_order(f"{producer} begins with sequence number {first}, not 0")
        if verification is not None and first > verification.lowest_sequence:
            lowest = verification.lowest_sequence
            return _out_of_order(f"{producer} sent {first}, {lowest} was not appended yet")
        if entry is None:
            # Unknown, or it was idle for too long: any number is accepted.
            return None
        if header.producer_epoch > entry.epoch:
            if first:
                epoch = header.producer_epoch
                return _out_of_order(
                    f"{producer} begins epoch {epoch} with sequence number {first}, not 0"
                )
        elif first != last_sequence(entry.last_sequence, 1):
            return _out_of_order(
                f"{producer} sent sequence number {first} after {entry.last_sequence}"
            )
        if entry.transaction_first_offset is not None and not header.is_transactional:
            reason = f"{producer} sent a batch outside of its open transaction"
            return RejectedSequence(ErrorCode.INVALID_TXN_STATE, reason)
        return None

    def check_marker(self, marker: TransactionMarker) -> RejectedSequence | None:
        """Why the marker must not be appended; None if it may."""
        entry = self.entries.get(marker.producer_id)
        if entry is None:
            return None
        epoch = marker.producer_epoch
        if marker.transaction_version < EPOCH_PER_TRANSACTION:
            is_old = epoch < entry.epoch
        else:
            is_repeated = epoch == entry.epoch and (
                entry.transaction_first_offset is None or epoch == EPOCH_MAX
            )
            is_old = epoch <= entry.epoch and not is_repeated
        if is_old:
            reason = f"marker of epoch {epoch}, producer {marker.producer_id} has {entry.epoch}"
            return RejectedSequence(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            return RejectedSequence(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch}, {entry.coordinator_epoch} was seen",
            )
        return None

    # After an append

    def appended(self, header: BatchHeader, first_offset: int, timestamp_ms: int) -> None:
        """Note a batch that was appended; a marker is `marker_appended`."""
        self.offset = first_offset + header.last_offset_delta + 1
        if header.producer_id <= NO_PRODUCER_ID or header.is_control:
            return
        producer_id = ProducerId(header.producer_id)
        entry = self._entry(producer_id, header.producer_epoch, timestamp_ms)
        last = last_sequence(header.base_sequence, header.last_offset_delta)
        entry.batches.append(SentBatch(header.base_sequence, last, first_offset, timestamp_ms))
        del entry.batches[:-BATCHES_REMEMBERED]
        if header.is_transactional:
            self.verifications.pop(producer_id, None)
            if entry.transaction_first_offset is None:
                entry.transaction_first_offset = self._open[producer_id] = first_offset

    def marker_appended(
        self, marker: EndMarker, offset: int, timestamp_ms: int
    ) -> AbortedTransaction | None:
        """Note a marker that was appended; the transaction that it has aborted, if any."""
        self.offset = offset + 1
        producer_id = ProducerId(marker.producer_id)
        entry = self._entry(producer_id, marker.producer_epoch, timestamp_ms)
        entry.coordinator_epoch = marker.coordinator_epoch
        verification = self.verifications.get(producer_id)
        # The next transaction may be verified already while the markers of this one are written.
        is_of_next = (
            verification is not None
            and verification.bumps_epoch
            and verification.epoch == marker.producer_epoch
        )
        if not is_of_next:
            self.verifications.pop(producer_id, None)
        first_offset, entry.transaction_first_offset = entry.transaction_first_offset, None
        self._open.pop(producer_id, None)
        if first_offset is None or marker.is_commit:
            return None
        stable = self.first_unstable_offset
        return AbortedTransaction(
            producer_id, first_offset, offset, offset + 1 if stable is None else stable
        )

    def _entry(self, producer_id: ProducerId, epoch: int, timestamp_ms: int) -> ProducerEntry:
        self._changed.add(producer_id)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(epoch, timestamp_ms)
        elif entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches.clear()
        entry.last_timestamp_ms = timestamp_ms
        return entry

    def replay(self, batches: Iterable[bytes]) -> None:
        """Update from stored batches; those before `offset` are known already.

        Not so the batch that holds it: DeleteRecords may move the log start into a batch.
        """
        for batch in batches:
            header = read_header(batch)
            if header.next_offset <= self.offset:
                continue
            marker = read_marker(batch, header) if header.is_control else None
            if marker is None:
                self.appended(header, header.base_offset, header.max_timestamp)
                continue
            ended = self.marker_appended(marker, header.base_offset, header.max_timestamp)
            if ended is not None:
                self.replayed_aborted.append(ended)

    def expire(self, now_ms: int, producer_id_expiration_ms: int) -> int:
        """Remove producers that were idle for this long; how many."""
        idle = [
            producer_id
            for producer_id, entry in self.entries.items()
            if now_ms - entry.last_timestamp_ms >= producer_id_expiration_ms
            and entry.transaction_first_offset is None
        ]
        for producer_id in idle:
            del self.entries[producer_id]
        self._changed.update(idle)
        for producer_id, verification in tuple(self.verifications.items()):
            if now_ms - verification.began_ms >= producer_id_expiration_ms:
                self.verifications.pop(producer_id, None)
        return len(idle)

    def take_changes(self) -> set[ProducerId] | None:
        """The producers changed or removed since the last call; None if nothing changed."""
        if not self._changed and self.offset == self.saved_offset:
            return None
        changed, self._changed = self._changed, set()
        return changed


def _old_epoch(header: BatchHeader, entry: ProducerEntry | None) -> RejectedSequence:
    seen = NO_PRODUCER_EPOCH if entry is None else entry.epoch
    return RejectedSequence(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id} has epoch {header.producer_epoch}, {seen} was seen",
    )


def _out_of_order(reason: str) -> RejectedSequence:
    return RejectedSequence(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)


def _entry_of(stored: StoredProducer) -> ProducerEntry:
    entry = ProducerEntry(
        stored.producer_epoch,
        stored.timestamp_ms,
        [],
        stored.coordinator_epoch,
        stored.transaction_first_offset,
    )
    if stored.last_sequence != NO_SEQUENCE:
        first_sequence = (stored.last_sequence - stored.offset_delta) & SEQUENCE_MAX
        first_offset = stored.last_offset - stored.offset_delta
        sent = SentBatch(first_sequence, stored.last_sequence, first_offset, stored.timestamp_ms)
        entry.batches.append(sent)
    return entry
