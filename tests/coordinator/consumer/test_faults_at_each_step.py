"""Faults at each step: a lost answer, a doubled heartbeat or an old epoch harms no partition.

A life of a group is played once to count its heartbeats, and then once for each heartbeat and each
fault. After every heartbeat no partition has two owners, by what the clients know and by what the
group knows, and epochs do not fall. In the end every partition has one owner.
"""

from collections.abc import Callable, Sequence

import pytest

from coordinator.settings import GroupSettings
from protocol.messages.consumer_group_heartbeat import JOIN_EPOCH
from protocol.names import GroupState, TopicName
from tests.consumer_client import ConsumerClient, partitions_of, until_stable
from tests.world import Asked, World

Ask = Callable[..., Asked]

SESSION_ROUNDS = 5
"""Of `until_stable`, each of at least two heartbeat intervals: longer than a session."""


class Counted:
    """The heartbeats of a world: the one with the number `at` meets `fault`."""

    def __init__(self, world: World, at: int, fault: str | None) -> None:
        self.count = 0
        self.clients: list[ConsumerClient] = []
        self.epoch = 0
        self._world = world
        self._ask: Ask = world.heartbeat_consumer
        self._at = at
        self._fault = fault

    def __call__(self, group_id: str, member_id: str, epoch: int, **fields: object) -> Asked:
        self.count += 1
        fault = self._fault if self.count == self._at else None
        self._world.check()
        if fault == "an old epoch" and epoch > JOIN_EPOCH:
            instance_id = fields.get("instance_id")
            for old in range(max(epoch - 2, 1), epoch):
                self._ask(group_id, member_id, old, instance_id=instance_id, owned={})
        asked = self._ask(group_id, member_id, epoch, **fields)
        if fault == "a doubled heartbeat":
            self._ask(group_id, member_id, epoch, **fields)
        elif fault == "a lost answer":
            asked = self._again(group_id, member_id, epoch, fields)
        self._check()
        return asked

    def _again(self, group_id: str, member_id: str, epoch: int, fields: dict[str, object]) -> Asked:
        """As a client does it whose request timed out: it says everything."""
        full = {**fields}
        if epoch > JOIN_EPOCH:
            client = next(c for c in self.clients if c.member_id == member_id)
            full |= {
                "topics": client.topics or (),
                "regex": client.regex,
                "owned": client.owned,
                "rebalance_timeout_ms": 60_000,
            }
        return self._ask(group_id, member_id, epoch, **full)

    def _check(self) -> None:
        self._world.check()
        owned = partitions_of(*self.clients)
        assert len(owned) == len(set(owned)), "two clients own a partition"
        group = self._world.consumer_group()
        assert group.epoch >= self.epoch, "the group epoch falls"
        self.epoch = group.epoch


def play(at: int = 0, fault: str | None = None) -> int:
    """Members join, one changes, a topic grows, one goes for a while, one for good."""
    world = World(GroupSettings(group_consumer_assignment_interval_ms=0))
    world.given_topics(t=5, u=2)
    counted = Counted(world, at, fault)
    world.heartbeat_consumer = counted  # type: ignore[method-assign]  # in place of the method
    clients = counted.clients

    def arrive(member_id: str, **options: object) -> ConsumerClient:
        client = ConsumerClient(world, member_id, **options)  # type: ignore[arg-type]
        clients.append(client)
        client.join()
        return client

    first = arrive("m1")
    second = arrive("m2", instance_id="i2")
    until_stable(*clients)
    third = arrive("m3", regex="t|u")
    until_stable(*clients)
    first.change(topics=("t", "u"))
    until_stable(*clients)
    world.topics.counts[TopicName("t")] = 7
    world.coordinator.partitions_changed({TopicName("t")}, world.now)
    until_stable(*clients)
    clients.remove(second)
    second.leave(for_a_while=True)
    until_stable(*clients)
    arrive("m4", instance_id="i2")
    until_stable(*clients)
    clients.remove(third)
    third.leave()
    until_stable(*clients)
    _check_end(world, clients)
    return counted.count


def _check_end(world: World, clients: Sequence[ConsumerClient]) -> None:
    group = world.consumer_group()
    for _ in range(SESSION_ROUNDS):
        # As in Kafka a static member whose answer was lost has to wait for its own session to end.
        if group.state is not GroupState.STABLE:
            until_stable(*clients)
    assert group.state is GroupState.STABLE
    assert {client.member_id for client in clients} == group.members.keys()
    assert partitions_of(*clients) == list(range(7))
    assert partitions_of(*clients, topic="u") == [0, 1]


@pytest.mark.parametrize(
    "fault",
    [
        "a lost answer",
        "a doubled heartbeat",
        "an old epoch",
    ],
)
def test_no_partition_has_two_owners_whatever_heartbeat_meets_a_fault(fault: str) -> None:
    steps = play()
    assert steps > 50
    for at in range(1, steps + 1):
        try:
            play(at, fault)
        except AssertionError as failure:
            failure.add_note(f"{fault} at heartbeat {at} of {steps}")
            raise
