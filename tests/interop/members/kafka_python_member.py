"""A consumer of kafka-python, as a process: reads, commits after each batch, tells what it did.

Arguments: bootstrap group topic [key=value of KafkaConsumer ...]
"""

import contextlib
import sys

from _say import say, stop_on_sigterm, stopping
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaError


class Told(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        say("assigned", partitions=[p.partition for p in assigned])

    def on_partitions_revoked(self, revoked):
        say("revoked", partitions=[p.partition for p in revoked])


def main() -> None:
    bootstrap, group, topic, *extra = sys.argv[1:]
    stop_on_sigterm()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        max_poll_records=100,
        reconnect_backoff_max_ms=500,
        **dict(word.split("=", 1) for word in extra),
    )
    consumer.subscribe([topic], listener=Told())
    while not stopping.is_set():
        read = {
            tp.partition: [record.offset for record in records]
            for tp, records in consumer.poll(timeout_ms=200).items()
        }
        if not read:
            continue
        for partition, offsets in read.items():
            say("read", partition=partition, offsets=offsets)
        with contextlib.suppress(KafkaError):  # a rebalance or a restart: the next one will do
            consumer.commit()
            say("committed", offsets={p: offsets[-1] + 1 for p, offsets in read.items()})
    consumer.close()
    say("closed")


main()
