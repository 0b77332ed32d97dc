"""Greedy client: what it does to another client's latencies, with and without a quota.

    .venv/bin/python -m bench.greedy [--seconds 15] [--percent 10] [--connections 4]

Starts its own daemon on free ports and an empty directory. A quiet group of ten members sends a
heartbeat and a commit each 20 ms, and their times are measured: alone, beside a greedy client, and
beside it under a quota of request_percentage. The greedy client is a process of its own with one
client id. It writes requests on all its connections as fast as the daemon reads them, drops the
answers, and ignores the throttle times in them: commits of 100 partitions ("commits"), or commits
to groups that are new ("groups").

A quota is an average over ten seconds, so a client may first use all of it in one burst. The time
under the quota is measured after that. Each phase is measured beside a phase of the quiet group
alone, because other load on the machine changes the figures.
"""

import argparse
import asyncio
import socket
import sys
import time
from statistics import quantiles
from typing import Final

import uvloop

from bench.daemon import TOPIC, Seat, commit, form_group, heartbeat
from bench.running_daemon import running_daemon
from protocol.codec import decode_response, encode_request
from protocol.headers import RequestHeader
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.names import ErrorCode, GroupId, TopicName

CLIENT_ID: Final = "greedy"
MEMBERS: Final = 10
PAUSE_S: Final = 0.02
BURST_S: Final = 5.0
PARTITIONS: Final = 100
FRAMES: Final = 5_000
COMMIT_VERSION: Final = 9
QUOTAS_VERSION: Final = 1


def greedy_frames(kind: str, number: int) -> list[bytes]:
    """What one connection sends, over and over."""
    partitions = PARTITIONS if kind == "commits" else 1
    rows = tuple(OffsetCommitRequestPartition(n, 42) for n in range(partitions))
    topics = (OffsetCommitRequestTopic(name=TopicName(TOPIC), partitions=rows),)
    groups = 1 if kind == "commits" else FRAMES
    frames = []
    for group in range(groups):
        request = OffsetCommitRequest(GroupId(f"greedy-{number}-{group}"), topics=topics)
        header = RequestHeader(request.API_KEY, COMMIT_VERSION, 7, CLIENT_ID)
        frames.append(encode_request(header, request))
    return frames


async def be_greedy(kind: str, port: int, connections: int) -> None:
    """Until the process is ended."""

    async def read(reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 16):
            pass

    async def write(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        reading = asyncio.create_task(read(reader))
        frames = greedy_frames(kind, number)
        while not reading.done():
            for at in range(0, len(frames), 50):
                writer.write(b"".join(frames[at : at + 50]) * (50 if len(frames) == 1 else 1))
                await writer.drain()

    await asyncio.gather(*(write(number) for number in range(connections)))


class Latencies:
    """Milliseconds of the quiet group's requests."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[float]] = {"heartbeat": [], "commit": []}

    def p99(self, kind: str) -> float:
        return quantiles(self.by_kind[kind], n=100)[98]

    def median(self, kind: str) -> float:
        return quantiles(self.by_kind[kind], n=2)[0]


async def be_quiet(seats: list[Seat], seconds: float) -> Latencies:
    latencies = Latencies()
    until = time.monotonic() + seconds
    of_one_partition = commit(1)

    async def run(seat: Seat) -> None:
        await asyncio.sleep(seat.number * PAUSE_S / MEMBERS)
        while time.monotonic() < until:
            for kind, frame in (("heartbeat", heartbeat(seat)), ("commit", of_one_partition(seat))):
                began = time.perf_counter()
                seat.writer.write(frame)
                await seat.answer()
                latencies.by_kind[kind].append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(run(seat) for seat in seats))
    return latencies


async def set_quota(port: int, percent: float | None) -> None:
    operation = QuotaOperation("request_percentage", percent or 0.0, remove=percent is None)
    entity = [QuotaEntity("client-id", CLIENT_ID)]
    request = AlterClientQuotasRequest([QuotaAlteration(entity, [operation])])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    header = RequestHeader(request.API_KEY, QUOTAS_VERSION, 7, "bench")
    writer.write(encode_request(header, request))
    size = int.from_bytes(await reader.readexactly(4), "big")
    frame = await reader.readexactly(size)
    answer = decode_response(request.API_KEY, QUOTAS_VERSION, frame, 0, size)[1]
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.NONE]
    writer.close()


async def measure(arguments: argparse.Namespace, port: int) -> None:
    seats = [
        Seat("quiet", n, *await asyncio.open_connection("127.0.0.1", port)) for n in range(MEMBERS)
    ]
    for seat in seats:
        sock = seat.writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await seats[0].ask(CreateTopicsRequest((CreatableTopic(TopicName(TOPIC), PARTITIONS, 1),)))
    await form_group(seats)
    await be_quiet(seats, 2.0)
    words = f"{'greedy':<10}{'quota':<8}{'request':<11}"
    print(f"{words}{'alone p50/p99 ms':>20}{'beside p50/p99 ms':>20}{'p99 ratio':>11}")
    for kind in ("commits", "groups"):
        for percent in (None, arguments.percent):
            alone = await be_quiet(seats, arguments.seconds)
            await set_quota(port, percent)
            command = ["-m", "bench.greedy", "--greedy", kind, "--port", str(port)]
            command += ["--connections", str(arguments.connections)]
            greedy = await asyncio.create_subprocess_exec(sys.executable, *command)
            await be_quiet(seats, BURST_S)
            beside = await be_quiet(seats, arguments.seconds)
            greedy.kill()
            await greedy.wait()
            await be_quiet(seats, 2.0)
            for request in ("heartbeat", "commit"):
                line = f"{kind:<10}{f'{percent:g} %' if percent else 'none':<8}{request:<11}"
                for times in (alone, beside):
                    line += f"{times.median(request):>11.2f} /{times.p99(request):>7.2f}"
                print(f"{line}{beside.p99(request) / alone.p99(request):>11.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--percent", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--greedy", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.greedy:
        uvloop.run(be_greedy(arguments.greedy, arguments.port, arguments.connections))
        return
    with running_daemon({"group.initial.rebalance.delay.ms": 200}) as daemon:
        uvloop.run(measure(arguments, daemon.port))


if __name__ == "__main__":
    main()
