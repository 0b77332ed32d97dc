"""How fast is a log of commits decoded, do cores add up, is memory flat, how long is a report?

    .venv/bin/python -m bench.commit_pipeline [--commits 10000000] [--parts decode,spark,report]

Segments are made of a few thousand encoded batches, repeated with offsets of their own. Everything
is measured in one run, so that ratios hold on a machine that does other things too: the source's
decoder beside a row loop in plain Python (CPU seconds of one core), the same through Spark on one
core and on two, the peak memory of the workers at a quarter of the input and at all of it, and the
whole daily report (every job, and the page).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from coordinator.group import CommittedOffset
from coordinator.records import decode_record, offset_commit_key, offset_commit_value
from history.lag_records import Sample, encode_sample
from history.lag_window import Commit
from pipeline.places import pieces, segments
from pipeline.source import read_piece
from pipeline.tables import COMMITS, LAG_TOPIC, OFFSETS_TOPIC
from protocol.names import GroupId, TopicName
from storage.api import Record
from storage.record_batch import encode_batch, iter_batches, read_records, with_offsets

DAY_MS = 86_400_000
START_MS = 1_780_000_000_000 // DAY_MS * DAY_MS
LOG_PARTITIONS = 8
BATCH = 100
GROUPS = 100
PARTITIONS = 10
SAMPLE_EVERY_MS = 600_000
HERE = Path(__file__).parents[1]


def make_commits(folder: Path, commits: int) -> None:
    """A day of them; `GROUPS` groups that each read `PARTITIONS` partitions."""
    batches_each = max(1, commits // BATCH // LOG_PARTITIONS)
    distinct = min(batches_each, 1_440)
    for number in range(LOG_PARTITIONS):
        groups = [g for g in range(GROUPS) if g % LOG_PARTITIONS == number]
        made = [
            encode_batch(
                [
                    _commit(groups[(b + n // PARTITIONS) % len(groups)], n % PARTITIONS, b)
                    for n in range(BATCH)
                ],
                0,
                START_MS + b * (DAY_MS // distinct),
            )
            for b in range(distinct)
        ]
        where = folder / f"{OFFSETS_TOPIC}-{number}"
        where.mkdir(parents=True)
        with (where / f"{0:020}.log").open("wb") as file:
            for b in range(batches_each):
                file.write(with_offsets(made[b * distinct // batches_each], b * BATCH, 0))


def _commit(group: int, partition: int, offset: int) -> Record:
    key = offset_commit_key(GroupId(f"group-{group}"), TopicName("orders"), partition)
    return Record(key, offset_commit_value(CommittedOffset(offset, -1, "", START_MS), 4))


def make_samples(folder: Path) -> None:
    """Every ten minutes, of each group."""
    where = folder / f"{LAG_TOPIC}-0"
    where.mkdir(parents=True)
    offset = 0
    with (where / f"{0:020}.log").open("wb") as file:
        for at in range(START_MS, START_MS + DAY_MS, SAMPLE_EVERY_MS):
            done = (at - START_MS) // 1_000
            records = [
                Record(
                    *encode_sample(
                        Sample(
                            f"group-{group}",
                            "orders",
                            at,
                            whole=False,
                            partitions={p: (Commit(at, done, group % 7 * (done % 500)),)
                             for p in range(PARTITIONS)},
                        )
                    )
                )
                for group in range(GROUPS)
            ]  # fmt: skip
            file.write(encode_batch(records, offset, at))
            offset += len(records)


def decode(folder: Path) -> None:
    """One core: the source's decoder, then the daemon's own readers, on the same records."""
    (segment, *_) = segments(str(folder), OFFSETS_TOPIC)
    cut = pieces(segment, 32 << 20)[:2]
    fast = 0.0
    for _ in range(4):  # the first one warms up
        begin = time.process_time()
        rows = sum(batch.num_rows for piece in cut for batch in read_piece(piece, COMMITS))
        fast = max(fast, rows / (time.process_time() - begin))
    few = pieces(segment, 8 << 20)[0]
    content = Path(segment.path).read_bytes()[few.start : few.end]
    rows = 0
    begin = time.process_time()
    for at, _ in iter_batches(content):
        for fields in read_records(content, at):
            assert decode_record(fields[2], fields[3]) is not None
            rows += 1
    slow = rows / (time.process_time() - begin)
    print(f"decoder       {fast / 1e6:6.2f} M rows/s of CPU")
    print(f"row loop      {slow / 1e6:6.2f} M rows/s of CPU  ({fast / slow:.1f} times slower)")


SPARK = """
import json, sys, time
from pathlib import Path
from pyspark.sql import functions as fn
from pipeline.session import start_session
from pipeline.source import FORMAT
spark = start_session(sys.argv[2], settings={"spark.log.level": "ERROR"})
load = lambda: spark.read.format(FORMAT).option("table", "commits").load(sys.argv[1])
read = lambda: load().agg(fn.count("*"), fn.sum("committed_offset")).first()[0]
load().limit(1).collect()
begin = time.monotonic(); rows = read(); took = time.monotonic() - begin
parents = {}
for status in Path("/proc").glob("[0-9]*/status"):
    try:
        said = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        command = status.with_name("cmdline").read_bytes()
    except OSError:
        continue
    parents[int(said["Pid"])] = (int(said["PPid"]), command, said.get("VmHWM", "0 kB"))
