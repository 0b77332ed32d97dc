"""Journal: the CPU time of one durable append, and of its parts.

    .venv/bin/python bench/journal.py [--appends 40000] [--partitions 50] [--dir DIR]
                                      [--checkpoint-bytes 8388608]

A closed loop: each partition has one record in flight, an offset commit of usual size, and appends
the next one when it is stored. CPU is the process's time, all threads, with the kernel's share. A
latency is the time from an append to the notification that it is stored, so the fsyncs of
checkpoints appear in the last percent: with `--checkpoint-bytes 262144` checkpoints run all the
time, with 33554432 none runs. `--dir` selects the disk. Compare only figures of one run.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from uuid import UUID

from storage.api import LogSettings, Position, Record, TopicPartition
from storage.batch.record_batch import encode_batch
from storage.disk import RealDisk
from storage.journal.journal import Journal
from storage.journal.journal_limits import JournalLimits
from storage.journal.journaled_log import JournaledLog
from storage.log.log_store import LogStore

RECORD = Record(b"\x00\x01\x00\x0eorders-service\x00\x06orders\x00\x00\x00\x07", bytes(26))
NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=1)

StoredPositions = list[tuple[TopicPartition, Position]]


@dataclass
class Row:
    name: str
    cpu_us: float
    per_second: float
    group: float  # appends in one flush
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    checkpoints: int = 0


def measure(name: str, appends: int, run: Callable[[], int]) -> Row:
    """`run` does the appends and returns the number of flushes."""
    cpu, clock = time.process_time(), time.perf_counter()
    flushes = run()
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    return Row(name, cpu / appends * 1e6, appends / clock, appends / max(flushes, 1))


def encode_only(appends: int) -> Row:
    def run() -> int:
        for number in range(appends):
            encode_batch([RECORD], number, NOW_MS, 3)
        return 0

    return measure("encode only", appends, run)


class Bench:
    """A journal in a folder of its own."""

    def __init__(
        self, directory: str | None, partitions: int, *, is_synced: bool, pass_bytes: int
    ) -> None:
        self.path = tempfile.mkdtemp(dir=directory)
        self.store = LogStore(RealDisk(), self.path)
        self.store.open()
        self.arrived: SimpleQueue[StoredPositions] = SimpleQueue()
        self.journal = Journal(
            RealDisk(),
            self.store,
            on_stored=lambda stored, _seconds: self.arrived.put(stored),
            on_failed=print,
            is_synced=is_synced,
            limits=JournalLimits(pass_bytes=pass_bytes),
        )
        self.waits: list[float] = []  # of each append, in seconds
        self.journal.recover()
        self.logs: dict[TopicPartition, JournaledLog] = {}
        for number in range(partitions):
            key = TopicPartition("__consumer_offsets", number)
            self.store.create(key, TOPIC_ID, LogSettings(segment_bytes=100 << 20))
            self.logs[key] = self.journal.log(key)

    def run(self, appends: int, *, threaded: bool) -> int:
        logs, arrived, pump = self.logs, self.arrived, self.journal.pump
        clock, waits = time.perf_counter, self.waits
        since = dict.fromkeys(logs, clock())
        for log in logs.values():
            log.append([RECORD], NOW_MS)
        left = appends - len(logs)
        flushes = 0
        pending = len(logs)
        while pending:
            if not threaded:
                pump()
            stored = arrived.get()
            now = clock()
            for key, _ in stored:
                waits.append(now - since[key])
                since[key] = now
            flushes += 1
            pending -= len(stored)
            for key, _ in stored[:left]:
                logs[key].append([RECORD], NOW_MS)
                pending += 1
            left -= min(len(stored), left)
        return flushes

    def measured(self, name: str, appends: int, *, threaded: bool) -> Row:
        if threaded:
            self.journal.start()
        try:
            self.run(len(self.logs) * 4, threaded=threaded)  # creates the files, warms up the code
            self.waits.clear()
            before = self.journal.checkpointer.checkpoints
            row = measure(name, appends, lambda: self.run(appends, threaded=threaded))
            self.waits.sort()
            row.p50_ms = self.waits[len(self.waits) // 2] * 1e3
            row.p99_ms = self.waits[len(self.waits) * 99 // 100] * 1e3
            row.checkpoints = self.journal.checkpointer.checkpoints - before
            return row
        finally:
            self.journal.close()
            self.store.close()
            shutil.rmtree(self.path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--appends", type=int, default=40_000)
    options.add_argument("--partitions", type=int, default=50)
    options.add_argument("--checkpoint-bytes", type=int, default=JournalLimits().pass_bytes)
    options.add_argument("--dir", help="where to put the files; default: the system's")
    chosen = options.parse_args()

    rows = [encode_only(chosen.appends)]
    for threaded in (False, True):
        for is_synced in (False, True):
            name = f"{'thread' if threaded else 'pumped'}, {'fsync' if is_synced else 'no fsync'}"
            bench = Bench(
                chosen.dir,
                chosen.partitions,
                is_synced=is_synced,
                pass_bytes=chosen.checkpoint_bytes,
            )
            rows.append(bench.measured(name, chosen.appends, threaded=threaded))
    base = rows[1].cpu_us
    print(
        f"{'':18}{'CPU us':>8}{'ratio':>8}{'appends/s':>12}{'per flush':>11}"
        f"{'p50 ms':>8}{'p99 ms':>8}{'checkpoints':>13}"
    )
    for row in rows:
        print(
            f"{row.name:18}{row.cpu_us:8.2f}{row.cpu_us / base:8.2f}"
            f"{row.per_second:12,.0f}{row.group:11.1f}"
            f"{row.p50_ms:8.2f}{row.p99_ms:8.2f}{row.checkpoints:13}"
        )


if __name__ == "__main__":
    main()
