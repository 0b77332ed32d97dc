"""Fairness: how long may one connection, or a heap of them, keep the others waiting?

In virtual time: the stopwatch that ends a turn moves only when a request is handled.
"""

from collections.abc import Callable

import pytest

from broker.net.connection import UNREAD_BYTES_MAX
from broker.net.quotas import (
    CLOSED_A_FLUSH_MAX,
    FLUSH_S_MAX,
    PASS_S_MAX,
    REQUESTS_A_TURN_MAX,
    TURN_S_MAX,
)
from protocol.messages import Request
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from seams.reply_token import ReplyToken
from tests.broker.shell import commit, heartbeat, join
from tests.broker.wire import READ_BYTES, Pipe, Wire

SHORT_S = 0.000_25
LONG_S = 0.6


class Work:
    """A core whose heartbeats take no time, and whose commits take as long as the test says."""

    def __init__(self, wire: Wire) -> None:
        self.now_s = 0.0
        self.commit_s = SHORT_S
        self._wire = wire
        wire.core.on_request = self._handle
        wire.server.stopwatch = lambda: self.now_s

    def _handle(self, request: Request, token: ReplyToken) -> None:
        if isinstance(request, OffsetCommitRequest):
            self.now_s += self.commit_s
            self._wire.server.reply(token, OffsetCommitResponse())
        else:
            self._wire.server.reply(token, HeartbeatResponse())

    def until(self, true: Callable[[], bool]) -> float:
        """Let the loop run, and everything arrive and be read; how long it took."""
        began_s = self.now_s
        for _ in range(10_000):
            if true():
                return self.now_s - began_s
            self._wire.loop.run_pass()
            for pipe in self._wire.pipes:
                pipe.arrive()
                pipe.read()
        raise AssertionError("it does not come")


def test_a_turn_ends_when_its_time_is_up() -> None:
    wire = Wire()
    work = Work(wire)
    pipe = wire.connect()
    pipe.ask(*[commit()] * 50)
    pipe.arrive()
    assert work.now_s == pytest.approx(TURN_S_MAX)
    assert len(wire.core.asked) == round(TURN_S_MAX / SHORT_S) < 50
    wire.run_until_idle()
    assert pipe.answered == list(range(1, 51))


def test_short_requests_are_counted_instead() -> None:
    wire = Wire()
    Work(wire)
    pipe = wire.connect()
    pipe.ask(*[heartbeat()] * 250)
    pipe.arrive()
    assert len(wire.core.asked) == REQUESTS_A_TURN_MAX
    wire.run_until_idle()
    assert pipe.answered == list(range(1, 251))


def test_a_turn_ends_behind_a_long_request() -> None:
    wire = Wire()
    work = Work(wire)
    work.commit_s = LONG_S
    pipe, other = wire.connect(), wire.connect()
    pipe.ask(*[commit()] * 10)
    pipe.arrive()
    assert len(wire.core.asked) == 1

    # Somebody else has one request: it waits for one of the long ones at most.
    other.ask(heartbeat())
    assert work.until(lambda: bool(other.answered)) <= LONG_S


def test_a_heap_of_busy_connections_costs_the_next_one_a_pass() -> None:
    """Thirty connections with two hundred requests of a quarter of a millisecond: 1.5 s of work."""
    wire = Wire()
    work = Work(wire)
    busy = [wire.connect() for _ in range(30)]
    for pipe in busy:
        pipe.ask(*[commit()] * 200)
    member = wire.connect()
    work.until(lambda: all(not pipe.may_arrive for pipe in busy))

    # Its heartbeats wait for the turns that fit into one pass, however much is put off.
    for beat in range(1, 21):
        member.ask(heartbeat())
        waited_s = work.until(lambda beat=beat: len(member.answered) == beat)  # type: ignore[misc]
        assert waited_s <= PASS_S_MAX + TURN_S_MAX + SHORT_S
    assert not all(len(pipe.answered) == 200 for pipe in busy)

    assert wire.server.turns_postponed
    resumed = wire.server.turns_resumed + wire.server.turns_postponed
    work.until(lambda: wire.server.turns_resumed >= resumed)

    # And the busy ones have their turns in rotation.
    handled = [len(pipe.answered) for pipe in busy]
    assert max(handled) - min(handled) <= 2 * round(TURN_S_MAX / SHORT_S)
    wire.run_until_idle()
    assert all(pipe.answered == list(range(1, 201)) for pipe in busy)


