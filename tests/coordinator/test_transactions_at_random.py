"""Transactions at random: commits, markers, deletions and reloads against a simple model.

A reload is a crash, or begins with a snapshot of any moment: in the middle of transactions too. Its
groups are restored when something asks for them, or all at once.
"""

from random import Random

import pytest

from coordinator.group_types import plain_of
from coordinator.image import NOTHING, Image, LoadStart
from coordinator.offsets.transactions import plain_transactions, transactions_of_plain
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.names import ErrorCode, GroupId, TopicName
from storage.snapshot import pack
from tests.coordinator.transaction_givens import TransactionWorld
from tests.memory_log import MemoryLog
from tests.world import RESTORE_BUDGET

SEEDS = 120
STEPS = 60
GROUPS = ("a", "b", "c")
PARTITIONS = range(3)
PRODUCERS = (1, 2, 3)
T = TopicName("t")

Key = tuple[str, int]


class Model:
    """What Kafka keeps: each commit with its place in the log."""

    def __init__(self) -> None:
        self.committed: dict[Key, tuple[int, int]] = {}  # offset, place
        self.pending: dict[int, dict[Key, tuple[int, int]]] = {}  # by producer
        self.begun: dict[int, int] = {}  # where a producer's transaction begins

    def end(self, producer: int, *, commits: bool) -> None:
        self.begun.pop(producer, None)
        for key, (offset, place) in self.pending.pop(producer, {}).items():
            if commits and self.committed.get(key, (0, -1))[1] < place:
                self.committed[key] = offset, place

    def remove(self, keys: set[Key]) -> None:
        for key in keys:
            self.committed.pop(key, None)
            for pending in self.pending.values():
                pending.pop(key, None)

    def is_pending(self, key: Key) -> bool:
        return any(key in pending for pending in self.pending.values())


class PlainGroups:
    """The groups of a snapshot in memory."""

    def __init__(self, groups: dict[str, object]) -> None:
        self._groups = groups

    def sizes(self) -> dict[str, int]:
        return {name: len(pack(plain)) for name, plain in self._groups.items()}

    def raw(self, name: str) -> bytes:
        return pack(self._groups[name])

    def read(self, name: str) -> object:
        return self._groups[name]


class Run:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = TransactionWorld()
        self.model = Model()
        self.cuts = [0]  # log positions between two turns
        self.steps = [
            *[self.plain_commit] * 4,
            *[self.txn_commit] * 8,
            *[self.marker] * 6,
            self.delete_offset,
            self.delete_group,
            self.crash,
            self.reload_from_snapshot,
        ]

    def step(self) -> None:
        self.random.choice(self.steps)()
        self.cuts.append(self.world.log.end_position)

    # ------------------------------------------------------------ steps

    def _offsets(self) -> dict[int, int]:
        count = self.random.randint(1, len(PARTITIONS))
        return {n: self.random.randint(0, 99) for n in self.random.sample(PARTITIONS, count)}

    def plain_commit(self) -> None:
        group, offsets = self.random.choice(GROUPS), self._offsets()
        place = self.world.log.end_position
        self.world.commit(group, offsets=offsets)
        for at, (partition, offset) in enumerate(offsets.items()):
            self.model.committed[group, partition] = offset, place + at

    def txn_commit(self) -> None:
        group, offsets = self.random.choice(GROUPS), self._offsets()
        producer, place = self.random.choice(PRODUCERS), self.world.log.end_position
        assert self.world.txn_commit(group, producer, offsets=offsets) is ErrorCode.NONE
        self.model.begun.setdefault(producer, place)
        pending = self.model.pending.setdefault(producer, {})
        for at, (partition, offset) in enumerate(offsets.items()):
            pending[group, partition] = offset, place + at

    def marker(self) -> None:
        producer, commits = self.random.choice(PRODUCERS), self.random.random() < 0.6
        assert self.world.mark(producer, commits=commits) is ErrorCode.NONE
        self.model.end(producer, commits=commits)

    def delete_offset(self) -> None:
        group, partition = self.random.choice(GROUPS), self.random.choice(PARTITIONS)
        named = OffsetDeleteRequestTopic(T, [OffsetDeleteRequestPartition(partition)])
        self.world.ask(OffsetDeleteRequest(GroupId(group), [named]), version=0)
        self.model.remove({(group, partition)})

    def delete_group(self) -> None:
        group = self.random.choice(GROUPS)
        self.world.ask(DeleteGroupsRequest([GroupId(group)]), version=2)
        self.model.remove({(group, partition) for partition in PARTITIONS})

    def crash(self) -> None:
        self.world.crash()

    def reload_from_snapshot(self) -> None:
        records = self.world.log.survivors()
        cut = self.random.choice(self.cuts)
        image = Image(NOTHING)
        for record in records:
            if record.offset < cut:
                image.apply(record)
        groups = PlainGroups({group_id: plain_of(group) for group_id, group in image.read()})
        transactions = transactions_of_plain(plain_transactions(image.transactions))
        coordinator, log = self.world.coordinator, MemoryLog(records)
        coordinator.resign(0, self.world.now)
        self.world.logs[0] = log
        coordinator.begin_load(0, log)
        coordinator.load_from(0, LoadStart(groups, cut, (), transactions))
        rest = [record for record in records if record.offset >= cut]
        coordinator.load(0, rest, log.end_position)
        coordinator.finish_load(0, self.world.now)
        if self.random.random() < 0.5:
            while coordinator.restore_slice(0, self.world.now, RESTORE_BUDGET):
                pass

    # ------------------------------------------------------------ what must hold

    def check(self) -> None:
        model, world = self.model, self.world
        world.check()
        begun = min(model.begun.values(), default=None)
        assert world.shard.transactions.producers.first_unstable == begun
        wanted = {"t": list(PARTITIONS)}
        for group in self.random.sample(GROUPS, len(GROUPS)):
            offsets = {n: model.committed.get((group, n), (-1, 0))[0] for n in PARTITIONS}
            assert world.fetched(group, topics=wanted) == {
                ("t", n): offset for n, offset in offsets.items()
            }
            assert world.fetched(group, topics=wanted, stable=True) == {
                ("t", n): ErrorCode.UNSTABLE_OFFSET_COMMIT
                if model.is_pending((group, n))
                else offset
                for n, offset in offsets.items()
            }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_group_has_what_the_model_has(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
        if run.random.random() < 0.3:  # else the groups that are not restored stay so
            run.check()
    run.check()
    run.world.crash()
    run.check()
