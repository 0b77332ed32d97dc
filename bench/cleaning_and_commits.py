"""Commit latency while the log cleaner runs: the 99th percentile, with and without cleaning.

    .venv/bin/python -m bench.cleaning_and_commits --loadgen LOADGEN [--seconds 15]
        [--rate 500] [--records 1000000] [--logs 3] [--rounds 3]

Fills `--logs` partitions of __consumer_offsets with `--records` commits each, 1 % of them live.
Starts the daemon on a copy of that directory, with and without the cleaner. LOADGEN (`loadgen
commit`, which prints one JSON object per run) commits on 50 connections in an open loop; each
commit is answered after an fsync. Prints the percentiles, and the share of the time in which a pass
was running: if the passes end early, the comparison says little, and needs more records.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.cleaner import SETTINGS, fill
from bench.running_daemon import running_daemon
from storage.api import TopicPartition
from storage.disk import RealDisk
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING

PLAIN = {
    "group.initial.rebalance.delay.ms": "0",
    "rollcall.offsets.history.ms": "0",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "rollcall.checkpoint.bytes": "262144",  # a log is cleaned up to the last checkpoint
}


def measure(
    loadgen: str, data: Path, log: Path, settings: dict[str, str], seconds: int, rate: int
) -> tuple[dict[str, float], float]:
    """(the load's figures, the share of the time in which a pass ran)"""
    with running_daemon(settings, data_dir=data, errors=log, admin=False) as daemon:
        load = subprocess.run(
            [
                loadgen, "commit", "--bootstrap", daemon.bootstrap, "--members", "50",
                "--partitions", "1", "--rate", str(rate), "--duration", f"{seconds}s", "--json",
            ],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    passes = re.findall(r"Log cleaner cleaned log.*? seconds=([\d.]+)", log.read_text())
    return json.loads(load), sum(map(float, passes)) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--loadgen", required=True)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--logs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures: dict[str, list[float]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as home:
        made = Path(home, "made")
        with running_daemon(PLAIN, data_dir=made, admin=False):
            pass
        for number in range(options.logs):
            key = TopicPartition("__consumer_offsets", number)
            log = PartitionLog(RealDisk(), f"{made}/{key.topic}-{key.partition}", key, SETTINGS)
            log.open(EVERYTHING)
            fill(log, options.records, options.records // 100)
        for round_number in range(options.rounds):
            for kind, is_on in (("without", "false"), ("with", "true")):
                data = Path(home, f"{kind}-{round_number}")
                shutil.copytree(made, data)
                settings = {**PLAIN, "log.cleaner.enable": is_on}
                load, part = measure(
                    options.loadgen, data, data.with_suffix(".log"), settings,
                    options.seconds, options.rate,
                )  # fmt: skip
                shutil.rmtree(data)
                figures[kind].append(load["p99_ms"])
                print(
                    f"{kind:8} p50 {load['p50_ms']:7.2f}  p99 {load['p99_ms']:7.2f} ms,"
                    f" errors {load.get('errors') or 0}, a pass ran {100 * part:.0f} % of the time",
                    flush=True,
                )
                time.sleep(1)
    without, with_it = (statistics.median(figures[kind]) for kind in ("without", "with"))
    print(f"median p99: {without:.2f} ms without, {with_it:.2f} ms with: {with_it / without:.2f}x")


if __name__ == "__main__":
    main()
