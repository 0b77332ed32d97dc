"""Rolling upgrade and downgrade: members restart one by one with the other protocol.

After each step no partition has two readers, across both protocols, and every committed offset is
there. At the end all partitions are read.
"""

import random
from collections.abc import Callable

import pytest

from coordinator.group import GroupType
from protocol.names import ErrorCode, GroupId, GroupState, TopicName
from tests.classic_client import ClassicClient, numbers
from tests.consumer_client import ConsumerClient
from tests.world import World

PARTITIONS = 7
SEEDS = range(12)
ROUNDS_MAX = 60
"""Of steps of all members until a group is stable, a second apart."""

RollingClient = ClassicClient | ConsumerClient


class RollingGroup:
    """Members of both protocols that take steps in any order, with what must hold after each."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cooperative = seed % 2 == 1
        self.world = World()
        self.world.given_topics(t=PARTITIONS)
        self.clients: list[RollingClient] = []
        self.committed: dict[int, int] = {}
        self.started = 0

    # ------------------------------------------------------------ members

    def start_classic(self, instance_id: str | None = None) -> None:
        self.started += 1
        name = f"classic{self.started}"
        self.clients.append(
            ClassicClient(self.world, name, instance_id=instance_id, cooperative=self.cooperative)
        )

    def start_consumer(self, instance_id: str | None = None) -> None:
        self.started += 1
        name = f"consumer{self.started}"
        self.clients.append(ConsumerClient(self.world, name, instance_id=instance_id))

    def stop(self, client: RollingClient) -> None:
        """A static consumer leaves for a while; a static classic member says nothing."""
        if client.instance_id is None:
            client.leave()
        elif isinstance(client, ConsumerClient):
            client.leave(for_a_while=True)
        self.clients.remove(client)
        self.check()

    def crash(self) -> None:
        self.world.crash()
        for client in self.clients:
            if isinstance(client, ClassicClient):
                client.reconnect()
        self.check()

    # ------------------------------------------------------------ time

    def step(self, client: RollingClient) -> None:
        if isinstance(client, ClassicClient):
            client.step()
        else:
            client.beat()
        self.check()

    def run(self, rounds: int) -> None:
        """Each client takes a step in each round, a second apart."""
        for _ in range(rounds):
            self.world.advance(1_000)
            for client in self.random.sample(self.clients, len(self.clients)):
                self.step(client)
            self.commit(self.random.choice(self.clients))

    def run_until_stable(self) -> None:
        for _ in range(ROUNDS_MAX):
            self.run(1)
            if self.is_stable():
                for client in self.clients:
                    self.commit(client)
                return
        raise AssertionError(f"not stable: {[client.owned for client in self.clients]}")

    def is_stable(self) -> bool:
        waits = any(isinstance(c, ClassicClient) and c.waiting is not None for c in self.clients)
        group = self.world.coordinator.group(GroupId("g"))
        is_stable = group is not None and group.state is GroupState.STABLE
        return is_stable and not waits and len(self.read()) == PARTITIONS

    def commit(self, client: RollingClient) -> None:
        for _, partition in sorted(numbers(client.owned)):
            offset = self.committed.get(partition, 0) + 1
            if isinstance(client, ClassicClient):
                error = client.commit({partition: offset})
            else:
                error = self.world.commit(
                    "g", client.member_id, client.epoch, offsets={partition: offset}
                )
            if error is ErrorCode.NONE:
                self.committed[partition] = offset
        self.check()

    # ------------------------------------------------------------ checks

    def read(self) -> list[tuple[str, int]]:
        return [number for client in self.clients for number in sorted(numbers(client.owned))]

    def check(self) -> None:
        read = self.read()
        assert len(read) == len(set(read)), "a partition has two readers"
        group = self.world.coordinator.group(GroupId("g"))
        stored = {} if group is None else group.offsets.get(TopicName("t"), {})
        assert {p: found.committed_offset for p, found in stored.items()} == self.committed

    @property
    def group_type(self) -> GroupType:
        group = self.world.coordinator.group(GroupId("g"))
        assert group is not None
        return group.group_type


@pytest.fixture(params=SEEDS)
def rolling(request: pytest.FixtureRequest) -> RollingGroup:
    return RollingGroup(request.param)


def restart_all(rolling: RollingGroup, start: Callable[[str | None], None]) -> None:
    """One after the other: the old one stops, the new one starts, some time passes."""
    for client in list(rolling.clients):
        rolling.stop(client)
        start(client.instance_id)
        rolling.run(rolling.random.randrange(4))
    rolling.run_until_stable()


def there_and_back(rolling: RollingGroup) -> None:
    rolling.run_until_stable()
    assert rolling.group_type is GroupType.CLASSIC
    restart_all(rolling, rolling.start_consumer)
    assert rolling.group_type is GroupType.CONSUMER
    restart_all(rolling, rolling.start_classic)
    assert rolling.group_type is GroupType.CLASSIC
    assert sorted(rolling.committed) == list(range(PARTITIONS))


def test_a_rolling_upgrade_and_downgrade_lose_nothing(rolling: RollingGroup) -> None:
    for _ in range(3):
        rolling.start_classic()
    there_and_back(rolling)


def test_static_members_upgrade_and_downgrade(rolling: RollingGroup) -> None:
    for n in range(3):
        rolling.start_classic(f"i{n}")
    there_and_back(rolling)


def test_the_coordinator_is_killed_in_between(rolling: RollingGroup) -> None:
    for _ in range(3):
        rolling.start_classic()
    rolling.run_until_stable()
    for start in (rolling.start_consumer, rolling.start_classic):
        for client in list(rolling.clients):
            rolling.stop(client)
            start(None)
            rolling.run(rolling.random.randrange(3))
            rolling.crash()
            rolling.run(rolling.random.randrange(3))
        rolling.run_until_stable()
    assert rolling.group_type is GroupType.CLASSIC


def test_members_of_both_protocols_come_and_go_in_any_order(rolling: RollingGroup) -> None:
    """They start, stop, are killed; static and dynamic ones; and the coordinator is killed."""
    choose = rolling.random
    for _ in range(25):
        start = choose.choice([rolling.start_classic, rolling.start_consumer])
        free = {None, "i", "j"} - ({client.instance_id for client in rolling.clients} - {None})
        chance = choose.random()
        if chance < 0.5 and len(rolling.clients) < 5:
            start(choose.choice(sorted(free, key=str)))
        elif chance < 0.65 and rolling.clients:
            rolling.stop(choose.choice(rolling.clients))
        elif chance < 0.75 and rolling.clients:
            rolling.clients.remove(choose.choice(rolling.clients))  # killed
        elif chance < 0.8:
            rolling.crash()
        if rolling.clients:
            rolling.run(choose.randrange(4))
    if not rolling.clients:
        rolling.start_consumer()
    rolling.run(rolling.world.settings.group_consumer_session_timeout_ms // 1_000)
    rolling.run_until_stable()
