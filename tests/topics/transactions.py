"""Transactions for tests of the data plane: batches, markers, and a coordinator that is told what
to answer."""

from collections.abc import Sequence

from msgspec import Struct, field

from protocol.messages.fetch import PartitionData
from protocol.messages.produce import PartitionProduceResponse
from protocol.names import ErrorCode, ProducerId, TransactionalId
from seams.now import Now
from seams.transactions import Done, TransactionMarker
from storage.api import TopicPartition
from storage.batch.record_batch import TRANSACTIONAL_FLAG
from tests.topics.batches import batch, damaged, values_of
from tests.topics.plane import Plane

TV1, TV2 = 0, 2
ADDS, VERIFIES = 12, 11
"""Versions of Produce."""


class Asked(Struct):
    """A question to the coordinator."""

    producer: tuple[int, int]
    partitions: list[TopicPartition]
    add: bool
    wait: bool
    done: Done

    def answer(self, error_code: ErrorCode = ErrorCode.NONE) -> None:
        self.done(dict.fromkeys(self.partitions, error_code))


class Coordinator(Struct):
    """A TransactionVerifier: answers at once with `error_code`, or when the test does."""

    error_code: ErrorCode | None = ErrorCode.NONE
    asked: list[Asked] = field(default_factory=list)

    def add_or_verify(
        self,
        transactional_id: TransactionalId,
        producer_id: ProducerId,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        now: Now,
        done: Done,
        /,
        *,
        add: bool,
        wait: bool,
    ) -> None:
        asked = Asked((producer_id, producer_epoch), list(partitions), add, wait, done)
        self.asked.append(asked)
        if self.error_code is not None:
            asked.answer(self.error_code)


class Transactions:
    """A plane with a coordinator, and short forms."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.coordinator = Coordinator()
        plane.data.set_verifier(self.coordinator)

    def restart(self) -> None:
        self.plane.restart()
        self.plane.data.set_verifier(self.coordinator)

    def batch(self, *values: bytes, producer: int = 7, epoch: int = 0, sequence: int = 0) -> bytes:
        sent = batch(
            *values,
            timestamp=self.plane.now.wall_ms,
            producer_id=producer,
            producer_epoch=epoch,
            sequence=sequence,
        )
        return damaged(sent, attributes=TRANSACTIONAL_FLAG)

    def send(
        self,
        *values: bytes,
        producer: int = 7,
        epoch: int = 0,
        sequence: int = 0,
        version: int = ADDS,
        name: str = "a",
    ) -> PartitionProduceResponse:
        records = self.batch(*values, producer=producer, epoch=epoch, sequence=sequence)
        return self.plane.produce(name, records, version=version, transactional_id="t")

    def given(self, *values: bytes, producer: int = 7, epoch: int = 0, sequence: int = 0) -> int:
        """A batch that is there; its offset."""
        answer = self.send(*values, producer=producer, epoch=epoch, sequence=sequence)
        assert answer.error_code is ErrorCode.NONE
        return answer.base_offset

    def plain(self, *values: bytes) -> None:
        answer = self.plane.produce("a", self.plane.batch(*values))
        assert answer.error_code is ErrorCode.NONE

    def end(
        self,
        *,
        commit: bool,
        producer: int = 7,
        epoch: int = 1,
        version: int = TV2,
        coordinator_epoch: int = 0,
        name: str = "a",
    ) -> ErrorCode:
        key = TopicPartition(name, 0)
        marker = TransactionMarker(ProducerId(producer), epoch, commit, coordinator_epoch, version)
        found: list[ErrorCode] = []
        self.plane.data.markers.write_markers(
            marker, [key], self.plane.now, lambda errors: found.append(errors[key])
        )
        (error_code,) = found
        return error_code

    def read(self, offset: int = 0, *, committed: bool = True) -> PartitionData:
        return self.plane.fetch("a", offset, isolation_level=int(committed))

    def seen(self) -> list[bytes | None]:
        """What a read_committed consumer is given, aborted records and markers left out."""
        from storage.batch.record_batch import iter_batches

        data = self.read()
        aborted = sorted(
            data.aborted_transactions or (), key=lambda transaction: transaction.first_offset
        )
        passing: set[int] = set()
        values: list[bytes | None] = []
        records = data.records or b""
        for position, header in iter_batches(records):
            while aborted and aborted[0].first_offset <= header.last_offset:
                passing.add(aborted.pop(0).producer_id)
            if header.is_control:
                passing.discard(header.producer_id)
            elif not header.is_transactional or header.producer_id not in passing:
                values += values_of(records[position : position + header.size])
        return values
