"""Random lives of consumer groups: their history is checked against the group after each step."""

import random

import pytest

from coordinator.consumer.group import ConsumerGroup
from protocol.names import GroupId, TopicName
from tests.consumer_client import ConsumerClient, until_stable
from tests.history.consumer_checker import ConsumerHistoryChecker
from tests.history.history_world import HistoryWorld

STEPS = 60
MEMBERS_MAX = 6


class RandomGroup:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = HistoryWorld()
        self.world.given_topics(t=5, u=3)
        self.clients: list[ConsumerClient] = []
        self.checker = ConsumerHistoryChecker()
        self._checked = 0
        self._started = 0

    def check(self) -> None:
        history = self.world.history
        self.checker.apply(history[self._checked :])
        self._checked = len(history)
        group = self.world.coordinator.group(GroupId("g"))
        if group is not None:
            assert isinstance(group, ConsumerGroup)
            self.checker.compare(group)

    def step(self) -> None:
        steps = [self.beat] * 8 + [self.advance] * 5
        steps += [self.start] * 2 + [self.leave, self.forget, self.grow, self.crash]
        steps += [self.change]
        self.random.choice(steps)()
        self.check()

    def beat(self) -> None:
        if self.clients:
            self.random.choice(self.clients).beat(reports=self.random.random() < 0.8)

    def advance(self) -> None:
        self.world.advance(self.random.choice([300, 1_000, 5_000, 20_000]))

    def start(self) -> None:
        if len(self.clients) < MEMBERS_MAX:
            self._started += 1
            topics = self.random.choice([("t",), ("t", "u")])
            instance_id = self.random.choice([None, None, "i1", "i2"])
            client = ConsumerClient(
                self.world, f"m{self._started}", topics=topics, instance_id=instance_id
            )
            if not client.join().error_code:
                self.clients.append(client)

    def leave(self) -> None:
        if self.clients:
            client = self.clients.pop(self.random.randrange(len(self.clients)))
            client.leave(for_a_while=client.instance_id is not None)

    def change(self) -> None:
        if self.clients:
            client = self.random.choice(self.clients)
            if client.epoch > 0:
                regex = self.random.choice(["", "[tu]", "u"])
                client.change(topics=self.random.choice([("t",), ("t", "u")]), regex=regex)

    def forget(self) -> None:
        """It sends nothing any more."""
        if self.clients:
            self.clients.pop(self.random.randrange(len(self.clients)))

    def grow(self) -> None:
        count = self.world.topics.counts[TopicName("t")]
        if count < 9:
            self.world.given_topics(t=count + 1, u=3)
            self.world.coordinator.partitions_changed({TopicName("t")}, self.world.now)

    def crash(self) -> None:
        self.check()
        self.world.crash()
        self._checked = 0


@pytest.mark.parametrize("seed", range(25))
def test_the_history_agrees_with_the_group_at_each_step(seed: int) -> None:
    life = RandomGroup(seed)
    for _ in range(STEPS):
        life.step()
    if life.clients:
        until_stable(*life.clients)
        life.check()
    life.world.rebalances()  # checks that the records have the same
