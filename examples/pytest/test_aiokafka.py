"""Tests of a consumer with aiokafka: a timeout, a slow assignment, a coordinator that moves.

Run with `pytest examples/pytest`: nothing else has to be started. Needs pytest-asyncio.
"""

import asyncio

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition

TOPIC, GROUP = "orders", "billing"

pytestmark = pytest.mark.asyncio


class Assignments(ConsumerRebalanceListener):
    """What the consumer was told, in order."""

    def __init__(self):
        self.seen = asyncio.Queue()

    def on_partitions_assigned(self, assigned):
        self.seen.put_nowait(sorted(each.partition for each in assigned))

    def on_partitions_revoked(self, revoked):
        pass


async def start(rollcall, listener=None):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=rollcall.bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=45_000,
        heartbeat_interval_ms=100,
        retry_backoff_ms=10,
    )
    consumer.subscribe([TOPIC], listener=listener)
    await consumer.start()
    return consumer


@pytest_asyncio.fixture
async def assignments():
    return Assignments()


@pytest_asyncio.fixture
async def consumer(rollcall, assignments):
    rollcall.create_topic(TOPIC, partitions=2)
    consumer = await start(rollcall, assignments)
    assert await assignments.seen.get() == [0, 1]
    await rollcall.wait_async(GROUP, state="Stable", members=1)
    yield consumer
    await consumer.stop()


async def test_it_reads_what_is_produced(rollcall, consumer):
    async with AIOKafkaProducer(bootstrap_servers=rollcall.bootstrap) as producer:
        await producer.send_and_wait(TOPIC, b"order 1")

    assert (await consumer.getone()).value == b"order 1"


async def test_it_joins_again_after_its_session_has_ended(rollcall, consumer, assignments):
    first = rollcall.group(GROUP)

    rollcall.advance(46)

    assert await assignments.seen.get() == [0, 1]
    again = await rollcall.wait_async(GROUP, state="Stable", members=1)
    assert again.generation > first.generation


async def test_a_second_member_waits_for_a_slow_leader(rollcall, consumer, assignments):
    with rollcall.hold("SyncGroup") as hold:
        second = asyncio.create_task(start(rollcall))
        await hold.wait_async(2)  # both have joined, and nobody knows its partitions yet
        assert rollcall.group(GROUP).state == "CompletingRebalance"

    await rollcall.wait_async(GROUP, state="Stable", members=2)
    await (await second).stop()


async def test_a_commit_is_repeated_when_the_coordinator_has_moved(rollcall, consumer):
    rollcall.fail_next("OffsetCommit", "NOT_COORDINATOR", times=2)

    await consumer.commit({TopicPartition(TOPIC, 0): 1})

    assert await consumer.committed(TopicPartition(TOPIC, 0)) == 1
