"""Simulated migration: consumers of both protocols in groups that are converted back and forth.

    python -m tests.simulator.migration_run SEED [STEPS]        one seed, told again
    python -m tests.simulator.migration_run FIRST-LAST [STEPS]  many, until one fails

As consumer_run.py, with rolling upgrades and downgrades: the processes of a group are restarted one
by one with the other protocol, and now and then the direction changes on the way. The policy is
that of the world. A seed that failed once belongs into migration_seeds.txt, after the fix.
"""

import sys
from typing import Final

from msgspec.structs import replace

from coordinator.classic.group import ClassicGroup
from coordinator.settings import GroupSettings, MigrationPolicy
from protocol.names import GroupId, GroupInstanceId, GroupState
from tests.simulator.consumer_clients import SESSION_MS
from tests.simulator.consumer_run import GROUPS, AnyConsumer, ConsumerRun, run_seeds
from tests.simulator.migration_checkers import MigrationCheckers
from tests.simulator.migration_clients import ClassicConsumer, MigratingConsumer

STEPS: Final = 2_500
STABLE_WITHIN_MS: Final = 20_000
"""After the healing all members that are gone have been removed by then."""

POLICIES: Final = (
    *(MigrationPolicy.BIDIRECTIONAL,) * 5,
    MigrationPolicy.UPGRADE,
    MigrationPolicy.DOWNGRADE,
    MigrationPolicy.DISABLED,
)


class MigrationRun(ConsumerRun):
    checkers: MigrationCheckers

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.restarts = 0  # with the other protocol
        dice = self.sim.dice
        # Which protocol the next process of a group uses.
        self._rolls_to_consumer = {group_id: dice.random() < 0.3 for group_id in GROUPS}
        self._is_cooperative = {group_id: dice.random() < 0.5 for group_id in GROUPS}
        self._roll_ms = dice.choice((500, 1_500, 4_000))
        self.mischief = dice.choice((0.0, 0.01, 0.03, 0.1))

    def _new_checkers(self) -> MigrationCheckers:
        return MigrationCheckers()

    def _settings(self) -> GroupSettings:
        dice = self.sim.dice
        return replace(
            super()._settings(),
            group_consumer_migration_policy=dice.choice(POLICIES),
            group_initial_rebalance_delay_ms=dice.choice((0, 500)),
            group_min_session_timeout_ms=SESSION_MS,
            new_member_join_timeout_ms=12_000,
            forgive_slow_member=dice.random() < 0.5,
            forgive_max_ms=6_000,
        )

    def live(self, steps: int) -> None:
        self.sim.after(self.sim.between(1_000, 4_000), self._roll)
        super().live(steps)

    def _new_consumer(
        self, name: str, group_id: GroupId, instance_id: GroupInstanceId | None
    ) -> AnyConsumer:
        if self._rolls_to_consumer[group_id]:
            return MigratingConsumer(
                self.sim,
                self.network,
                name,
                group_id,
                instance_id=instance_id,
                commits=self.commits,
                topics=self.topics,
                mischief=self.mischief,
            )
        return ClassicConsumer(
            self.sim,
            self.network,
            name,
            group_id,
            instance_id=instance_id,
            is_cooperative=self._is_cooperative[group_id],
            commits=self.commits,
            topics=self.topics,
            mischief=self.mischief,
        )

    def _roll(self) -> None:
        """The next process restarts with the protocol that its group rolls to."""
        if self.operator.healing:
            return
        group_id = self.sim.dice.choice(GROUPS)
        if self.sim.happens(0.1):
            self._rolls_to_consumer[group_id] = not self._rolls_to_consumer[group_id]
        others = [
            consumer
            for consumer in self.consumers
            if consumer.group_id == group_id
            and not consumer.gone
            and isinstance(consumer, MigratingConsumer) != self._rolls_to_consumer[group_id]
        ]
        if others:
            old = self.sim.dice.choice(others)
            self.restarts += 1
            self.sim.log_event(f"{old.name} restarts with the other protocol")
            if self.sim.happens(0.7):
                old.leave()
            else:
                old.vanish()
            self._add_consumer(group_id, former=old)
        else:
            self._rolls_to_consumer[group_id] = not self._rolls_to_consumer[group_id]
        self.sim.after(self.sim.around(self._roll_ms), self._roll)

    # ------------------------------------------------------------ the end

    def heal(self) -> None:
        """Classic members alone in a consumer group assign only when one joins, as in Kafka."""
        self.sim.after(STABLE_WITHIN_MS, self._rejoin_all)
        super().heal()

    def _rejoin_all(self) -> None:
        for consumer in self.consumers:
            consumer.say_everything()

    def _illness_of(self, group_id: GroupId) -> str | None:
        assert self.operator.node is not None
        group = self.operator.node.coordinator.group(group_id)
        if not isinstance(group, ClassicGroup):
            return super()._illness_of(group_id)
        alive = [c for c in self.consumers if c.group_id == group_id and not c.gone]
        if group.state is not (GroupState.STABLE if alive else GroupState.EMPTY):
            return f"{group_id} is {group.state} with {len(alive)} members alive"
        if {consumer.member_id for consumer in alive} != set(group.members):
            return f"{group_id} has other members than those alive"
        for consumer in alive:
            if not consumer.is_reconciled or consumer.epoch != group.generation_id:
                return f"{consumer.name} is not settled in {group_id}"
        return self._wrongly_owned(group_id, alive)


def simulate_migration(seed: int, steps: int = STEPS) -> MigrationRun:
    """A whole run; raises Broken, or whatever broke, with the seed in its notes."""
    run = MigrationRun(seed)
    run.live(steps)
    run.heal()
    return run


if __name__ == "__main__":
    sys.exit(run_seeds(simulate_migration, STEPS))
