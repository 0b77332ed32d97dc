"""Daemon: heartbeats and durable commits per second of its CPU time.

    .venv/bin/python -m bench.daemon [--seconds 5] [--groups 5] [--members 10] [--flush commit|os]

Starts its own daemon on free ports and an empty directory, forms the groups over raw sockets, and
keeps one request in flight on each connection. CPU is the time of the daemon's process, all
threads; the load runs in this process. Other load on the machine changes the figures: compare only
within one run, and two trees with bench/trees.py. To compare with a real Kafka, run Kafka's own
tools against both.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.running_daemon import running_daemon
from protocol.codec import decode_response, encode_request
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
NO_TOPICS = b"\0\0\0\0\0\0\xff\xff\xff\xff"  # a subscription: version 0, no topics, no user data
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass
class Seat:
    """One member and its connection."""

    group_id: str
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    member_id: str = ""
    generation_id: int = -1

    async def ask(self, request: Any) -> Any:
        api_key = request.API_KEY
        self.writer.write(frame(request))
        return decode_response(
            api_key, VERSIONS[api_key], answer := await self.answer(), 0, len(answer)
        )[1]

    async def answer(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)


def frame(request: Any) -> bytes:
    header = RequestHeader(request.API_KEY, VERSIONS[request.API_KEY], 7, "bench")
    return encode_request(header, request)


async def join(seat: Seat, subscription: bytes) -> tuple[str, ...]:
    """Two requests the first time. Returns the ids of all members to the leader, else nothing."""
    request = JoinGroupRequest(
        group_id=seat.group_id,
        member_id=seat.member_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", subscription),),
    )
    response = await seat.ask(request)
    while response.error_code is not ErrorCode.NONE:
        if response.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = response.member_id
        elif response.error_code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise RuntimeError(f"join: {response.error_code!r}")
        response = await seat.ask(request)
    seat.member_id, seat.generation_id = response.member_id, response.generation_id
    return tuple(member.member_id for member in response.members)


async def form_group(seats: list[Seat], subscription: bytes = NO_TOPICS) -> None:
    """All join, then sync. A changed subscription causes a new generation."""
    rosters = await asyncio.gather(*(join(seat, subscription) for seat in seats))
    if len({seat.generation_id for seat in seats}) > 1:
        # A member was late: all join the next generation.
        return await form_group(seats, subscription)
    answers = await asyncio.gather(
        *(
            seat.ask(
                SyncGroupRequest(
                    group_id=seat.group_id,
                    generation_id=seat.generation_id,
                    member_id=seat.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=tuple(SyncGroupRequestAssignment(m, b"\0\1") for m in roster),
                )
            )
            for seat, roster in zip(seats, rosters, strict=True)
        )
    )
    if any(answer.error_code is not ErrorCode.NONE for answer in answers):
        await form_group(seats, subscription)
    return None


def heartbeat(seat: Seat) -> bytes:
    return frame(HeartbeatRequest(seat.group_id, seat.generation_id, seat.member_id))


def commit(partitions: int) -> Callable[[Seat], bytes]:
    def of(seat: Seat) -> bytes:
        first = seat.number * partitions
        rows = tuple(OffsetCommitRequestPartition(first + n, 42) for n in range(partitions))
        topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=rows),)
        return frame(
            OffsetCommitRequest(
                group_id=seat.group_id,
                generation_id_or_member_epoch=seat.generation_id,
                member_id=seat.member_id,
                topics=topics,
            )
        )

    return of


async def load(seats: list[Seat], request: Callable[[Seat], bytes], seconds: float) -> int:
    """Keep one request in flight on each connection until the end; count the answers."""
    until = time.monotonic() + seconds

    async def run(seat: Seat) -> int:
        asked, count = request(seat), 0
        expected: bytes | None = None
        while time.monotonic() < until:
            seat.writer.write(asked)
            answer = await seat.answer()
            expected = expected or answer
            if answer != expected:
                raise RuntimeError(f"the answers differ: {answer!r}, {expected!r}")
            count += 1
        return count

    return sum(await asyncio.gather(*(run(seat) for seat in seats)))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


async def measure(arguments: argparse.Namespace, pid: int, host: str, port: int) -> None:
    seats = [
        Seat(f"group-{n // arguments.members}", n, *await asyncio.open_connection(host, port))
        for n in range(arguments.groups * arguments.members)
    ]
    topic = CreatableTopic(TOPIC, num_partitions=len(seats) * 10, replication_factor=1)
    await seats[0].ask(CreateTopicsRequest(topics=(topic,)))
    for n in range(arguments.groups):
        await form_group(seats[n * arguments.members : (n + 1) * arguments.members])

    modes = {"heartbeat": heartbeat, "commit-1": commit(1), "commit-10": commit(10)}
    print(f"{'request':<12}{'CPU us each':>12}{'per CPU s':>12}{'per s':>10}")
    for name, request in modes.items():
        await load(seats, request, 1.0)
        cpu, began = cpu_seconds(pid), time.monotonic()
        count = await load(seats, request, arguments.seconds)
        cpu, wall = cpu_seconds(pid) - cpu, time.monotonic() - began
        print(f"{name:<12}{cpu / count * 1e6:>12.1f}{count / cpu:>12.0f}{count / wall:>10.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--flush", choices=("commit", "os"), default="commit")
    arguments = parser.parse_args()
    settings = {"group.initial.rebalance.delay.ms": 0, "rollcall.flush": arguments.flush}
    with running_daemon(settings) as daemon:
        uvloop.run(measure(arguments, daemon.pid, "127.0.0.1", daemon.port))


if __name__ == "__main__":
    main()
