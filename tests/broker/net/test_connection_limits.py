"""Connection limits: idle, greedy, not reading and too many clients, each with its limit."""

import asyncio
import os
import select
from collections.abc import Callable

import pytest

from broker.net.connection import UNANSWERED_MAX, UNREAD_BYTES_MAX
from broker.net.quotas import PASS_S_MAX, REQUESTS_A_TURN_MAX
from broker.observe.events import PeerFault
from config.limits import ServerLimits
from protocol.messages import Request
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.names import MemberId
from seams.reply_token import ReplyToken
from tests.broker.shell import WAIT_S, Shell, commit, heartbeat, join


async def test_a_silent_connection_is_closed_and_one_that_waits_is_not() -> None:
    async with Shell(ServerLimits(connections_max_idle_ms=500)) as shell:
        silent, waiting = await shell.client(), await shell.client()
        waiting.ask(join())
        await shell.core.until(lambda: len(shell.core.asked) == 1)

        assert await silent.closed() == b""
        assert [event.fault for event in shell.dropped()] == [PeerFault.IDLE]

        # The other one has been silent just as long, but it is we who owe an answer.
        shell.core.answer(shell.core.asked[0][1], JoinGroupResponse())
        await waiting.answer()
        assert await waiting.closed() == b""


async def test_a_negative_idle_time_closes_no_connection() -> None:
    async with Shell(ServerLimits(connections_max_idle_ms=-1)) as shell:
        client = await shell.client()
        await client.call(heartbeat())
        shell.server.tick(shell.clock.now()._replace(mono_ms=1 << 60))
        await client.call(heartbeat())


async def test_a_client_that_never_reads_stops_being_served_and_is_cut_off() -> None:
    limits = ServerLimits(connection_unsent_max_bytes=65_536, connections_max_idle_ms=1_000)
    async with Shell(limits) as shell:
        unread, healthy = await shell.client(), await shell.client()
        long = FindCoordinatorResponse(error_message="x" * 30_000, host="h")
        shell.core.on_request = lambda request, token: shell.core.answer(
            token, long if isinstance(request, FindCoordinatorRequest) else OffsetCommitResponse()
        )
        # When it asks for 30 MB and reads nothing: a StreamReader takes 128 KiB, then pauses.
        asked = 1_000
        unread.send(
            b"".join(unread.framed(FindCoordinatorRequest(key="g"), 2) for _ in range(asked))
        )
        await shell.core.until(lambda: len(shell.core.asked) >= 20)
        await healthy.call(commit())

        # Then only a part of it is answered, and after its time it is cut off.
        await _until(lambda: PeerFault.NOT_READING in {drop.fault for drop in shell.dropped()})
        served = sum(isinstance(request, FindCoordinatorRequest) for request, _ in shell.core.asked)
        assert served < asked
        await (await shell.client()).call(commit())


async def test_a_slow_reader_gets_everything_in_the_end() -> None:
    async with Shell(ServerLimits(connection_unsent_max_bytes=65_536)) as shell:
        slow = await shell.client()
        long = FindCoordinatorResponse(error_message="x" * 30_000, host="h")
        shell.core.on_request = lambda request, token: shell.core.answer(token, long)
        slow.send(b"".join(slow.framed(FindCoordinatorRequest(key="g"), 2) for _ in range(300)))
        assert [(await slow.answer())[0] for _ in range(300)] == list(range(1, 301))


async def test_bytes_behind_a_parked_request_are_bounded() -> None:
    async with Shell() as shell:
        greedy = await shell.client()
        greedy.ask(join())
        await shell.core.until(lambda: len(shell.core.asked) == 1)

        # When megabytes follow, the socket is left unread beyond the limit ...
        frames = b"".join(greedy.framed(heartbeat("m" * 1_000)) for _ in range(4_000))
        assert len(frames) > 10 * UNREAD_BYTES_MAX
        greedy.send(frames)
        (connection,) = shell.server.connections
        await _until(lambda: connection.unread_bytes > UNREAD_BYTES_MAX)
        for _ in range(50):
            await asyncio.sleep(0)
        assert connection.unread_bytes < 2 * UNREAD_BYTES_MAX

        # ... and every one of them is answered afterwards.
        shell.core.answer(shell.core.asked[0][1], JoinGroupResponse())
        for expected in range(1, 4_002):
            frame = await greedy.frame()
            assert int.from_bytes(frame[:4], "big") == expected


async def test_requests_that_wait_for_the_disk_are_bounded() -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.send(b"".join(client.framed(commit()) for _ in range(UNANSWERED_MAX + 10)))
        await shell.core.until(lambda: len(shell.core.asked) == UNANSWERED_MAX)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(shell.core.asked) == UNANSWERED_MAX
        shell.core.on_request = lambda request, token: shell.core.answer(
            token, OffsetCommitResponse()
        )
        for _, token in tuple(shell.core.asked):
            shell.core.answer(token, OffsetCommitResponse())
        for expected in range(1, UNANSWERED_MAX + 11):
            assert (await client.answer())[0] == expected


