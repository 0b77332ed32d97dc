"""Broker access: topic extents, and the options of Spark's Kafka connector.

The connector finds partitions by itself, but ignores topics that are marked internal, as all of
ours are. So this module looks them up with the connector's own Kafka client in the driver's Java,
and assigns them by number, with begin and end offsets. No group is joined, because that would write
to the log that is read. `isolation.level` is read_committed unless an option overrides it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from pipeline.read.identity import LogBeginning
from pipeline.session import connector_coordinates
from seams.operator_error import WrongInput

KAFKA: Final = "kafka://"
_PREFIX: Final = "kafka."  # of the connector's options that are its client's
_TIMEOUT_MS: Final = "20000"
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArray"
_CONSUMER: Final = {
    "key.deserializer": f"{_BYTES}Deserializer",
    "value.deserializer": f"{_BYTES}Deserializer",
    "default.api.timeout.ms": _TIMEOUT_MS,
    "allow.auto.create.topics": "false",
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",  # where retention has taken what was asked for
}
_PRODUCER: Final = {
    "key.serializer": f"{_BYTES}Serializer",
    "value.serializer": f"{_BYTES}Serializer",
    "max.block.ms": _TIMEOUT_MS,
    "acks": "all",
    "enable.idempotence": "true",  # its records of one key stay in order: status_topic.py
}

_ADMIN: Final = {"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS}

_LONG_AGO_MS: Final = 1 << 31
"""In January 1970. Py4J hands a smaller number over as an Integer, where a Long is wanted."""

_OLD_LISTING: Final = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""Only the connector's older way to list offsets reads what it is assigned, internal or not."""


class NoBroker(WrongInput):
    """It cannot be asked; the message is for people."""


class OffsetRange(NamedTuple):
    """What is there of a partition: from the offset `begin` up to, not including, `end`."""

    begin: int
    end: int


