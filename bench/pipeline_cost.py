"""Pipeline cost: what does `run all` on Spark cost by the number of commits, what is shuffled?

    .venv/bin/python -m bench.pipeline_cost [--commits 1000000,10000000,30000000]

One day of commits each (commit_logs.py). CPU and peak memory are those of all processes
(process_tree.py); shuffle, sort and spill are the sums over all tasks in Spark's event log. Then
the model `CPU = a + b * commits`, fitted by least squares to the relative errors.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from bench.commit_logs import DAY_MS, START_MS, make_commits, make_samples
from bench.process_tree import run_watched
from bench.running_daemon import ROLLCALL

HERE = Path(__file__).parents[1]
MIB: Final = 1 << 20


class Cost(NamedTuple):
    commits: int
    log_mib: float
    took_s: float
    cpu_s: float
    java_mib: float
    workers_mib: float
    tasks: int
    shuffle_mib: float
    shuffle_rows: int
    spill_mib: float
    output_mib: float

    def line(self) -> str:
        return (
            f"{self.commits:>11,} commits, {self.log_mib:6.0f} MiB of log: {self.took_s:6.0f} s, "
            f"{self.cpu_s:6.0f} s of CPU; Java {self.java_mib:5.0f} MiB, workers "
            f"{self.workers_mib:5.0f} MiB; {self.tasks} tasks; shuffled {self.shuffle_mib:6.0f} MiB"
            f" in {self.shuffle_rows:,} rows; spilled {self.spill_mib:6.0f} MiB; results "
            f"{self.output_mib:.0f} MiB"
        )


def run(home: Path, commits: int, master: str, settings: Sequence[str]) -> Cost:
    data, events = home / f"data-{commits}", home / f"events-{commits}"
    make_commits(data, commits)
    make_samples(data)
    events.mkdir()
    log_mib = sum(file.stat().st_size for file in data.rglob("*.log")) / MIB
    given = [
        "spark.eventLog.enabled=true", "spark.eventLog.compress=false",
        "spark.eventLog.rolling.enabled=false", f"spark.eventLog.dir=file://{events}", *settings,
    ]  # fmt: skip
    command = [
        *(ROLLCALL, "pipeline", "run", "all", "--master", master),
        *("--from", str(data), "--to", str(home / f"results-{commits}")),
        *("--since", str(START_MS), "--until", str(START_MS + DAY_MS)),
        *(word for setting in given for word in ("--set", setting)),
    ]
    begin = time.monotonic()
    _, used = run_watched(command, HERE)
    took = time.monotonic() - begin
    peak = used.peak_mib
    return Cost(
        commits, log_mib, took, used.cpu_s()["all"], peak["java"], peak["workers"],
        *of_tasks(events),
    )  # fmt: skip


def of_tasks(events: Path) -> tuple[int, float, int, float, float]:
    """(tasks, MiB shuffled, rows shuffled, MiB spilled to disk, MiB of results)"""
    tasks = rows = 0
    shuffled = spilled = written = 0
    for log in events.iterdir():
        with log.open() as lines:
            for line in lines:
                if not line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    continue
                metrics = json.loads(line).get("Task Metrics")
                if metrics is None:
                    continue
                tasks += 1
                shuffle = metrics["Shuffle Write Metrics"]
                shuffled += shuffle["Shuffle Bytes Written"]
                rows += shuffle["Shuffle Records Written"]
                spilled += metrics["Disk Bytes Spilled"]
                written += metrics["Output Metrics"]["Bytes Written"]
    return tasks, shuffled / MIB, rows, spilled / MIB, written / MIB


def fit(costs: Sequence[Cost]) -> tuple[float, float]:
    """(seconds of CPU of any run, those of a million commits more)"""
    cpu = np.array([cost.cpu_s for cost in costs])
    millions = np.array([cost.commits / 1e6 for cost in costs])
    terms = np.column_stack([np.ones(len(costs)), millions]) / cpu[:, None]
    (constant, slope), *_ = np.linalg.lstsq(terms, np.ones(len(costs)), rcond=None)
    return float(constant), float(slope)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commits", default="1000000,10000000,30000000")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    costs = []
    for commits in map(int, options.commits.split(",")):
        with tempfile.TemporaryDirectory() as made:
            costs.append(run(Path(made), commits, options.master, options.set))
        print(costs[-1].line(), flush=True)
    if len(costs) > 1:
        constant, slope = fit(costs)
        print(f"CPU = {constant:.0f} s + {slope:.1f} s for each million commits")
        for cost in costs:
            model = constant + slope * cost.commits / 1e6
            print(f"  {cost.commits:>11,}: {cost.cpu_s:.0f} s, by the model {model:.0f} s")
        for millions in (27, 10_000):
            hours = (constant + slope * millions) / 3_600
            print(f"  {millions:,} million: {hours:.1f} hours of CPU, by the model")


if __name__ == "__main__":
    main()
