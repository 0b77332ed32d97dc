"""Fuzz of consumer groups: random requests to Kafka and to the daemon in lockstep.

    python -m tests.compare.fuzz_consumer_groups --driver path/to/kafka [--port 21800]
        [--seeds 1-50] [--profile consumers] [--restart]

Each play is a group of its own. The first answer or stored record that differs ends it; the steps
are then shortened to those that are needed, and printed. Exits with 1 if anything differs. What
differs on purpose is left out (on_purpose.py). A play that differs is played again if ids share a
bucket of Kafka's maps, which explains other assignments (docs/assignors.md), or if the machine was
so busy that expressions were resolved twice.
`--restart` kills the daemon and restarts Kafka in the middle of the plays, ten plays at a time.
"""

import difflib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from tests.compare.lockstep import Pair, Step
from tests.compare.plays import AT_A_RESTART, arguments, parsed, play_all, report, summary
from tests.compare.random_requests import RandomRequests
from tests.compare.servers import EXACTLY_KAFKA, PROFILES, Broker, kafka, port_from
from tests.compare.stored import stored_lines
from tests.compare.warm_up import until_serving

STEPS: Final = 45
ATTEMPTS: Final = 5
"""How often a play is begun until a difference cannot come of shared buckets or of time."""

LONG_SESSIONS: Final = {
    "group.consumer.session.timeout.ms": "1800000",
    "group.consumer.max.session.timeout.ms": "1800000",
}
"""Nobody expires while Kafka is restarted."""


class Brokers(NamedTuple):
    kafka: Broker
    ours: Broker
    kafkas_data: Path
    our_data: Path
    ids: Path

    def pair(self, name: str) -> Pair:
        return Pair(name, self.kafka.port, self.ours.port, self.ids)

    def restart(self) -> None:
        self.kafka.restart()
        self.ours.restart()


@contextmanager
def brokers(profile: str, driver: str, port: int) -> Iterator[Brokers]:
    with tempfile.TemporaryDirectory() as kafkas, tempfile.TemporaryDirectory() as ours:
        ids = Path(ours) / "ids.json"
        with (
            kafka(profile, Path(kafkas), driver, port, LONG_SESSIONS) as kafka_broker,
            daemon(profile, ids) as our_broker,
        ):
            until_serving(kafka_broker.port)
            until_serving(our_broker.port)
            yield Brokers(kafka_broker, our_broker, Path(kafkas) / "data", Path(ours) / "data", ids)


@contextmanager
def daemon(profile: str, ids: Path) -> Iterator[Broker]:
    """Our daemon, which makes the ids that it is given and is stopped by SIGKILL."""
    folder = ids.parent
    running: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> int:
        command = [
            sys.executable, "-m", "tests.compare.given_ids", str(ids), "serve",
            "--data-dir", str(folder / "data"),
            "--listen", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0",
        ]  # fmt: skip
        for key, value in {**PROFILES[profile], **LONG_SESSIONS, **EXACTLY_KAFKA}.items():
            command += ["--set", f"{key}={value}"]
        with (folder / "stderr.log").open("ab") as log:
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log))
        return port_from(running[-1], folder / "stderr.log")

    def stop() -> None:
        running[-1].kill()
        running[-1].wait()
        assert running[-1].stdout is not None
        running[-1].stdout.close()

    broker = Broker(start, stop, 0)
    try:
        yield broker
    finally:
        broker.stop()


class Play:
    """One group at both brokers."""

    def __init__(self, at: Brokers, seed: int, attempt: int, *, restarts: bool) -> None:
        self.at = at
        self.seed = seed
        self.attempt = attempt
        self.name = f"fuzz_{seed}_{attempt}"
        self.pair = at.pair(self.name)
        self.choices = RandomRequests(self.pair, seed, restarts=restarts)
        self.found: list[str] = []

    @property
    def steps(self) -> Sequence[Step]:
        return self.pair.steps

    def begin(self) -> None:
        for step in self.choices.setup():
            self.pair.take(step)

    def go_on(self, *, until_restart: bool) -> None:
        self._go_on(STEPS // (2 if until_restart or self.choices.with_regex else 1))

    def restarted(self) -> None:
        self.found = self.found or self.pair.restarted()
        self._go_on(STEPS // 2)

    def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            if self.found:
                return
            self.found = self.pair.take(self.choices.next_step())
            self.choices.learn()

    def end(self) -> None:
        self.found = self.found or self.pair.take(Step("end", "describe", {}))
        self.pair.close()
        self.found = self.found or stored_difference(self.at, self.pair, self.name)


def stored_difference(at: Brokers, pair: Pair, name: str) -> list[str]:
    kafkas = in_order(stored_lines(at.kafkas_data, name, pair.kafka.topics, batches=True))
    ours = in_order(stored_lines(at.our_data, name, pair.ours.topics, batches=True))
    return list(difflib.unified_diff(kafkas, ours, "kafka's log", "our log", "", "", 3, ""))


def in_order(lines: Sequence[str]) -> list[str]:
    """Sorts neighbours of one type: Kafka takes members and expressions from hash maps."""
    ordered: list[str] = []
    for _, run in groupby(lines, key=_kind):
        ordered += sorted(run)
    return ordered


def _kind(line: str) -> str:
    return "tombstone" if line.endswith(" tombstone") else line.partition(" ")[0]


def replay(at: Brokers, name: str, steps: Sequence[Step]) -> list[str]:
    """The first difference that these steps lead to, in a new group."""
    for attempt in range(1, ATTEMPTS + 1):
        pair = at.pair(f"{name}_{attempt}")
        found = _replayed(at, pair, steps)
        if not (found and pair.is_unclear()):
            return found
    return []


def _replayed(at: Brokers, pair: Pair, steps: Sequence[Step]) -> list[str]:
    try:
        for step in steps:
            try:
                found = pair.take(step)
            except AssertionError:  # without the steps before, this one cannot be taken
                return []
            if found:
                return found
    finally:
        pair.close()
    return stored_difference(at, pair, pair.name)


def fuzz(at: Brokers, seeds: Sequence[int], *, restarts: bool) -> list[Play]:
    done: list[Play] = []
    at_once = AT_A_RESTART if restarts else 1
    for begin in range(0, len(seeds), at_once):
        left = seeds[begin : begin + at_once]
        for attempt in range(1, ATTEMPTS + 1):
            plays = [Play(at, seed, attempt, restarts=restarts) for seed in left]
            play_all(plays, at.restart if restarts else None)
            unclear = [play for play in plays if play.found and play.pair.is_unclear()]
            if attempt == ATTEMPTS:
                unclear = []
            clear = [play for play in plays if play not in unclear]
            for play in clear:
                if play.found:
                    report(play, None if restarts else partial(replay, at))
            done += clear
            left = [play.seed for play in unclear]
            if not left:
                break
    return done


def main() -> int:
    parser = arguments("Compare consumer groups with Kafka's.", 21800)
    parser.add_argument("--profile", default="consumers", choices=sorted(PROFILES))
    options, seeds = parsed(parser)
    with brokers(options.profile, options.driver, options.port) as at:
        plays = fuzz(at, seeds, restarts=options.restart)
    left_out = sum(play.pair.left_out for play in plays)
    again = sum(play.attempt > 1 for play in plays)
    print(f"{options.profile}: {summary(plays, f' {left_out} left out, {again} plays again,')}")
    return any(play.found for play in plays)


if __name__ == "__main__":
    sys.exit(main())
