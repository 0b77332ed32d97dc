"""Limits on all connections together: no client's share may keep the server from reading others.

In virtual time, on the real Server: bytes of requests (queued.max.request.bytes) and of answers
that nobody reads (rollcall.connections.unsent.max.bytes).
"""

from broker.net.request import PendingRequest
from broker.net.server import SWEEP_MS_MAX
from broker.observe.events import PeerFault
from config.limits import ServerLimits
from protocol.messages import Request
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import TopicName
from seams.reply_token import ReplyToken
from tests.broker.shell import commit, heartbeat, join
from tests.broker.wire import Pipe, Wire

ANSWER_BYTES = 30_000
CONNECTION_MAX = 400_000
TOTAL_MAX = 1_000_000


# Requests.


def test_members_that_wait_for_each_other_leave_the_server_open_to_others() -> None:
    wire = Wire(ServerLimits(queued_max_request_bytes=100))
    waiting = [wire.connect() for _ in range(50)]
    for pipe in waiting:
        pipe.ask(join())
    wire.run_until_idle()
    assert len(wire.core.asked) == 50
    assert wire.server.quotas.request_bytes.queued_bytes == 0

    innocent = wire.connect()
    innocent.ask(heartbeat())
    wire.run_until_idle()
    assert innocent.answered == [1]

    for _, token in wire.core.asked[:50]:
        wire.core.answer(token, JoinGroupResponse())
    wire.run_until_idle()
    assert all(pipe.answered == [1] for pipe in waiting)
    assert wire.server.quotas.request_bytes.queued_bytes == 0


def test_what_waits_for_the_disk_counts_until_it_is_answered() -> None:
    wire = Wire(ServerLimits(queued_max_request_bytes=100))
    greedy = wire.connect()
    greedy.ask(*[commit()] * 100)
    wire.run_until_idle()
    assert 100 < wire.server.quotas.request_bytes.queued_bytes < 200
    assert len(wire.core.asked) < 10
    done = 0
    while done < len(wire.core.asked):
        wire.core.answer(wire.core.asked[done][1], OffsetCommitResponse())
        done += 1
        wire.run_until_idle()
    assert greedy.answered == list(range(1, 101))
    assert wire.server.quotas.request_bytes.queued_bytes == 0


def test_records_that_are_being_appended_count_although_they_hold_the_connection() -> None:
    wire = Wire(ServerLimits(queued_max_request_bytes=1_000))
    producers = [wire.connect() for _ in range(5)]
    data = [PartitionProduceData(0, bytes(900))]
    topics = [TopicProduceData(TopicName("t"), partition_data=data)]
    for pipe in producers:
        pipe.send(pipe.framed(ProduceRequest(acks=1, topic_data=topics), 9))
    wire.run_until_idle()
    assert 1_800 < wire.server.quotas.request_bytes.queued_bytes < 2_000
    late = wire.connect()
    late.ask(heartbeat(), heartbeat())
    wire.run_until_idle()
    assert late.answered == []

    done = 0
    while done < len(wire.core.asked):
        request, token = wire.core.asked[done]
        if isinstance(request, ProduceRequest):
            wire.core.answer(token, ProduceResponse())
        done += 1
        wire.run_until_idle()
    assert all(pipe.answered == [1] for pipe in producers)
    assert late.answered == [1, 2]
    assert wire.server.quotas.request_bytes.queued_bytes == 0


def test_who_is_held_back_is_not_idle() -> None:
    idle_ms = 60_000
    wire = Wire(ServerLimits(queued_max_request_bytes=100, connections_max_idle_ms=idle_ms))
    greedy, silent = wire.connect(), wire.connect()
    held_back = [wire.connect() for _ in range(3)]
    greedy.ask(*[commit()] * 20)
    wire.run_until_idle()
    for pipe in held_back:
        pipe.ask(*[heartbeat()] * 20)
    wire.run_until_idle()
    held_back[2].end()
    asked = len(wire.core.asked)

    wire.pass_time(2 * idle_ms)
    assert len(wire.core.asked) == asked
    assert silent.is_lost
    assert not any(pipe.is_lost for pipe in held_back)
    assert [drop.fault for drop in wire.dropped()] == [PeerFault.IDLE]

    done = 0
    while done < len(wire.core.asked):
        request, token = wire.core.asked[done]
        if isinstance(request, OffsetCommitRequest):
            wire.core.answer(token, OffsetCommitResponse())
        done += 1
        wire.run_until_idle()
    assert all(pipe.answered == list(range(1, 21)) for pipe in held_back)


def test_who_waits_for_a_place_is_not_idle() -> None:
    idle_ms = 60_000
    wire = Wire(ServerLimits(max_connections=1, connections_max_idle_ms=idle_ms))
    first, second = wire.connect(), wire.connect()
    first.ask(join())
    second.ask(heartbeat())
    wire.run_until_idle()
    wire.pass_time(2 * idle_ms)
    assert second.answered == []
    first.cut()
    wire.run_until_idle()
    assert second.answered == [1]


