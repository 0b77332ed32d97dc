"""Purgatory metrics: all operations are counted, some hundred at a time."""

from types import SimpleNamespace
from typing import Any

from broker.metrics import waiting
from broker.metrics.waiting import OPERATIONS_PER_SLICE
from purgatory.purgatory import Purgatory
from tests.purgatory.ops import ScriptedOp


def test_many_operations_are_counted_in_slices() -> None:
    purgatory = Purgatory[str]()
    for number in range(3 * OPERATIONS_PER_SLICE + 1):
        purgatory.watch(ScriptedOp("a", (number,), 5_000 + number))
    daemon: Any = SimpleNamespace(
        coordinator=SimpleNamespace(purgatories=lambda: [purgatory, Purgatory[str]()]),
        data_plane=SimpleNamespace(delayed_fetches=2, watched_fetches=3),
        clock=SimpleNamespace(now=lambda: SimpleNamespace(mono_ms=1_000)),
    )

    portions = list(waiting.collect(daemon))

    assert portions[:4] == [None] * 4
    text = "".join("".join(lines) for _, lines in portions[4:])  # type: ignore[misc]
    count = 3 * OPERATIONS_PER_SLICE + 1
    for name in ("operations", "watched"):
        labels = 'operation="ScriptedOp",kind="ScriptedOp"'
        assert f"rollcall_purgatory_{name}{{{labels}}} {count}\n" in text
    assert 'next_deadline_seconds{operation="ScriptedOp",kind="ScriptedOp"} 4.0\n' in text
