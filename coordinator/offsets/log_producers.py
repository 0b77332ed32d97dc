"""Log producers: which producers wrote transactions to one partition, and how they ended.

Of each producer the newest epochs, and where its open transaction begins. From them follow the
refusals of late commits and markers, the last stable offset, the aborted transactions that a
read_committed Fetch names, and the answers of DescribeProducers.
Kafka's counterparts: `ProducerStateManager`, `ProducerAppendInfo`, for the batches of a
coordinator, whose sequences nobody checks.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from protocol.names import ErrorCode
from seams.transactions import TransactionMarker
from storage.api import AbortedTransaction, EndMarker

_NO_EPOCH: Final = -1
_NO_SEQUENCE: Final = -1

PRODUCER_EPOCH_MAX: Final = 32_767
"""The epoch of the marker that ends the last transaction of a producer id."""

STRICT_EPOCHS_SINCE: Final = 2
"""Transaction version: from it on each transaction has an epoch of its own."""


class LogProducer(Struct):
    """A producer of this log. `first_offset`: of its open transaction. `last_offset`: of its last
    batch in this epoch, markers not counted.
    """

    producer_epoch: int
    coordinator_epoch: int = _NO_EPOCH
    last_sequence: int = _NO_SEQUENCE
    last_timestamp_ms: int = -1
    first_offset: int | None = None
    last_offset: int | None = None


class ProducerRow(NamedTuple):
    """A producer as a snapshot keeps it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    first_offset: int | None
    last_offset: int | None = None


class LogProducers:
    __slots__ = ("_aborted", "_open", "_producers")

    def __init__(
        self,
        producers: Sequence[ProducerRow] = (),
        aborted: Sequence[AbortedTransaction] = (),
    ) -> None:
        self._producers = {row.producer_id: LogProducer(*row[1:]) for row in producers}
        begun = [(row.first_offset, row.producer_id) for row in producers
                 if row.first_offset is not None]  # fmt: skip
        # Where the open transactions begin, in the order of the log.
        self._open: dict[int, int] = {producer_id: first for first, producer_id in sorted(begun)}
        self._aborted = list(aborted)  # in the order of their markers

    # ------------------------------------------------------------ questions

    @property
    def first_unstable(self) -> int | None:
        """Where the oldest open transaction begins; None if there is none."""
        return next(iter(self._open.values()), None)

    @property
    def producers(self) -> Mapping[int, LogProducer]:
        return self._producers

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        return self._aborted

    def has_open(self, producer_id: int, producer_epoch: int) -> bool:
        """Has it an open transaction in exactly this epoch?"""
        if producer_id not in self._open:
            return False
        return self._producers[producer_id].producer_epoch == producer_epoch

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """Is a later epoch of the producer known?"""
        known = self._producers.get(producer_id)
        return known is not None and producer_epoch < known.producer_epoch

    def marker_refusal(self, marker: TransactionMarker) -> ErrorCode:
        """Why this marker must not be appended; NONE if it may."""
        known = self._producers.get(marker.producer_id)
        if known is None:
            return ErrorCode.NONE
        epoch = marker.producer_epoch
        if epoch < known.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch == known.producer_epoch and marker.transaction_version >= STRICT_EPOCHS_SINCE:
            # Only as the repetition of a marker, or in the last epoch of a producer id.
            is_repeated = marker.producer_id not in self._open
            if not is_repeated and epoch != PRODUCER_EPOCH_MAX:
                return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < known.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def aborted_between(self, from_offset: int, up_to: int) -> list[AbortedTransaction]:
        """Those with a marker at or after `from_offset` that begin before `up_to`.

        Readers in other threads ask too.
        """
        aborted = self._aborted
        place = bisect_left(aborted, from_offset, key=lambda each: each.last_offset)
        return [each for each in aborted[place:] if each.first_offset < up_to]

    def rows(self) -> Iterator[ProducerRow]:
        for producer_id, known in self._producers.items():
            yield ProducerRow(
                producer_id,
                known.producer_epoch,
                known.coordinator_epoch,
                known.last_sequence,
                known.last_timestamp_ms,
                known.first_offset,
                known.last_offset,
            )

    # ------------------------------------------------------------ changes

    def wrote(
        self,
        producer_id: int,
        producer_epoch: int,
        first_offset: int,
        last_offset: int,
        last_sequence: int,
        timestamp_ms: int,
    ) -> None:
        """A batch of its transaction, or a record of one."""
        known = self._producers.get(producer_id)
        if known is None:
            known = self._producers[producer_id] = LogProducer(producer_epoch)
        known.producer_epoch = producer_epoch
        known.last_offset = last_offset
        known.last_sequence = last_sequence
        known.last_timestamp_ms = timestamp_ms
        if known.first_offset is None:
            known.first_offset = self._open[producer_id] = first_offset

    def ended(self, marker: EndMarker, offset: int, timestamp_ms: int) -> None:
        """A marker was appended at this offset."""
        producer_id = marker.producer_id
        known = self._producers.get(producer_id)
        if known is None:
            known = self._producers[producer_id] = LogProducer(marker.producer_epoch)
        if marker.producer_epoch != known.producer_epoch:
            known.producer_epoch = marker.producer_epoch
            known.last_offset = None
            known.last_sequence = _NO_SEQUENCE
        known.coordinator_epoch = marker.coordinator_epoch
        known.last_timestamp_ms = timestamp_ms
        known.first_offset = None
        first_offset = self._open.pop(producer_id, None)
        if first_offset is not None and not marker.is_commit:
            stable = offset + 1 if self.first_unstable is None else self.first_unstable
            self._aborted.append(AbortedTransaction(producer_id, first_offset, offset, stable))

    def forget(self, before_ms: int) -> None:
        """Forget the producers without a transaction that wrote nothing since (wall clock)."""
        gone = [
            producer_id
            for producer_id, known in self._producers.items()
            if known.first_offset is None and known.last_timestamp_ms < before_ms
        ]
        for producer_id in gone:
            del self._producers[producer_id]

    def forget_aborted(self, before: int) -> None:
        """The log has nothing of transactions left that were aborted before this offset."""
        place = bisect_left(self._aborted, before, key=lambda each: each.last_offset)
        self._aborted = self._aborted[place:]  # a reader may be going through the other one

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        begun = {
            producer_id: known.first_offset
            for producer_id, known in self._producers.items()
            if known.first_offset is not None
        }
        assert begun == self._open, "the open transactions are off"
        first = list(self._open.values())
        assert first == sorted(first), "open transactions out of order"
