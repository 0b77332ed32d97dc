"""Client kafka-python: its consumer.

A poll of kafka-python 3.0 whose time runs out between the answers to JoinGroup and SyncGroup loses
the join, and the member with it. So a poll has all the time that a rebalance may need; the end of
the drill interrupts it.
"""

from collections.abc import Mapping

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConnectionError
from kafka.structs import OffsetAndMetadata

from drills.clients.interface import (
    RECORDS_PER_POLL,
    ClientSettings,
    DrillClient,
    OwnershipCallbacks,
)
from drills.clients.stop import interruptible


class KafkaPythonDrillClient:
    def __init__(self, settings: ClientSettings) -> None:
        self._topic = settings.topic
        self._poll_ms = settings.rebalance_timeout_ms
        self._consumer = KafkaConsumer(
            bootstrap_servers=settings.bootstrap,
            group_id=settings.group,
            client_id=settings.client_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.rebalance_timeout_ms,
            partition_assignment_strategy=(RangePartitionAssignor,),
            reconnect_backoff_max_ms=500,
        )

    def subscribe(self, ownership: OwnershipCallbacks) -> None:
        self._consumer.subscribe([self._topic], listener=_OwnershipListener(ownership))

    def poll(self) -> dict[int, list[int]]:
        read: dict[int, list[int]] = {}
        try:
            with interruptible():
                batches = self._consumer.poll(self._poll_ms, max_records=RECORDS_PER_POLL)
                read = {tp.partition: [r.offset for r in found] for tp, found in batches.items()}
        except KafkaConnectionError:
            return {}  # nobody listens at this moment: this library leaves it to its user to repeat
        return read

    def commit(self, offsets: Mapping[int, int]) -> None:
        positions = {
            TopicPartition(self._topic, p): OffsetAndMetadata(offset, "", -1)
            for p, offset in offsets.items()
        }
        self._consumer.commit(positions)

    def close(self) -> None:
        self._consumer.close()


class _OwnershipListener(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, ownership: OwnershipCallbacks) -> None:
        self._ownership = ownership

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        self._ownership.assigned([tp.partition for tp in assigned])

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self._ownership.revoked([tp.partition for tp in revoked])


def open_client(settings: ClientSettings) -> DrillClient:
    return KafkaPythonDrillClient(settings)
