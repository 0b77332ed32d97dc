"""Client aiokafka: its consumer, whose event loop runs in a thread: its heartbeats need that."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from drills.clients.interface import (
    POLL_S,
    RECORDS_PER_POLL,
    ClientSettings,
    DrillClient,
    OwnershipCallbacks,
)

T = TypeVar("T")


class AiokafkaDrillClient:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._run(self._open())

    def _run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> None:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._settings.bootstrap,
            group_id=self._settings.group,
            client_id=self._settings.client_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms,
            max_poll_interval_ms=self._settings.rebalance_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )

    def subscribe(self, ownership: OwnershipCallbacks) -> None:
        self._run(self._subscribe(ownership))

    async def _subscribe(self, ownership: OwnershipCallbacks) -> None:
        listener = _OwnershipListener(ownership)
        self._consumer.subscribe([self._settings.topic], listener=listener)
        await self._consumer.start()

    def poll(self) -> dict[int, list[int]]:
        wait_ms = int(POLL_S * 1000)
        batches = self._run(
            self._consumer.getmany(timeout_ms=wait_ms, max_records=RECORDS_PER_POLL)
        )
        return {tp.partition: [record.offset for record in found] for tp, found in batches.items()}

    def commit(self, offsets: Mapping[int, int]) -> None:
        topic = self._settings.topic
        positions = {TopicPartition(topic, p): offset for p, offset in offsets.items()}
        self._run(self._consumer.commit(positions))

    def close(self) -> None:
        self._run(self._consumer.stop())


class _OwnershipListener(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    def __init__(self, ownership: OwnershipCallbacks) -> None:
        self._ownership = ownership

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        self._ownership.assigned([tp.partition for tp in assigned])

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self._ownership.revoked([tp.partition for tp in revoked])


def open_client(settings: ClientSettings) -> DrillClient:
    return AiokafkaDrillClient(settings)
