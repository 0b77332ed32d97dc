"""Simulated run of consumer groups: builds a world from a seed, runs it, heals it, checks it.

    python -m tests.simulator.consumer_run SEED [STEPS]        one seed, told again
    python -m tests.simulator.consumer_run FIRST-LAST [STEPS]  many, until one fails

A seed that failed once belongs into consumer_seeds.txt, after the fix.
"""

import sys
from collections.abc import Callable
from typing import Final

from coordinator.consumer.group import ConsumerGroup
from coordinator.settings import GroupSettings
from protocol.names import GroupId, GroupInstanceId, GroupState, TopicName
from tests.simulator.clients import Commits
from tests.simulator.consumer_checkers import ConsumerCheckers
from tests.simulator.consumer_clients import (
    CLICKS,
    HEARTBEAT_MS,
    LATER,
    ORDERS,
    SESSION_MS,
    Consumer,
)
from tests.simulator.faults import Operator, draw_weather
from tests.simulator.healing import HealingRun
from tests.simulator.migration_clients import ClassicConsumer
from tests.simulator.network import Network
from tests.simulator.sim import Broken, Sim
from tests.world import Topics

STEPS: Final = 1_500
REMEMBERED_MEMBERS: Final = 200
PARTITIONS_MAX: Final = 12
AnyConsumer = Consumer | ClassicConsumer

GROUPS: Final = tuple(GroupId(name) for name in ("red", "green"))


