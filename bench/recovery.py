"""Recovery: how long does a start take after kill -9, and how much memory does a live offset use?

    .venv/bin/python bench/recovery.py [--groups 20000] [--topics 1] [--partitions 50]
        [--history 1,10] [--starts 3] [--kafka DRIVER]

For each length of history: fills the 50 partitions of an empty data directory with commits (each
group commits all its partitions that many times), starts its own daemon, waits until it has loaded
and written its snapshots, kills it with -9 and starts it again. Times count from the start of the
process: to the first answer of any kind, to the first correct OffsetFetch of a random group, and to
the end of the load; the best of several starts is printed. DRIVER is a script that starts and stops
a real Kafka (`DRIVER start DIR PORT`, `DRIVER stop DIR`); it gets the same segments.

The page cache is warm throughout. Compare only figures of one run.
"""

import argparse
import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from config.keys import Config
from coordinator.group import CommittedOffset
from coordinator.records import add_offset_commits
from protocol.codec import decode_response, encode_request
from protocol.headers import RequestHeader
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.names import OFFSETS_TOPIC, ErrorCode, GroupId, TopicName
from seams.java_hash import partition_of
from storage.api import LogSettings, RecordPair, TopicPartition
from storage.batch.record_batch import encode_batch
from storage.disk import RealDisk
from storage.log.log_store import LogStore

OFFSETS_PARTITIONS = 50
SETTINGS = LogSettings(segment_bytes=104_857_600, cleanup_delete=False, cleanup_compact=True)
TOPIC_ID = UUID("61746f6d-6963-4672-a963-6b6c65733031")
APPENDED_AT_ONCE = 1 << 20
VERSIONS = {ApiVersionsRequest: 0, FindCoordinatorRequest: 3, OffsetFetchRequest: 5}
VERSIONS[ListGroupsRequest] = 4
GIVE_UP_S = 300.0
SNAPSHOT_BYTES = Config().rollcall_snapshot_bytes


@dataclass
class Content:
    """The groups, their partitions, and the number of commits of each."""

    groups: int
    topics: int
    partitions: int
    rounds: int

    @property
    def live(self) -> int:
        return self.groups * self.topics * self.partitions

    def group_id(self, number: int) -> GroupId:
        return GroupId(f"bench-group-{number}")

    def topic(self, number: int) -> TopicName:
        return TopicName(f"bench-{self.partitions}-{number}")

    def offset(self, group: int, partition: int) -> int:
        """The offset that the last round commits."""
        return (group * 7 + partition) * 1_000 + self.rounds

    def commits(self, wall_ms: int) -> Iterator[tuple[int, int, list[RecordPair]]]:
        """(partition of the offsets topic, time, the records of one request), in order."""
        places = [partition_of(self.group_id(n), OFFSETS_PARTITIONS) for n in range(self.groups)]
        for round_number in range(1, self.rounds + 1):
            behind = self.rounds - round_number
            for number, place in enumerate(places):
                at_ms = wall_ms - behind * 5_000 + number % 5_000
                records: list[RecordPair] = []
                for topic in range(self.topics):
                    commits = {
                        partition: CommittedOffset(
                            self.offset(number, partition) - behind, 3, "", at_ms, -1, TOPIC_ID
                        )
                        for partition in range(self.partitions)
                    }
                    name = self.topic(topic)
                    add_offset_commits(records, self.group_id(number), name, commits, 4)
                yield place, at_ms, records


def fill(folder: Path, content: Content) -> int:
    """Append the commits to the logs of a stopped daemon; return their bytes."""
    store = LogStore(RealDisk(), str(folder), lambda _: SETTINGS)
    store.open()
    logs = [
        store.partition_log(TopicPartition(OFFSETS_TOPIC, n)) for n in range(OFFSETS_PARTITIONS)
    ]
    waiting: list[list[tuple[bytes, int, int]]] = [[] for _ in logs]
    sizes = [0] * len(logs)
    ends = [log.log_end_offset if log else 0 for log in logs]
    total = 0

    def append(place: int) -> None:
        log = logs[place]
        assert log is not None
        log.append_placed(waiting[place], waiting[place][-1][2])
        waiting[place], sizes[place] = [], 0

    for place, at_ms, records in content.commits(int(time.time() * 1000)):
        batch = encode_batch(records, ends[place], at_ms, 0)
        ends[place] += len(records)
        waiting[place].append((batch, ends[place] - 1, at_ms))
        sizes[place] += len(batch)
        total += len(batch)
        if sizes[place] >= APPENDED_AT_ONCE:
            append(place)
    for place, batches in enumerate(waiting):
        if batches:
            append(place)
    assert store.close() == []
    return total


