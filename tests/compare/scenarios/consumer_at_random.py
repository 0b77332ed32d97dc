"""Consumer groups at random: steps that are drawn from a seed (`random_steps.py`)."""

from functools import partial

from tests.compare.random_steps import RandomSteps
from tests.compare.script import Script, scenario

SEEDS = range(1, 9)


def consumers_at_random(script: Script, seed: int) -> None:
    RandomSteps(script, seed, mixed=seed % 2 == 0).play()


for _seed in SEEDS:
    play = partial(consumers_at_random, seed=_seed)
    play.__name__ = f"consumers_at_random_{_seed}"  # type: ignore[attr-defined]
    play.__module__ = __name__
    scenario("consumers")(play)
