"""Faults of a run: which ones, how often, and until when, drawn from the seed.

Some runs are calm, some have one kind of trouble, some all of it at once. `heal` ends all faults
and gets the node back on its feet: what must come true after that is for the checkers to say.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from coordinator.settings import GroupSettings
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.simulator.network import Network
from tests.simulator.node import Node, Watcher
from tests.simulator.sim import Sim
from tests.world import Topics

KINDS: Final = ("kill", "power", "torn", "sync", "write", "full", "slow", "freeze", "wall", "cut")


@dataclass(frozen=True, slots=True)
class Weather:
    """Which faults happen, and the mean time from one to the next."""

    kinds: tuple[str, ...]
    mean_ms: float


def draw_weather(sim: Sim) -> Weather:
    dice = sim.dice
    match dice.randrange(5):
        case 0:
            return Weather((), 0)
        case 1 | 2:
            return Weather((dice.choice(KINDS),), dice.choice((2_000, 10_000)))
        case _:
            count = dice.randint(2, len(KINDS))
            return Weather(tuple(dice.sample(KINDS, count)), dice.choice((1_500, 5_000, 15_000)))


class Operator:
    """Starts the node, breaks it as the weather wants, and starts it again."""

    def __init__(
        self,
        sim: Sim,
        network: Network,
        settings: GroupSettings,
        watcher: Watcher,
        topics: Topics | None = None,
    ) -> None:
        self.sim = sim
        self.network = network
        self.settings = settings
        self.watcher = watcher
        self.topics = topics or Topics()  # of the data plane: a crash does not change them
        self.disk = SimulatedDisk()
        self.weather = Weather((), 0)
        self.healing = False
        self.incarnations = 0
        self.node: Node | None = None
        self._reopenings_before = 0
        self._wall_shift_ms = 0
        self._starts_later = False
        self._faults: dict[str, Callable[[Node], None]] = {
            "kill": self._kill,
            "power": self._power,
            "torn": self._torn,
            "sync": self._sync,
            "write": self._write,
            "full": self._full,
            "slow": self._slow,
            "freeze": lambda node: node.freeze(sim.around(4_000)),
            "wall": self._wall,
            "cut": self._cut,
        }

    @property
    def reopenings(self) -> int:
        """How often a full disk had room again and the node went on."""
        return self._reopenings_before + (0 if self.node is None else self.node.reopenings)

    # ------------------------------------------------------------ starts

    def start(self) -> None:
        """A new process on what the last one left; after a failed start, another one later."""
        self._starts_later = False
        self.incarnations += 1
        node = Node(
            self.sim,
            self.network,
            self.disk,
            self.settings,
            self.watcher,
            self.incarnations,
            self.topics,
        )
        node.wall_shift_ms = self._wall_shift_ms
        node.cleaner.loses_power = lambda: "torn" in self.weather.kinds and not self.healing
        if self.node is not None:
            self._reopenings_before += self.node.reopenings
        self.node = node
        try:
            node.start()
        except PowerCut:
            self.sim.log_event("the power goes during a start")
            node.die()
            self._after_power_cut()
            return
        except OSError as failure:
            self.sim.log_event(f"a start fails: {failure}")
            node.die()
            self._start_later()
            return
        self.network.node = node

    def _start_later(self) -> None:
        if not self.healing:
            self.disk.room = None if self.sim.happens(0.5) else self.disk.room
        else:
            self.disk.room = None
        self._starts_later = True
        self.sim.after(self.sim.between(50, 3_000), self.start)

    def _after_power_cut(self) -> None:
        self.disk = self.disk.after_crash(self.sim.dice)
        self._start_later()

    def watch(self) -> None:
        """Every second: a dead node is started again, one that cannot write is replaced."""
        node = self.node
        assert node is not None
        if self._starts_later:
            self.sim.log_event("the node is down")
        elif not node.alive:
            self._after_power_cut()  # in the middle of a write
        elif node.journal_failed and node.journal.is_full:
            if self.sim.happens(0.05):
                self._kill(node)  # it would have gone on by itself, but nobody has the patience
        elif node.journal_failed and (self.healing or self.sim.happens(0.5)):
            self._kill(node)
        self.sim.after(1_000, self.watch)

    # ------------------------------------------------------------ faults

    def begin(self, weather: Weather) -> None:
        self.weather = weather
        self.sim.log_event(f"weather: {weather}")
        if weather.kinds:
            self.sim.after(self.sim.around(weather.mean_ms), self._strike)

    def _strike(self) -> None:
        if self.healing:
            return
        kind = self.sim.dice.choice(self.weather.kinds)
        if self.node is not None and self.node.alive:
            self.sim.log_event(f"fault: {kind}")
            self._faults[kind](self.node)
        self.sim.after(self.sim.around(self.weather.mean_ms), self._strike)

    def heal(self) -> None:
        """No more faults; what they left behind is for the node and its clients to get over."""
        self.sim.log_event("healing")
        self.healing = True
        self.network.slowness = 1.0
        self.disk.room = None
        self.disk.cut_power_at = None
        if self.node is not None:
            self.node.flush_ms = 2.0

    def _kill(self, node: Node) -> None:
        """kill -9: the page cache stays."""
        node.die()
        self.disk = self.disk.after_kill()
        self._start_later()

    def _power(self, node: Node) -> None:
        node.die()
        self._after_power_cut()

    def _torn(self, _: Node) -> None:
        """The power will go in the middle of one of the next writes; `watch` finds the dead."""
        self.disk.cut_power_at = self.disk.operations + self.sim.between(0, 12)

    def _sync(self, _: Node) -> None:
        self.disk.fail_sync(self.sim.dice.choice(("journal", "__consumer_offsets", "/data")))

    def _write(self, _: Node) -> None:
        self.disk.fail_write(self.sim.dice.choice(("journal", "__consumer_offsets", "/data")))

    def _full(self, _: Node) -> None:
        disk = self.disk
        disk.room = self.sim.between(0, 6_000)

        def make_room() -> None:
            disk.room = None

        self.sim.after(self.sim.between(2_000, 8_000), make_room)

    def _slow(self, node: Node) -> None:
        slow_ms = float(self.sim.dice.choice((50, 1_000, 4_000)))
        node.flush_ms = slow_ms

        def recover() -> None:
            node.flush_ms = 2.0

        self.sim.after(self.sim.between(2_000, 15_000), recover)

    def _wall(self, node: Node) -> None:
        self._wall_shift_ms = self.sim.between(-86_400_000, 86_400_000)
        node.wall_shift_ms = self._wall_shift_ms

    def _cut(self, _: Node) -> None:
        connections = self.network.connections
        if connections:
            if self.sim.happens(0.2):
                self.network.cut_all()
            else:
                self.network.cut(self.sim.dice.choice(connections))
        self.network.slowness = self.sim.dice.choice((1.0, 1.0, 10.0, 100.0))
