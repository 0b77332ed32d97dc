"""Stalls: how long the turns of a daemon's event loop take while everything happens at once.

    .venv/bin/python -m bench.stalls [--members 10000] [--joining 5000] [--offsets 100000]
        [--protocol classic|consumer] [--seconds 30]

A daemon starts on a directory with that many offsets, so groups are loaded while 10,000 members in
groups of ten join. They send a heartbeat each 3 s and a commit each 5 s. Beside them one group of
5,000 members forms from nothing and leaves again, /metrics is scraped, snapshots are taken and logs
are cleaned. The daemon is the real one on a loop that measures: each call that the loop makes, and
each turn, from one poll of the sockets to the next one. In CPU time of the loop's thread: on a
machine with other load the wall clock mostly measures that. Garbage collections are part of the
calls in which they happen.
"""

import argparse
import asyncio
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import uvloop
from msgspec.structs import replace

from bench.daemon import NO_TOPICS
from bench.running_daemon import when_ready
from protocol.codec import decode_response, encode_request
from protocol.headers import RequestHeader
from protocol.messages.consumer_group_heartbeat import (
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.names import ApiKey, ErrorCode

GROUP_SIZE: Final = 10
TOPIC: Final = "stalls"
PARTITIONS: Final = 10
MANY_TOPIC: Final = "many"
BLOCKS: Final = 50
"""Members of one group have a connection each; members of some groups share them."""

HEARTBEAT_S: Final = 3.0
COMMIT_S: Final = 5.0
SCRAPE_S: Final = 2.0
FILLED_PARTITIONS: Final = 50
BUCKETS_MS: Final[tuple[float, ...]] = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 50.0, 100.0)
SHOWN: Final = 12
BESIDE: Final = {
    "rollcall_snapshots_taken_total": "Snapshotter._check_forever",
    "rollcall_cleaner_runs_total": "LogCleaner._run_forever",
}
"""What must have run beside the load, and the task of the loop that runs it."""

MEASURED: Final = (
    "from rollcall.program import use_program_path; use_program_path(); "
    "from bench.stalls import serve; serve()"
)
"""First of all where the modules are: some that are compiled and some that are not do not mix."""

TURN: Final = "all of it"

RESULT_FILE: Final = "ROLLCALL_BENCH_STALLS"

VERSIONS: Final = {
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.OFFSET_COMMIT: 9,
}
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": 500,
    "group.max.session.timeout.ms": 1_800_000,
    "offsets.topic.segment.bytes": 1 << 15,
    "log.cleaner.backoff.ms": 1_000,
    "rollcall.offsets.history.ms": 0,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "rollcall.snapshot.bytes": 1 << 15,
}


# The daemon, on a loop that measures.


