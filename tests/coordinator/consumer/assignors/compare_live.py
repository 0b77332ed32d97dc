"""Live comparison: ours beside Kafka's own assignors for many more groups than are recorded.

    python -m tests.coordinator.consumer.assignors.compare_live LIBS [GROUPS] [SEED]

LIBS is the libs directory of a Kafka 4.3.1; needs Java. Prints the first target assignment that
differs, with its seed, and exits with 1.
"""

import sys
from pathlib import Path

from coordinator.consumer.assignors.registry import assignors_of
from tests.coordinator.consumer.assignors.kafka_assignors import KafkaAssignors, without_empty
from tests.coordinator.consumer.assignors.rolling_group import LARGE, SMALL, Limits, RollingGroup

STEPS = 15
SIZES = (SMALL, SMALL, LARGE, Limits(members=60, topics=40, partitions=90))


def main(libs: Path, groups: int = 2000, seed: int = 0) -> int:
    assignors = assignors_of(["uniform", "range"])
    with KafkaAssignors(libs) as kafka:
        for number in range(seed, seed + groups):
            name = "range" if number % 5 == 0 else "uniform"
            group = RollingGroup(f"live {number}", SIZES[number % len(SIZES)])
            for step in range(STEPS):
                given = group.next()
                expected = kafka.assign(name, given).target
                if expected is None or without_empty(assignors[name].assign(given)) != expected:
                    print(f"{name}, seed {number}, step {step}: Kafka assigns {expected}")
                    return 1
                group.assigned(expected)
    print(f"{groups * STEPS} target assignments are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
