"""Transactions in a world: producers that commit offsets, and a transaction coordinator's answers.

`TransactionWorld` has a verifier that agrees to everything unless a test says otherwise.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.settings import GroupSettings
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from protocol.names import (
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    ProducerId,
    TopicName,
    TransactionalId,
)
from seams.now import Now
from seams.transactions import Done, TransactionMarker
from storage.api import TopicPartition
from tests.world import Asked, World, kafka_settings

P1, P2 = 101, 102

Place = tuple[str, int]


class Verification(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    add: bool
    wait: bool
    done: Done


class Verifier:
    """A transaction coordinator: answers at once, or when the test does."""

    def __init__(self) -> None:
        self.error_code = ErrorCode.NONE
        self.is_slow = False
        self.asked: list[Verification] = []

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
        asked = Verification(
            transactional_id, producer_id, producer_epoch, tuple(partitions), add, wait, done
        )
        self.asked.append(asked)
        if not self.is_slow:
            self.answer(asked)

    def answer(self, asked: Verification) -> None:
        asked.done(dict.fromkeys(asked.partitions, self.error_code))


class TransactionWorld(World):
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.verifier: Verifier = Verifier()
        self.marked: list[ErrorCode] = []  # answers to markers
        super().__init__(kafka_settings() if settings is None else settings)

    # ------------------------------------------------------------ when

    def txn_committing(
        self,
        group_id: str = "g",
        producer_id: int = P1,
        epoch: int = 0,
        *,
        offsets: dict[int, int] | None = None,
        topic: str = "t",
        metadata: str | None = "",
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        version: int = 5,
    ) -> Asked:
        partitions = [
            TxnOffsetCommitRequestPartition(index, offset, -1, metadata)
            for index, offset in (offsets or {0: 1}).items()
        ]
        request = TxnOffsetCommitRequest(
            f"tx-{producer_id}",
            GroupId(group_id),
            ProducerId(producer_id),
            epoch,
            GenerationId(generation_id),
            MemberId(member_id),
            None if instance_id is None else GroupInstanceId(instance_id),
            [TxnOffsetCommitRequestTopic(TopicName(topic), partitions)],
        )
        return self.ask(request, version=version)

    def txn_commit(self, *args: object, **more: object) -> ErrorCode:
        """The error on the first partition."""
        return first_error(self.txn_committing(*args, **more))  # type: ignore[arg-type]

    def write_marker(
        self,
        producer_id: int = P1,
        epoch: int = 0,
        *,
        commits: bool = True,
        coordinator_epoch: int = 0,
        version: int = 1,
        partition: int = 0,
    ) -> None:
        """Its answer is the next one of `marked`."""
        marker = TransactionMarker(
            ProducerId(producer_id), epoch, commits, coordinator_epoch, version
        )
        self.coordinator.write_marker(partition, marker, self.now, self.marked.append)
        self.step()

    def mark(self, producer_id: int = P1, epoch: int = 0, **more: object) -> ErrorCode:
        self.marked.clear()
        self.write_marker(producer_id, epoch, **more)  # type: ignore[arg-type]
        (error_code,) = self.marked
        return error_code

    # ------------------------------------------------------------ then

    def fetching(
        self,
        group_id: str = "g",
        *,
        topics: dict[str, list[int]] | None = None,
        stable: bool = False,
    ) -> Asked:
        wanted = None
        if topics is not None:
            wanted = [
                OffsetFetchRequestTopics(TopicName(name), partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        group = OffsetFetchRequestGroup(GroupId(group_id), topics=wanted)
        return self.ask(OffsetFetchRequest(groups=[group], require_stable=stable), version=9)

    def fetched(
        self,
        group_id: str = "g",
        *,
        topics: dict[str, list[int]] | None = None,
        stable: bool = False,
    ) -> dict[Place, int | ErrorCode]:
        """The offset, or the error, of each partition."""
        asked = self.fetching(group_id, topics=topics, stable=stable)
        response = asked.response
        assert isinstance(response, OffsetFetchResponse)
        (group,) = response.groups
        assert group.error_code is ErrorCode.NONE
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            if partition.error_code is ErrorCode.NONE
            else partition.error_code
            for topic in group.topics
            for partition in topic.partitions
        }

    def pending(self, group_id: str = "g") -> set[tuple[str, int, int]]:
        """Topic, partition, producer."""
        return {
            (topic, partition, producer)
            for topic, partitions in self.shard.transactions.pending.of_group(
                GroupId(group_id)
            ).items()
            for partition, producers in partitions.items()
            for producer in producers
        }


def first_error(asked: Asked) -> ErrorCode:
    assert isinstance(asked.response, TxnOffsetCommitResponse)
    return asked.response.topics[0].partitions[0].error_code
