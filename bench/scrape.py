"""Scrape of many groups: its duration, and its effect on the latency of heartbeats.

    .venv/bin/python bench/scrape.py [--groups 10000] [--partitions 5] [--scrapes 5] [--no-aliases]

Starts its own daemon on free ports and an empty directory. Forms the groups over raw sockets: one
member each, a real assignment, a commit for each partition, records that are not consumed. Then
fifty members send heartbeats every 10 ms, first without scrapes and then while another process
scrapes continuously, in plain text and compressed. Compare only figures of one run; the daemon's
CPU time for one scrape, taken before the heartbeats begin, varies least.
"""

import argparse
import asyncio
import http.client
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.running_daemon import running_daemon
from protocol.codec import decode_response, encode_request
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from protocol.headers import RequestHeader
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

VERSIONS = {
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.OFFSET_COMMIT: 9,
}
TOPIC = "bench"
CONNECTIONS = 50
BEAT_EVERY_S = 0.01


class Seat:
    """A connection that sends the requests of members of several groups."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.heartbeat = b""

    async def ask(self, request: Any) -> Any:
        answer = await self.send(frame(request))
        version = VERSIONS[request.API_KEY]
        return decode_response(request.API_KEY, version, answer, 0, len(answer))[1]

    async def send(self, asked: bytes) -> bytes:
        self._writer.write(asked)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)

    async def form(self, group_id: str, partitions: int) -> None:
        """A group of one member that owns and commits all partitions of the topic."""
        join = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(
                JoinGroupRequestProtocol(
                    "range", write_subscription(ConsumerProtocolSubscription((TOPIC,)))
                ),
            ),
        )
        joined = await self.ask(join)
        while joined.error_code is not ErrorCode.NONE:
            if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED:
                join.member_id = joined.member_id
            joined = await self.ask(join)
        assignment = write_assignment(
            ConsumerProtocolAssignment((TopicPartitions(TOPIC, tuple(range(partitions))),))
        )
        synced = await self.ask(
            SyncGroupRequest(
                group_id=group_id,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=(SyncGroupRequestAssignment(joined.member_id, assignment),),
            )
        )
        assert synced.error_code is ErrorCode.NONE, synced.error_code
        rows = tuple(OffsetCommitRequestPartition(n, 0) for n in range(partitions))
        await self.ask(
            OffsetCommitRequest(
                group_id=group_id,
                generation_id_or_member_epoch=joined.generation_id,
                member_id=joined.member_id,
                topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=rows),),
            )
        )
        self.heartbeat = frame(HeartbeatRequest(group_id, joined.generation_id, joined.member_id))


def frame(request: Any) -> bytes:
    header = RequestHeader(request.API_KEY, VERSIONS[request.API_KEY], 7, "bench")
    return encode_request(header, request)


async def form_groups(seats: list[Seat], groups: int, partitions: int) -> None:
    async def some(first: int, seat: Seat) -> None:
        for number in range(first, groups, len(seats)):
            await seat.form(f"group-{number:06}", partitions)

    await asyncio.gather(*(some(first, seat) for first, seat in enumerate(seats)))


async def beat(seats: list[Seat], stop: asyncio.Event) -> list[float]:
    """The latency of each heartbeat until `stop`."""
    took: list[float] = []

    async def beat(seat: Seat) -> None:
        while not stop.is_set():
            began = time.perf_counter()
            await seat.send(seat.heartbeat)
            took.append(time.perf_counter() - began)
            await asyncio.sleep(BEAT_EVERY_S)

    await asyncio.gather(*(beat(seat) for seat in seats))
    return took


def scrape_again_and_again(host: str, port: int, count: int, encoding: str) -> None:
    """The scraping process: prints the seconds, bytes and samples of each scrape."""
    results = []
    for _ in range(count):
        began = time.perf_counter()
        connection = http.client.HTTPConnection(host, port)
        connection.request("GET", "/metrics", headers={"Accept-Encoding": encoding})
        answer = connection.getresponse()
        size = samples = 0
        while piece := answer.read(1 << 20):
            size += len(piece)
            samples += 0 if encoding == "gzip" else piece.count(b"\n")
        results.append((time.perf_counter() - began, size, samples))
        connection.close()
    print(json.dumps(results))


async def scrape(host: str, port: int, count: int, encoding: str) -> list[tuple[float, int, int]]:
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "bench.scrape",
            "--scraper",
            f"{host}:{port}",
            "--scrapes",
            str(count),
        ),
        *("--encoding", encoding),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return [tuple(result) for result in json.loads(output)]


def print_latencies(name: str, beats: list[float]) -> None:
    in_ms = sorted(seconds * 1000 for seconds in beats)
    at = {share: in_ms[int(len(in_ms) * share / 1000)] for share in (500, 990, 999)}
    print(
        f"  heartbeats {name}: {len(in_ms)}, p50 {at[500]:.2f} ms, p99 {at[990]:.2f} ms, "
        f"p99.9 {at[999]:.2f} ms, max {in_ms[-1]:.2f} ms"
    )


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(arguments: argparse.Namespace, pid: int, clients: int, admin: int) -> None:
    host = "127.0.0.1"
    seats = [Seat(*await asyncio.open_connection(host, clients)) for _ in range(CONNECTIONS)]
    topic = CreatableTopic(TOPIC, num_partitions=arguments.partitions, replication_factor=1)
    await seats[0].ask(CreateTopicsRequest(topics=(topic,)))
    began = time.perf_counter()
    await form_groups(seats, arguments.groups, arguments.partitions)
    print(f"{arguments.groups} groups formed in {time.perf_counter() - began:.1f} s")

    for name, encoding in (("plain", "identity"), ("gzip", "gzip")):
        before = cpu_seconds(pid)
        await scrape(host, admin, arguments.scrapes, encoding)
        each = (cpu_seconds(pid) - before) / arguments.scrapes
        print(f"{name}: {each:.2f} s of the daemon's CPU for a scrape, all threads")

    for name, encoding in (("alone", ""), ("plain", "identity"), ("gzip", "gzip")):
        stop = asyncio.Event()
        beating = asyncio.create_task(beat(seats, stop))
        if encoding:
            results = await scrape(host, admin, arguments.scrapes, encoding)
            seconds = [result[0] for result in results]
            _, size, samples = results[-1]
            lines = f", {samples} lines" if samples else ""
            print(
                f"{name}: median {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s, "
                f"{size / 1e6:.1f} MB{lines}"
            )
        else:
            await asyncio.sleep(5)
        stop.set()
        print_latencies("alone" if not encoding else "meanwhile", await beating)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--scrapes", type=int, default=5)
    parser.add_argument("--no-aliases", action="store_true")
    parser.add_argument("--scraper", help=argparse.SUPPRESS)
    parser.add_argument("--encoding", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.scraper:
        host, _, port = arguments.scraper.partition(":")
        scrape_again_and_again(host, int(port), arguments.scrapes, arguments.encoding)
        return
    settings = {"group.initial.rebalance.delay.ms": 0, "rollcall.flush": "os"}
    if arguments.no_aliases:
        settings["rollcall.metrics.aliases"] = ""
    with running_daemon(settings) as daemon:
        uvloop.run(measure(arguments, daemon.pid, daemon.port, daemon.admin_port))


if __name__ == "__main__":
    main()
