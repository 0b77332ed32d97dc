"""Simulator of migration: classic and consumer members share groups that are converted.

Worlds from their seeds, and those that failed once (migration_seeds.txt). See migration_checkers.py
for the promises. MIGRATION_WORLDS is the number of worlds.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.events import GroupConverted
from coordinator.group_store import GroupStore
from coordinator.migration import downgrade, join_group, upgrade
from coordinator.migration.downgrade import Conversion, convert_to_classic
from protocol.names import GenerationId, GroupId
from tests.simulator.migration_run import STEPS, simulate_migration
from tests.simulator.sim import Broken

WORLDS = int(os.environ.get("MIGRATION_WORLDS", "8"))
BUG_SEEDS = range(30)

Patch = pytest.MonkeyPatch


def seeds() -> Iterator[tuple[int, int]]:
    """(seed, steps)"""
    yield from ((seed, STEPS) for seed in range(WORLDS))
    for line in (Path(__file__).parent / "migration_seeds.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            yield int(words[0]), int(words[1]) if len(words) > 1 else STEPS


@pytest.mark.parametrize(("seed", "steps"), sorted(set(seeds())))
def test_every_promise_is_kept_while_groups_migrate(seed: int, steps: int) -> None:
    simulate_migration(seed, steps)


def test_the_worlds_of_migration_are_eventful() -> None:
    """A checker that nobody gives anything to look at is always content."""
    runs = [simulate_migration(seed) for seed in range(8)]
    assert sum(run.checkers.conversions for run in runs) >= 8
    assert sum(run.restarts for run in runs) >= 30
    assert sum(run.checkers.answers_with_assignment for run in runs) >= 200
    assert sum(run.operator.incarnations - 1 for run in runs) >= 3


# ---------------------------------------------------------------- planted bugs


def offsets_are_lost_at_a_conversion(patch: Patch) -> None:
    """The new group begins without the offsets of the old one."""
    convert = GroupStore._convert

    def forget(self: GroupStore, group_id: GroupId, event: GroupConverted) -> None:
        convert(self, group_id, event)
        self.groups[group_id].offsets = {}

    patch.setattr(GroupStore, "_convert", forget)


def the_generation_restarts_at_a_downgrade(patch: Patch) -> None:
    """The classic group begins with generation 1."""

    def convert(group: ConsumerGroupView, *arguments: object) -> Conversion:
        conversion = convert_to_classic(group, *arguments)  # type: ignore[arg-type]
        downgraded = replace(conversion.downgraded, generation_id=GenerationId(1))
        return Conversion(conversion.converted, downgraded, downgrade._record(downgraded))

    patch.setattr(downgrade, "convert_to_classic", convert)


def the_assignment_of_a_classic_member_is_forgotten(patch: Patch) -> None:
    """The members of an upgraded group own nothing."""

    def nothing(_assignment: bytes, _topics: object) -> Assignment:
        return {}

    patch.setattr(upgrade, "assigned_topic_ids", nothing)


def what_a_classic_member_reports_to_own_is_not_read(patch: Patch) -> None:
    """Each join counts as one that has given back everything."""

    def nothing(_subscription: object, _topics: object) -> Assignment:
        return {}

    patch.setattr(join_group, "owned_topic_ids", nothing)


def parked_joins_are_forgotten_at_an_upgrade(patch: Patch) -> None:
    """Nobody answers what waited for the classic rebalance."""

    def nobody(_group: object) -> tuple[()]:
        return ()

    patch.setattr(upgrade, "_parked_refusals", nobody)


@pytest.mark.pure
@pytest.mark.parametrize(
    "plant",
    [
        offsets_are_lost_at_a_conversion,
        the_generation_restarts_at_a_downgrade,
        the_assignment_of_a_classic_member_is_forgotten,
        what_a_classic_member_reports_to_own_is_not_read,
        parked_joins_are_forgotten_at_an_upgrade,
    ],
)
def test_a_planted_bug_of_migration_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    for seed in BUG_SEEDS:
        try:
            simulate_migration(seed)
        except (Exception, Broken) as found:  # whatever the bug breaks first
            print(f"{plant.__name__}: seed {seed}: {found}")
            return
    pytest.fail(f"{plant.__name__} was not noticed in {len(BUG_SEEDS)} seeds")
