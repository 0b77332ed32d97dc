"""Handshakes: what members notice while many clients begin TLS at once.

1,000 connections send heartbeats, each every 3 s, on a PLAINTEXT listener; then another process
opens 500 TLS connections at once on the SSL listener of the same daemon. Prints the p50 and p99 of
the heartbeats alone and beside the handshakes, and how many handshakes are done in a second.

    .venv/bin/python -m bench.handshakes [--members 1000] [--handshakes 500] [--seconds 10]
"""

import argparse
import asyncio
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

from protocol.codec import RequestHeader, encode_request
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.names import ApiKey
from tests.broker.daemon import Daemon
from tests.broker.net.tls_client import write_key_store
from tests.ports import held_ports

INTERVAL_S = 3.0


async def member(port: int, number: int, ends_s: float, seconds: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    header = RequestHeader(ApiKey.HEARTBEAT, 4, number, "bench")
    frame = encode_request(header, HeartbeatRequest(group_id="bench"))
    await asyncio.sleep(INTERVAL_S * (number % 1_000) / 1_000)
    while time.perf_counter() < ends_s:
        began_s = time.perf_counter()
        writer.write(frame)
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
        seconds.append(time.perf_counter() - began_s)
        await asyncio.sleep(INTERVAL_S)
    writer.close()


async def members(port: int, count: int, for_s: float) -> list[float]:
    seconds: list[float] = []
    ends_s = time.perf_counter() + for_s
    await asyncio.gather(*(member(port, number, ends_s, seconds) for number in range(count)))
    return seconds


async def handshake(port: int, context: ssl.SSLContext) -> None:
    _, writer = await asyncio.open_connection("localhost", port, ssl=context, family=2)
    writer.close()


async def handshakes(port: int, count: int, for_s: float) -> None:
    """All at once, again and again; prints how many were done in a second."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a store of its parent
    began_s, done = time.perf_counter(), 0
    while time.perf_counter() - began_s < for_s:
        await asyncio.gather(*(handshake(port, context) for _ in range(count)))
        done += count
    print(f"  {done / (time.perf_counter() - began_s):.0f} handshakes a second, {count} at once")


def report(name: str, seconds: list[float]) -> None:
    cuts = quantiles(seconds, n=100)
    worst = max(seconds) * 1e3
    print(
        f"  {name}: {len(seconds)} heartbeats, p50 {cuts[49] * 1e3:.2f} ms, "
        f"p99 {cuts[98] * 1e3:.2f} ms, worst {worst:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=1_000)
    parser.add_argument("--handshakes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--attack", type=int, help="the port; for the second process")
    given = parser.parse_args()
    if given.attack:
        asyncio.run(handshakes(given.attack, given.handshakes, given.seconds))
        return
    with tempfile.TemporaryDirectory() as folder, held_ports(2) as ports:
        values = write_key_store(Path(folder, "server.pem"))
        daemon = Daemon(
            Path(folder),
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},SSL://127.0.0.1:{ports[1]}",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": values.ssl_keystore_location,
                "socket.listen.backlog.size": "1000",
            },
        )
        daemon.listen = None
        daemon.start()
        try:
            report("alone", asyncio.run(members(ports[0], given.members, given.seconds)))
            command = [sys.executable, "-m", "bench.handshakes", "--attack", str(ports[1])]
            command += ["--handshakes", str(given.handshakes), "--seconds", str(given.seconds)]
            with subprocess.Popen(command) as other:
                report("beside", asyncio.run(members(ports[0], given.members, given.seconds)))
                other.wait()
        finally:
            daemon.close()


if __name__ == "__main__":
    main()
