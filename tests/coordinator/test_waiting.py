"""Answers that wait for the disk: in which order they go, and what becomes of them if it fails."""

import pytest

from coordinator.combined_answer import CombinedAnswer
from coordinator.locks import GroupLock
from coordinator.outcome import Reply
from coordinator.pending_answers import SENT_AT_ONCE, ClientAnswer, PendingAnswers
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.list_groups import ListGroupsResponse
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.names import ErrorCode, TopicName
from seams.next_deadline import NextDeadline
from tests.world import Token, World, kafka_settings

TIMEOUT_MS = 5_000


class Desk:
    """Where answers go out."""

    def __init__(self, stored: int = 0) -> None:
        self.sent: list[tuple[str, Response]] = []
        self.next_deadline = NextDeadline()
        self.answers = PendingAnswers(stored, TIMEOUT_MS, self.next_deadline)

    def send(self, token: Token, response: Response) -> None:
        self.sent.append((token.client_id, response))

    def add(self, name: str, position: int, now_ms: int = 0) -> None:
        answer = ClientAnswer(Token(4, name), HeartbeatResponse(), self.send)  # type: ignore[arg-type]
        self.answers.add(position, answer, now_ms)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.sent]


def test_what_is_stored_already_goes_out_at_once() -> None:
    desk = Desk(stored=5)
    desk.add("a", 5)
    desk.add("b", 6)
    assert desk.names == ["a"]
    assert len(desk.answers) == 1


def test_the_rest_goes_out_by_position_and_then_by_arrival() -> None:
    desk = Desk()
    for name, position in (("d", 9), ("a", 3), ("b", 3), ("c", 4)):
        desk.add(name, position)
    desk.answers.release(3)
    assert desk.names == ["a", "b"]
    desk.answers.release(8)
    assert desk.names == ["a", "b", "c"]
    desk.answers.release(9)
    assert desk.names == ["a", "b", "c", "d"]
    assert len(desk.answers) == 0


def test_the_answers_to_a_large_group_go_out_in_slices() -> None:
    desk = Desk()
    for number in range(SENT_AT_ONCE + 2):
        desk.add(str(number), 9)
    desk.answers.release(9)
    assert len(desk.names) == SENT_AT_ONCE
    assert desk.answers.has_slice
    assert desk.next_deadline.at_ms == 0  # the next tick, which is due now

    desk.answers.release(4)  # no position falls, and nothing goes out twice
    assert desk.names == [str(number) for number in range(SENT_AT_ONCE + 2)]
    assert not desk.answers.has_slice


def test_a_group_of_a_thousand_is_answered_in_some_ticks() -> None:
    world = World(kafka_settings(group_initial_rebalance_delay_ms=0))
    shard = world.coordinator._active[0]
    assert shard is not None
    members = SENT_AT_ONCE + 100
    tokens = [Token(9, f"member-{number}") for number in range(members)]
    replies = [Reply(token, HeartbeatResponse()) for token in tokens]  # type: ignore[arg-type]

    shard._send(replies, shard.answers.stored, world.now)
    assert sum(token.answers != [] for token in tokens) == SENT_AT_ONCE
    assert shard.next_deadline_ms() == 0

    shard.tick(world.now)
    assert all(token.answers == [HeartbeatResponse()] for token in tokens)
    assert shard.next_deadline_ms() != 0


def test_slices_that_are_not_stored_in_time_are_refused_all() -> None:
    desk = Desk()
    tokens = [Token(4, str(number)) for number in range(SENT_AT_ONCE + 1)]
    replies = [Reply(token, HeartbeatResponse()) for token in tokens]  # type: ignore[arg-type]
    desk.answers.add_slices(3, replies, desk.send, 0)  # type: ignore[arg-type]
    assert desk.names == []

    desk.answers.refuse_overdue(TIMEOUT_MS)

    assert desk.names == [token.client_id for token in tokens]
    codes = {response.error_code for _, response in desk.sent}  # type: ignore[union-attr]
    assert codes == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


@pytest.mark.parametrize("end", ["overdue", "closed"])
def test_slices_that_are_stored_and_not_sent_yet_are_not_refused(end: str) -> None:
    """The fsync took nearly the whole timeout, or the partition is closed between two slices."""
    desk = Desk()
    members = 2 * SENT_AT_ONCE + 1
    tokens = [Token(4, str(number)) for number in range(members)]
    replies = [Reply(token, HeartbeatResponse()) for token in tokens]  # type: ignore[arg-type]
    desk.answers.add_slices(3, replies, desk.send, 0)  # type: ignore[arg-type]
    desk.add("not stored", 4)
    desk.add("later", 4, now_ms=1_000)
    desk.answers.release(3)
    assert len(desk.names) == SENT_AT_ONCE

    if end == "overdue":
        desk.answers.refuse_overdue(TIMEOUT_MS)
        assert desk.answers.due_ms == TIMEOUT_MS + 1_000
        while desk.answers.has_slice:
            desk.answers.send_slice()
        desk.answers.refuse_overdue(TIMEOUT_MS + 1_000)
    else:
        desk.answers.refuse_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    codes = {name: response.error_code for name, response in desk.sent}  # type: ignore[union-attr]
    assert len(codes) == len(desk.sent) == members + 2
    assert {codes.pop(name) for name in ("not stored", "later")} == {
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    }
    assert set(codes.values()) == {ErrorCode.NONE}


