"""Simulator: all promises are kept, whatever happens to node, disk, network and clients.

Two hundred worlds, each from its seed, and those that failed once (seeds.txt). See checkers.py for
the promises; a failure names its seed, and `make sim SEED=n` tells the story again.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator import outcome, pending_answers, shard
from coordinator.events import AnyEvent
from tests.simulator.checkers import Checkers
from tests.simulator.node import Node
from tests.simulator.run import STEPS, simulate

SEEDS = 200


def seeds() -> Iterator[tuple[int, int]]:
    """(seed, steps)"""
    yield from ((seed, STEPS) for seed in range(SEEDS))
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            yield int(words[0]), int(words[1]) if len(words) > 1 else STEPS


@pytest.mark.parametrize(("seed", "steps"), list(seeds()))
def test_every_promise_is_kept(seed: int, steps: int) -> None:
    simulate(seed, steps)


@pytest.mark.pure
@pytest.mark.parametrize("seed", range(6))
def test_every_promise_is_kept_while_answers_go_out_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a large group: much happens between two slices of answers.

    What a fetch answers is not judged: one that came later may be answered earlier, by another
    connection, so that a value may be older than the newest that somebody has read.
    """
    for module in (pending_answers, shard):
        monkeypatch.setattr(module, "SENT_AT_ONCE", 1)
    monkeypatch.setattr(outcome, "MADE_AT_ONCE", 0)
    monkeypatch.setattr(Checkers, "_fetch_answered", lambda *_: None)
    simulate(seed)


def test_the_same_seed_replays_the_same_events() -> None:
    first, second = simulate(7, 500), simulate(7, 500)
    assert first.sim.now_ms == second.sim.now_ms
    assert first.sim.steps == second.sim.steps
    assert first.checkers.answered_generations == second.checkers.answered_generations
    assert first.operator.incarnations == second.operator.incarnations


def test_the_worlds_are_eventful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that nobody gives anything to look at is always content."""
    seen: Counter[str] = Counter()
    happened = Checkers.happened

    def count(self: Checkers, node: Node, event: AnyEvent) -> None:
        seen[type(event).__name__] += 1
        happened(self, node, event)

    nodes: list[Node] = []
    start = Node.start

    def remembered(self: Node) -> None:
        nodes.append(self)
        start(self)

    monkeypatch.setattr(Checkers, "happened", count)
    monkeypatch.setattr(Node, "start", remembered)
    runs = [simulate(seed) for seed in range(56)]  # a lapse is forgiven in one of fifty
    assert sum(run.operator.incarnations - 1 for run in runs) >= 20
    assert sum(node.snapshots_taken for node in nodes) >= 500
    assert sum(node.snapshots_used for node in nodes) >= 40
    assert sum(node.cleaner.swaps for node in nodes) >= 100
    assert sum(run.operator.reopenings for run in runs) >= 1  # a full disk had room again
    assert seen["GenerationBegun"] >= 400
    assert seen["StaticMemberReplaced"] >= 50
    assert seen["MembersRemoved"] >= 100
    assert seen["OffsetsCommitted"] >= 2_000
    assert seen["PartitionClosed"] >= 5  # a journal failed under a living node
    for rare in ("AssignmentDropped", "MemberLapsed", "LapseForgiven", "LeaderChanged"):
        assert seen[rare] >= 1, rare
