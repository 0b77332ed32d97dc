"""Requests, silences and crashes in any order: what must hold after every step, and at the end.

Drives one group through a few hundred random steps from a seed. The world checks groups, purgatory
and counts after each step; here are the promises that reach over steps: a generation never falls
and is never used twice with other members, and when the world is left in peace every request that
was sent to a living process has been answered once.
"""

import random

import pytest

from protocol.messages.join_group import JoinGroupResponse
from protocol.names import ErrorCode, GroupState
from seams.reply_token import ReplyToken
from tests.world import Asked, Protocols, World, kafka_settings

STEPS = 150
OFFERS: tuple[Protocols, ...] = (
    (("range", b"1"), ("sticky", b"1")),
    (("sticky", b"2"), ("range", b"2")),
    (("range", b"3"),),
)


class Chaos:
    """A client that sends anything, from whatever it believes to know."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(
            kafka_settings(
                forgive_slow_member=bool(seed % 2),
                forgive_max_ms=12_000,
                group_max_size=self.random.choice([2, 4, 100]),
                group_initial_rebalance_delay_ms=self.random.choice([0, 3_000]),
                rebalance_on_partition_change=bool(seed % 3),
                # A group that was deleted begins at generation 1 again, as in Kafka: not here.
                offsets_retention_check_interval_ms=1 << 40,
            )
        )
        self.world.storing = bool(self.random.randrange(3))
        self.member_ids = ["", "stranger"]
        self.asked: list[Asked] = []
        self.heard: set[ReplyToken] = set()
        self.members: dict[int, frozenset[str]] = {}  # generation -> who is in it

    def member_id(self) -> str:
        group = self.world.coordinator.group("g")  # type: ignore[arg-type]
        known = [] if group is None else [*group.members, *group.pending_member_ids]
        return self.random.choice(self.member_ids[-6:] + known * 2)

    def generation(self) -> int:
        group = self.world.coordinator.group("g")  # type: ignore[arg-type]
        current = 0 if group is None else group.generation_id
        return current + self.random.choice([0, 0, 0, 0, 0, -1, 1])

    def instance(self) -> str | None:
        return self.random.choice([None, None, None, "a", "b"])

    def step(self) -> None:
        world, choose = self.world, self.random.choice
        match self.random.randrange(12):
            case 0 | 1 | 2:
                asked = world.join(
                    "g",
                    choose([self.member_id(), ""]),
                    version=choose([0, 3, 5, 9]),
                    instance_id=self.instance(),
                    protocols=choose(OFFERS),
                    session_timeout_ms=choose([6_000, 10_000, 30_000]),
                    rebalance_timeout_ms=choose([1_000, 20_000, 60_000]),
                )
                self.keep(asked)
            case 3 | 4:
                member_id = self.member_id()
                given = {member_id: b"mine"}
                self.keep(
                    world.sync(
                        "g",
                        member_id,
                        self.generation(),
                        assignments=given,
                        instance_id=self.instance(),
                        protocol_name=None,
                        version=3,
                    )
                )
            case 5:
                self.keep(world.beat("g", self.member_id(), self.generation(), self.instance()))
            case 6:
                self.keep(world.leave("g", (self.member_id(), self.instance()), self.member_id()))
            case 7:
                self.keep(world.committing("g", self.member_id(), self.generation()))
            case 8:
                world.storing = not world.storing
                world.store()
            case 9 if not self.random.randrange(4):
                self.crash()
            case 10 if not self.random.randrange(4):
                world.coordinator.partitions_changed({"t"}, world.now)  # type: ignore[arg-type]
            case _:
                world.advance(choose([1, 500, 3_000, 3_000, 9_000, 70_000]))

    def keep(self, asked: Asked) -> None:
        self.asked.append(asked)
        if asked.token.answers and hasattr(asked.response, "member_id"):
            self.member_ids.append(asked.response.member_id)

    def crash(self) -> None:
        self.hear()
        self.asked = [asked for asked in self.asked if not asked.waits]  # their connections broke
        self.world.crash()

    def hear(self) -> None:
        """The generations that clients got, since the last time."""
        for asked in self.asked:
            answers = [a for a in asked.token.answers if isinstance(a, JoinGroupResponse)]
            if asked.token in self.heard or not answers:
                continue
            self.heard.add(asked.token)
            (answer,) = answers
            if answer.error_code is ErrorCode.NONE and answer.members:
                # A static member may change its id within a generation; its instance stays.
                named = frozenset(m.group_instance_id or m.member_id for m in answer.members)
                assert self.members.setdefault(answer.generation_id, named) == named
                assert answer.generation_id == max(self.members)

    def heal(self) -> None:
        self.world.storing = True
        self.world.store()
        self.world.advance(700_000)


@pytest.mark.parametrize("seed", range(60))
def test_at_random_the_groups_stay_sound_and_every_request_is_answered(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(STEPS):
        chaos.step()
        chaos.hear()
    chaos.heal()
    chaos.hear()
    waiting = [asked.request for asked in chaos.asked if asked.waits]
    assert not waiting
    if chaos.world.has_group():
        assert chaos.world.group().state is GroupState.EMPTY