def test_a_stored_position_never_falls() -> None:
    desk = Desk()
    desk.answers.release(9)
    desk.answers.release(3)
    desk.add("a", 9)
    assert desk.names == ["a"]


def test_when_the_log_fails_each_is_refused_once() -> None:
    desk = Desk()
    desk.add("a", 1)
    desk.add("b", 2)
    desk.answers.refuse_all(ErrorCode.NOT_COORDINATOR)
    desk.answers.release(2)
    assert desk.names == ["a", "b"]
    for _, response in desk.sent:
        assert isinstance(response, HeartbeatResponse)
        assert response.error_code is ErrorCode.NOT_COORDINATOR


def test_what_has_waited_too_long_is_refused_and_what_came_later_is_not() -> None:
    desk = Desk()
    desk.add("a", 3, now_ms=100)
    assert desk.next_deadline.at_ms == desk.answers.due_ms == 5_100
    desk.add("late, of an older position", 2, now_ms=1_000)
    desk.add("b", 3, now_ms=200)
    desk.add("late", 4, now_ms=1_000)
    desk.answers.refuse_overdue(5_099)
    assert desk.names == []
    desk.answers.refuse_overdue(5_200)
    assert desk.names == ["a", "b"]
    for _, response in desk.sent:
        assert isinstance(response, HeartbeatResponse)
        assert response.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.answers.due_ms == 6_000
    # It may be stored all the same: the others are answered, these not once more.
    desk.answers.release(9)
    assert desk.names == ["a", "b", "late, of an older position", "late"]


def test_answers_that_came_in_time_leave_one_deadline_in_vain() -> None:
    desk = Desk()
    desk.add("a", 1, now_ms=0)
    desk.answers.release(1)
    desk.add("b", 2, now_ms=3_000)
    assert desk.answers.due_ms == 5_000
    desk.answers.refuse_overdue(5_000)
    assert (desk.names, desk.answers.due_ms) == (["a"], 8_000)
    desk.answers.release(2)
    desk.answers.refuse_overdue(8_000)
    assert desk.answers.due_ms is None


def test_a_whole_goes_out_with_its_last_part() -> None:
    sent: list[tuple[list[int], ErrorCode]] = []

    def build(found: list[int], error_code: ErrorCode) -> Response:
        sent.append((found, error_code))
        return ListGroupsResponse()

    combined = CombinedAnswer(Token(0, "a"), 3, build, lambda *_: None)
    combined.part([1, 2], None).send()
    combined.part([3], lambda _: [-3]).refuse(ErrorCode.NOT_COORDINATOR)
    assert not sent
    combined.part([4], None).send()
    assert sent == [([1, 2, -3, 4], ErrorCode.NONE)]
    with pytest.raises(AssertionError, match="came twice"):
        combined.part([5], None).send()


def test_a_part_without_refusals_of_its_own_fails_the_whole() -> None:
    codes: list[ErrorCode] = []

    def build(_: list[int], error_code: ErrorCode) -> Response:
        codes.append(error_code)
        return ListGroupsResponse()

    combined = CombinedAnswer(Token(0, "a"), 2, build, lambda *_: None)
    combined.part([1], None).refuse(ErrorCode.NOT_COORDINATOR)
    combined.part([2], None).send()
    assert codes == [ErrorCode.NOT_COORDINATOR]


def test_a_group_is_not_entered_in_the_middle_of_its_turn() -> None:
    lock = GroupLock()
    lock.acquire()
    assert lock.held
    with pytest.raises(AssertionError, match="in the middle of its turn"):
        lock.acquire()
    lock.release()
    lock.acquire()


def test_a_commit_that_is_not_durable_in_time_is_refused_and_may_be_stored_all_the_same(
    world: World,
) -> None:
    member_id = next(iter(world.given_stable_group(members=1).members))
    world.storing = False
    first = world.committing("g", member_id, 1, offsets={0: 7})
    world.advance(2_000)
    second = world.committing("g", member_id, 1, offsets={1: 8})
    world.advance(2_999)
    assert first.waits
    world.advance(1)
    assert isinstance(first.response, OffsetCommitResponse)
    (topic,) = first.response.topics
    assert [partition.error_code for partition in topic.partitions] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    ]
    assert second.waits
    world.storing = True
    world.step()
    assert not second.waits
    offsets = world.group().offsets[TopicName("t")]
    assert {index: offset.committed_offset for index, offset in offsets.items()} == {0: 7, 1: 8}
    # Nothing more comes of the deadline.
    world.advance(60_000)
    world.check()


def test_the_time_is_a_setting() -> None:
    world = World(kafka_settings(offsets_commit_timeout_ms=50))
    world.storing = False
    asked = world.committing("g")
    world.advance(49)
    assert asked.waits
    world.advance(1)
    assert not asked.waits
