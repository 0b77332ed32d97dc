"""Fail points: the step of a rebalance at which this daemon kills itself, for crash drills.

`rollcall.crash.at` names a step. build.py then puts a `FailPoint` between the coordinator and its
two outputs, responses and events. At the first sign of the step the process sends itself SIGKILL:
nothing is flushed, answered or closed. Without the key there is no such object, and no request
costs more. For each step the protocol defines what members may expect of the next coordinator;
tests/drills/ tests it.
"""

import os
import signal
from collections.abc import Callable

from broker.net.request import PendingRequest
from config.crash_steps import NO_CRASH, Step
from coordinator.classic import events
from coordinator.events import AnyEvent
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode
from seams.reply_token import ReplyToken

_Reply = Callable[[ReplyToken, Response], None]
_Observe = Callable[[AnyEvent], None]


_BEFORE_ANSWER = {
    Step.GENERATION_STORED: JoinGroupResponse,
    Step.ASSIGNMENT_STORED: SyncGroupResponse,
}
_AFTER_ANSWER = {
    Step.SOME_NOTIFIED: HeartbeatResponse,
    Step.SOME_JOINS_ANSWERED: JoinGroupResponse,
    Step.SOME_SYNCS_ANSWERED: SyncGroupResponse,
}
_AT_EVENT = {
    Step.REBALANCE_BEGUN: events.RebalanceBegun,
    Step.SOME_JOINED: events.MemberRejoined,
}


def fail_at(step: str, reply: _Reply, observe: _Observe) -> tuple[_Reply, _Observe]:
    """The coordinator's `reply` and `observe`, with a fail point before them if one is named."""
    if step == NO_CRASH:
        return reply, observe
    point = FailPoint(Step(step), reply, observe)
    return point.reply, point.observe


class FailPoint:
    """Takes the place of the coordinator's `reply` and `observe`, and passes everything on."""

    def __init__(self, step: Step, reply: _Reply, observe: _Observe) -> None:
        self._step = step
        self._reply = reply
        self._observe = observe

    def observe(self, event: AnyEvent) -> None:
        self._observe(event)
        if type(event) is _AT_EVENT.get(self._step):
            self._die()

    def reply(self, token: ReplyToken, response: Response) -> None:
        """All that a response depends on is stored by now."""
        if type(response) is _BEFORE_ANSWER.get(self._step) and _is_of_step(response):
            self._die()
        self._reply(token, response)
        if type(response) is _AFTER_ANSWER.get(self._step) and _is_of_step(response):
            assert isinstance(token, PendingRequest)
            if token.connection.write_through():
                self._die()

    def _die(self) -> None:
        os.write(2, f"rollcall.crash.at={self._step}: killed by itself\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _is_of_step(response: Response) -> bool:
    """Whether this answer is the one that the step is about."""
    if isinstance(response, HeartbeatResponse):
        return response.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(response, JoinGroupResponse | SyncGroupResponse)
    return response.error_code is ErrorCode.NONE
