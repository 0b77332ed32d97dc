"""Plays: random steps at two brokers side by side, with or without a restart, and their report."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tests.compare.shortening import Replay, shortened

AT_A_RESTART: Final = 10
"""Plays that share one restart of both brokers."""


class Play(Protocol):
    """One random play, which ends with the first difference."""

    seed: int
    name: str
    found: list[str]
    """The lines that differ."""

    @property
    def steps(self) -> Sequence[Any]:
        """What was taken until now."""

    def begin(self) -> None: ...

    def go_on(self, *, until_restart: bool) -> None:
        """Take the steps until the brokers are restarted or, without a restart, all of them."""

    def restarted(self) -> None:
        """The brokers were restarted: connect again, and take the rest of the steps."""

    def end(self) -> None: ...


def play_all(plays: Sequence[Play], restart: Callable[[], None] | None) -> None:
    """Side by side if there is a restart, which is one for all of them."""
    for play in plays:
        play.begin()
        play.go_on(until_restart=restart is not None)
    if restart is not None:
        restart()
        for play in plays:
            play.restarted()
    for play in plays:
        play.end()


def report(play: Play, replay: Replay[Any] | None) -> None:
    """Print the difference, with the fewest steps that lead to it if they can be replayed."""
    steps, found = list(play.steps), play.found
    print(f"\n=== seed {play.seed}: {len(steps)} steps")
    print("\n".join(found).replace(play.name, "~"), flush=True)
    if replay is not None:
        fewer, again = shortened(replay, play.name, steps)
        if not fewer:
            print("(not seen again)")
        steps, found = fewer or steps, again or found
    for step in steps:
        print("  ", tuple(step))
    for line in found:
        print(line.replace(play.name, "~"))
    sys.stdout.flush()


def summary(plays: Sequence[Play], also: str = "") -> str:
    count = sum(len(play.steps) for play in plays)
    differing = [play.seed for play in plays if play.found]
    return f"{len(plays)} plays, {count} steps,{also} {len(differing)} differ: {differing}"


def arguments(description: str, port: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--driver", default=os.environ.get("KAFKA_DRIVER"))
    parser.add_argument("--port", type=int, default=port)
    parser.add_argument("--seeds", default="1-50", help="the first and the last one")
    parser.add_argument("--restart", action="store_true", help="both, in the middle of the plays")
    return parser


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, range]:
    """The options and the seeds."""
    options = parser.parse_args()
    if not options.driver:
        parser.error("name the driver script with --driver or KAFKA_DRIVER")
    first, last = (int(seed) for seed in options.seeds.split("-"))
    return options, range(first, last + 1)
