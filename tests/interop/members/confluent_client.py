"""Client confluent-kafka: the consumer of librdkafka."""

from collections.abc import Callable

from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from client import MESSAGES_PER_POLL, POLL_S, Listener, Offsets, Options, Partition

NO_GROUP = "outside-any-group"  # this library insists on a name, used or not
AT_THE_END = -1


class ConfluentClient:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._topic = options.topic
        self._commits: list[Callable[[str | None], None]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": options.bootstrap,
                "group.id": options.group or NO_GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": options.auto_commit_ms is not None,
                "auto.commit.interval.ms": options.auto_commit_ms or 5_000,
                "reconnect.backoff.max.ms": 500,
                "on_commit": self._on_commit,
                **self._protocol(options),
                **({"group.instance.id": options.instance_id} if options.instance_id else {}),
            }
        )

    @staticmethod
    def _protocol(options: Options) -> dict[str, object]:
        if options.with_consumer_protocol:
            return {"group.protocol": "consumer"}
        return {
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": options.heartbeat_interval_ms,
            "partition.assignment.strategy": options.assignor,
        }

    def _names(self, partitions: list[TopicPartition]) -> list[Partition]:
        return [self._options.name_of(tp.topic, tp.partition) for tp in partitions]

    def subscribe(self, listener: Listener) -> None:
        def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            begin = listener.assigned(self._names(partitions))
            if begin:
                consumer.assign(
                    [
                        TopicPartition(self._topic, partition.partition, begin[partition.partition])
                        for partition in partitions
                    ]
                )

        def on_revoke(_: Consumer, partitions: list[TopicPartition]) -> None:
            listener.revoked(self._names(partitions))

        subscribed = self._options.pattern or self._topic  # a pattern begins with ^
        self._consumer.subscribe([subscribed], on_assign=on_assign, on_revoke=on_revoke)

    def assign(self, partitions: list[int]) -> None:
        self._consumer.assign([TopicPartition(self._topic, p) for p in partitions])

    def poll(self) -> dict[Partition, list[int]]:
        read: dict[Partition, list[int]] = {}
        for message in self._consumer.consume(MESSAGES_PER_POLL, POLL_S):
            if message.error() is None:
                partition = self._options.name_of(message.topic(), message.partition())
                read.setdefault(partition, []).append(message.offset())
        return read

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition, offset))

    def pause(self, partitions: list[int]) -> None:
        self._consumer.pause([TopicPartition(self._topic, p) for p in partitions])

    def resume(self, partitions: list[int]) -> None:
        self._consumer.resume([TopicPartition(self._topic, p) for p in partitions])

    def commit(self, offsets: Offsets | None, metadata: str) -> None:
        if offsets is None:
            self._consumer.commit(asynchronous=False)
        else:
            self._consumer.commit(
                offsets=[
                    TopicPartition(self._topic, p, offset, metadata)
                    for p, offset in offsets.items()
                ],
                asynchronous=False,
            )

    def commit_async(self, offsets: Offsets | None, done: Callable[[str | None], None]) -> None:
        self._commits.append(done)
        if offsets is None:
            self._consumer.commit(asynchronous=True)
        else:
            self._consumer.commit(
                offsets=[TopicPartition(self._topic, p, o) for p, o in offsets.items()],
                asynchronous=True,
            )

    def _on_commit(self, error: object, _: list[TopicPartition]) -> None:
        if self._commits:  # else it is an automatic one
            self._commits.pop(0)(None if error is None else str(error))

    def committed(self, partition: int) -> tuple[int, str | None] | None:
        (found,) = self._consumer.committed([TopicPartition(self._topic, partition)], timeout=60)
        return None if found.offset == OFFSET_INVALID else (found.offset, found.metadata)

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        asked = TopicPartition(self._topic, partition, timestamp_ms)
        (found,) = self._consumer.offsets_for_times([asked], timeout=60)
        return None if found.offset == AT_THE_END else found.offset

    def close(self) -> None:
        self._consumer.close()


open_client = ConfluentClient
