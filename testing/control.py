"""Control channel: what a test may do with its daemon beside being a client of it.

A socket that the daemon has inherited from the test run: no path, no port, and no configuration
that opens one, so nobody else can reach it. One JSON object a line each way; questions are answered
one after another. When the test's end is closed the process ends.

    {"id": N, "ask": NAME, ...}  ->  {"id": N, "answer": ...} or {"id": N, "error": KIND, ...}
"""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from broker.daemon import Daemon
from broker.main import Ports
from broker.net.sockets import address_text
from testing.clock_jumps import ClockJumps
from testing.groups import GroupsControl
from testing.interventions import Interventions
from testing.refusal import ControlRefusal
from testing.timeline import TimelineText
from testing.topics import create_topic

LINE_MAX: Final = 1 << 24

ControlAnswer = object
Question = Mapping[str, object]


class Control:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._task: asyncio.Task[None] | None = None

    def start(self, daemon: Daemon, ports: Ports) -> None:
        """The daemon is ready: say so, and answer questions from now on."""
        self._task = daemon.loop.create_task(self._serve(daemon, ports))

    async def _serve(self, daemon: Daemon, ports: Ports) -> None:
        reader, writer = await asyncio.open_connection(sock=self._channel, limit=LINE_MAX)
        first = ports.clients[0]
        admin = ports.admin
        ready = {
            "bootstrap": address_text(first.host, first.port),
            "admin": None if admin is None else address_text(admin.host, admin.port),
        }
        writer.write(_line({"answer": ready}))
        answers = _answers(daemon)
        try:
            while question := await reader.readline():
                asked = json.loads(question)
                writer.write(_line({"id": asked["id"], **await _answered(answers, asked)}))
                await writer.drain()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)  # its test is over, or the test run was killed


def _answers(daemon: Daemon) -> Mapping[str, Callable[[Question], Awaitable[ControlAnswer]]]:
    groups, interventions = GroupsControl(daemon), Interventions(daemon)
    jumps, timeline = ClockJumps(daemon), TimelineText(daemon)

    async def advance(question: Question) -> ControlAnswer:
        await jumps.advance(_number(question, "ms"))
        return None

    async def create(question: Question) -> ControlAnswer:
        await create_topic(daemon, _text(question, "name"), _number(question, "partitions"))
        return None

    async def expire(question: Question) -> ControlAnswer:
        groups.expire(_text(question, "group"), _text(question, "member"))
        await jumps.wait_idle()
        return None

    async def group(question: Question) -> ControlAnswer:
        return groups.describe(_text(question, "group"))

    async def fail_next(question: Question) -> ControlAnswer:
        api, error = _text(question, "api"), _text(question, "error")
        interventions.fail_next(api, error, _number(question, "times"))
        return None

    async def hold(question: Question) -> ControlAnswer:
        return interventions.hold(_text(question, "api"))

    async def held(question: Question) -> ControlAnswer:
        return interventions.held(_number(question, "hold"))

    async def release(question: Question) -> ControlAnswer:
        interventions.release(_number(question, "hold"))
        await jumps.wait_idle()
        return None

    async def show_timeline(question: Question) -> ControlAnswer:
        return await timeline.text(_number(question, "since_ms"))

    async def now(_: Question) -> ControlAnswer:
        return daemon.clock.now().wall_ms

    return {
        "advance": advance,
        "create_topic": create,
        "expire": expire,
        "fail_next": fail_next,
        "group": group,
        "held": held,
        "hold": hold,
        "now": now,
        "release": release,
        "timeline": show_timeline,
    }


async def _answered(
    answers: Mapping[str, Callable[[Question], Awaitable[ControlAnswer]]], question: Question
) -> dict[str, object]:
    try:
        return {"answer": await answers[_text(question, "ask")](question)}
    except ControlRefusal as refusal:
        return {"error": refusal.kind, "message": str(refusal)}
    except Exception as failure:  # noqa: BLE001 - the test hears of our defect, as of a refusal
        return {"error": "defect", "message": f"{type(failure).__name__}: {failure}"}


def _line(content: Mapping[str, object]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _text(question: Question, name: str) -> str:
    value = question[name]
    assert isinstance(value, str)
    return value


def _number(question: Question, name: str) -> int:
    value = question[name]
    assert isinstance(value, int)
    return value
