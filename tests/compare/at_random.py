"""Comparison at random: random scenarios of consumer groups, played at Kafka and at the daemon.

    python -m tests.compare.at_random --driver path/to/kafka [--port 21700] [--seeds 1-200]

Prints the first difference of each seed and exits with 1 if there is any.
"""

import argparse
import difflib
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.compare.differences import as_ours
from tests.compare.scenarios.consumer_at_random import consumers_at_random
from tests.compare.script import Scenario, perform
from tests.compare.servers import Restartable, kafka, rollcall
from tests.compare.stored import stored_lines
from tests.compare.warm_up import until_serving

PROFILE = "consumers"
LINES_SHOWN = 60
ATTEMPTS = ("first", "again")
"""A busy Kafka may take up a new connection late, and then what was sent on it."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare with Kafka at random.")
    parser.add_argument("--driver", default=os.environ.get("KAFKA_DRIVER"))
    parser.add_argument("--port", type=int, default=19092)
    parser.add_argument("--seeds", default="1-50", help="the first and the last one")
    options = parser.parse_args()
    if not options.driver:
        parser.error("name the driver script with --driver or KAFKA_DRIVER")
    first, last = (int(seed) for seed in options.seeds.split("-"))
    differing = []
    with (
        tempfile.TemporaryDirectory() as their_folder,
        tempfile.TemporaryDirectory() as our_folder,
        kafka(PROFILE, Path(their_folder), options.driver, options.port) as their_broker,
        rollcall(PROFILE, Path(our_folder)) as our_broker,
    ):
        until_serving(their_broker.port)
        until_serving(our_broker.port)
        for seed in range(first, last + 1):
            for attempt in ATTEMPTS:
                name = f"random_{seed}_{attempt}"
                kafkas = played(seed, name, their_broker, Path(their_folder))
                rollcalls = played(seed, name, our_broker, Path(our_folder))
                if kafkas == rollcalls:
                    break
            else:
                differing.append(seed)
                show(seed, kafkas, rollcalls)
    print(f"{last + 1 - first} seeds, {len(differing)} differ: {differing}")
    return 1 if differing else 0


def played(seed: int, name: str, broker: Restartable, folder: Path) -> list[str]:
    """What a client sees and what is stored in the end."""

    play = partial(consumers_at_random, seed=seed)
    try:
        transcript, topics = perform(Scenario(name, "", PROFILE, play), broker)
    except Exception as error:
        return [f"failed: {error!r}"]
    stored = stored_lines(folder / "data", name, topics, batches=True)
    return [*as_ours(transcript), "", *stored]


def show(seed: int, kafkas: list[str], rollcalls: list[str]) -> None:
    lines = difflib.unified_diff(kafkas, rollcalls, f"kafka {seed}", "rollcall", "", "", 20, "")
    for line in list(lines)[:LINES_SHOWN]:
        print(line)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
