"""TLS on real sockets: handshakes, client certificates, ends, and certificates that change."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme
from msgspec.structs import replace

from broker.background.certificate_watch import CertificateWatch
from broker.net.listener_access import ListenerAccess, SaslAccess
from broker.net.tls.listener_tls import ListenerTls
from broker.observe.events import CertificateRefused, CertificateReloaded, PeerFault
from config.limits import ServerLimits
from config.security_keys import SecurityKeys
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.names import MemberId
from seams.principal import ANONYMOUS, Principal
from tests.broker.clocks import SteppedClock
from tests.broker.net.test_authentication import access, log_in
from tests.broker.net.tls_client import (
    authority,
    client_context,
    tls_client,
    trusting,
    write_key_store,
)
from tests.broker.shell import WAIT_S, Client, Shell, heartbeat

MANY = 200


@pytest.fixture
def values(tmp_path: Path) -> SecurityKeys:
    return write_key_store(tmp_path / "server.pem")


def serve(shell: Shell, values: SecurityKeys, sasl: SaslAccess | None = None) -> ListenerTls:
    tls = ListenerTls("PLAINTEXT", values)
    shell.server.access = {"PLAINTEXT": ListenerAccess(tls, sasl)}
    shell.server.use(shell.dispatcher)
    return tls


async def principal_of(shell: Shell, context: ssl.SSLContext) -> Principal:
    client = await tls_client(shell.listener.port, context)
    assert isinstance(await client.call(heartbeat()), HeartbeatResponse)
    client.close()
    return shell.core.asked[-1][1].principal


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_over_tls(values: SecurityKeys, version: ssl.TLSVersion) -> None:
    async with Shell() as shell:
        serve(shell, values)
        context = client_context(minimum_version=version, maximum_version=version)
        client = await tls_client(shell.listener.port, context)
        client.send(b"".join(client.framed(heartbeat()) for _ in range(MANY)))
        assert [(await client.answer())[0] for _ in range(MANY)] == list(range(1, MANY + 1))
        assert shell.core.asked[-1][1].principal == ANONYMOUS
        client.close()


async def test_a_request_and_an_answer_of_many_records(values: SecurityKeys) -> None:
    async with Shell() as shell:
        serve(shell, values)
        shell.core.on_request = lambda request, token: shell.server.reply(
            token, JoinGroupResponse(member_id="m" * 30_000, leader="l" * 30_000)
        )
        client = await tls_client(shell.listener.port, client_context())
        for _ in range(20):
            client.ask(JoinGroupRequest(member_id=MemberId("m" * 32_000)))
        for _ in range(20):
            _, answer = await client.answer()
            assert isinstance(answer, JoinGroupResponse)
            assert len(answer.leader) == 30_000


async def test_a_client_that_closes_its_side_gets_its_answers(values: SecurityKeys) -> None:
    """A FIN without a close_notify, as librdkafka sends it."""
    async with Shell() as shell:
        serve(shell, values)
        client = await tls_client(shell.listener.port, client_context())
        await client.call(heartbeat())
        client.close()
        await shell.core.until(lambda: True)
        async with asyncio.timeout(WAIT_S):
            while shell.server.connections:  # noqa: ASYNC110 - a set does not say when it is empty
                await asyncio.sleep(0)  # the server's loop is the test's


async def test_plain_bytes_to_a_tls_listener_are_refused(values: SecurityKeys) -> None:
    async with Shell() as shell:
        serve(shell, values)
        client = await shell.client()
        client.ask(heartbeat())
        await client.closed()
        assert [event.fault for event in shell.dropped()] == [PeerFault.TLS]
        assert shell.core.asked == []


@pytest.mark.parametrize(
    ("client_auth", "common_name", "expected"),
    [
        ("none", "bob", ANONYMOUS),
        ("requested", None, ANONYMOUS),
        ("requested", "bob", Principal("User", "bob")),
        ("required", "bob", Principal("User", "bob")),
    ],
)
async def test_who_a_certificate_is(
    values: SecurityKeys, client_auth: str, common_name: str | None, expected: Principal
) -> None:
    rules = r"RULE:^CN=(.*?),.*$/$1/L,DEFAULT"
    asked = trusting(values, client_auth, ssl_principal_mapping_rules=rules)
    async with Shell() as shell:
        serve(shell, asked)
        assert await principal_of(shell, client_context(common_name)) == expected


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_a_certificate_of_another_authority_is_refused(
    values: SecurityKeys, client_auth: str
) -> None:
    async with Shell() as shell:
        serve(shell, trusting(values, client_auth))
        foreign = client_context("eve", ca=trustme.CA())
        client = await tls_client(shell.listener.port, foreign)
        client.ask(heartbeat())
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await client.answer()
        assert [event.fault for event in shell.dropped()] == [PeerFault.TLS]


async def test_without_a_certificate_where_one_is_required(values: SecurityKeys) -> None:
    async with Shell() as shell:
        serve(shell, trusting(values, "required"))
        client = await tls_client(shell.listener.port, client_context())
        client.ask(heartbeat())
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await client.answer()
        assert shell.core.asked == []


async def test_a_name_that_no_rule_takes_is_refused(values: SecurityKeys) -> None:
    asked = trusting(values, "required", ssl_principal_mapping_rules="RULE:^O=.*$/x/")
    async with Shell() as shell:
        serve(shell, asked)
        client = await tls_client(shell.listener.port, client_context("bob"))
        client.ask(heartbeat())
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await client.answer()
        assert [event.fault for event in shell.dropped()] == [PeerFault.AUTHENTICATION]


async def test_sasl_over_tls_names_the_user(values: SecurityKeys) -> None:
    async with Shell() as shell:
        serve(shell, trusting(values, "requested"), access().sasl)
        client = await tls_client(shell.listener.port, client_context("bob"))
        await log_in(client)
        await client.call(heartbeat())
        assert shell.core.asked[-1][1].principal == Principal("User", "alice")


async def test_a_handshake_must_be_done_in_time(values: SecurityKeys) -> None:
    clock = SteppedClock()
    async with Shell(ServerLimits(authentication_timeout_ms=1_000), clock=clock.system) as shell:
        serve(shell, values)
        silent = await shell.client()
        done = await tls_client(shell.listener.port, client_context())
        clock.advance(1_500)
        shell.ticker.arm()
        assert await silent.closed() == b""
        assert isinstance(await done.call(heartbeat()), HeartbeatResponse)


async def test_many_handshakes_leave_the_loop_to_others(values: SecurityKeys) -> None:
    async with Shell() as shell:
        serve(shell, values)
        context = client_context()
        clients = await asyncio.gather(
            *(tls_client(shell.listener.port, context) for _ in range(MANY))
        )
        for client in clients:
            client.ask(heartbeat())
        for client in clients:
            await client.answer()
            client.close()


async def test_a_changed_certificate_is_used_for_new_connections(
    values: SecurityKeys, tmp_path: Path
) -> None:
    async with Shell() as shell:
        tls = serve(shell, values)
        events: list[object] = []
        watch = CertificateWatch(asyncio.get_running_loop(), [tls], events.append)
        before = await tls_client(shell.listener.port, client_context())
        first = _serial(before)

        await watch.inspect()
        assert events == []
        write_key_store(tmp_path / "server.pem")
        await watch.inspect()
        assert events == [CertificateReloaded("PLAINTEXT")]
        after = await tls_client(shell.listener.port, client_context())
        assert _serial(after) != first
        assert isinstance(await before.call(heartbeat()), HeartbeatResponse)

        (tmp_path / "server.pem").write_text("no certificate")
        await watch.inspect()
        await watch.inspect()
        (_, refused) = events
        assert isinstance(refused, CertificateRefused)
        assert _serial(await tls_client(shell.listener.port, client_context())) == _serial(after)


async def test_another_name_is_refused_unless_it_is_allowed(
    values: SecurityKeys, tmp_path: Path
) -> None:
    tls = ListenerTls("A", values)
    before = tls.context()
    write_key_store(tmp_path / "server.pem", common_name="another")
    events: list[object] = []
    await CertificateWatch(asyncio.get_running_loop(), [tls], events.append).inspect()
    (refused,) = events
    assert isinstance(refused, CertificateRefused)
    assert "Keystore DistinguishedName does not match" in refused.reason
    assert tls.context() is before
    assert tls.reload(replace(values, ssl_allow_dn_changes=True))
    assert tls.context() is not before


class Raw:
    """A TLS client whose bytes the test sends when it likes."""

    def __init__(self, client: Client, context: ssl.SSLContext) -> None:
        self.client = client
        self._in, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self.out, server_hostname="localhost")

    async def handshake(self) -> bytes:
        """All of it but the last bytes, which are returned unsent."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.client.send(self.out.read())
                self._in.write(await self.client.reader.read(65_536))
            else:
                return self.out.read()

    async def read(self) -> bytes:
        """The next plain bytes."""
        while True:
            try:
                return self.tls.read(65_536)
            except ssl.SSLWantReadError:
                received = await self.client.reader.read(65_536)
                assert received, "the server has closed"
                self._in.write(received)


async def test_a_request_and_a_fin_may_come_with_the_end_of_the_handshake(
    values: SecurityKeys,
) -> None:
    async with Shell() as shell:
        serve(shell, values)
        raw = Raw(await shell.client(), client_context())
        last = await raw.handshake()
        raw.tls.write(raw.client.framed(heartbeat()))
        raw.client.send(last + raw.out.read())
        raw.client.writer.write_eof()
        assert await asyncio.wait_for(raw.read(), WAIT_S)
        assert len(shell.core.asked) == 1


async def test_a_fin_in_a_handshake_ends_it(values: SecurityKeys) -> None:
    async with Shell() as shell:
        serve(shell, values)
        raw = Raw(await shell.client(), client_context())
        await raw.handshake()  # the last bytes never come
        raw.client.writer.write_eof()
        await raw.client.closed()
        assert [event.fault for event in shell.dropped()] == [PeerFault.TLS]


def _serial(client: Client) -> object:
    return client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]


def test_the_authority_is_made_once() -> None:
    assert authority() is authority()
