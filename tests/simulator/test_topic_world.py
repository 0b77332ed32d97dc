"""Topic world: topics on a disk that fails at any moment; acknowledged records are served.

TOPIC_WORLDS seeds (40), `make long-model` thousands; CRASH_IMAGES power failures (200), each with
what was not synced dropped or torn, `make long-crash-images` 1,000. A seed that fails:
`make topic-world SEED=n`.
"""

import os
from collections import Counter

from tests.simulator.topic_world import simulate_topics

SEEDS = int(os.environ.get("TOPIC_WORLDS", "40"))
CRASH_IMAGES = int(os.environ.get("CRASH_IMAGES", "200"))
FIRST_SEED = int(os.environ.get("TOPIC_WORLD_SEED", "0"))


def test_what_was_acknowledged_is_served_after_every_start() -> None:
    happened: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        happened.update(simulate_topics(seed).happened)
    if SEEDS >= 40:  # a checker that nobody gives anything to look at is always content
        for rare in ("recreated", "grow", "clean", "retain", "move-in", "move-out", "lose"):
            assert happened[rare] >= 5, (rare, happened)
        assert happened["kill"] >= 100
        assert happened["power"] >= 100


def test_every_crash_image_is_a_directory_that_starts() -> None:
    images, seed = 0, 1_000_000
    while images < CRASH_IMAGES:
        images += simulate_topics(seed, steps=40, is_fragile=True).happened["power"]
        seed += 1


def test_the_same_seed_replays_the_same_events() -> None:
    assert simulate_topics(3).story == simulate_topics(3).story
