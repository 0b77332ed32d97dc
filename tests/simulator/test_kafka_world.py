"""Kafka world: a real Kafka's folders on a disk that fails at any moment are served completely.

KAFKA_WORLDS seeds (20) and three times as many power failures, `make long-model` thousands. A seed
that fails: `make kafka-world SEED=n`. Of the operations of a first start, every KAFKA_WORLD_STEPth.
"""

import os
from collections import Counter
from itertools import count

import pytest

from tests.simulator.kafka_folders import IMAGES, Image
from tests.simulator.kafka_world import KafkaWorld, simulate_kafka_folders
from tests.simulator.topic_world import Crash

SEEDS = int(os.environ.get("KAFKA_WORLDS", "20"))
STEP = int(os.environ.get("KAFKA_WORLD_STEP", "8"))
FIRST_SEED = int(os.environ.get("KAFKA_WORLD_SEED", "0"))
TOPICS = ("rolled", "compacted", "produced", "started")


def test_what_a_kafka_served_is_served_after_every_start() -> None:
    happened: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        happened.update(simulate_kafka_folders(seed).happened)
    if SEEDS >= 20:  # a checker that nobody gives anything to look at is always content
        for topic in TOPICS:
            assert happened[f"served {topic}"] >= 50, (topic, happened)
        for rare in (
            "with",
            "torn",
            "move-in",
            "move-out",
            "delete",
            "grow",
            "clean",
            "retain",
            "lose",
        ):
            assert happened[rare] >= 5, (rare, happened)
        assert happened["kill"] >= 50
        assert happened["power"] >= 50


def test_what_a_kafka_served_survives_power_failures() -> None:
    images, seed = 0, 1_000_000 + FIRST_SEED
    while images < 3 * SEEDS:
        images += simulate_kafka_folders(seed, steps=15, is_fragile=True).happened["power"]
        seed += 1


@pytest.mark.parametrize("crash", ["kill", "power"])
@pytest.mark.parametrize("image", IMAGES)
def test_the_first_start_may_end_before_any_operation(image: Image, crash: Crash) -> None:
    for seed in range(5 if STEP == 1 else 1):  # with other checkpoint files each
        tried = 0
        for operation in count(0, STEP):
            if not KafkaWorld(seed).start_cut_short(image, operation, crash):
                break
            tried += 1
        assert tried * STEP > 40, "a start changes more than that"
