"""Left open transactions: ends those of the offsets topic that no coordinator can end.

The folder of a partition may have come from a Kafka without its `__transaction_state`. Nobody could
commit such a transaction any more, and clients that ask for stable offsets would wait forever. It
gets an ABORT marker after the load. For the other topics `topics/producer_recovery.py` does this.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from protocol.names import ErrorCode, ProducerId
from seams.now import Now
from seams.transactions import TransactionMarker


class OffsetsProducer(Protocol):
    @property
    def producer_epoch(self) -> int: ...

    @property
    def coordinator_epoch(self) -> int: ...

    @property
    def first_offset(self) -> int | None:
        """Of its open transaction."""


class OffsetsTransactions(Protocol):
    """The group coordinator's side of transactions."""

    def producers(self, partition: int, /) -> Mapping[int, OffsetsProducer] | None: ...

    def write_marker(
        self,
        partition: int,
        marker: TransactionMarker,
        now: Now,
        done: Callable[[ErrorCode], None],
        /,
    ) -> None: ...


def abort_left_open(groups: OffsetsTransactions, partitions: Iterable[int], now: Now) -> int:
    """Abort every open transaction; how many there were. What cannot be written now is found again
    by the next start."""
    count = 0
    for partition in partitions:
        for producer_id, producer in tuple((groups.producers(partition) or {}).items()):
            if producer.first_offset is None:
                continue
            count += 1
            marker = TransactionMarker(
                ProducerId(producer_id),
                producer.producer_epoch,
                is_commit=False,
                coordinator_epoch=max(producer.coordinator_epoch, 0),
                transaction_version=0,
            )
            groups.write_marker(partition, marker, now, _ignore)
    return count


def _ignore(_error_code: ErrorCode) -> None:
    """The next start tries again."""
