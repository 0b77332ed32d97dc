"""Whatever a client mixes: is each of its requests answered exactly once, and in order?

Each seed is a world of three connections to the real Server in virtual time. Clients pipeline
requests that are answered at once (small and large), after the disk, after people, never (acks=0),
or by a hang-up; they read slowly or not at all, are cut off, or send a FIN and go on reading. The
core answers what waits in any order. At the end all clients read, and what must be there is.
"""

import random
from collections.abc import Callable

import pytest

from broker.net.quotas import REQUESTS_A_TURN_MAX
from broker.net.request import PendingRequest
from config.limits import ServerLimits
from protocol.messages import Request, Response
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.names import GroupId
from seams.reply_token import ReplyToken
from tests.broker.shell import commit, heartbeat, join
from tests.broker.wire import Pipe, Wire

SEEDS = 240
SEEDS_A_TEST = 60
STEPS = 60

GROUP = GroupId("g")
SIZES = (10, 5_000, 17_000, 32_000)
VERSION = 2  # of FindCoordinator, with one text that may be as long as that


class Mix:
    """One world: what was asked on each connection, and what the core still owes."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        choice = self.dice.choice
        self.wire = Wire(
            ServerLimits(
                queued_max_request_bytes=choice((-1, -1, 60, 500)),
                connection_unsent_max_bytes=choice((16_777_216, 65_536, 1_000)),
                connections_unsent_max_bytes=choice((268_435_456, 80_000, 10)),
            )
        )
        self.wire.core.on_request = self._handle
        self.owed: list[tuple[ReplyToken, Response | None]] = []
        self.handled: list[tuple[Pipe, int]] = []
        self.expected: dict[Pipe, list[int]] = {}  # what wants an answer
        self.cut_off: set[Pipe] = set()  # by either side: it may have fewer answers
        self.ended: set[Pipe] = set()
        for _ in range(3):
            self.expected[self.wire.connect()] = []

    # The core.

    def _handle(self, request: Request, token: ReplyToken) -> None:
        assert isinstance(token, PendingRequest)
        pipe = next(pipe for pipe in self.wire.pipes if pipe.connection is token.connection)
        self.handled.append((pipe, token.correlation_id))
        match request:
            case HeartbeatRequest():
                self.wire.server.reply(token, HeartbeatResponse())
            case FindCoordinatorRequest():
                size = SIZES[token.correlation_id % len(SIZES)]
                answer = FindCoordinatorResponse(error_message="x" * size, host="h")
                self.wire.server.reply(token, answer)
            case OffsetCommitRequest():
                self.owed.append((token, OffsetCommitResponse()))
            case JoinGroupRequest():
                self.owed.append((token, JoinGroupResponse()))
            case OffsetDeleteRequest() if token.correlation_id % 2:
                self.wire.server.reply(token, None)
            case OffsetDeleteRequest():
                self.owed.append((token, None))
            case LeaveGroupRequest() if token.correlation_id % 2:
                raise ZeroDivisionError("a mistake of ours")
            case _:
                self.wire.server.hang_up(token)

    def _answer(self, many: int) -> None:
        for _ in range(min(many, len(self.owed))):
            token, response = self.owed.pop(self.dice.randrange(len(self.owed)))
            self.wire.server.reply(token, response)

    # What happens.

    def _ask(self, pipe: Pipe) -> None:
        if pipe in self.ended or pipe.is_lost:
            return
        kinds: list[Callable[[], Request]] = [
            heartbeat,
            commit,
            lambda: FindCoordinatorRequest(key="g"),
            lambda: OffsetDeleteRequest(group_id=GROUP),
        ]
        kinds += [join] * self.dice.randrange(2)
        kinds += [lambda: LeaveGroupRequest(group_id=GROUP)] * (self.dice.randrange(20) == 0)
        many = self.dice.choice((1, 2, 5, 30, 150, 2 * REQUESTS_A_TURN_MAX + 1))
        for _ in range(many):
            request = self.dice.choice(kinds)()
            version = VERSION if isinstance(request, FindCoordinatorRequest) else None
            pipe.send(pipe.framed(request, version))
            if isinstance(request, LeaveGroupRequest):
                self.cut_off.add(pipe)
            elif not isinstance(request, OffsetDeleteRequest):
                self.expected[pipe].append(pipe.requests_sent)

    def step(self) -> None:
        dice = self.dice
        pipe = dice.choice(self.wire.pipes)
        match dice.randrange(16):
            case 0 | 1 | 2:
                self._ask(pipe)
            case 3 | 4 | 5 | 6:
                pipe.arrive(dice.choice((1, 13, 1_000, 65_536)))
            case 7 | 8:
                pipe.read(dice.choice((1, 1_000, 40_000, 1 << 40)))
            case 9 | 10:
                self._answer(dice.choice((1, 3, 50)))
            case 11 if dice.randrange(30) == 0:
                self.cut_off.add(pipe)
                pipe.cut()
            case 12 if dice.randrange(10) == 0:
                self.ended.add(pipe)
                pipe.end()
            case _:
                self.wire.loop.run_pass()

    def finish(self) -> None:
        """All clients read, and everything that waits is answered, until nothing is left."""
        self.wire.run_until_idle()
        while self.owed:
            self._answer(len(self.owed))
            self.wire.run_until_idle()

    def judge(self) -> None:
        for pipe, expected in self.expected.items():
            asked = [number for asking, number in self.handled if asking is pipe]
            assert asked == list(range(1, len(asked) + 1)), "each is decided once, in order"
            if pipe in self.cut_off:
                assert pipe.answered == expected[: len(pipe.answered)]
                continue
            assert pipe.answered == expected
            assert len(asked) == pipe.requests_sent
            assert pipe.is_lost == (pipe in self.ended)
        assert self.wire.server.quotas.request_bytes.queued_bytes == 0
        assert self.wire.server.quotas.unsent.total_bytes() == 0
        assert self.wire.server.quotas.unsent.kept_bytes == 0


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_each_request_is_answered_once_and_in_order(first: int) -> None:
    for seed in range(first, first + SEEDS_A_TEST):
        mix = Mix(seed)
        try:
            for _ in range(STEPS):
                mix.step()
            mix.finish()
            mix.judge()
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            raise