class Times:
    """A histogram, and the longest ones by name."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_MS) + 1)
        self.longest: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        ms = seconds * 1e3
        self.counts[bisect_left(BUCKETS_MS, ms)] += 1
        if ms > BUCKETS_MS[0] and ms > self.longest.get(name, 0.0):
            self.longest[name] = ms


class MeasuringLoop(uvloop.Loop):
    """Measures what the loop calls: callbacks, timers, and the methods of protocols."""

    def __init__(self) -> None:
        super().__init__()
        self.is_measuring = False  # from the first client to the signal to stop
        self.is_in_turn = False
        self.is_in_call = False
        self.turn_began = (0.0, 0.0)
        self.calls: dict[str, float] = {}  # of this turn
        self.longest_turn: dict[str, float] = {}  # its calls, and itself
        self.times = {name: Times() for name in ("call cpu", "call wall", "turn cpu", "turn wall")}

    def call(self, name: str, callback: Callable[..., Any], *arguments: Any) -> Any:
        if self.is_in_call or not self.is_measuring:  # some transports call their protocol at once
            return callback(*arguments)
        began_s, began_cpu_s = time.perf_counter(), time.thread_time()
        if not self.is_in_turn:
            self.is_in_turn = True
            self.turn_began = began_s, began_cpu_s
            super().call_soon(self._turn_is_over)  # in the next turn, the first of its calls
        self.is_in_call = True
        try:
            return callback(*arguments)
        finally:
            self.is_in_call = False
            cpu_s = time.thread_time() - began_cpu_s
            self.times["call cpu"].add(name, cpu_s)
            self.times["call wall"].add(name, time.perf_counter() - began_s)
            self.calls[name] = self.calls.get(name, 0.0) + cpu_s

    def _turn_is_over(self) -> None:
        began_s, began_cpu_s = self.turn_began
        most = max(self.calls, key=lambda name: self.calls[name])
        took_s = time.thread_time() - began_cpu_s
        if took_s > self.longest_turn.get(TURN, 0.0):
            self.longest_turn = {TURN: took_s, **self.calls}
        self.times["turn cpu"].add(f"mostly {most}", took_s)
        self.times["turn wall"].add(f"mostly {most}", time.perf_counter() - began_s)
        self.is_in_turn = False
        self.calls.clear()

    def _measured(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(callback, "__qualname__", type(callback).__name__)
        task = getattr(callback, "__self__", None)
        if isinstance(task, asyncio.Task):
            coroutine = task.get_coro()  # or a step of an asynchronous generator
            name = f"task {getattr(coroutine, '__qualname__', type(coroutine).__name__)}"
        return functools.partial(self.call, name, callback)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_soon(self._measured(callback), *args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_soon_threadsafe(self._measured(callback), *args, context=context)

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_later(delay, self._measured(callback), *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_at(when, self._measured(callback), *args, context=context)

    def add_signal_handler(self, sig: Any, callback: Any, *args: Any) -> None:
        def stop() -> None:
            self.is_measuring = False
            callback(*args)

        super().add_signal_handler(sig, stop)

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        return await super().create_server(self.measured(protocol_factory), *args, **options)

    def measured(self, make_protocol: Callable[[], asyncio.Protocol]) -> Callable[[], Any]:
        def make() -> asyncio.Protocol:
            self.is_measuring = True
            return MeasuredProtocol(self, make_protocol())

        return make


class MeasuredProtocol(asyncio.Protocol):
    """Stands before a protocol."""

    __slots__ = ("_loop", "_protocol")

    def __init__(self, loop: MeasuringLoop, protocol: asyncio.Protocol) -> None:
        self._loop = loop
        self._protocol = protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop.call("connection_made", self._protocol.connection_made, transport)

    def data_received(self, data: bytes) -> None:
        self._loop.call("data_received", self._protocol.data_received, data)

    def eof_received(self) -> bool | None:
        kept: bool | None = self._loop.call("eof_received", self._protocol.eof_received)
        return kept

    def connection_lost(self, exc: Exception | None) -> None:
        self._loop.call("connection_lost", self._protocol.connection_lost, exc)

    def pause_writing(self) -> None:
        self._loop.call("pause_writing", self._protocol.pause_writing)

    def resume_writing(self) -> None:
        self._loop.call("resume_writing", self._protocol.resume_writing)


class Collections:
    """Garbage collections of the loop's thread, in its CPU time."""

    def __init__(self) -> None:
        self.times = Times()
        self._began_s = 0.0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_s = time.thread_time()
        else:
            self.times.add(f"generation {info['generation']}", time.thread_time() - self._began_s)


def serve() -> None:
    """`rollcall serve` on the measuring loop; its times are in a file when it has stopped."""
    from broker import main as daemon
    from broker.net import acceptor
    from cli.main import main as run

    loops: list[MeasuringLoop] = []

    def new_loop() -> MeasuringLoop:
        loops.append(MeasuringLoop())
        return loops[-1]

    if acceptor.CLIENT_SOCKETS_IN_C is not None:  # else `create_server` makes them too
        add = acceptor.Acceptor.add

        async def add_measured(self: Any, sock: Any, make_protocol: Any, backlog: int) -> None:
            await add(self, sock, loops[-1].measured(make_protocol), backlog)

        acceptor.Acceptor.add = add_measured  # type: ignore[method-assign]
    collections = Collections()
    daemon.uvloop.run = functools.partial(uvloop.run, loop_factory=new_loop)
    try:
        run()
    finally:
        found = {**loops[0].times, "collection cpu": collections.times}
        text: dict[str, Any] = {
            name: [times.counts, times.longest] for name, times in found.items()
        }
        text[TURN] = loops[0].longest_turn
        Path(os.environ[RESULT_FILE]).write_text(json.dumps(text))


# Its clients.


