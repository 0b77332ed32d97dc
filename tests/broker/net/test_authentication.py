"""SASL on a connection: what may come when, what a failure costs, and how a session ends."""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from broker.net.listener_access import ListenerAccess, SaslAccess, SaslMechanism
from broker.observe.events import PeerFault
from config.limits import ServerLimits
from protocol.messages import Request
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.names import ErrorCode
from seams.now import Now
from seams.principal import Principal
from security.sasl.plain import PlainServer
from tests.broker.clocks import SteppedClock
from tests.broker.shell import Client, Shell, commit, heartbeat

ALICE = b"\0alice\0secret"
RECEIVE_MAX = 1_000
DELAY_MS = 100


class OtherServer(PlainServer):
    """A second mechanism with the same users."""

    mechanism = "OTHER"


def access(max_reauth_ms: int = 0, expires_at_ms: int | None = None) -> ListenerAccess:
    def server() -> PlainServer:
        made = PlainServer({"alice": "secret", "bob": "secret"})
        made.expires_at_ms = expires_at_ms
        return made

    mechanism = SaslMechanism(server, max_reauth_ms)
    return ListenerAccess(sasl=SaslAccess({"PLAIN": mechanism, "OTHER": mechanism}, RECEIVE_MAX))


@contextmanager
def secured(shell: Shell, given: ListenerAccess | None = None) -> Iterator[None]:
    shell.server.access = {"PLAINTEXT": given or access()}
    shell.server.use(shell.dispatcher)
    yield


def token(data: bytes = ALICE) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(data)


async def handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> ErrorCode:
    answer = await client.call(SaslHandshakeRequest(mechanism), version)
    assert isinstance(answer, SaslHandshakeResponse)
    assert list(answer.mechanisms) == ["PLAIN", "OTHER"]
    return answer.error_code


async def log_in(client: Client, data: bytes = ALICE) -> SaslAuthenticateResponse:
    assert await handshake(client) is ErrorCode.NONE
    answer = await client.call(token(data))
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer


async def until_dropped(shell: Shell) -> None:
    while not shell.dropped():  # noqa: ASYNC110 - the server's events are a list
        await asyncio.sleep(0)


async def test_after_the_exchange_requests_have_the_principal() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            assert isinstance(await client.call(ApiVersionsRequest("c", "1")), ApiVersionsResponse)
            answer = await log_in(client)
            assert answer.error_code is ErrorCode.NONE
            assert answer.session_lifetime_ms == 0
            assert isinstance(await client.call(heartbeat()), HeartbeatResponse)
            (request_token,) = (asked for _, asked in shell.core.asked)
            assert request_token.principal == Principal("User", "alice")


async def test_all_of_it_in_one_packet() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            requests = (SaslHandshakeRequest("PLAIN"), token(), heartbeat())
            client.send(b"".join(client.framed(request) for request in requests))
            kinds = [type((await client.answer())[1]) for _ in requests]
            assert kinds == [SaslHandshakeResponse, SaslAuthenticateResponse, HeartbeatResponse]


@pytest.mark.parametrize(
    "requests",
    [
        [heartbeat()],
        [token()],
        [SaslHandshakeRequest("PLAIN"), heartbeat()],
        [SaslHandshakeRequest("PLAIN"), ApiVersionsRequest("c", "1")],
        [SaslHandshakeRequest("PLAIN"), SaslHandshakeRequest("PLAIN")],
        [ApiVersionsRequest("c", "1"), ApiVersionsRequest("c", "1")],
        [ApiVersionsRequest("c", "1"), heartbeat()],
    ],
)
async def test_what_comes_too_early_is_not_answered(requests: list[Request]) -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            for request in requests[:-1]:
                await client.call(request)
            client.ask(requests[-1])
            assert await client.closed() == b""
            assert shell.core.asked == []
            assert [event.fault for event in shell.dropped()] == [PeerFault.NOT_AUTHENTICATED]


async def test_an_unserved_version_of_api_versions_may_be_asked_again() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            frame = struct.pack(">hhih", 18, 99, 1, -1) + b"\0"
            client.send(struct.pack(">i", len(frame)) + frame)
            assert (await client.frame())[4:6] == struct.pack(">h", 35)
            await client.call(ApiVersionsRequest("c", "1"))
            assert (await log_in(client)).error_code is ErrorCode.NONE


async def test_a_wrong_password_is_answered_late_and_then_the_connection_ends() -> None:
    clock = SteppedClock()
    limits = ServerLimits(failed_authentication_delay_ms=DELAY_MS)
    async with Shell(limits, clock=clock.system) as shell:
        with secured(shell):
            client, other = await shell.client(), await shell.client()
            await handshake(client)
            client.ask(token(b"\0alice\0wrong"))
            client.ask(token())  # it is not heard any more
            await log_in(other)
            while not shell.dropped():
                await other.call(heartbeat())
            assert not client.reader.at_eof()
            clock.advance(DELAY_MS)
            shell.ticker.arm()
            _, answer = await client.answer()
            assert isinstance(answer, SaslAuthenticateResponse)
            assert answer.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == "Authentication failed: Invalid username or password"
            assert await client.closed() == b""
            (dropped,) = shell.dropped()
            assert dropped.fault is PeerFault.AUTHENTICATION
            assert "wrong" not in dropped.detail


