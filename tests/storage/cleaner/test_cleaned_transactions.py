"""Cleaned transactions: the index of aborted transactions follows the segments that are merged."""

import random

import pytest

from storage.api import AbortedTransaction
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.cleaner.rig import ABORT, COMMIT, Partition

ABORTED = [AbortedTransaction(1, 0, 1, 2), AbortedTransaction(2, 3, 4, 5)]


def written() -> Partition:
    """Three sealed segments; in the first two a transaction was aborted."""
    partition = Partition()
    for aborted in ABORTED:
        partition.in_transaction(aborted.producer_id, a=1)
        partition.mark(aborted.producer_id, ABORT)
        partition.log.add_aborted(aborted)
        partition.write(b=aborted.producer_id)
        partition.roll()
    partition.in_transaction(3, c=1)
    partition.mark(3, COMMIT)
    partition.roll()
    partition.log.flush()
    return partition


def indexed(partition: Partition) -> list[AbortedTransaction]:
    return [
        segment.aborted[number]
        for segment in partition.log.segments
        for number in range(len(segment.aborted))
    ]


def test_a_merged_segment_has_the_index_of_its_sources() -> None:
    partition = written()
    assert indexed(partition) == ABORTED
    partition.clean()
    assert len(partition.log.segments) == 2, "one of three, and the active one"
    assert indexed(partition) == ABORTED
    assert indexed(partition.reopened()) == ABORTED
    # A second pass removes what is left of the batches, and the index names no others.
    partition.write(d=1)
    partition.roll()
    partition.clean()
    assert indexed(partition.reopened()) == ABORTED


@pytest.mark.parametrize("seed", range(5))
def test_a_crash_during_a_swap_keeps_the_index(seed: int) -> None:
    step = 0
    while True:
        partition = written()
        disk = partition.disk
        assert isinstance(disk, SimulatedDisk)
        disk.cut_power_at = disk.operations + step
        try:
            partition.clean()
        except PowerCut:
            partition.disk = disk.after_crash(random.Random(seed))
        else:
            assert step > 10
            return
        assert indexed(partition.reopened()) == ABORTED, step
        step += 1
