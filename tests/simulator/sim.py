"""Simulation: a heap of (time, order, action), and one seeded random generator.

Everything that can happen is an action: a client that wakes, a frame that arrives, a flush, a
deadline, a fault. `run` takes the earliest, moves the clock to it, carries it out and lets the
checkers look. The dice is the only source of chance, and equal times keep the order in which they
were filed, so a seed is a whole story: `make sim SEED=n` tells it again, word for word.
"""

import random
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

Action = Callable[[], None]

REMEMBERED_LINES: Final = 60
"""How much of the story a failure tells."""


class Broken(BaseException):
    """A promise was broken. The message says which, the notes what led to it.

    Not an Exception: the coordinator would take it for a bug of a shard, and go on.
    """


class Sim:
    """Virtual time in milliseconds, from 0."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.now_ms = 0
        self.steps = 0
        self.check: Action = _nothing
        self._heap: list[tuple[int, int, Action]] = []
        self._filed = 0
        self._story: deque[str] = deque(maxlen=REMEMBERED_LINES)

    def after(self, delay_ms: int, action: Action) -> None:
        self.at(self.now_ms + delay_ms, action)

    def at(self, time_ms: int, action: Action) -> None:
        self._filed += 1
        heappush(self._heap, (max(time_ms, self.now_ms), self._filed, action))

    def run(self, *, steps: int | None = None, until: Callable[[], bool] | None = None) -> None:
        """Act until so many steps were taken, until something holds, or until nothing is left."""
        last = None if steps is None else self.steps + steps
        try:
            while self._heap and self.steps != last:
                self.now_ms, _, action = heappop(self._heap)
                self.steps += 1
                action()
                self.check()
                if until is not None and until():
                    return
        except (Exception, Broken) as failure:
            story = "\n".join(self._story)
            failure.add_note(
                f"seed {self.seed}, step {self.steps}, {self.now_ms} ms; replay it with "
                f"`make sim SEED={self.seed}`\n{story}"
            )
            raise

    def log_event(self, line: str) -> None:
        """Remember what happened, for the case that it leads to a failure."""
        self._story.append(f"{self.now_ms:>8} {line}")

    # Chances, drawn from the one dice

    def happens(self, probability: float) -> bool:
        return self.dice.random() < probability

    def between(self, low: int, high: int) -> int:
        return self.dice.randint(low, high)

    def around(self, mean_ms: float) -> int:
        """A waiting time without memory: mostly short, sometimes long."""
        return int(self.dice.expovariate(1 / mean_ms))


def _nothing() -> None:
    """Before anybody checks."""
