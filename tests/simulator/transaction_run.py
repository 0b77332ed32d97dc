"""Simulated transactions: builds a world from a seed, runs it, heals it, and checks it.

    python -m tests.simulator.transaction_run SEED [STEPS]        one seed, told again
    python -m tests.simulator.transaction_run FIRST-LAST [STEPS]  many, until one fails

`make transaction-sim SEED=n [STEPS=m]`.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from protocol.messages import Response
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.simulator.sim import Broken, Sim
from tests.simulator.transaction_checkers import TransactionCheckers, check_decisions
from tests.simulator.transaction_clients import (
    PARTITIONS,
    Ask,
    Copier,
    Fatal,
    Progress,
    Script,
    read_committed,
)
from tests.simulator.transaction_node import TransactionNode

STEPS: Final = 4_000
REQUEST_TIMEOUT_MS: Final = 5_000
HEALED_WITHIN_MS: Final = 300_000
"""Longer than all timeouts of the run in a row; what is not well by then never will be."""

LAST_RECORDS: Final = 10
"""What each copier still has to copy when the faults are over."""

KINDS: Final = ("kill", "power", "torn", "slow", "client", "double", "lossy")


class Exchange:
    """One request, and the one response that the client gets; None if there is none."""

    def __init__(self, answered: Callable[[Response | None], None]) -> None:
        self._answered = answered
        self.is_done = False

    def __call__(self, response: Response | None) -> None:
        if not self.is_done:
            self.is_done = True
            self._answered(response)


class Process:
    """A client: its script, driven by responses and time."""

    def __init__(self, run: "Run", name: str, script: Script) -> None:
        self.name = name
        self.is_alive = True
        self._run = run
        self._script = script

    def begin(self) -> None:
        self._go_on(None)

    def kill(self) -> None:
        self.is_alive = False

    def _go_on(self, response: Response | None) -> None:
        if not self.is_alive:
            return
        try:
            wanted = self._script.send(response)
        except StopIteration:
            self.kill()
        except Fatal as reason:
            self.kill()
            self._run.ended(self, str(reason))
        else:
            if isinstance(wanted, int):
                self._run.sim.after(wanted, lambda: self._go_on(None))
            else:
                self._run.send(wanted, self._go_on)


class Run:
    """One world: a node, copiers with their doubles, readers, and faults."""

    def __init__(self, seed: int, weather: Sequence[str] | None = None) -> None:
        """`weather`: the faults, all of them often; by default the seed decides."""
        self.sim = Sim(seed)
        dice = self.sim.dice
        self.is_synced = weather is not None or dice.random() < 0.7  # rollcall.flush
        kinds = [kind for kind in KINDS if self.is_synced or kind not in ("power", "torn")]
        count = dice.choice((0, 1, 2, len(kinds)))
        self.weather = tuple(dice.sample(kinds, count))
        self.mean_ms = dice.choice((700, 2_000, 6_000))
        if weather is not None:
            self.weather, self.mean_ms = tuple(weather), 700
        self.checkers = TransactionCheckers()
        self.progress: dict[str, Progress] = {}
        self.disk = SimulatedDisk()
        self.node: TransactionNode | None = None
        self.incarnations = 0
        self._versions: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._current: dict[str, Process] = {}
        self._copiers: dict[str, Copier] = {}
        self._pending: list[Exchange] = []
        self._is_healing = False
        self._is_lossy = False
        self._boots = 0
        self._is_starting = False
        self._last_reads: set[int] = set()

    # ------------------------------------------------------------ life

    def live(self, steps: int) -> None:
        self.sim.log_event(f"weather {self.weather}, synced {self.is_synced}")
        self._start_node()
        for number in range(self.sim.between(1, 3)):
            name = f"copier-{number}"
            self.progress[name] = Progress()
            self._versions[name] = self.sim.dice.choice((1, 2, 2))
            self._start_copier(name)
        self._read_later()
        if self.weather:
            self.sim.after(self.sim.around(self.mean_ms), self._strike)
        self.sim.run(steps=steps)

    def heal(self) -> None:
        """No more faults: all copiers reach their ends, and nothing stays open."""
        self.sim.log_event("healing")
        self._is_healing = True
        self._is_lossy = False
        if self.node is not None:
            self.node.slowness = 1.0
        self.disk.cut_power_at = None
        for name, progress in self.progress.items():
            self._ends[name] = progress.committed + LAST_RECORDS
        deadline_ms = self.sim.now_ms + HEALED_WITHIN_MS
        self.sim.run(until=lambda: self._are_done() or self.sim.now_ms > deadline_ms)
        late = [name for name in self.progress if not self._is_done(name)]
        if late:
            raise Broken(f"seed {self.sim.seed}: {late} did not reach the end")
        self._read_now(is_last=True)
        self.sim.run(until=lambda: len(self._last_reads) == PARTITIONS)
        node = self.node
        assert node is not None
        self.checkers.check_end(self.progress, node.target_ends())
        shared = set[int]().union(*(each.shared_epochs for each in self.progress.values()))
        check_decisions(node.logs_with_markers(), shared)

    def _are_done(self) -> bool:
        return self.sim.steps % 16 == 0 and all(map(self._is_done, self.progress))

    def _is_done(self, name: str) -> bool:
        node = self.node
        return (
            node is not None
            and node.is_serving
            and self._current[name].is_alive
            and self.progress[name].committed >= self._ends[name]
            and self._copiers[name].position >= self._ends[name]
            and not node.has_open_transactions()
        )

    # ------------------------------------------------------------ clients

    def _start_copier(self, name: str) -> None:
        copier = Copier(self.sim, name, self.progress[name], version=self._versions[name])
        process = Process(self, name, copier.script(lambda: self._ends.get(name)))
        self._current[name] = process
        self._copiers[name] = copier
        self.sim.after(self.sim.around(100), process.begin)

    def ended(self, process: Process, reason: str) -> None:
        """A copier that cannot go on. One that was replaced needs no successor."""
        self.sim.log_event(f"{process.name} ends: {reason}")
        if self._current[process.name] is process:
            self.sim.after(self.sim.around(500), lambda: self._start_copier(process.name))

    def _read_later(self) -> None:
        self.sim.after(self.sim.around(1_500), self._read_once)

    def _read_once(self) -> None:
        self._read_now()
        self._read_later()

    def _read_now(self, *, is_last: bool = False) -> None:
        for partition in range(PARTITIONS):
            Process(self, "reader", self._reading(partition, is_last=is_last)).begin()

    def _reading(self, partition: int, *, is_last: bool) -> Script:
        visible = yield from read_committed(partition)
        self.checkers.seen(partition, visible)
        if is_last:
            self._last_reads.add(partition)

    # ------------------------------------------------------------ network

    def send(self, ask: Ask, answered: Callable[[Response | None], None]) -> None:
        exchange = Exchange(answered)
        self._pending = [each for each in self._pending if not each.is_done]
        self._pending.append(exchange)
        self.sim.after(REQUEST_TIMEOUT_MS, lambda: exchange(None))
        if self._is_lossy and self.sim.happens(0.2):
            self.sim.log_event(f"lost: {type(ask.request).__name__}")
            self.sim.after(self.sim.between(10, 500), lambda: exchange(None))
            if ask.may_arrive_late and self.sim.happens(0.5):
                self.sim.after(self.sim.around(2_000), lambda: self._deliver(ask, lambda _: None))
            return
        self.sim.after(self.sim.between(0, 3), lambda: self._deliver(ask, exchange))

    def _deliver(self, ask: Ask, exchange: Callable[[Response | None], None]) -> None:
        node = self.node
        if node is None:
            self.sim.after(self.sim.between(20, 200), lambda: exchange(None))
            return

        def replied(response: Response | None) -> None:
            if self._is_lossy and self.sim.happens(0.2):
                self.sim.log_event(f"lost: the answer to {type(ask.request).__name__}")
                self.sim.after(self.sim.between(10, 500), lambda: exchange(None))
            else:
                self.sim.after(self.sim.between(0, 3), lambda: exchange(response))

        node.request(ask.request, ask.version, replied)

    # ------------------------------------------------------------ faults

    def _start_node(self) -> None:
        self._is_starting = False
        self.incarnations += 1
        node = TransactionNode(
            self.sim,
            self.disk,
            self.incarnations,
            is_synced=self.is_synced,
            boot=self._boots,
            died=self._died,
        )
        self.node = node
        self.sim.log_event(f"node {self.incarnations} starts")
        try:
            node.start()
        except PowerCut:
            node.die()

    def _died(self, node: TransactionNode) -> None:
        """The power went in the middle of a write, or the node was killed."""
        if node is not self.node:
            return
        self.node = None
        if node.lost_power:
            self._boots += 1
            self.disk = self.disk.after_crash(self.sim.dice)
        else:
            self.disk = self.disk.after_kill()
        for exchange in self._pending:
            self.sim.after(self.sim.between(0, 100), lambda each=exchange: each(None))  # type: ignore[misc]
        if not self._is_starting:
            self._is_starting = True
            self.sim.after(self.sim.between(50, 2_000), self._start_node)

    def _strike(self) -> None:
        if self._is_healing:
            return
        kind = self.sim.dice.choice(self.weather)
        self.sim.log_event(f"fault: {kind}")
        name = self.sim.dice.choice(sorted(self.progress))
        match kind:
            case "kill" if self.node is not None:
                self.node.die()
            case "power" if self.node is not None:
                self.node.lose_power()
            case "torn":
                self.disk.cut_power_at = self.disk.operations + self.sim.between(0, 25)
            case "slow" if self.node is not None:
                self.node.slowness = self.sim.dice.choice((1.0, 10.0, 50.0))
            case "client":
                self._current[name].kill()
                self._start_copier(name)
            case "double":  # the old one goes on until it is fenced
                self._start_copier(name)
            case "lossy":
                self._is_lossy = not self._is_lossy
            case _:
                pass
        self.sim.after(self.sim.around(self.mean_ms), self._strike)


def simulate_transactions(
    seed: int, steps: int = STEPS, *, weather: Sequence[str] | None = None
) -> Run:
    run = Run(seed, weather)
    run.live(steps)
    run.heal()
    return run


def main() -> None:
    first, _, last = sys.argv[1].partition("-")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
    for seed in range(int(first), int(last or first) + 1):
        run = simulate_transactions(seed, steps)
        commits = {name: (p.committed, p.aborted) for name, p in run.progress.items()}
        print(f"seed {seed}: {run.incarnations} lives, {run.checkers.reads} reads, {commits}")


if __name__ == "__main__":
    main()
