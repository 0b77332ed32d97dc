"""Slow fetchers: the daemon's memory and other clients' latency, beside clients that hardly read.

    .venv/bin/python -m bench.slow_fetchers [--fetchers 1000] [--seconds 20] [--mebibytes 64]
        [--rate 20000] [--set KEY=VALUE]...

Starts its own daemon on a free port and an empty directory, and fills one partition. So many
connections each send a Fetch of 50 MB, read `--rate` bytes per second, and send the next Fetch when
an answer is complete. Beside them one client sends ListGroups, and another fetches the newest
record. Both are timed: alone first, then with the fetchers. The resident memory of the daemon is
read from /proc, without the kernel's socket buffers. The load runs in this process. Other load on
the machine changes the latencies: compare only within one run.
"""

import argparse
import asyncio
import os
import re
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.running_daemon import running_daemon
from protocol.codec import encode_request
from protocol.headers import RequestHeader
from protocol.messages import Request
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.names import ApiKey, TopicName
from storage.batch.record_batch import encode_batch

VERSIONS: Final = {
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_GROUPS: 4,
}
TOPIC: Final = TopicName("bench")
ANSWER_BYTES: Final = 50 << 20
RECORD_BYTES: Final = 16_384
RECORDS_A_BATCH: Final = 8
TICK_S: Final = 0.25
"""How often a slow fetcher reads."""


class Client:
    """One connection, one request at a time."""

    def __init__(self, port: int, receive_buffer_bytes: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)  # noqa: FBT003 - positional in the library
        self._left = 0  # bytes of the present answer
        self._head = b""

    async def ask(self, request: Request) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.socket, framed(request))
        size = struct.unpack(">i", await self._exactly(4))[0]
        return await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        parts = []
        while size:
            part = await loop.sock_recv(self.socket, min(size, 1 << 20))
            if not part:
                raise ConnectionResetError("the daemon closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def send(self, request: Request) -> None:
        self.socket.send(framed(request))
        self._left, self._head = -1, b""

    def read_some(self, size: int) -> bool:
        """Read at most so many bytes; True if the answer is complete."""
        try:
            if self._left < 0:
                self._head += self.socket.recv(4 - len(self._head))
                if len(self._head) < 4:
                    return False
                self._left = struct.unpack(">i", self._head)[0]
            self._left -= len(self.socket.recv(min(size, self._left)))
        except BlockingIOError:
            return False
        return self._left == 0


def framed(request: Request) -> bytes:
    return encode_request(
        RequestHeader(request.API_KEY, VERSIONS[request.API_KEY], 1, "bench"), request
    )


def fetch_from(offset: int, *, max_bytes: int = ANSWER_BYTES) -> FetchRequest:
    asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(FetchTopic(TOPIC, partitions=(asked,)),),
    )


async def fill(client: Client, mebibytes: int) -> int:
    """Produce so much; the number of records."""
    await client.ask(CreateTopicsRequest((CreatableTopic(TOPIC, 1, 1),), timeout_ms=10_000))
    now_ms = int(time.time() * 1000)
    batch = encode_batch([(b"k", os.urandom(RECORD_BYTES))] * RECORDS_A_BATCH, 0, now_ms, 0)
    data = TopicProduceData(TOPIC, partition_data=(PartitionProduceData(0, batch),))
    count = (mebibytes << 20) // len(batch)
    for _ in range(count):
        await client.ask(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=(data,)))
    return count * RECORDS_A_BATCH


async def latencies(client: Client, request: Request, until: float) -> list[float]:
    """In ms, of one request after another."""
    found = []
    while time.perf_counter() < until:
        began = time.perf_counter()
        await client.ask(request)
        found.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.005)
    return found


async def read_slowly(clients: Sequence[Client], rate: int, until: float) -> int:
    """Let every client read at this rate; the number of complete answers."""
    complete = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        for number, client in enumerate(clients):
            if client.read_some(int(rate * TICK_S)):
                complete += 1
                client.send(fetch_from(0))
            if number % 50 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(max(TICK_S - (time.perf_counter() - began), 0))
    return complete


async def peak_memory(pid: int, until: float) -> int:
    peak = 0
    while time.perf_counter() < until:
        peak = max(peak, resident_bytes(pid))
        await asyncio.sleep(0.05)
    return peak


def resident_bytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return 0 if found is None else int(found[1]) << 10


def shown(name: str, found: list[float]) -> str:
    found.sort()
    middle, late = found[len(found) // 2], found[int(len(found) * 0.99)]
    return f"  {name:22} {middle:8.1f} ms median {late:9.1f} ms p99 {found[-1]:9.1f} ms max"


async def measure(port: int, pid: int, options: argparse.Namespace) -> None:
    records = await fill(Client(port), options.mebibytes)
    groups, newest = Client(port), Client(port)
    last = fetch_from(records - 1, max_bytes=1 << 20)

    async def timed(seconds: float) -> list[list[float]]:
        until = time.perf_counter() + seconds
        return await asyncio.gather(
            latencies(groups, ListGroupsRequest(), until), latencies(newest, last, until)
        )

    print(f"memory {resident_bytes(pid) >> 20} MiB, alone:")
    for name, found in zip(("ListGroups", "Fetch of one record"), await timed(3), strict=True):
        print(shown(name, found))
    slow = [Client(port, receive_buffer_bytes=65_536) for _ in range(options.fetchers)]
    for client in slow:
        client.send(fetch_from(0))
    until = time.perf_counter() + options.seconds
    others, complete, peak = await asyncio.gather(
        timed(options.seconds),
        read_slowly(slow, options.rate, until),
        peak_memory(pid, until),
    )
    print(f"with {options.fetchers} slow fetchers, {complete} complete answers:")
    for name, found in zip(("ListGroups", "Fetch of one record"), others, strict=True):
        print(shown(name, found))
    print(f"  memory: peak {peak >> 20} MiB, at the end {resident_bytes(pid) >> 20} MiB")


def main() -> None:
    options = _options()
    settings = dict(setting.split("=", 1) for setting in options.set)
    with running_daemon(settings) as daemon:
        asyncio.run(measure(daemon.port, daemon.pid, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fetchers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--set", action="append", default=[])
    return parser.parse_args()


if __name__ == "__main__":
    main()
