"""Fail points: notifications that are withheld until every member of a rebalance has one."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from broker import fail_points
from broker.fail_points import FailPoint, NotificationsTogether, Step
from coordinator.classic.commands import RebalanceCause
from coordinator.classic.events import (
    MemberRejoined,
    MembersRemoved,
    RebalanceBegun,
    RemovalCause,
    RemovedMember,
)
from coordinator.member_identity import MemberIdentity
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.names import ErrorCode, GenerationId, GroupId, GroupState, MemberId

GROUP = GroupId("g")
NOTIFIED = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
FINE = HeartbeatResponse()


@dataclass(eq=False)
class FakeConnection:
    """`behind`: answers of it stand behind one that is still to come."""

    behind: bool = False
    collected: list[object] = field(default_factory=list)

    def write_through(self, token: object) -> bool:
        assert self.collected
        return not self.behind


@dataclass
class FakeToken:
    connection: FakeConnection


class Together:
    def __init__(self, members: int) -> None:
        self.together = NotificationsTogether(self._answered)
        self.connections = [FakeConnection() for _ in range(members)]

    def _answered(self, token: Any, response: object) -> None:
        token.connection.collected.append(response)

    def answer(self, member: int, response: HeartbeatResponse = NOTIFIED) -> bool:
        token: Any = FakeToken(self.connections[member])
        return self.together.reply(token, response)

    def begin(self) -> bool:
        waiting = tuple(identity(number) for number in range(len(self.connections)))
        return self.together.observe(
            RebalanceBegun(
                GROUP, 0, 0, GroupState.STABLE, GenerationId(1), RebalanceCause.MEMBER_JOINED, "",
                (), waiting, 60_000,
            )
        )  # fmt: skip

    @property
    def answers(self) -> list[int]:
        return [len(connection.collected) for connection in self.connections]


def identity(number: int) -> MemberIdentity:
    return MemberIdentity(MemberId(f"m{number}"))


def test_all_are_notified_by_the_last_heartbeat() -> None:
    group = Together(3)
    assert not group.begin()
    assert not group.answer(0)
    assert not group.answer(1)
    assert group.answers == [0, 0, 0]
    assert group.answer(2)
    assert group.answers == [1, 1, 1]


def test_other_answers_are_not_withheld() -> None:
    group = Together(2)
    assert not group.answer(0)  # of a rebalance that was not seen
    group.begin()
    assert not group.answer(0, FINE)
    assert group.answers == [2, 0]


def test_an_answer_behind_another_one_is_waited_for() -> None:
    group = Together(2)
    group.begin()
    group.answer(0)
    group.connections[1].behind = True
    assert not group.answer(1)
    group.connections[1].behind = False
    assert group.answer(1, FINE)


def test_members_that_leave_or_rejoin_by_themselves_are_not_awaited() -> None:
    group = Together(3)
    group.begin()
    token: Any = object()
    rejoined = MemberRejoined(GROUP, 0, 0, identity(1), 1, 1, (), token, reason="")
    assert not group.together.observe(rejoined)
    assert not group.answer(0)
    removed = MembersRemoved(
        GROUP, 0, GroupState.PREPARING_REBALANCE, GenerationId(1), RemovalCause.LEFT,
        (RemovedMember(identity(2)),),
    )  # fmt: skip
    assert group.together.observe(removed)
    assert group.answers == [1, 0, 0]


def test_who_dies_after_an_answer_waits_for_those_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died: list[str] = []
    monkeypatch.setattr(FailPoint, "_die", died.append)
    connection = FakeConnection(behind=True)
    point = FailPoint(
        lambda: Step.SOME_NOTIFIED, lambda _, answer: connection.collected.append(answer), print
    )
    monkeypatch.setattr(fail_points, "PendingRequest", FakeToken)
    token: Any = FakeToken(connection)
    point.reply(token, NOTIFIED)
    point.reply(token, FINE)
    assert not died
    connection.behind = False
    point.reply(token, FINE)
    assert died == [Step.SOME_NOTIFIED]


def test_nobody_is_notified_of_a_rebalance_without_members() -> None:
    group = Together(0)
    assert not group.begin()


def test_what_is_withheld_goes_out_with_the_next_rebalance() -> None:
    group = Together(2)
    group.begin()
    group.answer(0)
    group.begin()
    assert group.answers == [1, 0]
