"""A consumer of librdkafka, as a process: reads, commits after each batch, tells what it did.

Arguments: bootstrap group topic [key=value of librdkafka's configuration ...]
"""

import contextlib
import sys

from _say import say, stop_on_sigterm, stopping
from confluent_kafka import Consumer, KafkaException


def main() -> None:
    bootstrap, group, topic, *extra = sys.argv[1:]
    stop_on_sigterm()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": "range",
            "reconnect.backoff.max.ms": 500,
            **dict(word.split("=", 1) for word in extra),
        }
    )
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: say(
            "assigned", partitions=[p.partition for p in partitions]
        ),
        on_revoke=lambda _, partitions: say(
            "revoked", partitions=[p.partition for p in partitions]
        ),
    )
    while not stopping.is_set():
        messages = consumer.consume(num_messages=100, timeout=0.2)
        read: dict[int, list[int]] = {}
        for message in messages:
            if message.error() is None:
                read.setdefault(message.partition(), []).append(message.offset())
        if not read:
            continue
        for partition, offsets in read.items():
            say("read", partition=partition, offsets=offsets)
        with contextlib.suppress(KafkaException):  # a rebalance or a restart: the next one will do
            consumer.commit(asynchronous=False)
            say("committed", offsets={p: offsets[-1] + 1 for p, offsets in read.items()})
    consumer.close()
    say("closed")


main()
