"""Golden assignments: ours beside those that Kafka 4.3.1's assignors made of the same input."""

from collections.abc import Iterator

import pytest

from coordinator.consumer.assignors.range_assignor import RangeAssignor
from coordinator.consumer.assignors.uniform import UniformAssignor
from tests.coordinator.consumer.assignors.golden.make import GOLDEN, group_of, read
from tests.coordinator.consumer.assignors.kafka_assignors import without_empty

_ASSIGNORS = {"uniform": UniformAssignor(), "range": RangeAssignor()}


def _recorded() -> Iterator[tuple[str, list[str]]]:
    group, lines = "", []
    for line in GOLDEN.read_text().splitlines():
        if line.startswith(" "):
            lines.append(line)
            continue
        if lines:
            yield group, lines
        group, lines = line, []
    yield group, lines


_RECORDED = dict(_recorded())


@pytest.mark.parametrize("name", _RECORDED)
def test_assigns_as_kafka_does(name: str) -> None:
    assignor = _ASSIGNORS[name.partition(" ")[0]]
    group = group_of(name)
    for step, line in enumerate(_RECORDED[name]):
        given = group.next()
        expected = read(given, line)
        assert without_empty(assignor.assign(given)) == expected, f"step {step}"
        group.assigned(expected)


def test_the_recorded_groups_are_many_and_of_all_kinds() -> None:
    kinds = {}
    for name, lines in _RECORDED.items():
        group = group_of(name)
        for line in lines:
            given = group.next()
            kind = (name.partition(" ")[0], given.is_homogeneous)
            kinds[kind] = kinds.get(kind, 0) + bool(line.strip(" -"))
            group.assigned(read(given, line))
    assert sorted(kinds) == [
        ("range", False),
        ("range", True),
        ("uniform", False),
        ("uniform", True),
    ]
    assert min(kinds.values()) >= 100
    assert sum(kinds.values()) >= 2000
