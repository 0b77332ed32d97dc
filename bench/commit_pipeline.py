"""Pipeline: the duration, CPU time and memory of the daily report, on Spark.

    .venv/bin/python -m bench.commit_pipeline [--commits 10000000] [--dir DIR]

`run all` and `report`, each in a process of its own with all starts, on a quarter of the input and
on all of it. Memory is the peak of each kind of process (process_tree.py). The source and Spark's
Kafka connector are measured by bench/spark_source.py, `run all` by size by bench/pipeline_cost.py.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.commit_logs import DAY_MS, START_MS, make_commits, make_samples
from bench.process_tree import Used, run_watched
from bench.running_daemon import ROLLCALL

HERE: Final = Path(__file__).parents[1]


def memory(used: Used) -> str:
    peak = used.peak_mib
    return f"Java {peak['java']:.0f} MiB, workers {peak['workers']:.0f} MiB"


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        home = Path(made)
        whole, quarter = home / "whole", home / "quarter"
        for folder, commits in ((whole, options.commits), (quarter, options.commits // 4)):
            make_commits(folder, commits)
            make_samples(folder)
        less, more = (report(folder, home) for folder in (quarter, whole))
        print(f"daily report    {more:.1f} s; four times the input: {more / less:.1f} times")


if __name__ == "__main__":
    main()
