"""Wake-ups: what the mixed load costs a server of this kind that does nothing else.

    .venv/bin/python -m bench.wake_ups [--members 1000] [--seconds 10] [--rounds 2]

The rates of the load `mixed`: each member sends a heartbeat every 3 s and a commit every 5 s, so
nearly each of 533 requests a second wakes a server that sleeps. Servers on uvloop that answer 30
bytes and decode nothing: `echo` answers at once. The others hand each commit to a thread, as the
journal does: `thread` answers from there, `write` writes 1,500 bytes first, `sync` syncs them too.
CPU of all threads of the server (/proc/PID/task/*/schedstat), in per cent of a core.
"""

import argparse
import asyncio
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

import uvloop

KINDS: Final = ("echo", "thread", "write", "sync")
HEARTBEAT_S: Final = 3.0
COMMIT_S: Final = 5.0
HEARTBEAT, COMMIT = bytes(60), b"\x01" + bytes(259)
ANSWER: Final = bytes(30)
RECORDS: Final = bytes(1_500)
FILE_BYTES: Final = 1 << 24
SLOT_BYTES: Final = 2_048
WARM_UP_S: Final = 5.0


class Flusher:
    """The thread that takes each commit to the disk, and its answer back to the loop."""

    def __init__(self, kind: str, path: Path) -> None:
        self._kind = kind
        self._queue: queue.SimpleQueue[asyncio.Transport] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT)
        os.pwrite(self._fd, bytes(FILE_BYTES), 0)
        os.fsync(self._fd)
        threading.Thread(target=self._run, daemon=True).start()

    def take(self, transport: asyncio.Transport) -> None:
        self._queue.put(transport)

    def _run(self) -> None:
        position = 0
        while True:
            transport = self._queue.get()
            if self._kind != "thread":
                os.pwrite(self._fd, RECORDS, position)
                position = (position + SLOT_BYTES) % FILE_BYTES
            if self._kind == "sync":
                os.fdatasync(self._fd)
            self._loop.call_soon_threadsafe(transport.write, ANSWER)


class Client(asyncio.Protocol):
    def __init__(self, flusher: Flusher | None) -> None:
        self._flusher = flusher

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's

    def data_received(self, data: bytes) -> None:
        if self._flusher is not None and data[0]:
            self._flusher.take(self._transport)
        else:
            self._transport.write(ANSWER)


async def serve(kind: str, path: Path) -> None:
    loop = asyncio.get_running_loop()
    flusher = None if kind == "echo" else Flusher(kind, path)
    server = await loop.create_server(lambda: Client(flusher), "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def member(port: int, request: bytes, every_s: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(random.random() * every_s)
    while True:
        writer.write(request)
        await reader.readexactly(len(ANSWER))
        await asyncio.sleep(every_s)


async def load(port: int, pid: int, members: int, seconds: float) -> float:
    """The server's CPU in seconds."""
    tasks = [asyncio.create_task(member(port, HEARTBEAT, HEARTBEAT_S)) for _ in range(members)]
    tasks += [asyncio.create_task(member(port, COMMIT, COMMIT_S)) for _ in range(members)]
    await asyncio.sleep(WARM_UP_S)
    before_s = cpu_s(pid)
    await asyncio.sleep(seconds)
    used_s = cpu_s(pid) - before_s
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return used_s


def cpu_s(pid: int) -> float:
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(stat.read_text().split()[0]) for stat in stats) / 1e9


def measure(kind: str, members: int, seconds: float) -> float:
    """Per cent of a core."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.wake_ups", "--serve", kind, "--file", f"{folder}/f"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            used_s = uvloop.run(load(port, process.pid, members, seconds))
            process.terminate()
    return 100 * used_s / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        uvloop.run(serve(arguments.serve, arguments.file))
        return
    rate = arguments.members * (1 / HEARTBEAT_S + 1 / COMMIT_S)
    print(f"{rate:.0f} requests a second, per cent of a core in {arguments.rounds} rounds")
    for kind in KINDS:
        shares = [
            measure(kind, arguments.members, arguments.seconds) for _ in range(arguments.rounds)
        ]
        print(f"  {kind:8}", *(f"{share:6.2f}" for share in shares))


if __name__ == "__main__":
    main()
