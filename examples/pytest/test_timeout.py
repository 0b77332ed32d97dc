"""Session timeout: does a consumer survive it? docs/tutorials/test-a-timeout.md."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener


class Notes(ConsumerRebalanceListener):
    def __init__(self):
        self.lost = 0
        self.assigned = asyncio.Queue()

    def on_partitions_revoked(self, revoked):
        self.lost += len(revoked)

    def on_partitions_assigned(self, assigned):
        self.assigned.put_nowait(len(assigned))


@pytest.mark.asyncio
async def test_a_consumer_survives_its_session_timeout(rollcall):
    rollcall.create_topic("orders", partitions=2)
    notes = Notes()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=rollcall.bootstrap,
        group_id="billing",
        session_timeout_ms=45_000,
        heartbeat_interval_ms=100,
        retry_backoff_ms=10,
    )
    consumer.subscribe(["orders"], listener=notes)
    await consumer.start()
    assert await notes.assigned.get() == 2

    rollcall.advance(46)  # the coordinator has heard nothing for 46 s
    assert await notes.assigned.get() == 2  # it joined again by itself

    assert notes.lost == 2
    group = await rollcall.wait_async("billing", state="Stable", members=1)
    assert group.generation == 3
    await consumer.stop()
