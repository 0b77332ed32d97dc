"""Fuzz of transactions: random requests of producers to Kafka and to the daemon in lockstep.

    python -m tests.compare.fuzz_transactions --driver path/to/kafka [--port 21900]
        [--seeds 1-200] [--restart]

Each play has topics, groups and transactional ids of its own. The first answer or stored record
that differs ends it; the steps are then shortened to those that are needed, and printed. Exits with
1 if anything differs. `--restart` restarts both brokers in the middle of the plays, ten at a time:
ours by SIGKILL.
"""

import difflib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from protocol.messages import Response
from protocol.messages.fetch import FetchResponse
from storage.batch.record_batch import iter_batches
from tests.compare.client import Client
from tests.compare.fuzz_consumer_groups import daemon
from tests.compare.plays import AT_A_RESTART, arguments, parsed, play_all, report, summary
from tests.compare.random_transactions import TOPICS, RandomTransactions, Step, take
from tests.compare.script import Script
from tests.compare.servers import Broker, kafka
from tests.compare.stored_transactions import transaction_lines
from tests.compare.warm_up import until_serving

PROFILE: Final = "transactions"
STEPS: Final = 60


class Brokers(NamedTuple):
    kafka: Broker
    ours: Broker
    kafkas_data: Path
    our_data: Path
    restarts: bool = False
    """Whether they are restarted between plays."""

    def restart(self) -> None:
        self.kafka.restart()
        self.ours.restart()


@contextmanager
def brokers(driver: str, port: int, *, restarts: bool) -> Iterator[Brokers]:
    with (
        tempfile.TemporaryDirectory() as kafkas,
        tempfile.TemporaryDirectory() as ours,
        kafka(PROFILE, Path(kafkas), driver, port) as kafka_broker,
        daemon(PROFILE, Path(ours) / "ids.json") as our_broker,
    ):
        for broker in (kafka_broker, our_broker):
            until_serving(broker.port, transactions=True)
        folders = Path(kafkas) / "data", Path(ours) / "data"
        yield Brokers(kafka_broker, our_broker, *folders, restarts)


class Side(Script):
    """One broker's part of a play."""

    def _write_answer(self, client: Client, answer: Response, version: int) -> None:
        """Kafka may list aborted transactions that begin behind the answer's records."""
        if isinstance(answer, FetchResponse):
            for topic in answer.responses:
                for partition in topic.partitions:
                    end = end_of(bytes(partition.records or b""))
                    partition.aborted_transactions = partition.aborted_transactions and [
                        aborted
                        for aborted in partition.aborted_transactions
                        if aborted.first_offset < end
                    ]
        super()._write_answer(client, answer, version)


def end_of(records: bytes) -> int:
    """The offset after these batches."""
    return max((header.next_offset for _, header in iter_batches(records)), default=0)


class Pair:
    """The same play at Kafka and at the daemon."""

    def __init__(self, at: Brokers, name: str) -> None:
        self.at = at
        self.name = name
        self.sides = [
            Side(
                name,
                broker.port,
                lambda: None,
                transactions=True,
                numbers_epochs=at.restarts,
            )
            for broker in (at.kafka, at.ours)
        ]
        self.sides[1].be_given(self.sides[0].given_ms)
        for side in self.sides:
            for topic, partitions in TOPICS.items():
                side.topic(topic, partitions)
        self._compared = [0, 0]

    def take(self, step: Step) -> list[str]:
        """Returns the lines that differ; nothing means that both answer alike."""
        for side in self.sides:
            take(side, step)
        return self.difference()

    def difference(self) -> list[str]:
        new = []
        for index, side in enumerate(self.sides):
            new.append(side.transcript[self._compared[index] :])
            self._compared[index] = len(side.transcript)
        if new[0] == new[1]:
            return []
        return [*(f"kafka {line}" for line in new[0]), *(f"ours  {line}" for line in new[1])]

    def restarted(self) -> list[str]:
        """Both brokers were started again: connect."""
        for side in self.sides:
            side.restart_broker()
        return self.difference()

    def close(self) -> None:
        for side in self.sides:
            side.close()

    def stored_difference(self) -> list[str]:
        at = self.at
        kafkas = transaction_lines(at.kafkas_data, self.name, numbers_epochs=at.restarts)
        ours = transaction_lines(at.our_data, self.name, numbers_epochs=at.restarts)
        lines = in_order(kafkas), in_order(ours)
        return list(difflib.unified_diff(*lines, "kafka's log", "our log", "", "", 3, ""))


def in_order(lines: Sequence[str]) -> list[str]:
    """Kafka takes the offsets of a deleted group from a hash map."""
    ordered: list[str] = []
    for are_tombstones, run in groupby(lines, key=lambda line: line.endswith(" tombstone")):
        same = list(run)
        ordered += sorted(same) if are_tombstones else same
    return ordered


class Play:
    """One random play."""

    def __init__(self, at: Brokers, seed: int) -> None:
        self.seed = seed
        self.name = f"fuzz_{seed}"
        self.pair = Pair(at, self.name)
        self.choices = RandomTransactions(seed)
        self.steps: list[Step] = []
        self.found: list[str] = []

    def begin(self) -> None:
        self._take(*self.choices.setup())

    def go_on(self, *, until_restart: bool) -> None:
        self._go_on(STEPS // 2 if until_restart else STEPS)

    def restarted(self) -> None:
        self.found = self.found or self.pair.restarted()
        self._go_on(STEPS // 2)

    def end(self) -> None:
        if not self.found:
            self._take(Step("a", "describe", {}), Step("a", "producers", {}))
        self.pair.close()
        self.found = self.found or self.pair.stored_difference()

    def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            if self.found:
                return
            self._take(self.choices.next_step())

    def _take(self, *steps: Step) -> None:
        for step in steps:
            if not self.found:
                self.steps.append(step)
                self.found = self.pair.take(step)


def replay(at: Brokers, name: str, steps: Sequence[Step]) -> list[str]:
    """The first difference that these steps lead to, in a new play."""
    pair = Pair(at, name)
    try:
        for step in steps:
            found = pair.take(step)
            if found:
                return found
    except AssertionError as error:  # a broker does not come to an end with it
        return [f"failed: {error}"]
    finally:
        pair.close()
    return pair.stored_difference()


def fuzz(at: Brokers, seeds: Sequence[int]) -> list[Play]:
    done: list[Play] = []
    at_once = AT_A_RESTART if at.restarts else 1
    for begin in range(0, len(seeds), at_once):
        plays = [Play(at, seed) for seed in seeds[begin : begin + at_once]]
        play_all(plays, at.restart if at.restarts else None)
        for play in plays:
            if play.found:
                report(play, None if at.restarts else partial(replay, at))
        done += plays
    return done


def main() -> int:
    options, seeds = parsed(arguments("Compare transactions with Kafka's.", 21900))
    with brokers(options.driver, options.port, restarts=options.restart) as at:
        plays = fuzz(at, seeds)
    print(summary(plays))
    return any(play.found for play in plays)


if __name__ == "__main__":
    sys.exit(main())
