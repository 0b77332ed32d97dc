"""What does the history cost the coordinator? CPU of a beat, a commit and a rebalance, without and
with it, in virtual time and without a disk.

    .venv/bin/python bench/history.py

The whole of it, with sockets and disk: two daemons side by side, one of them started with
rollcall.history.enable=false.
"""

import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from protocol.names import GenerationId, GroupState
from tests.history.history_world import ToldWorld, assignment, offers
from tests.memory_log import MemoryLog
from tests.world import World

BEATS = 20_000
REBALANCES = 30


class Untold(ToldWorld):
    """The same members, and nobody who writes it down."""

    def start(self, logs: dict[int, MemoryLog]) -> None:
        self.history_sink = None
        World.start(self, logs)


def given(world: ToldWorld, members: int) -> list[str]:
    asked = [
        world.join("g", version=3, protocols=offers("t"), rebalance_timeout_ms=60_000)
        for _ in range(members)
    ]
    while asked[0].waits:
        world.advance(3_000)
    ids = [one.joined.member_id for one in asked]
    sync(world, ids)
    return ids


def sync(world: ToldWorld, ids: list[str]) -> None:
    group = world.group()
    shares = {member_id: assignment(t=[n]) for n, member_id in enumerate(ids)}
    leader = group.leader_id
    for member_id in (*(one for one in ids if one != leader), leader):
        world.sync(
            "g",
            member_id,
            GenerationId(group.generation_id),
            assignments=shares if member_id == leader else None,
        )
    assert world.group().state is GroupState.STABLE


def rebalance(world: ToldWorld, ids: list[str]) -> None:
    """The leader rejoins, and so everybody does."""
    leader = world.group().leader_id
    world.rejoin(leader, rebalance_timeout_ms=60_000)
    for member_id in ids:
        if member_id != leader:
            world.rejoin(member_id, rebalance_timeout_ms=60_000)
    sync(world, ids)


def measure(world: ToldWorld, members: int) -> tuple[float, float, float]:
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
        for kind in (Untold, ToldWorld):
            beat, commit, whole = measure(kind(), members)
            told = "with" if kind is ToldWorld else "without"
            print(f"| {members} | {told} | {beat:.1f} | {commit:.1f} | {whole:.0f} |")


if __name__ == "__main__":
    main()
