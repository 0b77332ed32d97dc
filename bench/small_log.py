"""Small log: CPU time and memory of `run all` with a report, on each engine, in one run.

    .venv/bin/python -m bench.small_log [--commits 3200] [--rounds 1]

3,200 commits, 100 group records and a sample of each of 100 groups every hour: 5,700 records. Each
command is a process of its own with all starts. Memory is the peak of all its processes together,
shared pages counted once (process_tree.py).
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.commit_logs import DAY_MS, START_MS, make_commits, make_samples
from bench.process_tree import run_watched
from bench.running_daemon import ROLLCALL
from pipeline.read.segments import log_ends, segments
from protocol.names import LAG_TOPIC, OFFSETS_TOPIC

HERE: Final = Path(__file__).parents[1]
HOUR_MS: Final = 3_600_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commits", type=int, default=3_200)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        data, out = home / "data", home / "out"
        make_commits(data, options.commits)
        make_samples(data, every_ms=HOUR_MS)
        ends = (log_ends(segments(str(data), topic)) for topic in (OFFSETS_TOPIC, LAG_TOPIC))
        print(f"{sum(sum(end.values()) for end in ends):,} records")
        span = ["--since", str(START_MS), "--until", str(START_MS + DAY_MS)]
        for _ in range(options.rounds):
            for engine in ("local", "spark"):
                command = [
                    *(ROLLCALL, "pipeline", "run", "all", "--engine", engine, *span),
                    *("--from", str(data), "--to", str(out), "--report", str(home / "page.html")),
                ]
                begin = time.monotonic()
                _, used = run_watched(command, HERE)
                took = time.monotonic() - begin
                print(
                    f"{engine:6} {used.cpu_s()['all']:6.1f} s of CPU, {took:6.1f} s, "
                    f"{used.peak_mib['all']:5.0f} MiB at the peak",
                    flush=True,
                )
                shutil.rmtree(out)


if __name__ == "__main__":
    main()