def test_a_connection_that_waits_for_a_slot_is_served_once_descriptors_are_free() -> None:
    """Topics were deleted, say. No other connection needs to end for that, and one lets in many."""
    wire = Wire()
    places = 2
    wire.server.connections_allowed = lambda: places
    pipes = [wire.connect() for _ in range(8)]
    for pipe in pipes:
        pipe.ask(heartbeat())
    wire.run_until_idle()
    assert [len(pipe.answered) for pipe in pipes] == [1] * 2 + [0] * 6
    places = 5
    wire.pass_time(SWEEP_MS_MAX)
    wire.run_until_idle()
    assert [len(pipe.answered) for pipe in pipes] == [1] * 5 + [0] * 3
    places = 100
    pipes[0].cut()
    wire.run_until_idle()
    assert [len(pipe.answered) for pipe in pipes] == [1] * 8


# Answers.


class Answers:
    """A core whose FindCoordinator has a long answer; heartbeats are answered, commits wait."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.commits: list[ReplyToken] = []
        wire.core.on_request = self._handle

    def _handle(self, request: Request, token: ReplyToken) -> None:
        assert isinstance(token, PendingRequest)
        match request:
            case HeartbeatRequest():
                self.wire.server.reply(token, HeartbeatResponse())
            case FindCoordinatorRequest():
                answer = FindCoordinatorResponse(error_message="x" * ANSWER_BYTES, host="h")
                self.wire.server.reply(token, answer)
            case _:
                self.commits.append(token)

    def store(self) -> None:
        commits, self.commits = self.commits, []
        for token in commits:
            self.wire.server.reply(token, OffsetCommitResponse())


def limited() -> tuple[Wire, Answers]:
    wire = Wire(
        ServerLimits(
            connection_unsent_max_bytes=CONNECTION_MAX, connections_unsent_max_bytes=TOTAL_MAX
        )
    )
    return wire, Answers(wire)


def ask_for_much(pipe: Pipe, many: int = 40) -> None:
    for _ in range(many):
        pipe.send(pipe.framed(FindCoordinatorRequest(key="g"), 2))


def test_unsent_answers_of_all_together_are_bounded_and_readers_are_served() -> None:
    wire, _ = limited()
    unread = [wire.connect() for _ in range(60)]
    for pipe in unread:
        ask_for_much(pipe)
    wire.run_until_idle(reading=False)

    # Each may have exceeded it by one answer, none by more.
    unsent = wire.server.quotas.unsent.total_bytes()
    assert unsent == sum(pipe.get_write_buffer_size() for pipe in unread)
    assert TOTAL_MAX - ANSWER_BYTES < unsent < TOTAL_MAX + 60 * (ANSWER_BYTES + 100)

    # Who reads its answers is served meanwhile, large ones too.
    reader = wire.connect()
    reader.ask(heartbeat())
    ask_for_much(reader, 5)
    reader.ask(heartbeat())
    for _ in range(100):
        wire.loop.run_pass()
        reader.arrive()
        reader.read()
    assert reader.answered == list(range(1, 8))

    # And nothing was lost: once they read, they get all.
    wire.run_until_idle()
    assert all(pipe.answered == list(range(1, 41)) for pipe in unread)
    assert wire.server.quotas.unsent.total_bytes() == 0


def test_the_worst_stops_first() -> None:
    wire, _ = limited()
    worst, modest = wire.connect(), wire.connect()
    others = [wire.connect() for _ in range(2)]
    for pipe in (worst, *others):
        ask_for_much(pipe)
    wire.run_until_idle(reading=False)
    held = worst.get_write_buffer_size()

    # One more that reads nothing yet, but asks for little, gets it made.
    ask_for_much(modest, 3)
    wire.run_until_idle(reading=False)
    modest.read()
    assert modest.answered == [1, 2, 3]
    assert worst.get_write_buffer_size() == held
    wire.run_until_idle()
    assert worst.answered == list(range(1, 41))


def test_what_one_connection_may_have_unsent_is_bounded_beside_that() -> None:
    wire, _ = limited()
    unread = wire.connect()
    ask_for_much(unread)
    wire.run_until_idle(reading=False)
    assert CONNECTION_MAX < unread.get_write_buffer_size() <= CONNECTION_MAX + ANSWER_BYTES + 100


def test_answers_behind_one_that_waits_for_the_disk_count_too() -> None:
    wire, answers = limited()
    pipe = wire.connect()
    pipe.ask(commit())
    ask_for_much(pipe)
    wire.run_until_idle()
    assert (
        CONNECTION_MAX < wire.server.quotas.unsent.kept_bytes <= CONNECTION_MAX + ANSWER_BYTES + 100
    )
    assert pipe.answered == []
    answers.store()
    wire.run_until_idle()
    assert pipe.answered == list(range(1, 42))
    assert wire.server.quotas.unsent.kept_bytes == 0


def test_what_was_kept_for_a_lost_connection_is_forgotten() -> None:
    wire, _ = limited()
    unread, waiting = wire.connect(), wire.connect()
    waiting.ask(commit())
    for pipe in (unread, waiting):
        ask_for_much(pipe)
    wire.run_until_idle(reading=False)
    assert wire.server.quotas.unsent.total_bytes() > 2 * ANSWER_BYTES
    unread.cut()
    waiting.cut()
    wire.run_until_idle()
    assert wire.server.quotas.unsent.total_bytes() == 0
