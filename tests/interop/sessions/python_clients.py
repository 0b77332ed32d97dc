"""Session of a Python library: transactions of one producer, and what a consumer then reads.

Arguments: library (confluent, aiokafka, kafka-python), bootstrap, source topic, target topic,
group, transactional id. It commits a1, a2, a3; aborts b1, b2, b3; copies what the source has, with
its offsets; and prints what a read_committed consumer finds in the target, a line each.
"""

import asyncio
import sys
from collections.abc import Sequence

COMMITTED = ("a1", "a2", "a3")
ABORTED = ("b1", "b2", "b3")
COPIED = 3


def confluent(bootstrap: str, source: str, target: str, group: str, name: str) -> list[str]:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)

    def write(values: Sequence[str]) -> None:
        producer.begin_transaction()
        for value in values:
            producer.produce(target, value, partition=0)

    def consumer_of(topic: str, group_id: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        return consumer

    def read(consumer: Consumer, count: int) -> list[str]:
        values: list[str] = []
        while len(values) < count:
            message = consumer.poll(60)
            assert message is not None, f"only {values}"
            assert message.error() is None, message.error()
            values.append(message.value().decode())
        return values

    write(COMMITTED)
    producer.commit_transaction(60)
    write(ABORTED)
    producer.flush(60)
    producer.abort_transaction(60)
    copier = consumer_of(source, group)
    values = read(copier, COPIED)
    write(values)
    producer.send_offsets_to_transaction(
        [TopicPartition(source, 0, COPIED)], copier.consumer_group_metadata(), 60
    )
    producer.commit_transaction(60)
    copier.close()
    reader = consumer_of(target, f"{group}-reader")
    found = read(reader, len(COMMITTED) + COPIED)
    reader.close()
    return found


async def _aiokafka(bootstrap: str, source: str, target: str, group: str, name: str) -> list[str]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    await producer.start()

    async def write(values: Sequence[str]) -> None:
        for value in values:
            await producer.send_and_wait(target, value.encode(), partition=0)

    def consumer_of(topic: str, group_id: str) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group_id,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    async def read(consumer: AIOKafkaConsumer, count: int) -> list[str]:
        values = []
        while len(values) < count:
            message = await asyncio.wait_for(consumer.getone(), 60)
            values.append(message.value.decode())
        return values

    async with producer.transaction():
        await write(COMMITTED)
    await producer.begin_transaction()
    await write(ABORTED)
    await producer.abort_transaction()
    copier = consumer_of(source, group)
    await copier.start()
    values = await read(copier, COPIED)
    async with producer.transaction():
        await write(values)
        await producer.send_offsets_to_transaction({TopicPartition(source, 0): COPIED}, group)
    await copier.stop()
    await producer.stop()
    reader = consumer_of(target, f"{group}-reader")
    await reader.start()
    found = await read(reader, len(COMMITTED) + COPIED)
    await reader.stop()
    return found


def aiokafka(*arguments: str) -> list[str]:
    return asyncio.run(_aiokafka(*arguments))


def kafka_python(bootstrap: str, source: str, target: str, group: str, name: str) -> list[str]:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    producer.init_transactions()

    def write(values: Sequence[str]) -> None:
        producer.begin_transaction()
        for value in values:
            producer.send(target, value.encode(), partition=0).get(60)

    def consumer_of(topic: str, group_id: str) -> KafkaConsumer:
        return KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group_id,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
        )

    def read(consumer: KafkaConsumer, count: int) -> list[str]:
        values: list[str] = []
        for message in consumer:
            values.append(message.value.decode())
            if len(values) == count:
                break
        return values

    write(COMMITTED)
    producer.commit_transaction()
    write(ABORTED)
    producer.abort_transaction()
    copier = consumer_of(source, group)
    values = read(copier, COPIED)
    write(values)
    offsets = {TopicPartition(source, 0): OffsetAndMetadata(COPIED, "", -1)}
    producer.send_offsets_to_transaction(offsets, group)
    producer.commit_transaction()
    copier.close()
    producer.close()
    reader = consumer_of(target, f"{group}-reader")
    found = read(reader, len(COMMITTED) + COPIED)
    reader.close()
    return found


LIBRARIES = {"confluent": confluent, "aiokafka": aiokafka, "kafka-python": kafka_python}


if __name__ == "__main__":
    for line in LIBRARIES[sys.argv[1]](*sys.argv[2:7]):
        print(line)
