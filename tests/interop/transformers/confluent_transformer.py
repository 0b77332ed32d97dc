"""Transformer of librdkafka: copies records to another topic, exactly once, until it is stopped.

Arguments: bootstrap, input topic, output topic, group, transactional id. One line on stdout for
each committed transaction. A fatal error ends it with exit code 3: the test starts it again.
"""

import signal
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

RECORDS_MAX = 20
"""In one transaction."""

KEEP_BROKERS = {"metadata.recovery.strategy": "none"}
"""After a re-bootstrap librdkafka can wait forever in send_offsets_to_transaction: it still asks
the group coordinator that it decommissioned (confluentinc/librdkafka#5511)."""

_is_stopping = False


def _stop(*_: object) -> None:
    global _is_stopping  # noqa: PLW0603 - what a signal handler can change
    _is_stopping = True


def main(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> int:
    signal.signal(signal.SIGTERM, _stop)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            "reconnect.backoff.max.ms": 500,
            **KEEP_BROKERS,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 500,
            "linger.ms": 5,
            **KEEP_BROKERS,
        }
    )
    try:
        _retried(lambda: producer.init_transactions(60))
        consumer.subscribe([source])
        while not _is_stopping:
            batch = [m for m in consumer.consume(RECORDS_MAX, 0.5) if m.error() is None]
            if batch:
                _transform(consumer, producer, batch, target)
    except KafkaException as failed:
        print(f"fatal: {failed}", flush=True)
        return 3
    finally:
        consumer.close()
    return 0


def _transform(consumer: Consumer, producer: Producer, batch: list[Message], target: str) -> None:
    """One transaction; when it was aborted the records are read again."""
    try:
        producer.begin_transaction()
        for message in batch:
            producer.produce(target, message.value(), partition=message.partition())
        _retried(
            lambda: producer.send_offsets_to_transaction(
                _positions(batch), consumer.consumer_group_metadata(), 30
            )
        )
        _retried(lambda: producer.commit_transaction(30))
    except KafkaException as failed:
        if not failed.args[0].txn_requires_abort():
            raise
        _retried(lambda: producer.abort_transaction(30))
        for position in _positions(batch, first=True):
            try:
                consumer.seek(position)
            except KafkaException:  # taken away meanwhile
                continue
        print("aborted", flush=True)
    else:
        print(f"committed {len(batch)}", flush=True)


def _retried(call: "object") -> None:
    assert callable(call)
    while True:
        try:
            call()
        except KafkaException as failed:
            if not failed.args[0].retriable():
                raise
        else:
            return


def _positions(batch: list[Message], *, first: bool = False) -> list[TopicPartition]:
    """After the last record of each partition, or at the first one."""
    found: dict[tuple[str, int], int] = {}
    for message in batch:
        key = message.topic(), message.partition()
        found[key] = found.get(key, message.offset()) if first else message.offset() + 1
    return [TopicPartition(topic, number, offset) for (topic, number), offset in found.items()]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:6]))
