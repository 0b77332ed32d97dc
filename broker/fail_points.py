"""Fail points: the step of a rebalance at which this daemon kills itself, for crash drills.

`rollcall.crash.at` names a step, or the file of `rollcall.drill.faults` does while a drill runs.
build.py then puts a `FailPoint` between the coordinator and its two outputs, responses and events.
At the first sign of the step the process sends itself SIGKILL: nothing is flushed, answered or
closed. Without these keys there is no such object, and no request costs more. For each step the
protocol defines what members may expect of the next coordinator; tests/drills/ tests it.
"""

import os
import signal
from collections.abc import Callable

from broker.net.request import PendingRequest, Requester
from config.crash_steps import LOADING, NO_CRASH, Step
from config.keys import Config
from config.storage_settings import faults_file
from coordinator.classic import events
from coordinator.events import AnyEvent, PartitionLoaded
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode, MemberId
from seams.reply_token import ReplyToken

_Reply = Callable[[ReplyToken, Response], None]
_Observe = Callable[[AnyEvent], None]


_BEFORE_ANSWER: dict[str, type[Response]] = {
    Step.GENERATION_STORED: JoinGroupResponse,
    Step.ASSIGNMENT_STORED: SyncGroupResponse,
}
_AFTER_ANSWER: dict[str, type[Response]] = {
    Step.SOME_NOTIFIED: HeartbeatResponse,
    Step.SOME_JOINS_ANSWERED: JoinGroupResponse,
    Step.SOME_SYNCS_ANSWERED: SyncGroupResponse,
}
_AT_EVENT: dict[str, type[AnyEvent]] = {
    Step.REBALANCE_BEGUN: events.RebalanceBegun,
    Step.SOME_JOINED: events.MemberRejoined,
    LOADING: PartitionLoaded,
}


def fail_at(config: Config, reply: _Reply, observe: _Observe) -> tuple[_Reply, _Observe]:
    """The coordinator's `reply` and `observe`, with a fail point before them if one is named."""
    step, faults = config.rollcall_crash_at, faults_file(config)
    if faults is not None:
        point = FailPoint(lambda: faults.now().crash_at, reply, observe)
    elif step != NO_CRASH:
        point = FailPoint(lambda: step, reply, observe)
    else:
        return reply, observe
    return point.reply, point.observe


class NotificationsTogether:
    """For ALL_NOTIFIED: withholds the notifications of a rebalance until all can be sent at once.

    A member rejoins as soon as it is notified. Only if the last member's heartbeat is answered with
    the first one's, all are notified while none has rejoined.
    """

    def __init__(self, reply: _Reply) -> None:
        self._reply = reply
        self._awaited: set[MemberId] = set()
        self._held: dict[Requester, list[tuple[PendingRequest, Response]]] = {}
        self._unwritten: list[PendingRequest] = []

    def observe(self, event: AnyEvent) -> bool:
        """Whether all members of the rebalance are notified now."""
        match event:
            case events.RebalanceBegun():
                self.let_go()
                self._awaited = {member.member_id for member in event.waiting_for}
            case events.MemberRejoined():
                self._awaited.discard(event.member.member_id)  # without having been asked
            case events.MembersRemoved():
                self._awaited -= {removed.member.member_id for removed in event.removed}
            case _:
                return False
        return self._send_if_complete()

    def reply(self, token: PendingRequest, response: Response) -> bool:
        """As `observe`; passes every response on, the notifications later."""
        if self._awaited and _is_notification(response):
            self._held.setdefault(token.connection, []).append((token, response))
            return self._send_if_complete()
        self._reply(token, response)
        return bool(self._unwritten) and self._is_all_written()

    def let_go(self) -> None:
        """What is withheld goes out as ever."""
        self._awaited = set()
        self._unwritten = []
        while self._held:
            for token, response in self._held.popitem()[1]:
                self._reply(token, response)

    def _send_if_complete(self) -> bool:
        """A member beats over one connection: as many are notified as have an answer here."""
        if not self._held or len(self._held) < len(self._awaited):
            return False
        tokens = [token for held in self._held.values() for token, _ in held]
        self.let_go()
        self._unwritten = tokens
        return self._is_all_written()

    def _is_all_written(self) -> bool:
        """An answer that stands behind others of its connection is written after them."""
        self._unwritten = [t for t in self._unwritten if not t.connection.write_through(t)]
        return not self._unwritten


class FailPoint:
    """Takes the place of the coordinator's `reply` and `observe`, and passes everything on."""

    def __init__(self, step: Callable[[], str], reply: _Reply, observe: _Observe) -> None:
        self._step = step
        self._reply = reply
        self._observe = observe
        self._together = NotificationsTogether(reply)
        self._unwritten: list[PendingRequest] = []
        """Answers of the step that stand behind others of their connections."""

    def observe(self, event: AnyEvent) -> None:
        self._observe(event)
        step = self._step()
        if step == Step.ALL_NOTIFIED:
            if self._together.observe(event):
                self._die(step)
        elif type(event) is _AT_EVENT.get(step):
            self._die(step)

    def reply(self, token: ReplyToken, response: Response) -> None:
        """All that a response depends on is stored by now."""
        step = self._step()
        if step == Step.ALL_NOTIFIED:
            assert isinstance(token, PendingRequest)
            if self._together.reply(token, response):
                self._die(step)
            return
        self._together.let_go()
        if type(response) is _BEFORE_ANSWER.get(step) and _is_of_step(response):
            self._die(step)
        self._reply(token, response)
        if step not in _AFTER_ANSWER:
            self._unwritten.clear()
            return
        if type(response) is _AFTER_ANSWER[step] and _is_of_step(response):
            assert isinstance(token, PendingRequest)
            self._unwritten.append(token)
        if any(each.connection.write_through(each) for each in self._unwritten):
            self._die(step)

    @staticmethod
    def _die(step: str) -> None:
        os.write(2, f"rollcall.crash.at={step}: killed by itself\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _is_notification(response: Response) -> bool:
    return isinstance(response, HeartbeatResponse) and _is_of_step(response)


def _is_of_step(response: Response) -> bool:
    """Whether this answer is the one that the step is about."""
    if isinstance(response, HeartbeatResponse):
        return response.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(response, JoinGroupResponse | SyncGroupResponse)
    return response.error_code is ErrorCode.NONE