class ConsumerRun(HealingRun):
    """One world: a node and its operator, a network, topics that change, consumers, checkers."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.sim = Sim(seed)
        self.network = Network(self.sim)
        self.checkers = self._new_checkers()
        self.topics = Topics()
        self.topics.counts = {ORDERS: 6, CLICKS: 3}
        self.operator = Operator(
            self.sim, self.network, self._settings(), self.checkers, self.topics
        )
        self.commits = Commits()
        self.mischief = self.sim.dice.choice((0.0, 0.05, 0.15, 0.3))
        self.consumers: list[AnyConsumer] = []
        self._names = 0
        self.sim.check = lambda: self.checkers.check_step(self.operator.node)

    def _new_checkers(self) -> ConsumerCheckers:
        return ConsumerCheckers()

    def _settings(self) -> GroupSettings:
        dice = self.sim.dice
        return GroupSettings(
            offsets_topic_num_partitions=2,
            max_batch_bytes=60_000,
            offsets_retention_check_interval_ms=1 << 40,
            group_consumer_session_timeout_ms=SESSION_MS,
            group_consumer_min_session_timeout_ms=SESSION_MS,
            group_consumer_heartbeat_interval_ms=HEARTBEAT_MS,
            group_consumer_min_heartbeat_interval_ms=HEARTBEAT_MS,
            group_consumer_assignment_interval_ms=dice.choice((0, 1_000)),
            assignor_inline_max=dice.choice((0, 1_000_000)),
            group_consumer_assignors=dice.choice((("uniform", "range"), ("range",))),
        )

    # ------------------------------------------------------------ the troubled part

    def live(self, steps: int) -> None:
        self.operator.start()
        self.operator.watch()
        for group_id in GROUPS:
            for _ in range(self.sim.between(1, 4)):
                self._add_consumer(group_id, is_static=self.sim.happens(0.4))
        self.sim.after(1_000, self._population)
        self.sim.after(self.sim.between(1_000, 20_000), self._change_topics)
        self.operator.begin(draw_weather(self.sim))
        self.sim.run(steps=steps)

    def _add_consumer(
        self, group_id: GroupId, *, is_static: bool = False, former: AnyConsumer | None = None
    ) -> None:
        """A new process, perhaps in the place of a static one."""
        self._names += 1
        name = f"c{self._names}"
        instance_id = GroupInstanceId(f"i{name}") if is_static else None
        if former is not None:
            instance_id = former.instance_id
        consumer = self._new_consumer(name, group_id, instance_id)
        self.consumers.append(consumer)
        self.sim.after(self.sim.around(200), consumer.begin)
        if len(self.consumers) > REMEMBERED_MEMBERS:
            gone = [c for c in self.consumers if c.gone]
            self.consumers = [c for c in self.consumers if not c.gone] + gone[-20:]

    def _new_consumer(
        self, name: str, group_id: GroupId, instance_id: GroupInstanceId | None
    ) -> AnyConsumer:
        return Consumer(
            self.sim,
            self.network,
            name,
            group_id,
            instance_id=instance_id,
            commits=self.commits,
            topics=self.topics,
            mischief=self.mischief,
        )

    def _population(self) -> None:
        """Processes are started: in the place of one that went, or beside those that are."""
        if self.operator.healing:
            return
        alive = [consumer for consumer in self.consumers if not consumer.gone]
        if len(alive) < 4 * len(GROUPS) and self.mischief:
            former = self.sim.dice.choice(self.consumers)
            if former.instance_id is not None and self.sim.happens(0.7):
                self._add_consumer(former.group_id, former=former)
            else:
                group_id = self.sim.dice.choice(GROUPS)
                self._add_consumer(group_id, is_static=self.sim.happens(0.3))
        self.sim.after(self.sim.between(500, 4_000), self._population)

    def _change_topics(self) -> None:
        """A topic is created, grows or goes."""
        if self.operator.healing:
            return
        counts = self.topics.counts
        match self.sim.dice.randrange(3):
            case 0 if LATER in counts:
                del counts[LATER]
                self._announce(LATER)
            case 0:
                counts[LATER] = self.sim.between(1, 4)
                self.topics.known.add(LATER)
                self._announce(LATER)
            case _:
                name = self.sim.dice.choice(sorted(counts))
                if counts[name] < PARTITIONS_MAX:
                    counts[name] += 1
                    self._announce(name)
        self.sim.after(self.sim.between(1_000, 20_000), self._change_topics)

    def _announce(self, name: TopicName) -> None:
        self.sim.log_event(f"topics: {self.topics.counts}")
        node = self.operator.node
        if node is not None and node.alive:
            node.coordinator.partitions_changed({name}, node.now)

    # ------------------------------------------------------------ the end

    def heal(self) -> None:
        """No more faults: all reconciliations end, and every request is answered."""
        self.operator.heal()
        for consumer in self.consumers:
            consumer.mischief = 0.0
            consumer.keeps = 0.0
            consumer.say_everything()
        self._wait_until_well()

    def _illness(self) -> str | None:
        """What is not yet as it should be."""
        illness = self._illness_of_node()
        if illness is not None:
            return illness
        for group_id in GROUPS:
            illness = self._illness_of(group_id)
            if illness is not None:
                return illness
        return None

    def _illness_of(self, group_id: GroupId) -> str | None:
        assert self.operator.node is not None
        group = self.operator.node.coordinator.group(group_id)
        alive = [c for c in self.consumers if c.group_id == group_id and not c.gone]
        if group is None:
            return f"{group_id} is gone" if alive else None
        if not isinstance(group, ConsumerGroup):
            return f"{group_id} is no consumer group"
        if group.state is not (GroupState.STABLE if alive else GroupState.EMPTY):
            return f"{group_id} is {group.state} with {len(alive)} members alive"
        if {consumer.member_id for consumer in alive} != set(group.members):
            return f"{group_id} has other members than those alive"
        for consumer in alive:
            if not consumer.is_reconciled or consumer.epoch != group.epoch:
                return f"{consumer.name} is not reconciled in {group_id}"
        return self._wrongly_owned(group_id, alive)

    def _wrongly_owned(self, group_id: GroupId, alive: list[AnyConsumer]) -> str | None:
        """Every partition of a topic that somebody subscribes to has one owner, a subscriber."""
        owned = sorted(place for consumer in alive for place in consumer.owned)
        names = {name for consumer in alive for name in consumer.subscribes_to}
        there = sorted(
            (topic_id, partition)
            for name in names
            if (topic_id := self.topics.topic_id(name)) is not None
            for partition in range(self.topics.counts[name])
        )
        if owned != there:
            return f"{group_id} owns {owned} of {there}"
        for consumer in alive:
            ids = {self.topics.topic_id(name) for name in consumer.subscribes_to}
            if not {topic_id for topic_id, _ in consumer.owned} <= ids:
                return f"{consumer.name} owns a topic that it does not subscribe to"
        return None


def simulate_consumers(seed: int, steps: int = STEPS) -> ConsumerRun:
    """A whole run; raises Broken, or whatever broke, with the seed in its notes."""
    run = ConsumerRun(seed)
    run.live(steps)
    run.heal()
    return run


def run_seeds(simulate: Callable[[int, int], ConsumerRun], steps: int) -> int:
    """The command line of this module, and of others with such a function."""
    first, _, last = sys.argv[1].partition("-")
    if len(sys.argv) > 2 and sys.argv[2]:
        steps = int(sys.argv[2])
    total = 0
    for seed in range(int(first), int(last or first) + 1):
        try:
            total += simulate(seed, steps).sim.steps
        except (Exception, Broken):
            print(f"seed {seed} fails")
            raise
    print(f"{total} steps, every promise kept")
    return 0


if __name__ == "__main__":
    sys.exit(run_seeds(simulate_consumers, STEPS))
