"""Transformer of Java: copies records to another topic, exactly once, until it is stopped.

Arguments: java's shared library, jars (separated by os.pathsep), bootstrap, input topic, output
topic, group, transactional id. One line on stdout for each committed transaction. A fatal error
ends it with exit code 3: the test starts it again.
"""

import os
import signal
import sys

import jpype
from jpype import JClass

_BYTES = "org.apache.kafka.common.serialization.ByteArray"

_is_stopping = False


def _stop(*_: object) -> None:
    global _is_stopping  # noqa: PLW0603 - what a signal handler can change
    _is_stopping = True


def main(
    jvm: str,
    jars: str,
    bootstrap: str,
    source: str,
    target: str,
    group: str,
    transactional_id: str,
) -> int:
    jpype.startJVM(
        jvm,
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xmx128m",
        "-Xrs",  # signals are Python's
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        classpath=jars.split(os.pathsep),
    )
    signal.signal(signal.SIGTERM, _stop)
    consumer = JClass("org.apache.kafka.clients.consumer.KafkaConsumer")(
        _properties(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
                "session.timeout.ms": "6000",
                "heartbeat.interval.ms": "500",
                "max.poll.records": "20",
                "reconnect.backoff.max.ms": "500",
                "key.deserializer": _BYTES + "Deserializer",
                "value.deserializer": _BYTES + "Deserializer",
            }
        )
    )
    producer = JClass("org.apache.kafka.clients.producer.KafkaProducer")(
        _properties(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": "10000",
                "reconnect.backoff.max.ms": "500",
                "linger.ms": "5",
                "key.serializer": _BYTES + "Serializer",
                "value.serializer": _BYTES + "Serializer",
            }
        )
    )
    fatal = tuple(
        JClass(f"org.apache.kafka.common.errors.{name}")
        for name in (
            "ProducerFencedException",
            "OutOfOrderSequenceException",
            "AuthorizationException",
            "UnsupportedVersionException",
            "FencedInstanceIdException",
        )
    )
    try:
        producer.initTransactions()
        consumer.subscribe(JClass("java.util.List").of(source))
        while not _is_stopping:
            _transform(consumer, producer, target, fatal)
    except jpype.JException as failed:
        print(f"fatal: {failed}", flush=True)
        return 3
    finally:
        consumer.close()
        producer.close(JClass("java.time.Duration").ofSeconds(5))
    return 0


def _transform(
    consumer: object, producer: object, target: str, fatal: tuple[type[BaseException], ...]
) -> None:
    """One transaction; when it was aborted the records are read again."""
    record_class = JClass("org.apache.kafka.clients.producer.ProducerRecord")
    partition_class = JClass("org.apache.kafka.common.TopicPartition")
    position_class = JClass("org.apache.kafka.clients.consumer.OffsetAndMetadata")
    records = list(consumer.poll(JClass("java.time.Duration").ofMillis(500)))  # type: ignore[attr-defined]
    if not records:
        return
    ends = JClass("java.util.HashMap")()
    firsts: dict[int, int] = {}
    source = str(records[0].topic())
    for record in records:
        number = int(record.partition())
        firsts.setdefault(number, int(record.offset()))
        ends.put(partition_class(source, number), position_class(int(record.offset()) + 1))
    try:
        producer.beginTransaction()  # type: ignore[attr-defined]
        for record in records:
            number = JClass("java.lang.Integer")(int(record.partition()))
            producer.send(record_class(target, number, None, record.value()))  # type: ignore[attr-defined]
        producer.sendOffsetsToTransaction(ends, consumer.groupMetadata())  # type: ignore[attr-defined]
        producer.commitTransaction()  # type: ignore[attr-defined]
    except fatal:
        raise
    except JClass("org.apache.kafka.common.KafkaException"):
        producer.abortTransaction()  # type: ignore[attr-defined]
        for number, offset in firsts.items():
            try:
                consumer.seek(partition_class(source, number), offset)  # type: ignore[attr-defined]
            except JClass("java.lang.IllegalStateException"):  # taken away meanwhile
                continue
        print("aborted", flush=True)
    else:
        print(f"committed {len(records)}", flush=True)


def _properties(settings: dict[str, str]) -> object:
    properties = JClass("java.util.Properties")()
    for name, value in settings.items():
        properties.put(name, value)
    return properties


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:8]))