@pytest.mark.parametrize("turn_s", [0.0, 2 * PASS_S_MAX], ids=["quick", "slow"])
async def test_a_client_with_many_requests_does_not_keep_the_others_waiting(turn_s: float) -> None:
    """Not even if its first turn takes so long that the pass over the sockets ends with it."""
    now_s = 0.0
    async with Shell(stopwatch=lambda: now_s) as shell:
        busy, modest = await shell.client(), await shell.client()
        await busy.call(heartbeat())
        await modest.call(heartbeat())
        asked = shell.core.asked
        many = b"".join(busy.framed(heartbeat("busy")) for _ in range(2_000))
        sent = [
            os.write(client.writer.get_extra_info("socket").fileno(), data)
            for client, data in ((busy, many), (modest, modest.framed(heartbeat("modest"))))
        ]
        # Both have arrived before the loop looks: on a busy machine the kernel takes its time.
        for connection in shell.server.connections:
            assert connection._transport is not None
            arrived = connection._transport.get_extra_info("socket").fileno()
            assert select.select([arrived], [], [], WAIT_S)[0]

        def handled(request: Request, token: ReplyToken) -> None:
            nonlocal now_s
            if len(asked) == 2 + REQUESTS_A_TURN_MAX:
                now_s = turn_s
            shell.core.answer(token, HeartbeatResponse())

        shell.core.on_request = handled
        busy.send(many[sent[0] :])
        await modest.answer()
        for expected in range(2, 2_002):
            assert (await busy.answer())[0] == expected
        members = [r.member_id for r, _ in asked if isinstance(r, HeartbeatRequest)]
        assert members.index(MemberId("modest")) <= 2 + REQUESTS_A_TURN_MAX


async def test_queued_request_bytes_of_all_together_are_bounded() -> None:
    async with Shell(ServerLimits(queued_max_request_bytes=100)) as shell:
        first, second = await shell.client(), await shell.client()
        first.send(b"".join(first.framed(commit()) for _ in range(20)))
        await shell.core.until(lambda: len(shell.core.asked) >= 2)
        second.ask(commit())
        second.ask(commit())
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(shell.core.asked) < 10

        for done in range(22):
            await shell.core.until(lambda done=done: len(shell.core.asked) > done)
            shell.core.answer(shell.core.asked[done][1], OffsetCommitResponse())
        assert [(await first.answer())[0] for _ in range(20)] == list(range(1, 21))
        assert [(await second.answer())[0] for _ in range(2)] == [1, 2]
        assert shell.server.quotas.request_bytes.queued_bytes == 0


async def test_connections_beyond_the_limit_wait_for_a_place() -> None:
    async with Shell(ServerLimits(max_connections=2, socket_listen_backlog_size=1)) as shell:
        first, second = await shell.client(), await shell.client()
        await first.call(heartbeat())
        await second.call(heartbeat())

        third = await shell.client()
        third.ask(heartbeat("third"))
        await _until(lambda: len(shell.server.connections) == 3)
        fourth = await shell.client()
        assert await fourth.closed() == b""
        assert not _heard(shell, "third")

        first.close()
        await third.answer()
        assert _heard(shell, "third")
        await second.call(heartbeat())


async def test_one_address_may_not_take_all_connections() -> None:
    limits = ServerLimits(max_connections_per_ip=50, max_connections_by_ip={"127.0.0.1": 2})
    async with Shell(limits) as shell:
        held = [await shell.client() for _ in range(2)]
        for client in held:
            await client.call(heartbeat())
        refused = await shell.client()
        assert await refused.closed() == b""
        assert [event.fault for event in shell.dropped()] == [PeerFault.TOO_MANY_PER_IP]

        # A place that is given up may be taken again.
        held[0].close()
        await _until(lambda: len(shell.server.connections) == 1)
        again = await shell.client()
        await again.call(heartbeat())


async def test_a_drain_answers_what_was_asked_and_closes() -> None:
    async with Shell() as shell:
        waiting, idle = await shell.client(), await shell.client()
        waiting.ask(commit())
        await idle.call(heartbeat())
        await shell.core.until(lambda: len(shell.core.tokens(type(commit()))) == 1)
        drained = asyncio.ensure_future(shell.server.drain(WAIT_S))
        assert await idle.closed() == b""
        shell.core.answer(shell.core.tokens(type(commit()))[0], OffsetCommitResponse())
        await waiting.answer()
        assert await waiting.closed() == b""
        await drained
        assert shell.server.connections == set()


def _heard(shell: Shell, member_id: str) -> bool:
    return any(
        isinstance(request, HeartbeatRequest) and request.member_id == member_id
        for request, _ in shell.core.asked
    )


async def _until(true: Callable[[], bool]) -> None:
    """Let the loop run until it is so."""

    async def wait() -> None:
        while not true():  # noqa: ASYNC110 - what is watched tells nobody
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), WAIT_S)


async def test_a_raised_limit_lets_those_that_wait_in() -> None:
    async with Shell(ServerLimits(max_connections=1)) as shell:
        served, waiting = await shell.client(), await shell.client()
        await served.call(heartbeat())
        waiting.ask(heartbeat())
        await served.call(heartbeat())
        assert len(shell.core.asked) == 2
        shell.server.set_limits(ServerLimits(max_connections=2))
        await waiting.answer()
        shell.server.set_limits(ServerLimits(max_connections=1))
        await waiting.call(heartbeat())  # who is served stays
