"""Recording: plays every scenario at a real Kafka and writes the golden transcripts.

    python -m tests.compare.record --driver path/to/kafka [--port 21700] [--check] [NAME ...]

The driver is a script that understands `start DIR PORT [k=v ...]` and `stop DIR`; the environment
variable KAFKA_DRIVER may name it instead. NAME is a scenario or a chapter; slow scenarios are only
recorded when they are named. `--check` compares with what is recorded instead of writing, which
shows whether a scenario is deterministic.
"""

import argparse
import difflib
import os
import sys
import tempfile
import time
import traceback
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from tests.compare import logged, recordings
from tests.compare.catalogue import scenarios
from tests.compare.script import NOTHING, Scenario, perform
from tests.compare.servers import PROFILES, TRANSACTIONAL, kafka
from tests.compare.stored_transactions import stored_by
from tests.compare.warm_up import until_serving

AFTERWARDS_S: Final = 0.3
"""Until Kafka has logged what it has answered already."""

SLOW_S: Final = 5.0
"""A scenario that takes longer has probably waited in vain for an answer."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Record Kafka's answers.")
    parser.add_argument("--driver", default=os.environ.get("KAFKA_DRIVER"))
    parser.add_argument("--port", type=int, default=19092)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if not options.driver:
        parser.error("name the driver script with --driver or KAFKA_DRIVER")
    chosen = [
        scenario
        for scenario in scenarios().values()
        if {scenario.name, scenario.chapter} & set(options.names)
        or not (options.names or scenario.is_slow)
    ]
    found = record(chosen, options.driver, options.port)
    failed = len(found.said) < len(chosen)
    use = compare if options.check else keep
    others = use(found.stored, recordings.STORED) | use(found.logged, recordings.LOGGED)
    return use(found.said) | others | int(failed)


Recorded = dict[str, list[str]]


class Recording(NamedTuple):
    """Scenario name -> what Kafka said, what it then had in its log, what it logged for people."""

    said: Recorded
    stored: Recorded
    logged: Recorded


def record(chosen: list[Scenario], driver: str, port: int) -> Recording:
    transcripts: Recorded = {}
    stored: Recorded = {}
    lines_of: Recorded = {}
    for number, profile in enumerate(PROFILES):
        due = [scenario for scenario in chosen if scenario.profile == profile]
        if not due:
            continue
        with (
            tempfile.TemporaryDirectory() as folder,
            kafka(profile, Path(folder), driver, port + number) as at,
        ):
            until_serving(at.port, transactions=profile in TRANSACTIONAL)
            for scenario in due:
                print(scenario.name, file=sys.stderr)
                began = time.monotonic()
                try:
                    transcript, topics = perform(scenario, at)
                    assert not any(line.endswith(NOTHING) for line in transcript), transcript
                    transcripts[scenario.name] = transcript
                    lines = stored_by(scenario, Path(folder) / "data", topics)
                    if lines:
                        stored[scenario.name] = lines
                    time.sleep(AFTERWARDS_S)
                    log = Path(folder) / "server.log"
                    if logged.is_compared(scenario) and (lines := logged.of_kafka(scenario, log)):
                        lines_of[scenario.name] = lines
                except Exception:  # one broken scenario must not cost the whole recording
                    print(f"not recorded: {scenario.name}", file=sys.stderr)
                    traceback.print_exc()
                if time.monotonic() - began > SLOW_S:
                    print(f"slow: {scenario.name}", file=sys.stderr)
    return Recording(transcripts, stored, lines_of)


def keep(recorded: Recorded, kind: str = "") -> int:
    for chapter, members in groupby(scenarios().values(), key=lambda s: s.chapter):
        old = recordings.transcripts(kind + chapter)
        sections = [(s.name, recorded.get(s.name) or old.get(s.name, [])) for s in members]
        if kind:  # many a scenario stores or logs nothing
            sections = [(name, lines) for name, lines in sections if lines]
        if sections:
            recordings.write(kind + chapter, sections)
    return 0


def compare(recorded: Recorded, kind: str = "") -> int:
    differing = 0
    for name, transcript in recorded.items():
        before = recordings.transcripts(kind + scenarios()[name].chapter).get(name, [])
        if before != transcript:
            differing += 1
            sys.stdout.writelines(
                f"{line}\n" for line in difflib.unified_diff(before, transcript, name, "now", n=2)
            )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
