"""Assignor registry: the assignors that `group.consumer.assignors` names.

Built in are `uniform` and `range`, also by the names of Kafka's classes. Others are found as entry
points of installed packages; these are read once, at the start, and only for a name that is not
built in, because reading them is slow. See docs/assignors.md.
"""

from collections.abc import Callable, Iterable
from typing import Final

from coordinator.consumer.assignors.assignor import Assignor
from coordinator.consumer.assignors.checked import CheckedAssignor
from coordinator.consumer.assignors.range_assignor import RangeAssignor
from coordinator.consumer.assignors.uniform import UniformAssignor

ENTRY_POINTS: Final = "rollcall.assignors"
"""The entry point group. The name of an entry point is the name of its assignor."""

_BUILT_IN: Final[dict[str, Callable[[], Assignor]]] = {
    "uniform": UniformAssignor,
    "range": RangeAssignor,
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UniformAssignor,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RangeAssignor,
}


def assignors_of(names: Iterable[str]) -> dict[str, Assignor]:
    """By name, in the order of `names`: the first is the default. ValueError if one is wrong."""
    assignors: dict[str, Assignor] = {}
    for name in dict.fromkeys(names):
        built_in = _BUILT_IN.get(name)
        assignor = _installed(name) if built_in is None else built_in()
        if assignor.name in assignors:
            raise ValueError(f"group.consumer.assignors: names {assignor.name!r} twice")
        assignors[assignor.name] = assignor
    if not assignors:
        raise ValueError("group.consumer.assignors: must name at least one assignor")
    return assignors


def _installed(name: str) -> Assignor:
    from importlib.metadata import entry_points

    found = [*entry_points(group=ENTRY_POINTS, name=name)]
    if not found:
        raise ValueError(
            f"group.consumer.assignors: no assignor {name!r}: neither built in (uniform, range) nor"
            f" an entry point {ENTRY_POINTS!r} of an installed package"
        )
    if len(found) > 1:
        values = ", ".join(sorted(entry_point.value for entry_point in found))
        raise ValueError(f"group.consumer.assignors: {name!r} is installed twice: {values}")
    [entry_point] = found
    try:
        assignor = entry_point.load()()
        described = assignor.name, callable(assignor.assign)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(
            f"group.consumer.assignors: {name!r} cannot be loaded from {entry_point.value}:"
            f" {reason}"
        ) from error
    if described != (name, True):
        raise ValueError(
            f"group.consumer.assignors: {entry_point.value} is no assignor with the name {name!r}"
        )
    return CheckedAssignor(assignor)