class Wire:
    """A connection with requests in flight, answered in their order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = asyncio.Lock()

    async def ask(self, request: Any) -> Any:
        api_key = request.API_KEY
        version = VERSIONS[api_key]
        framed = encode_request(RequestHeader(api_key, version, 7, "bench"), request)
        async with self._lock:
            self._writer.write(framed)
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            answer = await self._reader.readexactly(size)
        return decode_response(api_key, version, answer, 0, size)[1]

    def close(self) -> None:
        self._writer.close()


async def connect(port: int) -> Wire:
    return Wire(*await asyncio.open_connection("127.0.0.1", port))


class Member:
    def __init__(self, wire: Wire, group_id: str) -> None:
        self._wire = wire
        self._group_id = group_id
        self._member_id = ""
        self._generation = -1

    async def join(self) -> None:
        """Until it is in a generation and has its assignment."""
        while True:
            joined = await self._wire.ask(
                JoinGroupRequest(
                    group_id=self._group_id,
                    member_id=self._member_id,
                    session_timeout_ms=300_000,
                    rebalance_timeout_ms=300_000,
                    protocol_type="consumer",
                    protocols=(JoinGroupRequestProtocol("range", NO_TOPICS),),
                )
            )
            self._member_id = joined.member_id
            if joined.error_code is not ErrorCode.NONE:
                assert joined.error_code in (
                    ErrorCode.MEMBER_ID_REQUIRED,
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ), joined
                continue
            self._generation = joined.generation_id
            assigned = tuple(
                SyncGroupRequestAssignment(member.member_id, b"\0\1") for member in joined.members
            )
            synced = await self._wire.ask(
                SyncGroupRequest(
                    group_id=self._group_id,
                    generation_id=self._generation,
                    member_id=self._member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=assigned,
                )
            )
            if synced.error_code is ErrorCode.NONE:
                return

    async def heartbeat(self) -> None:
        request = HeartbeatRequest(self._group_id, self._generation, self._member_id)
        answer = await self._wire.ask(request)
        if answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS:
            await self.join()

    async def commit(self) -> None:
        rows = tuple(OffsetCommitRequestPartition(n, 42) for n in range(PARTITIONS))
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=rows),),
        )
        await self._wire.ask(request)

    async def live(self, until_s: float, phase: float) -> None:
        """Heartbeats and commits, at times that the members share evenly."""
        beat_s = time.monotonic() + HEARTBEAT_S * phase
        commit_s = time.monotonic() + COMMIT_S * phase
        while min(beat_s, commit_s) < until_s:
            await asyncio.sleep(max(0.0, min(beat_s, commit_s) - time.monotonic()))
            if beat_s <= commit_s:
                beat_s += HEARTBEAT_S
                await self.heartbeat()
            else:
                commit_s += COMMIT_S
                await self.commit()


class ConsumerMember:
    """A member by KIP-848, of a group in which a fifth of the members owns a partition."""

    owners = 0  # of all

    def __init__(self, wire: Wire, phase_s: float, partitions: int) -> None:
        self._wire = wire
        self._phase_s = phase_s
        self._partitions = partitions

    async def join(self) -> None:
        """A heartbeat each second until each partition has an owner of its own; then it leaves."""
        request = ConsumerGroupHeartbeatRequest(
            group_id="many-consumers",
            member_id=str(uuid4()),
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=(MANY_TOPIC,),
            topic_partitions=(),
        )
        await asyncio.sleep(self._phase_s)
        steady: dict[str, Any] = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None}
        owned: Sequence[HeartbeatTopicPartitions] = ()
        while ConsumerMember.owners < self._partitions:
            answer = await self._wire.ask(request)
            assert answer.error_code is ErrorCode.NONE, answer
            acknowledged = None
            if answer.assignment is not None:
                acknowledged = answer.assignment.topic_partitions
                ConsumerMember.owners += bool(acknowledged) - bool(owned)
                owned = acknowledged
            request = replace(
                request,
                member_epoch=answer.member_epoch,
                topic_partitions=acknowledged,
                **steady,
            )
            await asyncio.sleep(0 if acknowledged is not None else 1.0)
        await self._wire.ask(replace(request, member_epoch=LEAVE_EPOCH, topic_partitions=None))


async def fill(port: int, offsets: int) -> None:
    """Commits of groups without members."""
    wires = [await connect(port) for _ in range(8)]
    await make_topic(wires[0])
    rows = tuple(OffsetCommitRequestPartition(n, 42) for n in range(FILLED_PARTITIONS))
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=rows),)

    async def some(wire: Wire, first: int) -> None:
        for number in range(first, offsets // FILLED_PARTITIONS, len(wires)):
            await wire.ask(OffsetCommitRequest(group_id=f"filled-{number}", topics=topics))

    await asyncio.gather(*(some(wire, number) for number, wire in enumerate(wires)))


async def make_topic(wire: Wire, name: str = TOPIC, partitions: int = FILLED_PARTITIONS) -> None:
    made = await wire.ask(CreateTopicsRequest(topics=(CreatableTopic(name, partitions, 1),)))
    assert made.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), made


async def use(port: int, admin_port: int, arguments: argparse.Namespace) -> dict[str, float]:
    """The load; some numbers of the daemon's metrics when it is over."""
    groups = arguments.members // GROUP_SIZE
    wires = [await connect(port) for _ in range(BLOCKS * GROUP_SIZE)]
    members: list[Member] = []

    async def form(block: int) -> None:
        for number in range(block, groups, BLOCKS):
            of_block = wires[block * GROUP_SIZE : (block + 1) * GROUP_SIZE]
            group = [Member(wire, f"members-{number}") for wire in of_block]
            await asyncio.gather(*(member.join() for member in group))
            members.extend(group)

    began_s = time.monotonic()
    await asyncio.gather(*(form(block) for block in range(BLOCKS)))
    print(f"{len(members)} members joined in {time.monotonic() - began_s:.1f} s", flush=True)
    until_s = time.monotonic() + arguments.seconds
    living = [member.live(until_s, n / len(members)) for n, member in enumerate(members)]
    await asyncio.gather(
        *living,
        join_many(port, arguments.joining, arguments.protocol),
        scrape_until(admin_port, until_s),
    )
    for wire in wires:
        wire.close()
    return await scrape(admin_port)