async def test_an_unknown_mechanism_is_answered_with_those_that_there_are() -> None:
    async with Shell(ServerLimits(failed_authentication_delay_ms=0)) as shell:
        with secured(shell):
            client = await shell.client()
            code = await handshake(client, "plain")  # names are compared as they are written
            assert code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert await client.closed() == b""


async def test_tokens_without_headers_after_the_first_version_of_the_handshake() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            await handshake(client, version=0)
            client.send(struct.pack(">i", len(ALICE)) + ALICE)
            assert await client.frame() == b""
            assert isinstance(await client.call(heartbeat()), HeartbeatResponse)


async def test_a_bare_token_that_is_wrong_is_not_answered() -> None:
    async with Shell(ServerLimits(failed_authentication_delay_ms=0)) as shell:
        with secured(shell):
            client = await shell.client()
            await handshake(client, version=0)
            client.send(struct.pack(">i", 4) + b"what")
            assert await client.closed() == b""


async def test_a_large_request_before_authentication_ends_by_its_size_alone() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            client.send(struct.pack(">i", RECEIVE_MAX + 1))
            assert await client.closed() == b""
            assert [event.fault for event in shell.dropped()] == [PeerFault.BAD_SIZE]
            allowed = await shell.client()
            await log_in(allowed)
            large = allowed.framed(heartbeat("m" * RECEIVE_MAX))
            allowed.send(large)
            assert isinstance((await allowed.answer())[1], HeartbeatResponse)


async def test_authentication_must_be_done_in_time() -> None:
    clock = SteppedClock()
    async with Shell(ServerLimits(authentication_timeout_ms=1_000), clock=clock.system) as shell:
        with secured(shell):
            silent, done = await shell.client(), await shell.client()
            await handshake(silent)
            await log_in(done)
            clock.advance(1_500)
            shell.ticker.arm()
            assert await silent.closed() == b""
            assert isinstance(await done.call(heartbeat()), HeartbeatResponse)
            assert [event.fault for event in shell.dropped()] == [PeerFault.TOO_SLOW]


async def test_the_time_of_authentication_begins_with_a_slot() -> None:
    """A client that waits for others is not one that fails to authenticate."""
    clock = SteppedClock()
    limits = ServerLimits(authentication_timeout_ms=1_000, max_connections=1)
    async with Shell(limits, clock=clock.system) as shell:
        with secured(shell):
            first = await shell.client()
            await log_in(first)
            waiting, left = await shell.client(), await shell.client()
            clock.advance(1_500)
            shell.ticker.arm()
            first.close()
            assert (await log_in(waiting)).error_code is ErrorCode.NONE
            waiting.close()
            await handshake(left)  # it has the slot now, and no more time than others
            clock.advance(1_500)
            shell.ticker.arm()
            assert await left.closed() == b""
            faults = [event.fault for event in shell.dropped()]
            assert faults == [PeerFault.TOO_MANY, PeerFault.TOO_SLOW]


async def test_without_a_session_a_second_handshake_is_an_ordinary_request() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            await log_in(client)
            client.ask(SaslHandshakeRequest("PLAIN"))
            await shell.core.until(lambda: bool(shell.core.asked))  # the handler refuses it with 34


async def test_a_session_ends_unless_the_client_authenticates_again() -> None:
    clock = SteppedClock()
    async with Shell(clock=clock.system) as shell:
        with secured(shell, access(max_reauth_ms=5_000)):
            client = await shell.client()
            assert (await log_in(client)).session_lifetime_ms == 5_000
            clock.advance(4_000)
            assert (await log_in(client)).session_lifetime_ms == 5_000
            clock.advance(5_000)
            assert isinstance(await client.call(heartbeat()), HeartbeatResponse)
            clock.advance(1)
            client.ask(heartbeat())
            assert await client.closed() == b""
            assert [event.fault for event in shell.dropped()] == [PeerFault.SESSION_EXPIRED]


async def test_a_session_that_has_ended_may_still_be_renewed() -> None:
    clock = SteppedClock()
    async with Shell(clock=clock.system) as shell:
        with secured(shell, access(max_reauth_ms=5_000)):
            client = await shell.client()
            await log_in(client)
            clock.advance(60_000)
            await log_in(client)
            assert isinstance(await client.call(heartbeat()), HeartbeatResponse)


async def test_a_second_renewal_within_a_second_is_an_ordinary_request() -> None:
    clock = SteppedClock()
    async with Shell(clock=clock.system) as shell:
        with secured(shell, access(max_reauth_ms=5_000)):
            client = await shell.client()
            await log_in(client)
            clock.advance(1)
            await log_in(client)
            clock.advance(999)
            client.ask(SaslHandshakeRequest("PLAIN"))
            await shell.core.until(lambda: bool(shell.core.asked))