def ours(pid):
    import os
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid][0]
    return False
peaks = [int(p.split()[0]) for pid, (_, c, p) in parents.items() if b"daemon" in c and ours(pid)]
print(json.dumps({"rows": rows, "s": took, "worker_mib": max(peaks, default=0) / 1024}))
"""


def through_spark(folder: Path, quarter: Path) -> None:
    """count and sum; the worker's peak is that of the one that needed most."""
    found = {}
    for where, master in ((folder, "local[1]"), (folder, "local[2]"), (quarter, "local[2]")):
        command = [sys.executable, "-c", SPARK, str(where), master]
        done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True)
        said = json.loads(done.stdout.splitlines()[-1])
        found[where, master] = said
        rate = said["rows"] / said["s"] / 1e6
        print(
            f"{master}      {said['rows']:>10,} rows in {said['s']:6.1f} s: {rate:5.2f} M rows/s; "
            f"a worker's peak {said['worker_mib']:.0f} MiB"
        )
    one, two = found[folder, "local[1]"]["s"], found[folder, "local[2]"]["s"]
    print(f"second core   {one / two:.2f} times as fast")


def report(folder: Path, home: Path) -> None:
    """Every job and the page, in a process of its own."""
    command = [
        str(Path(sys.executable).with_name("rollcall")), "pipeline", "run", "all",
        "--from", str(folder), "--to", str(home / "results"), "--report", str(home / "report.html"),
        "--since", str(START_MS), "--until", str(START_MS + DAY_MS),
        "--master", "local[2]", "--set", "spark.driver.memory=3g",
        "--set", "spark.sql.shuffle.partitions=8", "--set", "spark.log.level=ERROR",
    ]  # fmt: skip
    begin = time.monotonic()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    page = (home / "report.html").stat().st_size
    print(f"daily report  {time.monotonic() - begin:6.1f} s, session included; {page / 1e3:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000_000)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--parts", default="decode,spark,report")
    options = parser.parse_args()
    parts = options.parts.split(",")
    with tempfile.TemporaryDirectory(dir=options.dir) as home:
        whole, quarter = Path(home, "whole"), Path(home, "quarter")
        begin = time.monotonic()
        make_commits(whole, options.commits)
        make_samples(whole)
        if "spark" in parts:
            make_commits(quarter, options.commits // 4)
        size = sum(log.stat().st_size for log in whole.rglob("*.log"))
        took = time.monotonic() - begin
        print(f"{options.commits:,} commits, {size / 1e6:.0f} MB, made in {took:.1f} s")
        if "decode" in parts:
            decode(whole)
        if "spark" in parts:
            through_spark(whole, quarter)
        if "report" in parts:
            report(whole, Path(home))


if __name__ == "__main__":
    main()
