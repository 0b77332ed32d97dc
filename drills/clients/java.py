"""Client java: Kafka's own KafkaConsumer, in a virtual machine inside the process (JPype).

The classes are those of the kafka-clients jar, unmodified; nothing is compiled here.
"""

from collections.abc import Iterable, Mapping

import jpype
from jpype import JClass, JImplements, JOverride

from drills.clients.interface import (
    CONSUMER_PROTOCOL,
    POLL_S,
    RECORDS_PER_POLL,
    ClientSettings,
    DrillClient,
    OwnershipCallbacks,
)

_CLIENTS = "org.apache.kafka.clients.consumer"
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_ASSIGNORS = {
    "range": f"{_CLIENTS}.RangeAssignor",
    "roundrobin": f"{_CLIENTS}.RoundRobinAssignor",
    "cooperative-sticky": f"{_CLIENTS}.CooperativeStickyAssignor",
}


class JavaDrillClient:
    def __init__(self, settings: ClientSettings) -> None:
        self._topic = settings.topic
        self._partition = JClass("org.apache.kafka.common.TopicPartition")
        self._position = JClass(f"{_CLIENTS}.OffsetAndMetadata")
        self._poll_time = JClass("java.time.Duration").ofMillis(int(POLL_S * 1000))
        properties = JClass("java.util.Properties")()
        for name, value in _properties(settings).items():
            properties.put(name, value)
        self._consumer = JClass(f"{_CLIENTS}.KafkaConsumer")(properties)

    def subscribe(self, ownership: OwnershipCallbacks) -> None:
        topics = JClass("java.util.List").of(self._topic)
        self._consumer.subscribe(topics, _rebalance_listener(ownership))

    def poll(self) -> dict[int, list[int]]:
        read: dict[int, list[int]] = {}
        for record in self._consumer.poll(self._poll_time):
            read.setdefault(int(record.partition()), []).append(int(record.offset()))
        return read

    def commit(self, offsets: Mapping[int, int]) -> None:
        positions = JClass("java.util.HashMap")()
        for number, offset in offsets.items():
            positions.put(self._partition(self._topic, number), self._position(offset, ""))
        self._consumer.commitSync(positions)

    def close(self) -> None:
        self._consumer.close()


def _properties(settings: ClientSettings) -> dict[str, str]:
    properties = {
        "bootstrap.servers": settings.bootstrap,
        "group.id": settings.group,
        "client.id": settings.client_id,
        "key.deserializer": _DESERIALIZER,
        "value.deserializer": _DESERIALIZER,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "reconnect.backoff.max.ms": "500",
        "max.poll.records": str(RECORDS_PER_POLL),
        "max.poll.interval.ms": str(settings.rebalance_timeout_ms),
        "enable.metrics.push": "false",
    }
    if settings.protocol == CONSUMER_PROTOCOL:
        return {**properties, "group.protocol": "consumer"}
    return {
        **properties,
        "session.timeout.ms": str(settings.session_timeout_ms),
        "heartbeat.interval.ms": str(settings.heartbeat_interval_ms),
        "partition.assignment.strategy": _ASSIGNORS.get(settings.assignor, settings.assignor),
    }


def _rebalance_listener(ownership: OwnershipCallbacks) -> object:
    def numbers(partitions: Iterable[object]) -> list[int]:
        return [int(tp.partition()) for tp in partitions]  # type: ignore[attr-defined]  # Java's

    @JImplements(f"{_CLIENTS}.ConsumerRebalanceListener")
    class RebalanceListener:
        @JOverride  # type: ignore[untyped-decorator]  # JPype's
        def onPartitionsAssigned(self, partitions: Iterable[object]) -> None:  # noqa: N802
            ownership.assigned(numbers(partitions))

        @JOverride  # type: ignore[untyped-decorator]  # JPype's
        def onPartitionsRevoked(self, partitions: Iterable[object]) -> None:  # noqa: N802
            ownership.revoked(numbers(partitions))

        @JOverride  # type: ignore[untyped-decorator]  # JPype's
        def onPartitionsLost(self, partitions: Iterable[object]) -> None:  # noqa: N802
            ownership.revoked(numbers(partitions))

    return RebalanceListener()


def open_client(settings: ClientSettings) -> DrillClient:
    jpype.startJVM(
        settings.jvm,
        "-XX:TieredStopAtLevel=1",  # short runs: start quickly, never optimise
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        "-Xmx128m",
        "-Xrs",  # signals are Python's
        "--enable-native-access=ALL-UNNAMED",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        classpath=list(settings.jars),
    )
    return JavaDrillClient(settings)