class Broker:
    """A Kafka, or a Rollcall, as `kafka://HOST:PORT` names it."""

    def __init__(
        self, spark: SparkSession, where: str, options: Mapping[str, str] | None = None
    ) -> None:
        """`options` are the connector's (`kafka.security.protocol`, ...)."""
        self._spark = spark
        self.bootstrap = where.removeprefix(KAFKA).rstrip("/")
        self.options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.isolation.level": "read_committed",
            **(options or {}),
        }

    def extents(self, topic: str) -> dict[int, OffsetRange]:
        """By partition; none if there is no such topic. Raises NoBroker."""
        with self._consumer() as consumer:
            partitions = self._partitions(consumer, topic)
            begins = consumer.beginningOffsets(partitions)
            ends = consumer.endOffsets(partitions)
            return {
                partition.partition(): OffsetRange(int(begins[partition]), int(ends[partition]))
                for partition in partitions
            }

    def beginnings(self, topic: str) -> dict[int, LogBeginning]:
        """By partition, the first record that is there; none of an empty one. Raises NoBroker."""
        with self._consumer() as consumer:
            since = self.java.java.util.HashMap()
            for partition in self._partitions(consumer, topic):
                since.put(partition, _LONG_AGO_MS)
            found = consumer.offsetsForTimes(since)
            first = {partition.partition(): found[partition] for partition in since}
            return {
                number: LogBeginning(int(at.offset()), int(at.timestamp()), int(at.timestamp()))
                for number, at in first.items()
                if at is not None
            }

    def cluster_id(self) -> str:
        """Which cluster it is of, by whatever name it was reached. Raises NoBroker."""
        with self.admin() as admin:
            return str(admin.describeCluster().clusterId().get())

    @contextmanager
    def admin(self) -> Iterator[JavaObject]:
        """Kafka's Admin; what it throws out of the block is a NoBroker."""
        with self._client("admin.Admin", _ADMIN) as admin:
            yield admin

    def assign(self, topics: Mapping[str, Iterable[int]]) -> Mapping[str, str]:
        """The connector's options to read these partitions."""
        self._spark.conf.set(_OLD_LISTING, "true")
        assigned = {topic: sorted(partitions) for topic, partitions in topics.items()}
        return {
            "failOnDataLoss": "false",  # compaction leaves gaps, which is no loss
            **self.options,
            "assign": json.dumps(assigned),
        }

    def tail(self, topic: str, begins: Mapping[int, int]) -> Iterator[tuple[bytes, bytes]]:
        """(key, value) of what was written from these offsets up to now; of partitions that are not
        named, from the first. Raises NoBroker."""
        with self._consumer() as consumer:
            assigned = self._partitions(consumer, topic)
            ends = {partition: int(end) for partition, end in consumer.endOffsets(assigned).items()}
            left = [
                partition
                for partition in assigned
                if begins.get(partition.partition(), 0) < ends[partition]
            ]
            consumer.assign(left)
            for partition in left:
                consumer.seek(partition, begins.get(partition.partition(), 0))
            while left:
                for record in _each(consumer.poll(self.java.java.time.Duration.ofSeconds(1))):
                    if record.key() is not None and record.value() is not None:
                        yield bytes(record.key()), bytes(record.value())
                left = [
                    partition
                    for partition in left
                    if consumer.position(partition) < ends[partition]
                ]

    def write(self, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Append (key, value) pairs, in their order; stored when it returns. Raises NoBroker."""
        with self._client("producer.KafkaProducer", _PRODUCER) as producer:
            make = self.java.org.apache.kafka.clients.producer.ProducerRecord
            sent = [producer.send(make(topic, key, value)) for key, value in records]
            for acknowledged in sent:
                acknowledged.get()

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """As a simple consumer of the group. Raises NoBroker."""
        number = self.java.org.apache.kafka.common.TopicPartition
        value = self.java.org.apache.kafka.clients.consumer.OffsetAndMetadata
        with self._client("consumer.KafkaConsumer", {**_CONSUMER, "group.id": group}) as consumer:
            committed = self.java.java.util.HashMap()
            for partition, offset in offsets.items():
                committed.put(number(topic, partition), value(offset))
            consumer.commitSync(committed)

    @property
    def java(self) -> JavaObject:
        """The driver's, with Kafka's client. Raises NoBroker."""
        try:
            java = self._spark._jvm
        except PySparkAttributeError:
            raise NoBroker("a broker cannot be read through Spark Connect") from None
        assert java is not None
        return java

    def _partitions(self, consumer: JavaObject, topic: str) -> list[JavaObject]:
        found = consumer.partitionsFor(topic)
        number = self.java.org.apache.kafka.common.TopicPartition
        return [number(topic, partition.partition()) for partition in found or ()]

    @contextmanager
    def _consumer(self) -> Iterator[JavaObject]:
        """One that is in no group."""
        with self._client("consumer.KafkaConsumer", _CONSUMER) as consumer:
            yield consumer

    @contextmanager
    def _client(self, kind: str, defaults: Mapping[str, str]) -> Iterator[JavaObject]:
        """A client of Kafka's own; what goes wrong with it is a NoBroker."""
        settings = self.java.java.util.Properties()
        given = {
            name.removeprefix(_PREFIX): value
            for name, value in self.options.items()
            if name.startswith(_PREFIX)
        }
        for name, value in {**defaults, **given}.items():
            settings.setProperty(name, value)
        package, name = kind.split(".")
        client = None
        try:
            try:
                made_by = getattr(getattr(self.java.org.apache.kafka.clients, package), name)
                client = made_by.create(settings) if name == "Admin" else made_by(settings)
            except TypeError:  # what Java does not have is a package to Py4J
                raise NoBroker(
                    f"Spark's Kafka connector is not loaded: name {connector_coordinates()} with "
                    "--set spark.jars.packages=..., or its jars with --set spark.jars=..."
                ) from None
            yield client
        except Py4JJavaError as fault:
            thrown = fault.java_exception
            said = (thrown.getCause() or thrown).toString()
            raise NoBroker(f"{KAFKA}{self.bootstrap}: {said}") from None
        finally:
            if client is not None:
                with suppress(Py4JJavaError):
                    client.close()


def _each(records: JavaObject) -> Iterator[JavaObject]:
    following = records.iterator()
    while following.hasNext():
        yield following.next()
