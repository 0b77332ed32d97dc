"""Client librdkafka: the consumer of confluent-kafka."""

from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from drills.clients.interface import (
    CONSUMER_PROTOCOL,
    POLL_S,
    RECORDS_PER_POLL,
    ClientSettings,
    DrillClient,
    OwnershipCallbacks,
)


class LibrdkafkaClient:
    def __init__(self, settings: ClientSettings) -> None:
        self._topic = settings.topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": settings.bootstrap,
                "group.id": settings.group,
                "client.id": settings.client_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "max.poll.interval.ms": settings.rebalance_timeout_ms,
                **_protocol(settings),
            }
        )

    def subscribe(self, ownership: OwnershipCallbacks) -> None:
        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            ownership.assigned([tp.partition for tp in partitions])

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            ownership.revoked([tp.partition for tp in partitions])

        self._consumer.subscribe(
            [self._topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked
        )

    def poll(self) -> dict[int, list[int]]:
        read: dict[int, list[int]] = {}
        for message in self._consumer.consume(RECORDS_PER_POLL, POLL_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                read.setdefault(partition, []).append(offset)
        return read

    def commit(self, offsets: Mapping[int, int]) -> None:
        positions = [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]
        for committed in self._consumer.commit(offsets=positions, asynchronous=False):
            if committed.error is not None:
                raise RuntimeError(str(committed.error))

    def close(self) -> None:
        self._consumer.close()


def _protocol(settings: ClientSettings) -> dict[str, object]:
    if settings.protocol == CONSUMER_PROTOCOL:
        return {"group.protocol": "consumer"}
    return {
        "session.timeout.ms": settings.session_timeout_ms,
        "heartbeat.interval.ms": settings.heartbeat_interval_ms,
        "partition.assignment.strategy": settings.assignor,
    }


def open_client(settings: ClientSettings) -> DrillClient:
    return LibrdkafkaClient(settings)