class Client:
    """One blocking connection, retried until the daemon accepts it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def ask(self, request: Any) -> Any:
        version = VERSIONS[type(request)]
        frame = encode_request(RequestHeader(request.API_KEY, version, 7, "bench"), request)
        self._socket.sendall(frame)
        head = self._file.read(4)
        if len(head) < 4:
            raise ConnectionResetError
        answer = self._file.read(int.from_bytes(head, "big"))
        return decode_response(request.API_KEY, version, answer, 0, len(answer))[1]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@dataclass
class Times:
    """Seconds since the process was started."""

    first_answer: float = 0.0
    first_group: float = 0.0
    all_loaded: float = 0.0
    rss: int = 0


def watch(port: int, content: Content, started: float, seed: int) -> Times:
    """Repeat until all requests are answered."""
    times = Times()
    number = random.Random(seed).randrange(content.groups)
    wanted = {
        (content.topic(topic), partition): content.offset(number, partition)
        for topic in range(content.topics)
        for partition in range(content.partitions)
    }
    client = None
    while True:
        if time.monotonic() - started > GIVE_UP_S:
            raise SystemExit("it does not get ready")
        try:
            client = client or Client(port)
            if not times.first_answer:
                client.ask(ApiVersionsRequest())
                times.first_answer = time.monotonic() - started
            if not times.first_group:
                answer = client.ask(OffsetFetchRequest(content.group_id(number), None))
                if answer.error_code is ErrorCode.NONE:
                    found = {
                        (topic.name, partition.partition_index): partition.committed_offset
                        for topic in answer.topics
                        for partition in topic.partitions
                    }
                    if found == wanted:
                        times.first_group = time.monotonic() - started
                    elif found:
                        raise SystemExit(f"wrong offsets of {content.group_id(number)}: {found}")
            if times.first_group:
                listed = client.ask(ListGroupsRequest())
                if listed.error_code is ErrorCode.NONE and len(listed.groups) == content.groups:
                    times.all_loaded = time.monotonic() - started
                    client.close()
                    return times
        except (ConnectionError, TimeoutError):
            client = None
        time.sleep(0.005)


def lacks_snapshot(folder: Path) -> bool:
    size = sum(path.stat().st_size for path in folder.glob("*.log"))
    return size >= SNAPSHOT_BYTES and not any(folder.glob("*.groups"))


def rss_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


class Rollcall:
    """A daemon of this benchmark, on a data directory."""

    def __init__(self, folder: Path, settings: list[str]) -> None:
        self.folder = folder
        self.port = free_port()
        self._settings = settings
        self._log = folder.with_suffix(".log")

    def start(self) -> float:
        started = time.monotonic()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(Path(sys.executable).with_name("rollcall")), "serve"),
                    *("--data-dir", str(self.folder), "--listen", f"127.0.0.1:{self.port}"),
                    *("--admin", "127.0.0.1:0"),
                    *itertools.chain(*(("--set", setting) for setting in self._settings)),
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        return started

    def until_snapshots_are_taken(self) -> None:
        """Wait until every partition with a sufficiently long log has a snapshot."""
        began = time.monotonic()
        while time.monotonic() - began < GIVE_UP_S:
            if not any(map(lacks_snapshot, self.folder.glob("__consumer_offsets-*"))):
                return
            time.sleep(0.2)
        raise SystemExit("no snapshots are taken")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> float:
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        return time.monotonic() - began


def measure_rollcall(
    folder: Path, content: Content, settings: list[str], starts: int
) -> list[Times]:
    daemon = Rollcall(folder, settings)
    had_snapshots = any(folder.glob("__consumer_offsets-*/*.groups"))
    started = daemon.start()
    first = watch(daemon.port, content, started, 0)
    how = "with snapshots" if had_snapshots else "from the log alone"
    print(f"  the first start, {how}: all loaded in {first.all_loaded:.2f} s", flush=True)
    daemon.until_snapshots_are_taken()
    daemon.kill()
    measured = []
    for number in range(starts):
        started = daemon.start()
        times = watch(daemon.port, content, started, number)
        time.sleep(1.0)
        times.rss = rss_bytes(daemon.process.pid)
        measured.append(times)
        daemon.kill()
    started = daemon.start()
    watch(daemon.port, content, started, 99)
    print(f"  a stop took {daemon.stop():.2f} s", flush=True)
    return measured


def make_folder(folder: Path) -> None:
    """The empty logs of a first start, with their topic id."""
    daemon = Rollcall(folder, [])
    started = daemon.start()
    watch_port_until_listening(daemon.port, started)
    daemon.stop()


def watch_port_until_listening(port: int, started: float) -> None:
    while time.monotonic() - started < GIVE_UP_S:
        try:
            client = Client(port)
            if client.ask(ListGroupsRequest()).error_code is ErrorCode.NONE:
                client.close()
                return
        except (ConnectionError, TimeoutError):
            pass
        time.sleep(0.02)


def measure_kafka(
    driver: str, ours: Path, folder: Path, content: Content, starts: int
) -> list[Times]:
    """The same segments in a real Kafka, copied into its offsets topic."""
    port = free_port()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def start() -> float:
        started = time.monotonic()
        subprocess.Popen([driver, "start", str(folder), str(port)], stdout=subprocess.DEVNULL)
        return started

    start()
    began = time.monotonic()
    while time.monotonic() - began < GIVE_UP_S:  # the first request creates the topic
        try:
            client = Client(port)
            answer = client.ask(FindCoordinatorRequest("any", 0))
            client.close()
            if answer.error_code is ErrorCode.NONE:
                break
        except (ConnectionError, TimeoutError):
            pass
        time.sleep(0.2)
    subprocess.run([driver, "stop", str(folder)], check=True)
    for source in ours.glob("__consumer_offsets-*"):
        target = folder / "data" / source.name
        for old in (*target.glob("*.log"), *target.glob("*.*index"), *target.glob("*.snapshot")):
            old.unlink()
        for log in source.glob("*.log"):
            shutil.copy(log, target / log.name)
    (folder / "data" / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    (folder / "data" / ".kafka_cleanshutdown").unlink(missing_ok=True)
    measured = []
    for number in range(starts + 1):
        started = start()
        times = watch(port, content, started, number)
        time.sleep(1.0)
        pid = int((folder / "pid").read_text())
        times.rss = rss_bytes(pid)
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists() and "Z" not in state_of(pid):
            time.sleep(0.05)
        if number:  # the first start rebuilds the indexes
            measured.append(times)
    return measured


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def show(name: str, content: Content, measured: list[Times]) -> None:
    best = min(measured, key=lambda times: times.all_loaded)
    print(
        f"{name:<24}{best.first_answer:>14.2f}{best.first_group:>14.2f}{best.all_loaded:>14.2f}"
        f"{best.rss / content.live:>16.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--topics", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--history", default="1,10")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--kafka", metavar="DRIVER")
    parser.add_argument("--keep", metavar="DIR")
    arguments = parser.parse_args()
    results: list[tuple[str, Content, list[Times]]] = []
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(arguments.keep or temporary)
        place.mkdir(parents=True, exist_ok=True)
        for rounds in map(int, arguments.history.split(",")):
            content = Content(arguments.groups, arguments.topics, arguments.partitions, rounds)
            folder = place / f"history-{rounds}"
            if not folder.exists():
                make_folder(folder)
                size = fill(folder, content)
                print(f"history {rounds}: {size / 1e6:.0f} MB of log", flush=True)
            name = f"history x{rounds}"
            results.append(
                (name, content, measure_rollcall(folder, content, arguments.set, arguments.starts))
            )
            if arguments.kafka:
                kafka = place / f"kafka-{rounds}"
                times = measure_kafka(arguments.kafka, folder, kafka, content, arguments.starts)
                results.append((f"  Kafka, x{rounds}", content, times))
            if not arguments.keep:
                shutil.rmtree(folder)
    print(f"{'':<24}{'first answer s':>14}{'one group s':>14}{'all s':>14}{'RSS/offset':>16}")
    for name, content, measured in results:
        show(name, content, measured)


main()
