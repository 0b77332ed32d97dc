"""Purgatory: operations a second, with a million delayed operations pending.

    .venv/bin/python -m bench.purgatory [--pending 1000000] [--rounds 3]
    # the sources; RESULTS.md begins with the command for the compiled build

`insert` parks them, each under its own key and with a deadline within a minute. `touch` replaces
each in random order by one with a later deadline, as a member does whose session is extended by a
rejoin (a heartbeat does not even do that: it moves one number). `put off` is what follows from it:
the old deadlines come, and each is filed again. `park again` takes each out and parks it with an
earlier deadline. `cancel` takes them out in random order. `expire` lets time end them.

`kafka mix` has the shape of Kafka's TestPurgatoryPerformance: each operation is watched under 3 of
100 keys; most are completed after a log-normal time (median 20 ms, 75 % within 60 ms), and the
rest expire after their timeout of 1,000 ms. In virtual time, as fast as it goes; an operation is a
park with its check, and a completion or an expiry. Process time, best of the rounds.
"""

import argparse
import gc
import math
import random
import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from purgatory.purgatory import Purgatory

MINUTE_MS = 60_000
KEYS = 100
KEYS_OF_EACH = 3
TIMEOUT_MS = 1_000
MEDIAN_MS = 20.0
THREE_QUARTERS_MS = 60.0
SIGMA = math.log(THREE_QUARTERS_MS / MEDIAN_MS) / 0.6745  # the normal's quantile of 75 %
MIX_PER_MS = 50


class Op:
    """A delayed operation that is completed when somebody says so."""

    __slots__ = ("deadline_ms", "is_done", "keys")

    def __init__(self, keys: tuple[int, ...], deadline_ms: int) -> None:
        self.keys = keys
        self.deadline_ms = deadline_ms
        self.is_done = False

    def try_complete(self) -> str | None:
        return "completed" if self.is_done else None

    def on_expiration(self) -> str:
        return "expired"


def phases(pending: int, seed: int) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """(name, operations, what does them), on one purgatory in this order."""
    draw = random.Random(seed)
    purgatory: Purgatory[str] = Purgatory()
    ops = [Op((number,), draw.randrange(MINUTE_MS)) for number in range(pending)]
    later = [Op(op.keys, op.deadline_ms + MINUTE_MS) for op in ops]
    order = list(range(pending))
    draw.shuffle(order)

    def insert() -> None:
        for op in ops:
            purgatory.watch(op)

    def touch() -> None:
        for number in order:
            purgatory.replace(number, later[number])

    def put_off() -> None:
        assert not purgatory.expire_due(MINUTE_MS - 1)

    def park_again() -> None:
        for number in order:
            purgatory.cancel(number)
            purgatory.watch(ops[number])

    def cancel() -> None:
        for number in order:
            purgatory.cancel(number)
        assert not purgatory.delayed

    def expire() -> None:
        assert len(purgatory.expire_due(MINUTE_MS)) == pending

    yield "insert", pending, insert
    yield "touch", pending, touch
    yield "put off", pending, put_off
    yield "park again", pending, park_again
    yield "cancel", pending, cancel
    insert()
    yield "expire", pending, expire


def kafka_mix(operations: int, seed: int) -> Callable[[], None]:
    draw = random.Random(seed)
    given = [
        (
            Op(
                (*draw.sample(range(KEYS), KEYS_OF_EACH), KEYS + number),
                number // MIX_PER_MS + TIMEOUT_MS,
            ),
            number // MIX_PER_MS + round(draw.lognormvariate(math.log(MEDIAN_MS), SIGMA)),
        )
        for number in range(operations)
    ]

    def run() -> None:
        purgatory: Purgatory[str] = Purgatory()
        completions: list[tuple[int, int]] = []
        ended = number = now_ms = 0
        while ended < operations:
            for _ in range(min(MIX_PER_MS, operations - number)):
                op, done_ms = given[number]
                purgatory.try_complete_else_watch(op)
                heappush(completions, (done_ms, number))
                number += 1
            while completions and completions[0][0] <= now_ms:
                _, done = heappop(completions)
                given[done][0].is_done = True
                ended += len(purgatory.check_and_complete(KEYS + done))
            ended += len(purgatory.expire_due(now_ms))
            now_ms += 1
        assert not purgatory.delayed

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    gc.disable()  # the daemon's collector does not walk through old objects either
    best: dict[str, float] = {}

    def measure(name: str, operations: int, run: Callable[[], None]) -> None:
        began = time.process_time()
        run()
        rate = operations / (time.process_time() - began)
        best[name] = max(best.get(name, 0.0), rate)

    for seed in range(arguments.rounds):
        for name, operations, run in phases(arguments.pending, seed):
            measure(name, operations, run)
        measure("kafka mix", arguments.pending // 4, kafka_mix(arguments.pending // 4, seed))
    print(f"{'':<12}{'a second':>14}")
    for name, rate in best.items():
        print(f"{name:<12}{rate:>14,.0f}")


if __name__ == "__main__":
    main()
