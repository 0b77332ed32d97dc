"""Simulated run: builds a world from a seed, runs it, heals it, and checks it.

    python -m tests.simulator.run SEED [STEPS]        one seed, told again
    python -m tests.simulator.run FIRST-LAST [STEPS]  many, until one fails

`make sim SEED=n [STEPS=m]`. A seed that failed once belongs into seeds.txt, after the fix.
"""

import sys
from typing import Final

from coordinator.settings import GroupSettings
from protocol.names import GroupId, GroupInstanceId, GroupState
from tests.simulator.checkers import Checkers
from tests.simulator.clients import (
    PARTITIONS,
    Client,
    Commits,
    Member,
    Outsider,
    Pipeliner,
    Reader,
)
from tests.simulator.faults import Operator, draw_weather
from tests.simulator.healing import HealingRun
from tests.simulator.network import Network
from tests.simulator.sim import Broken, Sim

STEPS: Final = 1_500
PIPED_UNANSWERED_MS: Final = 40_000
"""Longer than anything waits in a healthy world; what is piped may wait for several groups."""

REMEMBERED_MEMBERS: Final = 200
"""Of those that are gone the last ones may still be followed by another process."""

GROUPS: Final = tuple(GroupId(name) for name in ("red", "green", "blue"))
LONELY: Final = GroupId("lonely")
PIPED: Final = GroupId("piped")


class Run(HealingRun):
    """One world: a node and its operator, a network, clients, checkers."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.sim = Sim(seed)
        self.network = Network(self.sim)
        self.checkers = Checkers()
        self.operator = Operator(self.sim, self.network, self._settings(), self.checkers)
        self.commits = Commits()
        self.mischief = self.sim.dice.choice((0.0, 0.05, 0.15, 0.3))
        self.clients: list[Client] = []
        self.members: list[Member] = []
        self._names = 0
        self._healed_ms = 0
        self.sim.check = lambda: self.checkers.check_step(self.operator.node)

    def _settings(self) -> GroupSettings:
        dice = self.sim.dice
        return GroupSettings(
            offsets_topic_num_partitions=2,
            group_initial_rebalance_delay_ms=dice.choice((0, 500, 3_000)),
            group_min_session_timeout_ms=1_000,
            new_member_join_timeout_ms=12_000,
            max_batch_bytes=60_000,
            generation_records=dice.random() < 0.8,
            forgive_slow_member=dice.random() < 0.5,
            forgive_max_ms=6_000,
            # A group that was forgotten begins at generation 1 again, as in Kafka: not here.
            offsets_retention_check_interval_ms=1 << 40,
        )

    def live(self, steps: int) -> None:
        """The troubled part."""
        self.operator.start()
        self.operator.watch()
        for group_id in GROUPS:
            for _ in range(self.sim.between(1, 4)):
                self._add_member(group_id, is_static=self.sim.happens(0.4))
            self._add(Reader(self.sim, self.network, self._name("reader"), group_id))
        outsider = Outsider(self.sim, self.network, self._name("outsider"), LONELY, self.commits)
        self._add(outsider)
        self._add(Reader(self.sim, self.network, self._name("reader"), LONELY))
        self.pipeliners = [
            Pipeliner(self.sim, self.network, self._name("pipe"), PIPED, self.commits)
            for _ in range(self.sim.between(0, 2))
        ]
        for pipeliner in self.pipeliners:
            self._add(pipeliner)
        self.sim.after(1_000, self._population)
        self.operator.begin(draw_weather(self.sim))
        self.sim.run(steps=steps)

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _add(self, client: Client) -> None:
        self.clients.append(client)
        self.sim.after(self.sim.around(200), client.begin)

    def _add_member(
        self,
        group_id: GroupId,
        *,
        is_static: bool = False,
        former: Member | None = None,
    ) -> None:
        """A new process, perhaps in the place of a static one; its settings are that one's."""
        name = self._name("m")
        instance_id = GroupInstanceId(f"i{name}") if is_static else None
        session_ms = self.sim.dice.choice((3_000, 5_000))
        if former is not None:
            instance_id, session_ms = former.instance_id, former.session_ms
        member = Member(
            self.sim,
            self.network,
            name,
            group_id,
            instance_id=instance_id,
            session_ms=session_ms,
            commits=self.commits,
            mischief=self.mischief,
        )
        self.members.append(member)
        self._add(member)
        if len(self.members) > REMEMBERED_MEMBERS:
            self.members = [m for m in self.members[:-20] if not m.gone] + self.members[-20:]
            self.clients = [client for client in self.clients if not client.gone]

    def _population(self) -> None:
        """Processes are started: in the place of one that went, or beside those that are."""
        if self.operator.healing:
            return
        alive = [member for member in self.members if not member.gone]
        if len(alive) < 4 * len(GROUPS) and self.mischief:
            former = self.sim.dice.choice(self.members)
            if former.instance_id is not None and self.sim.happens(0.7):
                self._add_member(former.group_id, former=former)
            else:
                self._add_member(self.sim.dice.choice(GROUPS), is_static=self.sim.happens(0.3))
        self.sim.after(self.sim.between(500, 4_000), self._population)

    # ------------------------------------------------------------ the end

    def heal(self) -> None:
        """No more faults: all clients recover, and every request is answered."""
        self.operator.heal()
        self._healed_ms = self.sim.now_ms
        for member in self.members:
            member.mischief = 0.0
        self._wait_until_well()

    def _illness(self) -> str | None:
        """What is not yet as it should be."""
        illness = self._illness_of_node()
        if illness is not None:
            return illness
        node = self.operator.node
        assert node is not None
        for pipeliner in self.pipeliners:
            since_ms = pipeliner.waits_since_ms
            if since_ms is not None and since_ms < node.sim.now_ms - PIPED_UNANSWERED_MS:
                return f"{pipeliner.name} waits for an answer since {since_ms} ms"
        for client in self.clients:
            commits = isinstance(client, Member | Outsider) and not client.gone
            if commits and client.committed_ms < self._healed_ms:
                return f"{client.name} cannot commit"
        for group_id in GROUPS:
            illness = self._illness_of(group_id)
            if illness is not None:
                return illness
        return None

    def _illness_of(self, group_id: GroupId) -> str | None:
        assert self.operator.node is not None
        group = self.operator.node.coordinator.group(group_id)
        alive = [m for m in self.members if m.group_id == group_id and not m.gone]
        if group is None:
            return f"{group_id} is gone" if alive else None
        if group.state is not (GroupState.STABLE if alive else GroupState.EMPTY):
            return f"{group_id} is {group.state} with {len(alive)} members alive"
        if {member.member_id for member in alive} != set(group.members):
            return f"{group_id} has other members than those alive"
        for member in alive:
            if not member.is_assigned or member.generation_id != group.generation_id:
                return f"{member.name} is not settled in {group_id}"
        owned = sorted(partition for member in alive for partition in member.owned)
        if alive and owned != list(range(PARTITIONS)):
            return f"{group_id} owns {owned}"
        return None


def simulate(seed: int, steps: int = STEPS) -> Run:
    """A whole run; raises Broken, or whatever broke, with the seed in its notes."""
    run = Run(seed)
    run.live(steps)
    run.heal()
    return run


def main() -> int:
    first, _, last = sys.argv[1].partition("-")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else STEPS
    total = 0
    for seed in range(int(first), int(last or first) + 1):
        try:
            total += simulate(seed, steps).sim.steps
        except (Exception, Broken):
            print(f"seed {seed} fails; replay it with `make sim SEED={seed} STEPS={steps}`")
            raise
    print(f"{total} steps, every promise kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
