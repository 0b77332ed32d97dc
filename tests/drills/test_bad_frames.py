"""Bad frames on all kinds of listeners: no other client notices, and nothing is left behind.

FRAMES sets how many (`make long-handshake-fuzz` sends 1,000,000), FRAMES_SEED which.
"""

import asyncio
import os
import random
import re
import ssl
import threading
from pathlib import Path

from confluent_kafka import Consumer, Producer

from config.jaas import PLAIN_MODULE
from tests.broker.daemon import Daemon
from tests.broker.net.tls_client import authority, client_context, write_key_store
from tests.conftest import StartDaemon
from tests.drills.bad_frames import BadFrames
from tests.ports import held_ports

FRAMES = int(os.environ.get("FRAMES", "4000"))
SEED = int(os.environ.get("FRAMES_SEED") or random.randrange(1_000_000))

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
AT_ONCE = 32
ON_A_CONNECTION = 4
GROWTH_BYTES_MAX = 64 << 20
ANSWER_S = 0.05
"""How long an attacker reads what it is answered; most frames get nothing."""

USERS = f'{PLAIN_MODULE} required user_alice="secret";'


def settings(ports: list[int], store: Path) -> dict[str, str]:
    listeners = (f"{name}://127.0.0.1:{port}" for name, port in zip(PROTOCOLS, ports, strict=True))
    mechanisms = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    return {
        "listeners": ",".join(listeners),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": mechanisms,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
        "group.initial.rebalance.delay.ms": "0",
        "connection.failed.authentication.delay.ms": "10",
    }


class Reader(threading.Thread):
    """A consumer that reads on one listener, what it produces itself, until it is stopped."""

    def __init__(self, protocol: str, port: int, authorities: Path) -> None:
        super().__init__()
        self.client = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": protocol,
            "ssl.ca.location": str(authorities),
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
        self.topic = protocol.lower()
        self.has_read = threading.Event()
        self.stopped = threading.Event()
        self.read = 0

    def run(self) -> None:
        producer = Producer(self.client)
        producer.produce(self.topic, b"first")
        producer.flush(60)
        group = {"group.id": self.topic, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self.client, **group})
        consumer.subscribe([self.topic])
        while not self.stopped.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            self.read += 1
            self.has_read.set()
            producer.produce(self.topic, b"next")
            producer.poll(0)
        consumer.close()
        producer.flush(60)


async def attack(ports: list[int], seed: int, frames: int) -> int:
    """Send so many frames, a few on each connection; how many were sent."""
    bad = BadFrames(seed)
    chance = random.Random(seed)
    context = client_context()
    sent = 0
    while sent < frames:
        number = chance.randrange(len(ports))
        has_tls = "SSL" in PROTOCOLS[number].replace("SASL", "") and chance.random() < 0.5
        try:
            reader, writer = await asyncio.open_connection(
                "localhost", ports[number], ssl=context if has_tls else None, family=2
            )
        except (OSError, ssl.SSLError):
            continue
        try:
            writer.write(bad.opening())
            for _ in range(ON_A_CONNECTION):
                writer.write(bad.frame())
                sent += 1
            await writer.drain()
            async with asyncio.timeout(ANSWER_S):
                await reader.read(-1)
        except (OSError, ssl.SSLError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
    return sent


async def attack_from_many(ports: list[int], frames: int) -> int:
    share = frames // AT_ONCE + 1
    return sum(
        await asyncio.gather(*(attack(ports, SEED + number, share) for number in range(AT_ONCE)))
    )


def connections(daemon: Daemon) -> int:
    _, metrics = daemon.get("/metrics")
    found = re.search(r"^rollcall_connections (\d+)", metrics, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_bad_frames(start_daemon: StartDaemon, tmp_path: Path) -> None:
    print(f"FRAMES_SEED={SEED}")
    write_key_store(tmp_path / "server.pem")
    (tmp_path / "ca.pem").write_bytes(authority().cert_pem.bytes())
    with held_ports(len(PROTOCOLS)) as ports:
        daemon = start_daemon(settings(ports, tmp_path / "server.pem"), listen=None)
        readers = [
            Reader(protocol, port, tmp_path / "ca.pem")
            for protocol, port in zip(PROTOCOLS, ports, strict=True)
        ]
        for reader in readers:
            reader.start()
        try:
            assert all(reader.has_read.wait(60) for reader in readers)
            asyncio.run(attack_from_many(ports, min(FRAMES, 2_000)))  # so that caches are filled
            before = daemon.resident_bytes()
            assert asyncio.run(attack_from_many(ports, FRAMES)) >= FRAMES
            grown = daemon.resident_bytes() - before
            read = [reader.read for reader in readers]
            assert grown < GROWTH_BYTES_MAX, f"{grown} bytes"
            while any(reader.read <= so_far for reader, so_far in zip(readers, read, strict=True)):
                readers[0].stopped.wait(0.05)  # each goes on; pytest's timeout ends it otherwise
        finally:
            for reader in readers:
                reader.stopped.set()
            for reader in readers:
                reader.join(60)
        log = daemon.log()
        for reader in readers:
            assert len(re.findall(rf"Stabilized group {reader.topic} ", log)) == 1
        while connections(daemon):
            readers[0].join(0.05)
        assert "Traceback" not in log
        assert "bug in Rollcall" not in log
