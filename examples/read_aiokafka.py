"""Consumer with aiokafka in the group `billing`: prints what it owns and how much it has read."""

import asyncio
import contextlib
import logging
import os

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

logging.getLogger("aiokafka").setLevel(
    logging.CRITICAL
)  # it logs every retry while the daemon is down


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        print("aiokafka owns", sorted(p.partition for p in assigned), flush=True)

    def on_partitions_revoked(self, revoked):
        pass


async def main() -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=os.environ.get("BOOTSTRAP", "127.0.0.1:9092"),
        client_id="aiokafka",
        group_id="billing",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1000,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    consumer.subscribe(["orders"], listener=Listener())
    await consumer.start()
    count = 0
    try:
        async for _ in consumer:
            count += 1
            if count % 50 == 0:
                print("aiokafka has read", count, flush=True)
    finally:
        await consumer.stop()


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
