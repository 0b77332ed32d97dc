"""Shortening: the fewest steps of a random play that still lead to a difference."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

SHORTENINGS: Final = 60
"""How many shorter sequences of steps are tried for one difference."""

StepT = TypeVar("StepT")

Replay = Callable[[str, Sequence[StepT]], list[str]]
"""Plays these steps under a name of their own; returns the first difference."""


def shortened(
    replay: Replay[StepT], name: str, steps: list[StepT]
) -> tuple[list[StepT], list[str]]:
    """Fewer steps that still lead to a difference; none if it cannot be repeated."""
    tries = 0
    found = replay(f"{name}_again", steps)
    if not found:
        return [], []
    size = max(len(steps) // 2, 1)
    while tries < SHORTENINGS:
        begin = 0
        while begin < len(steps) and tries < SHORTENINGS:
            tries += 1
            fewer = steps[:begin] + steps[begin + size :]
            again = replay(f"{name}_{tries}", fewer)
            if again:
                steps, found = fewer, again
            else:
                begin += size
        if size == 1:
            break
        size = max(size // 2, 1)
    return steps, found
