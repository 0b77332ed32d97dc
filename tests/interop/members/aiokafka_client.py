"""The consumer of aiokafka: its event loop runs in a thread, as its heartbeats need it to."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

from client import MESSAGES_PER_POLL, POLL_S, Listener, Offsets, Options

T = TypeVar("T")


class AiokafkaClient:
    def __init__(self, options: Options) -> None:
        assert options.assignor == "range", "it has no other that the rest have"
        self._topic = options.topic
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._pending: set[asyncio.Task[None]] = set()
        self._run(self._open(options))

    def _run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, options: Options) -> None:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=options.auto_commit_ms is not None,
            auto_commit_interval_ms=options.auto_commit_ms or 5_000,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )

    def subscribe(self, listener: Listener) -> None:
        self._run(self._subscribe(listener))

    async def _subscribe(self, listener: Listener) -> None:
        self._consumer.subscribe(
            [self._topic], listener=_RebalanceListener(self._consumer, listener)
        )
        await self._consumer.start()

    def assign(self, partitions: list[int]) -> None:
        self._run(self._assign(partitions))

    async def _assign(self, partitions: list[int]) -> None:
        self._consumer.assign([TopicPartition(self._topic, p) for p in partitions])
        await self._consumer.start()

    def poll(self) -> dict[int, list[int]]:
        batches = self._run(
            self._consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=MESSAGES_PER_POLL)
        )
        return {tp.partition: [r.offset for r in records] for tp, records in batches.items()}

    def seek(self, partition: int, offset: int) -> None:
        self._call(self._consumer.seek, TopicPartition(self._topic, partition), offset)

    def pause(self, partitions: list[int]) -> None:
        self._call(self._consumer.pause, *(TopicPartition(self._topic, p) for p in partitions))

    def resume(self, partitions: list[int]) -> None:
        self._call(self._consumer.resume, *(TopicPartition(self._topic, p) for p in partitions))

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        async def call() -> None:
            function(*arguments)

        self._run(call())

    def _positions(
        self, offsets: Offsets | None, metadata: str
    ) -> dict[TopicPartition, OffsetAndMetadata] | None:
        if offsets is None:
            return None
        return {
            TopicPartition(self._topic, p): OffsetAndMetadata(offset, metadata)
            for p, offset in offsets.items()
        }

    def commit(self, offsets: Offsets | None, metadata: str) -> None:
        self._run(self._consumer.commit(self._positions(offsets, metadata)))

    def commit_async(self, offsets: Offsets | None, done: Callable[[str | None], None]) -> None:
        async def commit() -> None:
            try:
                await self._consumer.commit(self._positions(offsets, ""))
            except KafkaError as error:
                done(type(error).__name__)
            else:
                done(None)

        async def begin() -> None:
            task = asyncio.create_task(commit())
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

        self._run(begin())

    def committed(self, partition: int) -> tuple[int, str | None] | None:
        found = self._run(self._consumer.committed(TopicPartition(self._topic, partition)))
        return None if found is None else (found, None)

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        asked = TopicPartition(self._topic, partition)
        found = self._run(self._consumer.offsets_for_times({asked: timestamp_ms}))[asked]
        return None if found is None else found.offset

    def close(self) -> None:
        self._run(self._consumer.stop())


class _RebalanceListener(ConsumerRebalanceListener):
    def __init__(self, consumer: AIOKafkaConsumer, listener: Listener) -> None:
        self._consumer = consumer
        self._listener = listener

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        begin = self._listener.assigned([tp.partition for tp in assigned])
        for tp in assigned:
            if tp.partition in begin:
                self._consumer.seek(tp, begin[tp.partition])

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self._listener.revoked([tp.partition for tp in revoked])


open_client = AiokafkaClient