def test_what_waits_for_its_turn_is_bounded() -> None:
    """A client that sends faster than it is served, and reads all its answers."""
    wire = Wire()
    Work(wire)
    pipe = wire.connect()
    request_bytes = len(pipe.framed(heartbeat()))
    pipe.requests_sent = 0
    pipe.ask(*[heartbeat()] * 60_000)
    for _ in range(200):
        wire.loop.run_pass()
        pipe.arrive()
        pipe.read()
        waiting = pipe.taken_bytes - request_bytes * len(wire.core.asked)
        assert waiting <= 2 * (UNREAD_BYTES_MAX + READ_BYTES)
    wire.run_until_idle()
    assert sum(isinstance(asked, HeartbeatRequest) for asked, _ in wire.core.asked) == 60_000
    assert pipe.answered == list(range(1, 60_001))


def test_turns_of_arriving_bytes_end_with_the_pass() -> None:
    """Many requests arrive in one pass, each alone and each too short to be long by itself."""
    wire = Wire()
    work = Work(wire)
    work.commit_s = PASS_S_MAX / 4
    pipes = [wire.connect() for _ in range(20)]
    for pipe in pipes:
        pipe.ask(commit())
    for pipe in pipes:
        pipe.arrive()
    assert len(wire.core.asked) == 4
    assert work.now_s == pytest.approx(PASS_S_MAX)

    late = wire.connect()
    late.ask(heartbeat())
    waited_s = work.until(lambda: late.answered == [1])
    assert waited_s <= 2 * PASS_S_MAX
    work.until(lambda: all(pipe.answered == [1] for pipe in pipes))


def test_many_short_turns_end_a_pass_as_well() -> None:
    """Many members join at once: each turn is short, all of them together are not."""
    wire = Wire()
    work = Work(wire)
    work.commit_s = PASS_S_MAX / 50
    pipes = [wire.connect() for _ in range(200)]
    for pipe in pipes:
        pipe.ask(commit())
    for pipe in pipes:
        pipe.arrive()
    assert len(wire.core.asked) in (50, 51)  # a sum of floats

    late = wire.connect()
    late.ask(heartbeat())
    assert work.until(lambda: late.answered == [1]) <= 2 * PASS_S_MAX
    work.until(lambda: all(pipe.answered == [1] for pipe in pipes))


def test_answers_to_many_are_written_in_slices() -> None:
    """All members of a group are answered in one turn; others are served between the writes."""
    wire = Wire()
    work = Work(wire)
    tokens: list[ReplyToken] = []
    wire.core.on_request = lambda _request, token: tokens.append(token)
    pipes = [wire.connect() for _ in range(100)]
    for pipe in pipes:
        pipe.ask(commit())
        pipe.arrive()
        _make_slow(pipe, work)

    for token in tokens:
        wire.server.reply(token, OffsetCommitResponse())
    wire.loop.run_pass()

    assert work.now_s == pytest.approx(FLUSH_S_MAX, rel=0.2)
    wire.run_until_idle()
    for pipe in pipes:
        pipe.read()
    assert all(pipe.answered == [1] for pipe in pipes)


def test_many_clients_that_go_at_once_are_closed_in_slices() -> None:
    wire = Wire()
    pipes = [wire.connect() for _ in range(2 * CLOSED_A_FLUSH_MAX + 1)]
    for pipe in pipes:
        pipe.end()
        pipe.arrive()
    closed = []
    while len(wire.server.connections):
        before = len(wire.server.connections)
        wire.loop.run_pass()
        closed.append(before - len(wire.server.connections))
    assert max(closed) == CLOSED_A_FLUSH_MAX
    assert sum(closed) == len(pipes)


def _make_slow(pipe: Pipe, work: Work) -> None:
    write = pipe.write

    def slow(data: bytes) -> None:
        work.now_s += FLUSH_S_MAX / 10
        write(data)

    pipe.write = slow  # type: ignore[method-assign]


def test_an_answer_after_which_nothing_waits_needs_no_turn() -> None:
    """The members of a group that wait for each other ask nothing meanwhile."""
    wire = Wire()
    pipe = wire.connect()
    pipe.ask(join())
    pipe.arrive()
    wire.server.reply(wire.core.asked[0][1], JoinGroupResponse())
    wire.run_until_idle()
    assert pipe.answered == [1]
    assert wire.server.turns_resumed == 0

    # And what comes next is handled when it arrives.
    pipe.ask(heartbeat())
    pipe.arrive()
    assert len(wire.core.asked) == 2
    assert wire.server.turns_resumed == 0
