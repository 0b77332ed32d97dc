"""Pipeline: decoding speed, scaling over cores, memory, and the duration of a report.

    .venv/bin/python -m bench.commit_pipeline [--commits 10000000] [--dir DIR]
                                              [--parts decode,spark,connector,report]

Everything is measured in one run, so that the ratios are valid on a machine with other load:

    decode      the source's decoder and a row loop in plain Python, on one core
    spark       count and sum of all commits through the source, on one core and on two
    connector   the same through Spark's Kafka connector, from a daemon on the same segments
    report      the whole daily report (`run all`, `report`), on a quarter of the input and on all

CPU is the sum of Spark's Java process and its Python workers. Memory is the peak of each kind of
process (process_tree.py). Only the figures of `report` include the start of Spark. The connector's
jars are those of the tests (tests/pipeline/kafka_connector.lock).
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import decoder
from bench.commit_logs import DAY_MS, LOG_PARTITIONS, START_MS, make_commits, make_samples
from bench.process_tree import Used, run_watched
from bench.running_daemon import ROLLCALL, running_daemon
from protocol.names import OFFSETS_TOPIC
from tests.interop.kafka_tools import NoKafkaTools, bring_jars

HERE = Path(__file__).parents[1]
JARS = HERE / "tests" / "pipeline" / "kafka_connector.lock"
PARTS = "decode,spark,connector,report"


def decode(folder: Path) -> None:
    """One core: the source's decoder, then the daemon's own readers, on the same records."""
    fast = max(decoder.decode(folder) for _ in range(4))  # the first one warms up
    slow = decoder.row_loop(folder, 8 << 20)
    print(f"decoder         {fast / 1e6:6.2f} M rows/s of CPU")
    print(f"row loop        {slow / 1e6:6.2f} M rows/s of CPU  ({fast / slow:.1f} times slower)")


SPARK = """
import json, os, sys, time
from bench.process_tree import Used, look
from pipeline.read.sources import PipelineSource
from pipeline.session import start_session
from pipeline.tables import COMMITS
from pyspark.sql import functions as fn
where, master, jars = sys.argv[1:]
settings = {"spark.log.level": "ERROR", "spark.jars": jars}
spark = start_session(master, settings=settings)
def read(most=None):
    found = PipelineSource(spark, where).table(COMMITS)
    found = found if most is None else found.limit(most)
    return found.agg(fn.count("*"), fn.sum("committed_offset")).first()[0]
read(1)
before, after = Used(), Used()
look(os.getpid(), before)
begin = time.monotonic(); rows = read(); took = time.monotonic() - begin
look(os.getpid(), after)
cpu = {kind: after.cpu_s()[kind] - before.cpu_s()[kind] for kind in ("java", "workers")}
print(json.dumps({"rows": rows, "s": took, **cpu}))
"""


class Reading:
    """One count and sum."""

    def __init__(self, where: str, master: str, jars: str = "") -> None:
        printed, self.used = run_watched([sys.executable, "-c", SPARK, where, master, jars], HERE)
        said = json.loads(printed.splitlines()[-1])
        self.rows: int = said["rows"]
        self.took_s: float = said["s"]
        self.cpu_s: float = said["java"] + said["workers"]

    def line(self) -> str:
        return (
            f"{self.rows:>10,} rows in {self.took_s:6.1f} s; "
            f"{self.rows / self.cpu_s / 1e6:5.2f} M rows/s of CPU; {memory(self.used)}"
        )


def memory(used: Used) -> str:
    peak = used.peak_mib
    return f"Java {peak['java']:.0f} MiB, workers {peak['workers']:.0f} MiB"


def through_source(whole: Path, quarter: Path) -> Reading:
    """Return the time of one core, for comparison. The best of two alternate runs each."""
    readings = [Reading(str(whole), f"local[{cores}]") for cores in (1, 2, 1, 2)]
    single, dual = (min(readings[n::2], key=lambda reading: reading.took_s) for n in (0, 1))
    print(f"source, 1 core  {single.line()}")
    print(f"source, 2 cores {dual.line()}")
    print(f"  a quarter     {Reading(str(quarter), 'local[2]').line()}")
    print(f"second core     {single.took_s / dual.took_s:.2f} times as fast")
    return single


def through_connector(whole: Path, home: Path, source: Reading | None) -> None:
    try:
        jars = ",".join(map(str, bring_jars(JARS)))
    except NoKafkaTools as missing:
        print(f"connector       not measured: {missing}")
        return
    copy = home / "served"
    for folder in whole.glob(f"{OFFSETS_TOPIC}-*"):
        shutil.copytree(folder, copy / folder.name)
    with daemon(copy) as address:
        found = Reading(f"kafka://{address}", "local[1]", jars)
    print(f"connector       {found.line()}")
    if source is not None:
        print(f"  beside source {found.cpu_s / source.cpu_s:.1f} times the CPU, 1 core each")


@contextmanager
def daemon(data_dir: Path) -> Iterator[str]:
    """HOST:PORT of a Rollcall that serves these logs and does not change them."""
    settings = {
        "offsets.topic.num.partitions": LOG_PARTITIONS,
        "offsets.retention.minutes": 2_000_000_000,
        "log.cleaner.enable": "false",
    }
    with running_daemon(settings, data_dir=data_dir) as serving:
        yield serving.bootstrap


def report(folder: Path, home: Path) -> float:
    """Run every job, then the report, each in its own process; the seconds of both."""
    results, page = home / f"results-{folder.name}", home / f"{folder.name}.html"
    span = ["--since", str(START_MS), "--until", str(START_MS + DAY_MS)]
    spark = ["--master", "local[2]", "--set", "spark.log.level=ERROR"]
    jobs = ["run", "all", "--from", str(folder), "--to", str(results)]
    shown = ["report", "--from", str(results), "--to", str(page)]
    both = 0.0
    for name, command in (("run all", jobs), ("report", shown)):
        begin = time.monotonic()
        _, used = run_watched([ROLLCALL, "pipeline", *command, *span, *spark], HERE)
        took = time.monotonic() - begin
        both += took
        cpu = used.cpu_s()["all"]
        print(f"{folder.name:8}{name:8} {took:6.1f} s, {cpu:6.1f} s of CPU; {memory(used)}")
    print(f"{folder.name:8}page     {page.stat().st_size / 1e3:6.0f} kB")
    return both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000_000)
    parser.add_argument("--dir", type=Path, help="where the segments are made")
    parser.add_argument("--parts", default=PARTS)
    options = parser.parse_args()
    parts = options.parts.split(",")
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        home = Path(made)
        whole, quarter = home / "whole", home / "quarter"
        begin = time.monotonic()
        for folder, commits in ((whole, options.commits), (quarter, options.commits // 4)):
            make_commits(folder, commits)
            make_samples(folder)
        size = sum(log.stat().st_size for log in whole.rglob("*.log"))
        took = time.monotonic() - begin
        print(f"{options.commits:,} commits, {size / 1e6:.0f} MB, made in {took:.1f} s")
        if "decode" in parts:
            decode(whole)
        source = through_source(whole, quarter) if "spark" in parts else None
        if "connector" in parts:
            through_connector(whole, home, source)
        if "report" in parts:
            less, more = (report(folder, home) for folder in (quarter, whole))
            print(f"daily report    {more:.1f} s; four times the input: {more / less:.1f} times")


if __name__ == "__main__":
    main()
