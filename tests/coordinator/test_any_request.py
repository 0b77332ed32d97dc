"""Random requests of the coordinator: with any values that a frame can hold: it is answered.

A refusal or an answer, never a failed shard, never an exception; each answer can be written in the
version that it was asked in; and what was appended can be loaded again. `make long-fuzz` plays more
of them, with arrays of a hundred thousand elements.
"""

import os
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.limits import ServerLimits
from coordinator.classic.group import ClassicGroup
from protocol.codec import Malformed, decode_request, encode_response
from protocol.names import ApiKey, GroupState
from tests.coordinator.frames import Frames
from tests.world import Token, World, kafka_settings

STEPS: Final = 60
SEEDS: Final = int(os.environ.get("FUZZ_SEEDS", "40"))
LARGE: Final = int(os.environ.get("FUZZ_ELEMENTS", "2000"))


class Play:
    """One world, and unknown clients that send anything."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.frames = Frames(random)
        choose = random.choice
        self.world = World(
            kafka_settings(
                forgive_slow_member=choose((True, False)),
                generation_records=choose((True, False)),
                offset_metadata_max_bytes=choose((4_096, 12_000, 40_000)),
                offsets_value_version=choose((3, 4)),
                group_max_size=choose((2, 1_000)),
                group_max_session_timeout_ms=choose((30_000, (1 << 31) - 1)),
                group_min_session_timeout_ms=choose((0, 6_000)),
                group_initial_rebalance_delay_ms=choose((0, 3_000)),
                rebalance_on_partition_change=choose((True, False)),
            )
        )
        self.world.topics.counts |= dict.fromkeys(("u", "v"), 100)  # type: ignore[misc]
        self.frames.topic_ids += [
            topic_id.bytes
            for name in self.world.topics.counts
            if (topic_id := self.world.topics.topic_id(name)) is not None
        ]
        self.asked: list[tuple[ApiKey, Token, bytes]] = []

    def step(self) -> None:
        random, world = self.random, self.world
        match random.randrange(20):
            case 0:
                world.storing = not world.storing
                world.store()
            case 1 | 2:
                world.advance(random.choice((1, 500, 500, 3_000, 3_000, 10_000, 70_000)))
            case 4 | 5 | 6:
                self.complete_rebalances()
            case 3 if not random.randrange(4):
                world.crash()
            case _:
                self.ask(self.frames.next())
        self.check_answers()

    def complete_rebalances(self) -> None:
        """What sound clients do: all rejoin, and the leader hands in its assignments."""
        for group in tuple(self.world.coordinator.groups()):
            if group.state is GroupState.PREPARING_REBALANCE:
                for member in tuple(group.members.values()):
                    self.world.join(
                        group.group_id,
                        member.member_id,
                        instance_id=member.group_instance_id,
                        protocol_type=member.protocol_type,
                        protocols=member.protocols,
                    )
            elif group.state is GroupState.COMPLETING_REBALANCE:
                leader = group.members[group.leader_id]
                self.world.sync(
                    group.group_id,
                    leader.member_id,
                    group.generation_id,
                    assignments=dict.fromkeys(group.members, b"mine"),
                    instance_id=leader.group_instance_id,
                    protocol_type=None,
                    protocol_name=None,
                    version=4,
                )

    def ask(self, frame: bytes) -> None:
        if len(frame) > ServerLimits().request_max_bytes:
            return  # refused by its size alone
        try:
            header, request = decode_request(frame, 0, len(frame))
        except Malformed:
            return  # the connection is closed: nobody else is harmed
        token = Token(header.api_version, header.client_id)
        self.asked.append((header.api_key, token, frame))
        self.world.coordinator.handlers[request.API_KEY](request, token, self.world.now)
        self.world.step()

    def check_answers(self) -> None:
        """Each answer since the last time can be written."""
        waiting = []
        for api_key, token, frame in self.asked:
            if not token.answers:
                waiting.append((api_key, token, frame))
                continue
            (response,) = token.answers
            encode_response(api_key, token.api_version, 7, response)
        self.asked = waiting
        member_ids: list[str] = []
        generations: list[int] = []
        for group in self.world.coordinator.groups():
            member_ids += group.members
            if isinstance(group, ClassicGroup):
                member_ids += group.pending_member_ids
                generations.append(group.generation_id)
        self.frames.know(member_ids, generations)

    def end(self) -> None:
        """Without further requests, all that wait are answered, and the log can be loaded."""
        self.world.storing = True
        self.world.store()
        self.world.advance(700_000)
        self.check_answers()
        self.world.crash()
        for group in self.world.coordinator.groups():
            assert self.world.has_group(group.group_id)


def play(random: Random, steps: int, large: int = 0) -> None:
    run = Play(random)
    run.frames.large = large
    for _ in range(steps):
        run.step()
    run.end()


@pytest.mark.timeout(120)  # no request may delay all others for long
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_asked_is_answered_and_harms_nobody(seed: int) -> None:
    play(Random(seed), STEPS, LARGE if seed % 4 == 0 else 0)


@settings(max_examples=40, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_whatever_is_asked_in_a_few_steps_is_answered(random: Random) -> None:
    play(random, 6)
