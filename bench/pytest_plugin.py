"""Pytest plugin: a cold fixture, a further daemon, and twenty session timeouts per client library.

    python -m bench.pytest_plugin [--rounds N]

Wall time and CPU time of all processes, the median of N rounds (default 5). On a machine with other
work the CPU time is the figure to compare. A row with "pytest" is a whole run of pytest with twenty
tests, each with a daemon of its own; its figure is pytest's own (collection and tests), then that
of the whole process.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.running_daemon import running_daemon
from rollcall.testing import ForkServer

TESTS = 20

RAW = """
import socket, struct, pytest

def text(value):
    return struct.pack(">h", len(value)) + value

class Wire:
    def __init__(self, bootstrap):
        host, port = bootstrap.split(":")
        self.socket = socket.create_connection((host, int(port)), 10)

    def ask(self, api, version, body):
        frame = struct.pack(">hhi", api, version, 1) + text(b"raw") + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        size = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))[0]
        return self.socket.recv(size, socket.MSG_WAITALL)[4:]

@pytest.mark.parametrize("number", range(20))
def test_session_timeout(rollcall, number):
    wire = Wire(rollcall.bootstrap)
    body = text(b"g") + struct.pack(">ii", 45_000, 300_000) + text(b"") + text(b"consumer")
    joined = wire.ask(11, 1, body + struct.pack(">i", 1) + text(b"range") + struct.pack(">i", 0))
    error, generation = struct.unpack_from(">hi", joined)
    assert error == 0
    member = rollcall.group("g").members[0].member_id.encode()
    who = text(b"g") + struct.pack(">i", generation) + text(member)
    wire.ask(14, 0, who + struct.pack(">i", 1) + text(member) + struct.pack(">i", 0))
    rollcall.wait("g", state="Stable", members=1)
    rollcall.advance(46)
    rollcall.wait("g", state="Empty", members=0)
    assert wire.ask(12, 0, who) == struct.pack(">h", 25)
"""

CONFLUENT = """
import pytest
from confluent_kafka import Consumer

@pytest.mark.parametrize("number", range(20))
def test_session_timeout(rollcall, number):
    rollcall.create_topic("t")
    consumer = Consumer({"bootstrap.servers": rollcall.bootstrap, "group.id": "g", "log_level": 0})
    consumer.subscribe(["t"])
    while rollcall.group("g").state != "Stable":
        consumer.poll(0.01)
    rollcall.advance(46)
    rollcall.wait("g", state="Empty", members=0)
    consumer.close()
"""

AIOKAFKA = """
import pytest
from aiokafka import AIOKafkaConsumer

@pytest.mark.parametrize("number", range(20))
@pytest.mark.asyncio
async def test_session_timeout(rollcall, number):
    rollcall.create_topic("t")
    consumer = AIOKafkaConsumer(
        "t", bootstrap_servers=rollcall.bootstrap, group_id="g", session_timeout_ms=45_000
    )
    await consumer.start()
    await rollcall.wait_async("g", state="Stable", members=1)
    rollcall.advance(46)
    rollcall.wait("g", state="Empty", members=0)
    await consumer.stop()
"""

THREAD = """
import asyncio, sys, tempfile, threading, time
from pathlib import Path
began = time.process_time()
import uvloop
from broker.main import run_daemon
from tests.broker.node import Node
imported = time.process_time()
async def start(number):
    settings = {"offsets_topic_num_partitions": 1, "rollcall_flush": "os"}
    node = Node(Path(tempfile.mkdtemp()), settings)
    async with node:
        ready[number] = time.process_time()
ready = {}
ended = []
for number in range(6):
    before = time.process_time()
    thread = threading.Thread(target=lambda: uvloop.run(start(number)))
    thread.start(); thread.join()
    ended.append(ready[number] - before)
print(imported - began + ended[0], sorted(ended[1:])[2])
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("fork server: cold fixture", *measured(cold, rounds))
    with ForkServer() as server:
        server.start().close()
        show("fork server: a further daemon, wall", median(further(server) for _ in range(20)))
    show("process per daemon", *measured(own_process, rounds))
    in_thread = subprocess.run(
        [sys.executable, "-c", THREAD], capture_output=True, text=True, check=True
    ).stdout.split()
    print(
        f"{'thread in the test process: cold, further':45} CPU {in_thread[0]:.5} {in_thread[1]:.5}"
    )
    for name, source in (("raw", RAW), ("librdkafka", CONFLUENT), ("aiokafka", AIOKAFKA)):
        run = [pytest_run(source) for _ in range(rounds)]
        inner = median(each[0] for each in run)
        wall, cpu = median(each[1] for each in run), median(each[2] for each in run)
        row = f"pytest, {TESTS} session timeouts, {name}"
        print(f"{row:45} {inner:.2f} s; {wall:.2f} s, CPU {cpu:.2f}")


def show(name: str, wall: float, cpu: float | None = None) -> None:
    print(f"{name:45} {wall:.3f} s" + ("" if cpu is None else f", CPU {cpu:.3f}"))


def measured(run: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Wall time as `run` has it, and CPU time of the processes that it started."""
    walls, cpus = [], []
    for _ in range(rounds):
        before = children_s()
        walls.append(run())
        cpus.append(children_s() - before)
    return median(walls), median(cpus)


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cold() -> float:
    began_s = time.perf_counter()
    with ForkServer() as server:
        server.start()
        return time.perf_counter() - began_s


def further(server: ForkServer) -> float:
    began_s = time.perf_counter()
    daemon = server.start()
    took_s = time.perf_counter() - began_s
    daemon.close()
    return took_s


def own_process() -> float:
    settings = {"offsets.topic.num.partitions": 1, "rollcall.flush": "os"}
    began_s = time.perf_counter()
    with running_daemon(settings, admin=False):
        return time.perf_counter() - began_s


def pytest_run(source: str) -> tuple[float, float, float]:
    """(seconds by pytest, seconds of the process, CPU seconds)."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_it.py").write_text(source)
        Path(folder, "pytest.ini").write_text(
            "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
        )
        before, began_s = children_s(), time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "no:rollcall", "-p", "rollcall.pytest_plugin", folder]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        wall_s, cpu_s = time.perf_counter() - began_s, children_s() - before
    found = re.search(rf"{TESTS} passed in ([0-9.]+)s", done.stdout)
    assert found, done.stdout
    return float(found[1]), wall_s, cpu_s


if __name__ == "__main__":
    main()
