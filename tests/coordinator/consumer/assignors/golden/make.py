"""Golden assignments: records how Kafka 4.3.1's assignors assign groups that change at random.

    python -m tests.coordinator.consumer.assignors.golden.make LIBS

LIBS is the libs directory of a Kafka 4.3.1. Needs Java on the PATH; the tests do not: they follow
the same changes (`rolling_group.py`) and compare with `assignments.txt`. It has a line for each
group, "<assignor> <size> <seed>", and one for each of its target assignments: for each topic the
owner of each partition, as a digit (base 36) that is the place of the member among the sorted ids.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from coordinator.consumer.assignors.assignor import Assignment, AssignorInput
from protocol.names import MemberId
from tests.coordinator.consumer.assignors.kafka_assignors import KafkaAssignors
from tests.coordinator.consumer.assignors.rolling_group import LARGE, SMALL, RollingGroup

GOLDEN = Path(__file__).parent / "assignments.txt"
_GROUPS = {
    ("uniform", "small"): range(250),
    # In some of these, topics that are gone decide in which order a member gives up the others.
    ("uniform", "large"): (1, 2, 3, 48, 72, 148, 153, 164, 183),
    ("range", "small"): range(50),
}
_STEPS = 10
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOBODY = "-"


def main(libs: Path) -> None:
    with KafkaAssignors(libs) as kafka:
        GOLDEN.write_text("".join(f"{line}\n" for line in _recorded(kafka)))


def _recorded(kafka: KafkaAssignors) -> Iterator[str]:
    for (assignor, size), seeds in _GROUPS.items():
        for seed in seeds:
            name = f"{assignor} {size} {seed}"
            yield name
            group = group_of(name)
            for _ in range(_STEPS):
                given = group.next()
                target = kafka.assign(assignor, given).target
                assert target is not None
                yield "  " + " ".join(written(given, target))
                group.assigned(target)


def group_of(name: str) -> RollingGroup:
    return RollingGroup(name, LARGE if "large" in name else SMALL)


def written(given: AssignorInput, target: dict[MemberId, Assignment]) -> Iterator[str]:
    """Each topic's partitions, by their owners."""
    digits = dict(zip(sorted(given.members), _DIGITS, strict=False))
    assigned = 0
    for topic_id, topic in sorted(given.topics.items()):
        owners = [_NOBODY] * topic.partitions
        for member_id, held in target.items():
            for partition in held.get(topic_id, ()):
                assert owners[partition] == _NOBODY
                owners[partition] = digits[member_id]
                assigned += 1
        yield "".join(owners)
    assert assigned == sum(len(held) for owned in target.values() for held in owned.values())


def read(given: AssignorInput, line: str) -> dict[MemberId, Assignment]:
    target: dict[MemberId, dict] = {}
    members = dict(zip(_DIGITS, sorted(given.members), strict=False))
    for topic_id, owners in zip(sorted(given.topics), line.split(), strict=True):
        for digit in sorted({*owners} - {_NOBODY}):
            held = frozenset(place for place, owner in enumerate(owners) if owner == digit)
            target.setdefault(members[digit], {})[topic_id] = held
    return target


if __name__ == "__main__":
    main(Path(sys.argv[1]))
