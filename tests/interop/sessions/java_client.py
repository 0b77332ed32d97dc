"""Session of Java's clients: as python_clients.py.

Arguments: java's shared library, jars (separated by os.pathsep), then as there.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import jpype
from jpype import JClass

_BYTES = "org.apache.kafka.common.serialization.String"
COMMITTED = ("a1", "a2", "a3")
ABORTED = ("b1", "b2", "b3")
COPIED = 3


def main(bootstrap: str, source: str, target: str, group: str, name: str) -> list[str]:
    duration = JClass("java.time.Duration")
    producer = JClass("org.apache.kafka.clients.producer.KafkaProducer")(
        properties(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": name,
                "key.serializer": _BYTES + "Serializer",
                "value.serializer": _BYTES + "Serializer",
            }
        )
    )
    record = JClass("org.apache.kafka.clients.producer.ProducerRecord")
    first = JClass("java.lang.Integer")(0)

    def write(values: Sequence[str]) -> None:
        producer.beginTransaction()
        for value in values:
            producer.send(record(target, first, None, value)).get()

    def consumer_of(topic: str, group_id: str) -> Any:
        consumer = JClass("org.apache.kafka.clients.consumer.KafkaConsumer")(
            properties(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": group_id,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": "false",
                    "auto.offset.reset": "earliest",
                    "key.deserializer": _BYTES + "Deserializer",
                    "value.deserializer": _BYTES + "Deserializer",
                }
            )
        )
        consumer.subscribe(JClass("java.util.List").of(topic))
        return consumer

    def read(consumer: Any, count: int) -> list[str]:
        values: list[str] = []
        while len(values) < count:
            values += [str(each.value()) for each in consumer.poll(duration.ofSeconds(1))]
        return values

    producer.initTransactions()
    write(COMMITTED)
    producer.commitTransaction()
    write(ABORTED)
    producer.abortTransaction()
    copier = consumer_of(source, group)
    values = read(copier, COPIED)
    write(values)
    offsets = JClass("java.util.HashMap")()
    offsets.put(
        JClass("org.apache.kafka.common.TopicPartition")(source, 0),
        JClass("org.apache.kafka.clients.consumer.OffsetAndMetadata")(COPIED),
    )
    producer.sendOffsetsToTransaction(offsets, copier.groupMetadata())
    producer.commitTransaction()
    copier.close()
    producer.close()
    reader = consumer_of(target, f"{group}-reader")
    found = read(reader, len(COMMITTED) + COPIED)
    reader.close()
    return found


def properties(settings: dict[str, str]) -> Any:
    made = JClass("java.util.Properties")()
    for name, value in settings.items():
        made.put(name, value)
    return made


if __name__ == "__main__":
    jpype.startJVM(
        sys.argv[1],
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xmx128m",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        classpath=sys.argv[2].split(os.pathsep),
    )
    for line in main(*sys.argv[3:8]):
        print(line)
