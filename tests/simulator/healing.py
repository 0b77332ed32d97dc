"""Healing: the end of a simulated run, when all faults are over and everything must become well."""

from collections.abc import Iterable
from typing import Final, Protocol

from tests.simulator.faults import Operator
from tests.simulator.node import Node
from tests.simulator.sim import Broken, Sim
from tests.simulator.sockets import Token

HEALED_WITHIN_MS: Final = 90_000
"""Longer than all timeouts of the run in a row; what is not well by then never will be."""

UNANSWERED_MS: Final = 20_000
"""Longer than anything waits in a healthy world."""

WELL_FOR_MS: Final = 6_000


class EndCheckers(Protocol):
    """What the end of a run asks of its checkers."""

    @property
    def asked(self) -> Iterable[Token]: ...

    def check_all(self, node: Node) -> None: ...


class HealingRun:
    """The base of a run, which has a simulation, an operator and checkers."""

    sim: Sim
    operator: Operator
    checkers: EndCheckers

    def __init__(self) -> None:
        self._calm_since: int | None = None

    def _illness(self) -> str | None:
        """What is not yet as it should be."""
        raise NotImplementedError

    def _wait_until_well(self) -> None:
        """Raises Broken if that takes too long, or if a promise was not kept."""
        deadline_ms = self.sim.now_ms + HEALED_WITHIN_MS
        self.sim.run(until=lambda: self._is_well() or self.sim.now_ms > deadline_ms)
        illness = self._illness()
        if illness is not None:
            raise Broken(
                f"seed {self.sim.seed}: {illness}, {HEALED_WITHIN_MS} ms after the healing"
            )
        assert self.operator.node is not None
        self.checkers.check_all(self.operator.node)

    def _is_well(self) -> bool:
        """Well for some seconds on end: what was asked before that has been answered."""
        if self.sim.steps % 16:
            return False
        if self._illness() is not None:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = self.sim.now_ms
        return self._calm_since is not None and self.sim.now_ms >= self._calm_since + WELL_FOR_MS

    def _illness_of_node(self) -> str | None:
        """It does not serve, or it has not answered a request of its own life."""
        node = self.operator.node
        if node is None or not node.healthy:
            return "the node does not serve"
        for token in self.checkers.asked:
            if (
                token.incarnation == node.incarnation
                and token.handled_ms < node.sim.now_ms - UNANSWERED_MS
            ):
                return f"unanswered: {token.request}"
        return None
