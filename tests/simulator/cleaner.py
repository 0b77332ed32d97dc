"""Log cleaner of the simulated node: passes at random moments, and a crash in any of them.

As `broker/background/log_cleaner.py` does it with a worker process and threads: a check, a pass
that writes its `.cleaned` files, a little later the swap, and later still the removal of what was
replaced. The process may die between any two of these, and `cut_power_at` ends it in the middle of
one.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from broker.partitions.coordinator_logs import CoordinatorLogs
from coordinator.settings import GroupSettings
from protocol.names import OFFSETS_TOPIC
from seams.now import Now
from storage.api import TopicPartition
from storage.cleaner.cleaner import (
    inspect_log,
    plan_pass,
    read_clean_offsets,
    swap_in_pass,
    write_clean_offsets,
)
from storage.cleaner.cleaner_pass import run_pass
from storage.cleaner.messages import PassResult
from storage.journal.journal import Journal
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import SwapRefused, remove_cleaned, remove_deleted
from tests.simulator.disk import SimulatedDisk
from tests.simulator.sim import Action, Sim


class Process(Protocol):
    """The process whose logs are cleaned: node.py."""

    sim: Sim
    disk: SimulatedDisk
    settings: GroupSettings
    incarnation: int
    logs: CoordinatorLogs
    journal: Journal
    store: LogStore

    @property
    def now(self) -> Now: ...

    def later(self, delay_ms: int, action: "partial[None]") -> None: ...

    def cleaning(self, partition: int) -> None:
        """The segments of this partition are about to be swapped."""


class Cleaner:
    """Of one process; works on one log at a time."""

    def __init__(self, node: Process) -> None:
        self.swaps = 0
        self._node = node
        # Its own dice: the same weather over the same clients as without it.
        self._dice = random.Random(node.sim.seed + node.incarnation)
        self._every_ms = self._dice.choice((500, 3_000, 20_000))
        self._is_busy = False
        self.loses_power: Callable[[], bool] = _never
        self._uncleanable: set[PartitionLog] = set()

    def start(self) -> None:
        self._soon(self._every_ms, self._clean_one)

    def _maybe_lose_power(self, chance: float) -> None:
        """During what comes now, or soon after it."""
        if self.loses_power() and self._dice.random() < chance:
            disk = self._node.disk
            disk.cut_power_at = disk.operations + self._dice.randint(0, 16)

    def _soon(self, mean_ms: float, action: Action) -> None:
        self._node.later(int(self._dice.expovariate(1 / mean_ms)), partial(action))

    def _clean_one(self) -> None:
        self._soon(self._every_ms, self._clean_one)
        node = self._node
        partition = self._dice.randrange(node.settings.offsets_topic_num_partitions)
        log = node.logs.log(partition)
        if self._is_busy or node.journal.closed_because is not None or log is None:
            return
        if log in self._uncleanable or not log.is_open:
            return
        key = TopicPartition(OFFSETS_TOPIC, partition)
        stable_to = min(node.store.durable_to(log), node.store.partitions()[key].high_watermark)
        checkpoint = read_clean_offsets(node.disk, node.store.path).get(key)
        now_ms = node.now.wall_ms
        found = inspect_log(log, checkpoint=checkpoint, stable_to=stable_to, now_ms=now_ms).found
        if found.first_uncleanable <= found.first_dirty:
            return
        job = plan_pass(log, found, stable_to=stable_to, now_ms=now_ms, producers={})
        self._maybe_lose_power(0.05)
        try:
            result = run_pass(node.disk, job)
        except OSError as failure:
            node.sim.log_event(f"a pass of the cleaner fails: {failure}")
            self._sweep(log)
            return
        self._is_busy = True
        self._soon(50, partial(self._swap, log, result))

    def _swap(self, log: PartitionLog, result: PassResult) -> None:
        self._is_busy = False
        node = self._node
        node.cleaning(log.topic_partition.partition)
        self._maybe_lose_power(0.3)
        try:
            replaced = swap_in_pass(node.disk, log, result)
            offsets = read_clean_offsets(node.disk, node.store.path)
            offsets[log.topic_partition] = result.end_offset
            write_clean_offsets(node.disk, node.store.path, offsets)
        except SwapRefused as refused:
            node.sim.log_event(f"no swap: {refused}")
            self._sweep(log)
        except OSError as failure:
            node.sim.log_event(f"a swap fails: {failure}")
            self._uncleanable.add(log)
        else:
            self.swaps += 1
            node.sim.log_event(f"{log.path} is clean up to {result.end_offset}")
            self._soon(500, partial(self._remove, log, replaced))

    def _remove(self, log: PartitionLog, replaced: Sequence[str]) -> None:
        with suppress(OSError):  # then the next start does
            remove_deleted(self._node.disk, log, replaced)

    def _sweep(self, log: PartitionLog) -> None:
        with suppress(OSError):
            remove_cleaned(self._node.disk, log.path)


def _never() -> bool:
    return False
