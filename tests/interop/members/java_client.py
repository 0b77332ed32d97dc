"""Client of Java: Kafka's own KafkaConsumer, in a virtual machine inside this process (JPype).

The classes are those of the kafka-clients jar, unmodified; nothing is compiled here.
"""

from collections.abc import Callable, Iterable

import jpype
from jpype import JClass, JException, JImplements, JOverride

from client import MESSAGES_PER_POLL, POLL_S, Listener, Offsets, Options, Partition

_CLIENTS = "org.apache.kafka.clients.consumer"
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
ASSIGNORS = {
    "range": f"{_CLIENTS}.RangeAssignor",
    "cooperative-sticky": f"{_CLIENTS}.CooperativeStickyAssignor",
}


def open_client(options: Options) -> "JavaClient":
    jpype.startJVM(
        options.jvm,
        "-XX:TieredStopAtLevel=1",  # short runs: start quickly, never optimise
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        "-Xmx128m",
        "-Xrs",  # signals are Python's
        "--enable-native-access=ALL-UNNAMED",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        classpath=list(options.jars),
    )
    return JavaClient(options)


class JavaClient:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._topic = options.topic
        self._partition = JClass("org.apache.kafka.common.TopicPartition")
        self._position = JClass(f"{_CLIENTS}.OffsetAndMetadata")
        self._duration = JClass("java.time.Duration")
        settings = {
            "bootstrap.servers": options.bootstrap,
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": str(options.auto_commit_ms is not None).lower(),
            "auto.commit.interval.ms": str(options.auto_commit_ms or 5_000),
            "reconnect.backoff.max.ms": "500",
            "max.poll.records": str(MESSAGES_PER_POLL),
            **_protocol(options),
        }
        if options.group is not None:
            settings["group.id"] = options.group
        if options.instance_id is not None:
            settings["group.instance.id"] = options.instance_id
        properties = JClass("java.util.Properties")()
        for name, value in settings.items():
            properties.put(name, value)
        self._consumer = JClass(f"{_CLIENTS}.KafkaConsumer")(properties)

    def _partitions(self, numbers: Iterable[int]) -> object:
        partitions = JClass("java.util.ArrayList")()
        for number in numbers:
            partitions.add(self._partition(self._topic, number))
        return partitions

    def subscribe(self, listener: Listener) -> None:
        rebalances = _rebalance_listener(self._consumer, listener, self._options)
        if self._options.pattern:
            pattern = JClass(f"{_CLIENTS}.SubscriptionPattern")(self._options.pattern)
            self._consumer.subscribe(pattern, rebalances)
        else:
            self._consumer.subscribe(JClass("java.util.List").of(self._topic), rebalances)

    def assign(self, partitions: list[int]) -> None:
        self._consumer.assign(self._partitions(partitions))

    def poll(self) -> dict[Partition, list[int]]:
        read: dict[Partition, list[int]] = {}
        for record in self._consumer.poll(self._duration.ofMillis(int(POLL_S * 1000))):
            partition = self._options.name_of(str(record.topic()), int(record.partition()))
            read.setdefault(partition, []).append(int(record.offset()))
        return read

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._partition(self._topic, partition), offset)

    def pause(self, partitions: list[int]) -> None:
        self._consumer.pause(self._partitions(partitions))

    def resume(self, partitions: list[int]) -> None:
        self._consumer.resume(self._partitions(partitions))

    def _positions(self, offsets: Offsets, metadata: str) -> object:
        positions = JClass("java.util.HashMap")()
        for number, offset in offsets.items():
            partition = self._partition(self._topic, number)
            positions.put(partition, self._position(offset, metadata))
        return positions

    def commit(self, offsets: Offsets | None, metadata: str) -> None:
        if offsets is None:
            self._consumer.commitSync()
        else:
            self._consumer.commitSync(self._positions(offsets, metadata))

    def commit_async(self, offsets: Offsets | None, done: Callable[[str | None], None]) -> None:
        callback = _on_complete(done)
        if offsets is None:
            self._consumer.commitAsync(callback)
        else:
            self._consumer.commitAsync(self._positions(offsets, ""), callback)

    def committed(self, partition: int) -> tuple[int, str | None] | None:
        asked = self._partition(self._topic, partition)
        found = self._consumer.committed(JClass("java.util.Set").of(asked)).get(asked)
        return None if found is None else (int(found.offset()), str(found.metadata()))

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        asked = self._partition(self._topic, partition)
        times = JClass("java.util.Map").of(asked, JClass("java.lang.Long")(timestamp_ms))
        found = self._consumer.offsetsForTimes(times).get(asked)
        return None if found is None else int(found.offset())

    def close(self) -> None:
        self._consumer.close()


def _protocol(options: Options) -> dict[str, str]:
    if options.with_consumer_protocol:
        return {"group.protocol": "consumer"}
    return {
        "session.timeout.ms": str(options.session_timeout_ms),
        "heartbeat.interval.ms": str(options.heartbeat_interval_ms),
        "partition.assignment.strategy": ASSIGNORS[options.assignor],
    }


def _on_complete(done: Callable[[str | None], None]) -> object:
    @JImplements(f"{_CLIENTS}.OffsetCommitCallback")
    class Callback:
        @JOverride
        def onComplete(self, _: object, error: JException | None) -> None:
            done(None if error is None else type(error).__name__)

    return Callback()


def _rebalance_listener(consumer: object, listener: Listener, options: Options) -> object:
    def names(partitions: Iterable[object]) -> list[Partition]:
        return [options.name_of(str(tp.topic()), int(tp.partition())) for tp in partitions]

    @JImplements(f"{_CLIENTS}.ConsumerRebalanceListener")
    class RebalanceListener:
        @JOverride
        def onPartitionsAssigned(self, partitions: Iterable[object]) -> None:
            begin = listener.assigned(names(partitions))
            for tp in partitions:
                if tp.partition() in begin:
                    consumer.seek(tp, begin[tp.partition()])

        @JOverride
        def onPartitionsRevoked(self, partitions: Iterable[object]) -> None:
            listener.revoked(names(partitions))

        @JOverride
        def onPartitionsLost(self, partitions: Iterable[object]) -> None:
            listener.revoked(names(partitions))

    return RebalanceListener()
