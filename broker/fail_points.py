"""At which step of a rebalance should this daemon die? The fail points that crash drills aim at.

`rollcall.crash.at` names a step; main.py then puts a `FailPoint` between the coordinator and what
it speaks through, its answers and its events, and nowhere else. At the first sign of the step the
process ends itself with SIGKILL: nothing is flushed, answered or closed. Without the key there is
no such object, and nothing is any slower. The steps are those at which the protocol's design says
what members may expect of the next coordinator; tests/drills/ holds us to it.
"""

import os
import signal
from collections.abc import Callable

from broker.net.request import PendingRequest
from config.crash_steps import NEVER, Step
from coordinator.classic import events
from coordinator.events import AnyEvent
from protocol.messages import Response
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.names import ErrorCode
from seams.reply_token import ReplyToken

Reply = Callable[[ReplyToken, Response], None]
Observe = Callable[[AnyEvent], None]


_BEFORE_ANSWER = {
    Step.GENERATION_STORED: JoinGroupResponse,
    Step.ASSIGNMENT_STORED: SyncGroupResponse,
}
_AFTER_ANSWER = {
    Step.SOME_TOLD: HeartbeatResponse,
    Step.SOME_JOINS_ANSWERED: JoinGroupResponse,
    Step.SOME_SYNCS_ANSWERED: SyncGroupResponse,
}
_AT_EVENT = {
    Step.REBALANCE_BEGUN: events.RebalanceBegun,
    Step.SOME_JOINED: events.MemberRejoined,
}


def fail_at(step: str, reply: Reply, observe: Observe) -> tuple[Reply, Observe]:
    """What the coordinator is given for its answers and events."""
    if step == NEVER:
        return reply, observe
    point = FailPoint(Step(step), reply, observe)
    return point.reply, point.observe


class FailPoint:
    """Stands in for the coordinator's `reply` and `observe` and passes everything on."""

    def __init__(self, step: Step, reply: Reply, observe: Observe) -> None:
        self._step = step
        self._reply = reply
        self._observe = observe

    def observe(self, event: AnyEvent) -> None:
        self._observe(event)
        if type(event) is _AT_EVENT.get(self._step):
            self._die()

    def reply(self, token: ReplyToken, response: Response) -> None:
        """An answer that gets here depends on nothing that is not stored."""
        if type(response) is _BEFORE_ANSWER.get(self._step) and _is_told(response):
            self._die()
        self._reply(token, response)
        if type(response) is _AFTER_ANSWER.get(self._step) and _is_told(response):
            assert isinstance(token, PendingRequest)
            if token.connection.write_through():
                self._die()

    def _die(self) -> None:
        os.write(2, f"rollcall.crash.at={self._step}: killed by itself\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _is_told(response: Response) -> bool:
    """Whether this answer is the one that the step is about."""
    if isinstance(response, HeartbeatResponse):
        return response.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(response, JoinGroupResponse | SyncGroupResponse)
    return response.error_code is ErrorCode.NONE
