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

from broker.net.request import PendingRequest
from config.crash_steps import LOADING, NO_CRASH, Step
from config.keys import Config
from config.storage_settings import faults_file
from coordinator.classic import events
from coordinator.events import AnyEvent, PartitionLoaded
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode
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


class FailPoint:
    """Takes the place of the coordinator's `reply` and `observe`, and passes everything on."""

    def __init__(self, step: Callable[[], str], reply: _Reply, observe: _Observe) -> None:
        self._step = step
        self._reply = reply
        self._observe = observe

    def observe(self, event: AnyEvent) -> None:
        self._observe(event)
        step = self._step()
        if type(event) is _AT_EVENT.get(step):
            self._die(step)

    def reply(self, token: ReplyToken, response: Response) -> None:
        """All that a response depends on is stored by now."""
        step = self._step()
        if type(response) is _BEFORE_ANSWER.get(step) and _is_of_step(response):
            self._die(step)
        self._reply(token, response)
        if type(response) is _AFTER_ANSWER.get(step) and _is_of_step(response):
            assert isinstance(token, PendingRequest)
            if token.connection.write_through():
                self._die(step)

    @staticmethod
    def _die(step: str) -> None:
        os.write(2, f"rollcall.crash.at={step}: killed by itself\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _is_of_step(response: Response) -> bool:
    """Whether this answer is the one that the step is about."""
    if isinstance(response, HeartbeatResponse):
        return response.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(response, JoinGroupResponse | SyncGroupResponse)
    return response.error_code is ErrorCode.NONE
