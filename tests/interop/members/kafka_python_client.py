"""Client kafka-python: its consumer.

A poll of 3.0.12 whose time runs out between the answers to JoinGroup and SyncGroup leaves the join
to the next poll, which finds no reason to rejoin and never looks at the assignment: the member is
lost, whatever the broker. So a poll here has all the time that a join may need.
"""

from collections.abc import Callable

from _say import interruptible
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConnectionError
from kafka.structs import OffsetAndMetadata

from client import MESSAGES_PER_POLL, POLL_S, Listener, Offsets, Options

JOIN_S = 30.0
ASSIGNORS = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class KafkaPythonClient:
    def __init__(self, options: Options) -> None:
        self._topic = options.topic
        self._is_member = False
        self._consumer = KafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=options.auto_commit_ms is not None,
            auto_commit_interval_ms=options.auto_commit_ms or 5_000,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            partition_assignment_strategy=(ASSIGNORS[options.assignor],),
            reconnect_backoff_max_ms=500,
        )

    def subscribe(self, listener: Listener) -> None:
        self._is_member = True
        self._consumer.subscribe(
            [self._topic], listener=_RebalanceListener(self._consumer, listener)
        )

    def assign(self, partitions: list[int]) -> None:
        self._consumer.assign([TopicPartition(self._topic, p) for p in partitions])

    def poll(self) -> dict[int, list[int]]:
        poll_ms = int((JOIN_S if self._is_member else POLL_S) * 1000)
        batches: dict[TopicPartition, list[ConsumerRecord]] = {}
        try:
            with interruptible():
                batches = self._consumer.poll(poll_ms, max_records=MESSAGES_PER_POLL)
        except KafkaConnectionError:
            return {}  # nobody listens at this moment: this library leaves it to us to ask again
        return {tp.partition: [r.offset for r in records] for tp, records in batches.items()}

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition), offset)

    def pause(self, partitions: list[int]) -> None:
        self._consumer.pause(*(TopicPartition(self._topic, p) for p in partitions))

    def resume(self, partitions: list[int]) -> None:
        self._consumer.resume(*(TopicPartition(self._topic, p) for p in partitions))

    def _positions(
        self, offsets: Offsets | None, metadata: str
    ) -> dict[TopicPartition, OffsetAndMetadata] | None:
        if offsets is None:
            return None
        return {
            TopicPartition(self._topic, p): OffsetAndMetadata(offset, metadata, -1)
            for p, offset in offsets.items()
        }

    def commit(self, offsets: Offsets | None, metadata: str) -> None:
        self._consumer.commit(self._positions(offsets, metadata))

    def commit_async(self, offsets: Offsets | None, done: Callable[[str | None], None]) -> None:
        def callback(_: object, answer: object) -> None:
            done(type(answer).__name__ if isinstance(answer, Exception) else None)

        self._consumer.commit_async(self._positions(offsets, ""), callback=callback)

    def committed(self, partition: int) -> tuple[int, str | None] | None:
        found = self._consumer.committed(TopicPartition(self._topic, partition), metadata=True)
        return None if found is None else (found.offset, found.metadata)

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        asked = TopicPartition(self._topic, partition)
        found = self._consumer.offsets_for_times({asked: timestamp_ms})[asked]
        return None if found is None else found.offset

    def close(self) -> None:
        self._consumer.close()


class _RebalanceListener(ConsumerRebalanceListener):
    def __init__(self, consumer: KafkaConsumer, listener: Listener) -> None:
        self._consumer = consumer
        self._listener = listener

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        begin = self._listener.assigned([tp.partition for tp in assigned])
        for tp in assigned:
            if tp.partition in begin:
                self._consumer.seek(tp, begin[tp.partition])

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self._listener.revoked([tp.partition for tp in revoked])


open_client = KafkaPythonClient
