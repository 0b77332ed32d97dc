"""Partition owners: those of a large group are read with pauses."""

from collections.abc import Generator

from broker.metrics.owners import READ_PER_SLICE, LabelsOfOwners, OwnerLabels
from tests.world import World


def read(steps: Generator[None, None, LabelsOfOwners]) -> int:
    """How many pauses it makes."""
    return sum(1 for _ in steps)


def test_a_scrape_pauses_while_it_reads_the_assignments_of_a_large_group() -> None:
    world = World()
    group = world.given_stable_group(members=3 * READ_PER_SLICE)
    labels = OwnerLabels(lambda _topic: None)
    assert read(labels.of(group)) == 3
    labels.forget_others()
    assert read(labels.of(group)) == 0  # kept


def test_a_group_may_change_in_a_pause() -> None:
    world = World()
    group = world.given_stable_group(members=2 * READ_PER_SLICE)
    steps = OwnerLabels(lambda _topic: None).of(group)
    next(steps)
    world.leave("g", *list(group.members)[1:])
    assert read(steps) == 1
