"""A consumer of aiokafka, as a process: reads, commits after each batch, tells what it did.

Arguments: bootstrap group topic [key=value of AIOKafkaConsumer ...]
"""

import asyncio
import contextlib
import sys

from _say import say, stop_on_sigterm, stopping
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError


class Told(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        say("assigned", partitions=[p.partition for p in assigned])

    def on_partitions_revoked(self, revoked):
        say("revoked", partitions=[p.partition for p in revoked])


async def main() -> None:
    bootstrap, group, topic, *extra = sys.argv[1:]
    stop_on_sigterm()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        partition_assignment_strategy=(RangePartitionAssignor,),
        **dict(word.split("=", 1) for word in extra),
    )
    consumer.subscribe([topic], listener=Told())
    await consumer.start()
    while not stopping.is_set():
        batches = await consumer.getmany(timeout_ms=200, max_records=100)
        read = {tp.partition: [r.offset for r in records] for tp, records in batches.items()}
        if not read:
            continue
        for partition, offsets in read.items():
            say("read", partition=partition, offsets=offsets)
        with contextlib.suppress(KafkaError):  # a rebalance or a restart: the next one will do
            await consumer.commit()
            say("committed", offsets={p: offsets[-1] + 1 for p, offsets in read.items()})
    await consumer.stop()
    say("closed")


asyncio.run(main())
