"""Partitions of a transaction: which part of the daemon has each of them.

The group coordinator writes the partitions of `__consumer_offsets`, the data plane all others. A
call of the transaction coordinator is split between them, and answered when both have answered.
Kafka's counterpart: `TransactionMarkerChannelManager`, which splits by broker.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from broker.observe.events import MarkersWritten
from protocol.names import OFFSETS_TOPIC, ErrorCode, ProducerId, TransactionalId
from seams.now import Now
from seams.transactions import (
    Done,
    PartitionErrors,
    TransactionMarker,
    TransactionPartitions,
    TransactionVerifier,
)
from storage.api import TopicPartition


class OffsetsPartitions(Protocol):
    """The group coordinator: offsets of a transaction are records of its own log."""

    def write_marker(
        self,
        partition: int,
        marker: TransactionMarker,
        now: Now,
        done: Callable[[ErrorCode], None],
        /,
    ) -> None: ...


class AllPartitions:
    """Implements TransactionPartitions."""

    def __init__(
        self,
        data_plane: TransactionPartitions,
        groups: OffsetsPartitions,
        observe: Callable[[MarkersWritten], None],
    ) -> None:
        self._data_plane = data_plane
        self._groups = groups
        self._observe = observe

    def sync(self, partitions: Sequence[TopicPartition], done: Done, /) -> None:
        """Offsets were durable, by the journal, before their commit was answered."""
        offsets, others = _split(partitions)
        answers = _Answers(len(offsets) + 1, done)
        for key in offsets:
            answers.add({key: ErrorCode.NONE})
        self._data_plane.sync(others, answers.add)

    def write_markers(
        self,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        now: Now,
        done: Done,
        /,
    ) -> None:
        def written(errors: PartitionErrors) -> None:
            taken = sum(error_code is ErrorCode.NONE for error_code in errors.values())
            self._observe(MarkersWritten(taken))
            done(errors)

        offsets, others = _split(partitions)
        answers = _Answers(len(offsets) + 1, written)
        for key in offsets:
            self._groups.write_marker(key.partition, marker, now, partial(answers.add_one, key))
        self._data_plane.write_markers(marker, others, now, answers.add)


def _split(
    partitions: Sequence[TopicPartition],
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    offsets = [key for key in partitions if key.topic == OFFSETS_TOPIC]
    return offsets, [key for key in partitions if key.topic != OFFSETS_TOPIC]


class _Answers:
    """Calls `done` with all answers once the last of them is there."""

    __slots__ = ("_done", "_errors", "_left")

    def __init__(self, expected: int, done: Done) -> None:
        self._left = expected
        self._errors: dict[TopicPartition, ErrorCode] = {}
        self._done = done

    def add(self, errors: PartitionErrors) -> None:
        self._errors.update(errors)
        self._left -= 1
        if not self._left:
            self._done(self._errors)

    def add_one(self, key: TopicPartition, error_code: ErrorCode) -> None:
        self.add({key: error_code})


class GroupVerification:
    """The transaction coordinator for the group coordinator, which is made before it.

    With `transaction.partition.verification.enable=false` nobody is asked whether a partition is in
    a transaction. It is added all the same, where the version of the request demands that.
    """

    coordinator: TransactionVerifier
    is_enabled: Callable[[], bool]
    """Both are set by build.py. The key is dynamic: the data plane has its present value."""

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
        if not add and not self.is_enabled():
            done(dict.fromkeys(partitions, ErrorCode.NONE))
            return
        producer = (producer_id, producer_epoch)
        self.coordinator.add_or_verify(
            transactional_id, *producer, partitions, now, done, add=add, wait=wait
        )
