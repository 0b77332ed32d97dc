"""Console with many groups: what browsers that watch cost, and what they do to heartbeats.

    .venv/bin/python -m bench.console [--groups 10000] [--partitions 2] [--browsers 8]

Starts its own daemon, forms the groups as bench/scrape.py does, and sends fifty heartbeats every
10 ms, first alone and then while another process does what pages of the console do: each browser
has an event stream, and asks for its list of groups every two seconds, in an order of its own. New
groups are formed all the time, so that the streams have something to tell. Compare only figures of
one run.
"""

import argparse
import asyncio
import http.client
import json
import os
import statistics
import sys
import threading
import time

import uvloop

from bench.running_daemon import running_daemon
from bench.scrape import CONNECTIONS, TOPIC, Seat, beat, cpu_seconds, form_groups, print_latencies
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

ORDERS = ("-status,-lag", "group", "-members", "-lag", "-seconds", "state,group", "-generation")
REFRESH_S = 2.0


def ask(admin: str, path: str) -> tuple[float, bytes]:
    """Seconds until the whole answer is here, and the answer."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(admin)
    connection.request("GET", path)
    content = connection.getresponse().read()
    connection.close()
    return time.perf_counter() - began, content


def watch(admin: str, browsers: int, seconds: float) -> None:
    """The process of the browsers: prints the seconds of each list, and the events."""
    ends = time.monotonic() + seconds
    took: list[float] = []
    events = [0]

    def stream() -> None:
        connection = http.client.HTTPConnection(admin)
        connection.request("GET", "/api/events")
        answer = connection.getresponse()
        while answer.readline():
            events[0] += 1

    def lists(number: int) -> None:
        sort = ORDERS[number % len(ORDERS)]
        page = 1
        while time.monotonic() < ends:
            took.append(ask(admin, f"/api/groups?sort={sort}&page={page}")[0])
            page = page % 5 + 1
            time.sleep(REFRESH_S)

    threads = [threading.Thread(target=lists, args=(number,)) for number in range(browsers)]
    for thread in [*threads, *(threading.Thread(target=stream, daemon=True) for _ in threads)]:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([took, events[0]]), flush=True)
    os._exit(0)  # the streams have no end


async def form_more(seat: Seat, name: str, partitions: int, stop: asyncio.Event) -> None:
    """New groups, one after the other: each is an event for every stream."""
    number = 0
    while not stop.is_set():
        number += 1
        await seat.form(f"{name}-{number:06}", partitions)
        await asyncio.sleep(0.02)


async def measure(arguments: argparse.Namespace, pid: int, clients: int, admin: str) -> None:
    seats = [Seat(*await asyncio.open_connection("127.0.0.1", clients)) for _ in range(CONNECTIONS)]
    busy = Seat(*await asyncio.open_connection("127.0.0.1", clients))
    topic = CreatableTopic(TOPIC, num_partitions=arguments.partitions, replication_factor=1)
    await busy.ask(CreateTopicsRequest(topics=(topic,)))
    await form_groups(seats, arguments.groups, arguments.partitions)
    for name in ("alone", "meanwhile"):
        stop = asyncio.Event()
        beating = asyncio.create_task(beat(seats, stop))
        forming = asyncio.create_task(form_more(busy, name, arguments.partitions, stop))
        before = cpu_seconds(pid)
        if name == "alone":
            await asyncio.sleep(arguments.seconds)
        else:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.console", "--watch", admin),
                *("--browsers", str(arguments.browsers), "--seconds", str(arguments.seconds)),
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await process.communicate()
            took, events = json.loads(output)
            print(
                f"{arguments.browsers} browsers: {len(took)} lists, median "
                f"{statistics.median(took) * 1000:.0f} ms, max {max(took) * 1000:.0f} ms; "
                f"{events} lines of events"
            )
        print(f"  daemon's CPU: {(cpu_seconds(pid) - before) / arguments.seconds:.0%} of one core")
        stop.set()
        print_latencies(name, await beating)
        await forming
    _, content = await asyncio.to_thread(ask, admin, "/api/node")
    longest = json.loads(content)["loop"]["longest_turn_seconds"].get("console", 0.0)
    print(f"longest slice of the console: {longest * 1000:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--browsers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--watch", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.watch:
        watch(arguments.watch, arguments.browsers, arguments.seconds)
        return
    settings = {"group.initial.rebalance.delay.ms": 0, "rollcall.flush": "os"}
    with running_daemon(settings) as daemon:
        admin = f"127.0.0.1:{daemon.admin_port}"
        uvloop.run(measure(arguments, daemon.pid, daemon.port, admin))


if __name__ == "__main__":
    main()
