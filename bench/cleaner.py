"""Cleaner pass: how long does one take, Rollcall's and a real Kafka's, on the same segments?

    .venv/bin/python bench/cleaner.py [--records 1000000] [--live-percent 1] [--rounds 3]
        [--kafka DRIVER] [--port 21190]

Writes the segments of an offsets partition: commits of one record each, of which `--live-percent`
are the newest of their key. Rollcall's time is that of a job of the worker process, as in the
daemon, from the request to the answer, with the swap of segments. Kafka's is that of a broker
(DRIVER start DIR PORT [k=v ...], DRIVER stop DIR, DRIVER topics ...) with the same files in a
topic's folder; the time is taken from its log line. Each round uses a new copy of the files.

The effect of cleaning on the latency of commits: bench/cleaning_and_commits.py.
"""

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from struct import pack
from uuid import UUID

from broker.background.jobs import CLEAN_LOG
from broker.background.worker import WorkerProcess
from storage.api import LogSettings, Record, TopicPartition
from storage.batch.record_batch import encode_batch
from storage.cleaner.cleaner import inspect_log, plan_pass, swap_in_pass
from storage.cleaner.messages import PassResult
from storage.disk import RealDisk
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING
from storage.log.segment_swap import remove_deleted

KEY = TopicPartition("bench", 0)
SETTINGS = LogSettings(segment_bytes=100 << 20, cleanup_delete=False, cleanup_compact=True)
VALUE = b"\x00\x03" + bytes(8) + b"\xff" * 4 + b"\x00\x00" + bytes(8)
BATCHES_A_WRITE = 1_000

CLEANED = re.compile(
    rb"cleaned log bench-0 .*?log processed in ([\d.,]+) seconds.*?"
    rb"Start size: [\d.,]+ MB \(([\d.,]+) messages\).*?End size: [\d.,]+ MB \(([\d.,]+) messages\)",
    re.DOTALL,
)


def offset_commit_key(number: int) -> bytes:
    group, topic = b"group-%05d" % (number // 10), b"topic-0001"
    return b"".join(
        (b"\x00\x01", pack(">h", len(group)), group, pack(">h", len(topic)), topic)
    ) + pack(">i", number % 10)


def make(folder: Path, records: int, live: int) -> int:
    """Write the sealed segments of an offsets partition; return their size in bytes."""
    log = PartitionLog(RealDisk(), str(folder), KEY, SETTINGS)
    log.create(UUID(int=1))
    return fill(log, records, live)


def fill(log: PartitionLog, records: int, live: int) -> int:
    """Write commits of one record each, a day old; return the log's size in bytes."""
    started_ms = int(time.time() * 1000) - 86_400_000
    for first in range(0, records, BATCHES_A_WRITE):
        placed = []
        for number in range(first, min(first + BATCHES_A_WRITE, records)):
            record = Record(offset_commit_key(number % live), VALUE)
            at_ms = started_ms + number // 100
            placed.append((encode_batch([record], number, at_ms), number, at_ms))
        log.append_placed(placed, started_ms)
    log.roll()
    log.flush()
    size = log.size_bytes
    log.abandon("made")
    return size


async def ours(folder: Path, worker: WorkerProcess) -> tuple[float, PassResult]:
    disk = RealDisk()
    log = PartitionLog(disk, str(folder), KEY, SETTINGS)
    log.open(EVERYTHING)
    now_ms = int(time.time() * 1000)
    started = time.perf_counter()
    end = log.log_end_offset
    found = inspect_log(log, checkpoint=None, stable_to=end, now_ms=now_ms).found
    job = plan_pass(log, found, stable_to=end, now_ms=now_ms, producers={})
    arguments = {"pass": job.to_message(), "io_max_bytes_per_second": sys.float_info.max}
    result = PassResult.from_message(await worker.run(CLEAN_LOG, arguments))
    remove_deleted(disk, log, swap_in_pass(disk, log, result))
    seconds = time.perf_counter() - started
    log.abandon("measured")
    return seconds, result


def clean_with_kafka(made: Path, home: Path, driver: str, port: int) -> tuple[float, int, int]:
    """(seconds, messages before, messages after) from the broker's log line."""
    subprocess.run([driver, "start", home, str(port)], check=True, stdout=subprocess.DEVNULL)
    configs = (
        "cleanup.policy=compact",
        "min.cleanable.dirty.ratio=0.01",
        "segment.bytes=104857600",
    )
    command = [driver, "topics", "--bootstrap-server", f"127.0.0.1:{port}", "--create"]
    command += ["--topic", "bench", "--partitions", "1"]
    for config in configs:
        command += ["--config", config]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([driver, "stop", home], check=True)
    folder = home / "data" / "bench-0"
    for file in folder.glob("0*"):
        file.unlink()
    for file in made.glob("0*"):
        shutil.copy(file, folder)
    settings = ("log.cleaner.backoff.ms=200", "log.cleaner.dedupe.buffer.size=134217728")
    subprocess.run(
        [driver, "start", home, str(port), *settings], check=True, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while (cleaned := CLEANED.search((home / "server.log").read_bytes())) is None:
            if time.monotonic() > deadline:
                sys.exit(f"the broker has not cleaned in two minutes: {home}/server.log")
            time.sleep(0.2)
    finally:
        subprocess.run([driver, "stop", home], check=True)
    seconds, before, after = (text.replace(b",", b"") for text in cleaned.groups())
    return float(seconds), int(before), int(after)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--live-percent", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka", metavar="DRIVER")
    parser.add_argument("--port", type=int, default=21_190)
    options = parser.parse_args()
    worker = WorkerProcess()
    with tempfile.TemporaryDirectory() as home:
        made = Path(home, "made", "bench-0")
        made.parent.mkdir()
        live = max(int(options.records * options.live_percent / 100), 1)
        size = make(made, options.records, live)
        print(f"{options.records:,} records, {live:,} live, {size / 1e6:.1f} MB")
        for number in range(options.rounds):
            folder = Path(home, f"ours-{number}", "bench-0")
            shutil.copytree(made, folder)
            seconds, result = await ours(folder, worker)
            print(
                f"ours   {seconds:6.2f} s   {result.records_read:,} -> {result.records_written:,}"
                f" records, {result.bytes_written / 1e6:.2f} MB left"
            )
            if options.kafka:
                seconds, before, after = clean_with_kafka(
                    made, Path(home, f"kafka-{number}"), options.kafka, options.port
                )
                print(f"kafka  {seconds:6.2f} s   {before:,} -> {after:,} records")
    await worker.stop()


if __name__ == "__main__":
    asyncio.run(main())
