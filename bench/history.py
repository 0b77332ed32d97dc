"""Group history: what does it add to the CPU time of a heartbeat, a commit and a rebalance?

    .venv/bin/python bench/history.py

Measured in virtual time and without a disk. To include sockets and disk, compare two daemons, one
of them started with rollcall.history.enable=false.
"""

import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from protocol.names import GenerationId, GroupState
from tests.history.history_world import HistoryWorld, assignment, offers
from tests.memory_log import MemoryLog
from tests.world import World

BEATS = 20_000
REBALANCES = 30


class Untold(HistoryWorld):
    """The same members, without a history."""

    def start(self, logs: dict[int, MemoryLog]) -> None:
        self.history_sink = None
        World.start(self, logs)


def given(world: HistoryWorld, members: int) -> list[str]:
    asked = [
        world.join("g", version=3, protocols=offers("t"), rebalance_timeout_ms=60_000)
        for _ in range(members)
    ]
    while asked[0].waits:
        world.advance(3_000)
    ids = [answer.joined.member_id for answer in asked]
    sync(world, ids)
    return ids


def sync(world: HistoryWorld, ids: list[str]) -> None:
    group = world.group()
    shares = {member_id: assignment(t=[n]) for n, member_id in enumerate(ids)}
    leader = group.leader_id
    for member_id in (*(other for other in ids if other != leader), leader):
        world.sync(
            "g",
            member_id,
            GenerationId(group.generation_id),
            assignments=shares if member_id == leader else None,
        )
    assert world.group().state is GroupState.STABLE


def rebalance(world: HistoryWorld, ids: list[str]) -> None:
    """The leader rejoins, so all members rejoin."""
    leader = world.group().leader_id
    world.rejoin(leader, rebalance_timeout_ms=60_000)
    for member_id in ids:
        if member_id != leader:
            world.rejoin(member_id, rebalance_timeout_ms=60_000)
    sync(world, ids)


def measure(world: HistoryWorld, members: int) -> tuple[float, float, float]:
    """CPU microseconds of a beat, of a commit, and of a rebalance."""
    world.check = lambda: None  # type: ignore[method-assign]
    ids = given(world, members)
    generation = world.group().generation_id
    started = process_time()
    for _ in range(BEATS):
        world.beat("g", ids[0], generation)
    beat = process_time() - started
    started = process_time()
    for n in range(BEATS // 4):
        world.commit("g", ids[0], generation, offsets={0: n})
    commit = process_time() - started
    started = process_time()
    for _ in range(REBALANCES):
        rebalance(world, ids)
    whole = process_time() - started
    return beat / BEATS * 1e6, commit / (BEATS // 4) * 1e6, whole / REBALANCES * 1e6


def main() -> None:
    print("| members | history | beat µs | commit µs | rebalance µs |")
    print("|---|---|---|---|---|")
    for members in (2, 10, 100):
        for kind in (Untold, HistoryWorld):
            beat, commit, whole = measure(kind(), members)
            history = "with" if kind is HistoryWorld else "without"
            print(f"| {members} | {history} | {beat:.1f} | {commit:.1f} | {whole:.0f} |")


if __name__ == "__main__":
    main()
