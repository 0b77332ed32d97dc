"""Cluster: the same tables from a standalone cluster, from local-cluster and from one process?

    .venv/bin/python -m bench.pipeline_cluster [--commits 400000] [--jobs all] [--masters ...]

Starts a standalone master and three worker processes on loopback, submits the jobs through
spark-submit with the archive of `rollcall pipeline archive`, and does the same on
`local-cluster[3,1,1024]`, on `local[2]` and with the local engine. Each result is compared with
that of the local engine, row by row. Prints the seconds of each. Exit code 1: rows differ. From
400,000 commits on the log has rewinds, so no table of these jobs but `audit` is empty.
"""

import argparse
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pyspark

from bench.commit_logs import DAY_MS, START_MS, make_commits, make_samples
from bench.running_daemon import ROLLCALL
from pipeline.archive import write_archive
from pipeline.java import find_java, home_for_spark
from pipeline.result_tables import RESULTS

SPARK = Path(pyspark.__file__).parent
WORKERS = 3
START_TIMEOUT_S = 300
RUN_TIMEOUT_S = 3_600
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    "spark.executor.memory": "1g",
}


def environment(scratch: Path) -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(home_for_spark(find_java())),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(scratch),
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextmanager
def standalone(scratch: Path) -> Iterator[str]:
    """The URL of a master with three workers."""
    started: list[subprocess.Popen[bytes]] = []
    env = environment(scratch)
    master = "org.apache.spark.deploy.master.Master"
    worker = "org.apache.spark.deploy.worker.Worker"

    def start(name: str, *words: str) -> Path:
        log = scratch / f"{name}.log"
        command = [str(SPARK / "bin" / "spark-class"), *words]
        with log.open("wb") as output:
            started.append(subprocess.Popen(command, env=env, stdout=output, stderr=output))
        return log

    try:
        log = start("master", master, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = wait_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(WORKERS):
            words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            log = start(f"worker-{number}", worker, *words, url)
            wait_for(log, r"(Successfully registered with master)")
        yield url
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(60)


def wait_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if (found := re.search(pattern, log.read_text(errors="replace"))) is not None:
            return found[1]
        time.sleep(0.2)
    raise SystemExit(f"{log}: no line {pattern!r} within {START_TIMEOUT_S} s")


def submit(master: str, archive: tuple[Path, Path], job: str, data: Path, out: Path) -> None:
    zipped, script = archive
    command = [
        str(SPARK / "bin" / "spark-submit"),
        *("--master", master, "--py-files", str(zipped)),
        *(word for pair in CONF.items() for word in ("--conf", "=".join(pair))),
        str(script),
        *(job, "--from", str(data), "--to", str(out)),
        *("--since-ms", str(START_MS), "--until-ms", str(START_MS + DAY_MS)),
    ]
    done = subprocess.run(
        command, env=environment(out.parent), capture_output=True, text=True,
        timeout=RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{master}: {job} ended with {done.returncode}\n{done.stderr[-4_000:]}")


def local(job: str, data: Path, out: Path) -> None:
    span = ["--since", str(START_MS), "--until", str(START_MS + DAY_MS)]
    words = ["run", job, "--engine", "local", "--from", str(data), "--to", str(out), *span]
    subprocess.run([ROLLCALL, "pipeline", *words], check=True, capture_output=True)


def same(reference: Path, made: Path) -> bool:
    """Every table that either has, with a line for each."""
    equal = True
    for name in RESULTS:
        left, right = (rows(folder / name) for folder in (reference, made))
        is_same = len(left) == len(right) and all(map(close, left, right))
        counted = f"{len(left):,} rows" if is_same else f"{len(left):,} and {len(right):,} rows"
        print(f"  {name:20} {counted:>30}  {'same' if is_same else 'DIFFERENT'}")
        equal &= is_same
    return equal


def rows(folder: Path) -> list[tuple[object, ...]]:
    if not any(folder.rglob("*.parquet")):
        return []
    names = [name for name in RESULTS[folder.name].schema.names if name != "evidence"]
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table(columns=names)
    exact = [name for name in names if str(table.schema.field(name).type) != "double"]
    order = [(name, "ascending") for name in exact]
    return list(
        zip(*(table.sort_by(order).column(name).to_pylist() for name in names), strict=True)
    )


def close(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(left, right, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=400_000)
    parser.add_argument("--jobs", default="all")
    parser.add_argument("--masters", default="standalone,local-cluster[3;1;1024],local[2]")
    options = parser.parse_args()
    jobs = options.jobs.split(",")
    equal = True
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        data = home / "data"
        make_commits(data, options.commits)
        make_samples(data)
        archive = write_archive(home / "archive")
        begin = time.monotonic()
        for job in jobs:
            local(job, data, home / "reference")
        print(f"{'local engine':28} {time.monotonic() - begin:7.1f} s", flush=True)
        for name in options.masters.split(","):
            out = home / re.sub(r"\W+", "-", name) / "out"
            out.parent.mkdir()
            with standalone(out.parent) if name == "standalone" else given(name) as master:
                begin = time.monotonic()
                for job in jobs:
                    submit(master, archive, job, data, out)
                took = time.monotonic() - begin
            is_same = same(home / "reference", out)
            equal &= is_same
            print(f"{name:28} {took:7.1f} s  {'same' if is_same else 'DIFFERENT'}", flush=True)
    return 0 if equal else 1


@contextmanager
def given(master: str) -> Iterator[str]:
    yield master.replace(";", ",")


if __name__ == "__main__":
    sys.exit(main())