async def join_many(port: int, count: int, protocol: str) -> None:
    await asyncio.sleep(HEARTBEAT_S)
    wires = [await connect(port) for _ in range(count)]
    if protocol == "consumer":
        partitions = max(count // 5, 1)
        await make_topic(wires[0], MANY_TOPIC, partitions)
        joins = [ConsumerMember(wire, n / count, partitions) for n, wire in enumerate(wires)]
    else:
        joins = [Member(wire, "many") for wire in wires]
    began_s = time.monotonic()
    await asyncio.gather(*(member.join() for member in joins))
    print(f"{count} members formed one group in {time.monotonic() - began_s:.1f} s", flush=True)
    for wire in wires:
        wire.close()


async def scrape_until(admin_port: int, until_s: float) -> None:
    while time.monotonic() < until_s:
        await scrape(admin_port)
        await asyncio.sleep(SCRAPE_S)


async def scrape(admin_port: int) -> dict[str, float]:
    """The samples without labels."""
    reader, writer = await asyncio.open_connection("127.0.0.1", admin_port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    lines = (await reader.read()).decode().splitlines()
    writer.close()
    assert " 200 " in lines[0], lines[0]
    samples = (line.split() for line in lines if line.startswith("rollcall_") and "{" not in line)
    return {name: float(value) for name, value, *_ in samples}


# All of it.


@contextmanager
def daemon(folder: str, *, measured: bool) -> Iterator[tuple[int, int]]:
    run = ("-c", MEASURED) if measured else ("-m", "rollcall")
    command = [
        sys.executable,
        *run,
        "serve",
        "--data-dir",
        f"{folder}/data",
        "--listen",
        "127.0.0.1:0",
    ]
    command += ["--admin", "127.0.0.1:0"]
    for name, value in SETTINGS.items():
        command += ["--set", f"{name}={value}"]
    environment = {**os.environ, RESULT_FILE: f"{folder}/times"}
    with Path(folder, "log").open("a") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
        try:
            ready = when_ready(process)
            yield ready.port, ready.admin_port
        finally:
            process.terminate()
            process.wait(120)


def show(found: dict[str, Any]) -> None:
    bounds = "".join(f"{f'≤{bound:g}':>9}" for bound in BUCKETS_MS)
    print(f"{'ms':<16}{bounds}{'more':>9}")
    for name, (counts, _) in found.items():
        print(f"{name:<16}" + "".join(f"{count:>9}" for count in counts))
    for name in ("turn cpu", "call cpu", "collection cpu"):
        longest = sorted(found[name][1].items(), key=lambda item: -item[1])[:SHOWN]
        print(f"longest, {name}: " + ", ".join(f"{what} {ms:.1f}" for what, ms in longest))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--joining", type=int, default=5_000)
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--offsets", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with daemon(folder, measured=False) as (port, _):
            uvloop.run(fill(port, arguments.offsets))
        with daemon(folder, measured=True) as (port, admin_port):
            metrics = uvloop.run(use(port, admin_port, arguments))
        found = json.loads(Path(folder, "times").read_text())
        for name, task in BESIDE.items():
            ms = found["call cpu"][1].get(f"task {task}", BUCKETS_MS[0])
            print(f"{name} {metrics[name]:g}, longest call of {task}: at most {ms:.2f} ms")
            assert metrics[name], "it had nothing to do: nothing is shown for it"
        parts = sorted(found.pop(TURN).items(), key=lambda item: -item[1])
        show(found)
        print("longest turn: " + ", ".join(f"{what} {took * 1e3:.1f}" for what, took in parts))


if __name__ == "__main__":
    main()