async def test_a_token_that_ends_ends_the_session() -> None:
    clock = SteppedClock()
    async with Shell(clock=clock.system) as shell:
        now = Now(0, clock.system.now().wall_ms)
        with secured(shell, access(5_000, expires_at_ms=now.wall_ms + 2_000)):
            client = await shell.client()
            assert (await log_in(client)).session_lifetime_ms == 2_000


@pytest.mark.parametrize(
    ("mechanism", "data", "message"),
    [
        (
            "PLAIN",
            b"\0bob\0secret",
            "Cannot change principals during re-authentication from User.alice: User.bob",
        ),
        ("OTHER", ALICE, None),
    ],
)
async def test_a_client_stays_who_it_is(mechanism: str, data: bytes, message: str | None) -> None:
    limits = ServerLimits(failed_authentication_delay_ms=0)
    async with Shell(limits) as shell:
        with secured(shell, access(max_reauth_ms=60_000)):
            client = await shell.client()
            await log_in(client)
            assert await handshake(client, mechanism) is ErrorCode.NONE
            client.ask(token(data))
            if message is not None:
                _, answer = await client.answer()
                assert isinstance(answer, SaslAuthenticateResponse)
                assert answer.error_message == message
            assert await client.closed() == b""


async def test_a_login_with_a_request_and_a_fin_is_answered() -> None:
    async with Shell() as shell:
        with secured(shell):
            client = await shell.client()
            requests = (SaslHandshakeRequest("PLAIN"), token(), heartbeat())
            client.send(b"".join(client.framed(request) for request in requests))
            client.writer.write_eof()
            kinds = [type((await client.answer())[1]) for _ in requests]
            assert kinds == [SaslHandshakeResponse, SaslAuthenticateResponse, HeartbeatResponse]
            assert await client.closed() == b""


async def test_a_wrong_password_with_a_fin_is_answered_late() -> None:
    async with Shell(ServerLimits(failed_authentication_delay_ms=1)) as shell:
        with secured(shell):
            client = await shell.client()
            requests = (SaslHandshakeRequest("PLAIN"), token(b"\0alice\0wrong"), heartbeat())
            client.send(b"".join(client.framed(request) for request in requests))
            client.writer.write_eof()
            kinds = [type((await client.answer())[1]) for _ in requests[:2]]
            assert kinds == [SaslHandshakeResponse, SaslAuthenticateResponse]
            assert await client.closed() == b""
            assert shell.core.asked == []


async def test_a_renewal_between_pipelined_requests() -> None:
    """An answer that is missing still comes first; what is behind the renewal is of the session."""
    clock = SteppedClock()
    async with Shell(clock=clock.system) as shell:
        with secured(shell, access(max_reauth_ms=5_000)):
            client = await shell.client()
            await log_in(client)
            clock.advance(4_000)
            requests = (commit(), SaslHandshakeRequest("PLAIN"), token(), heartbeat())
            client.send(b"".join(client.framed(request) for request in requests))
            await shell.core.until(lambda: len(shell.core.asked) == 2)
            shell.core.answer(shell.core.asked[0][1], OffsetCommitResponse())
            kinds = [type((await client.answer())[1]) for _ in requests]
            assert kinds == [
                OffsetCommitResponse,
                SaslHandshakeResponse,
                SaslAuthenticateResponse,
                HeartbeatResponse,
            ]


async def test_a_renewal_that_fails_behind_a_missing_answer() -> None:
    clock = SteppedClock()
    limits = ServerLimits(failed_authentication_delay_ms=0)
    async with Shell(limits, clock=clock.system) as shell:
        with secured(shell, access(max_reauth_ms=5_000)):
            client = await shell.client()
            await log_in(client)
            clock.advance(4_000)
            wrong = token(b"\0alice\0wrong")
            requests = (commit(), SaslHandshakeRequest("PLAIN"), wrong, heartbeat())
            client.send(b"".join(client.framed(request) for request in requests))
            await until_dropped(shell)
            shell.core.answer(shell.core.asked[0][1], OffsetCommitResponse())
            kinds = [type((await client.answer())[1]) for _ in requests[:3]]
            assert kinds == [OffsetCommitResponse, SaslHandshakeResponse, SaslAuthenticateResponse]
            assert await client.closed() == b""
            assert len(shell.core.asked) == 1


async def test_a_session_that_ends_behind_a_missing_answer() -> None:
    clock = SteppedClock()
    async with Shell(clock=clock.system) as shell:
        with secured(shell, access(max_reauth_ms=5_000)):
            client = await shell.client()
            await log_in(client)
            client.ask(commit())
            await shell.core.until(lambda: len(shell.core.asked) == 1)
            clock.advance(5_001)
            client.send(client.framed(heartbeat()) + client.framed(heartbeat()))
            await until_dropped(shell)
            shell.core.answer(shell.core.asked[0][1], OffsetCommitResponse())
            assert isinstance((await client.answer())[1], OffsetCommitResponse)
            assert await client.closed() == b""
            assert len(shell.core.asked) == 1
