"""Lag sampler: what do rounds over 10,000 groups of 10 partitions cost, and do they delay the loop?

    .venv/bin/python -m bench.lag_sampling [GROUPS] [PARTITIONS]

Runs the real sampler over groups in memory, in three cases: no commits, commits of all groups in
each round, and the same with the check for verdicts. Prints for each round its duration, its CPU
time, its longest slice (CPU time too, so that other load does not count), and the greatest delay of
a timer on the same loop; then what the commit meter adds to a commit.
"""

import asyncio
import gc
import resource
import sys
from collections.abc import AsyncIterator, Sequence
from time import perf_counter, thread_time
from types import SimpleNamespace
from typing import cast

import uvloop

from broker.lag import sampler as lag_sampler
from broker.lag.commit_rates import CommitMeter
from broker.lag.reader import LagReader
from broker.lag.sampler import LagSampler
from broker.lag.verdict_watch import VerdictWatch
from broker.loop.clock import SystemClock
from coordinator.classic.group import ClassicGroup
from coordinator.coordinator import GroupCoordinator
from coordinator.group import CommittedOffset
from coordinator.offsets.events import OffsetsCommitted
from history.entries import GroupEmptiedEntry
from history.lag.records import Sample, encode_sample
from history.lag.store import LagLimits, LagStore
from history.verdicts.model import VerdictLimits
from protocol.names import GenerationId, GroupId, MemberId, TopicName
from topics.registry import TopicRegistry

SHARDS = 50
TOPIC = TopicName("orders")


class Log:
    log_start_offset = 0

    def __init__(self) -> None:
        self.high_watermark = 1_000

    def read(self, *_: object, **__: object) -> bytes:
        return b""


class Samples:
    """Encodes the samples and drops them."""

    def __init__(self) -> None:
        self.bytes = 0

    def append(self, samples: Sequence[Sample], now_ms: int) -> None:  # noqa: ARG002
        for sample in samples:
            self.bytes += len(encode_sample(sample)[1])

    async def read_back(self) -> AsyncIterator[list[Sample]]:
        for nothing in ():
            yield nothing


class World:
    def __init__(self, groups: int, partitions: int) -> None:
        self.logs = [Log() for _ in range(partitions)]
        self.shards: list[list[ClassicGroup]] = [[] for _ in range(SHARDS)]
        for n in range(groups):
            group = ClassicGroup(GroupId(f"group-{n}"), 0)
            group.offsets[TOPIC] = {}
            self.shards[n % SHARDS].append(group)
        self.offset = 0
        self.commit()

    def commit(self) -> None:
        self.offset += 10
        now_ms = SystemClock().now().wall_ms
        for log in self.logs:
            log.high_watermark += 11
        for shard in self.shards:
            for group in shard:
                group.offsets[TOPIC] = {
                    index: CommittedOffset(self.offset, committed_at_ms=now_ms)
                    for index in range(len(self.logs))
                }

    def reader(self) -> LagReader:
        coordinator = SimpleNamespace(groups_of=lambda n: tuple(self.shards[n]))
        partitions = [SimpleNamespace(log=log) for log in self.logs]
        registry = SimpleNamespace(
            partition_count=lambda _: SHARDS,
            topic_id=lambda _: None,
            partition=lambda _, index: partitions[index],
        )
        return LagReader(cast("GroupCoordinator", coordinator), cast("TopicRegistry", registry))


async def late(worst: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + 0.001
        await asyncio.sleep(0.001)
        worst[0] = max(worst[0], loop.time() - due)


async def measure(name: str, world: World, *, moves: bool, watched: bool) -> None:
    samples = Samples()
    sampler = LagSampler(
        world.reader(),
        LagStore(LagLimits()),
        samples,
        SystemClock(),
        print,
        lookups_max=2_000,
        keepalive_ms=600_000,
    )
    if watched:
        topics = SimpleNamespace(partition_count=lambda _: None)
        watch = VerdictWatch(topics, VerdictLimits(), 100_000, print)  # type: ignore[arg-type]
        for shard in world.shards:
            for group in shard:
                watch.on_entry(GroupEmptiedEntry(group.group_id, SystemClock().now().wall_ms))
        sampler.watcher = watch
    await sampler.round()
    gc.collect()
    gc.freeze()  # as the daemon does once all is loaded
    gc.disable()  # its pauses concern the whole daemon, and /metrics has them
    for _ in range(3):
        if moves:
            world.commit()
        sampler.slice_seconds_max, worst = 0.0, [0.0]
        ticker = asyncio.ensure_future(late(worst))
        began = perf_counter()
        await sampler.round()
        took = perf_counter() - began
        ticker.cancel()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name:34} round {took:6.2f} s, busy {sampler.busy_seconds:6.2f} s, longest slice "
        f"{sampler.slice_seconds_max * 1000:5.2f} ms, timer late by {worst[0] * 1000:5.2f} ms, "
        f"written {samples.bytes:,} bytes, {memory} MB"
    )


def meter() -> None:
    offsets = [(TOPIC, {n: CommittedOffset(n) for n in range(10)})]
    events = [
        OffsetsCommitted(
            GroupId(f"group-{n % 100}"),
            0,
            GenerationId(1),
            MemberId(f"member-{n}"),
            "client",
            "/127.0.0.1",
            offsets,
        )
        for n in range(1_000)
    ]
    count = CommitMeter()
    rounds = 200
    began = thread_time()
    for _ in range(rounds):
        for event in events:
            count(event)
    took = thread_time() - began
    print(f"the commit meter adds {took / rounds / len(events) * 1e9:.0f} ns to a commit")


async def main() -> None:
    lag_sampler.perf_counter = thread_time  # type: ignore[attr-defined]
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    partitions = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    world = World(groups, partitions)
    await measure("nothing moves", world, moves=False, watched=False)
    await measure("everybody commits", world, moves=True, watched=False)
    await measure("everybody commits, all are watched", world, moves=True, watched=True)
    meter()


if __name__ == "__main__":
    uvloop.run(main())
