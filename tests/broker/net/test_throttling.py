"""Throttling: a client over its quota is answered with the throttle time, then muted for it.

The clock and the stopwatch are the test's own: a handler costs what the test says, and a second
passes when the test says so.
"""

import asyncio
from collections.abc import Callable, Mapping

from broker.loop.clock import SystemClock
from protocol.messages import Request
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from seams.reply_token import ReplyToken
from security.quotas.limits import QuotaKey
from tests.broker.net.test_authentication import access, log_in
from tests.broker.shell import Client, Shell, commit, heartbeat

TEN_PERCENT = {(("user", None),): {"request_percentage": 10.0}}
SECOND_NS = 1_000_000_000


class Times:
    """The clock of the core, and the stopwatch of requests."""

    def __init__(self) -> None:
        self.mono_ns = 1_000 * SECOND_NS
        self.spent_s = 0.0
        self.clock = SystemClock(lambda: self.mono_ns, lambda: self.mono_ns)

    def stopwatch(self) -> float:
        return self.spent_s


class Throttled(Shell):
    """A shell whose requests cost what `costs` says, in seconds, by their kind."""

    def __init__(self, table: Mapping, costs: Mapping[type[Request], float] | None = None) -> None:
        self.times = Times()
        super().__init__(clock=self.times.clock, stopwatch=self.times.stopwatch)
        self.server.throttling.use(table)
        self.costs = costs or {}
        self.core.on_request = self._handle

    def _handle(self, request: Request, token: ReplyToken) -> None:
        self.times.spent_s += self.costs.get(type(request), 0.0)
        answers: dict[type[Request], Callable] = {
            HeartbeatRequest: HeartbeatResponse,
            ProduceRequest: ProduceResponse,
            WriteTxnMarkersRequest: WriteTxnMarkersResponse,
        }
        answer = answers.get(type(request))
        if answer is not None:
            acks = getattr(request, "acks", 1)
            self.core.answer(token, answer() if acks else None)

    def pass_s(self, seconds: float) -> None:
        self.times.mono_ns += int(seconds * SECOND_NS)
        self.server.tick(self.clock.now())

    @property
    def handled(self) -> int:
        return len(self.core.asked)


async def poll_sockets() -> None:
    """Let the sockets be polled a few times."""
    for _ in range(20):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


def throttle_of(response: object) -> int:
    assert hasattr(response, "throttle_time_ms")
    return int(response.throttle_time_ms)


async def test_a_client_over_its_quota_is_answered_at_once_and_then_muted() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 1.5}) as shell:
        client = await shell.client()

        first = await client.call(heartbeat())
        client.ask(heartbeat())
        await poll_sockets()

        assert throttle_of(first) == 1_000  # at most a window of the quota
        assert shell.handled == 1
        assert shell.server.throttling.muted == 1

        shell.pass_s(0.999)
        await poll_sockets()
        assert shell.handled == 1
        shell.pass_s(0.001)
        await client.answer()
        assert shell.handled == 2


async def test_a_client_within_its_quota_is_not_throttled() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 0.01}) as shell:
        client = await shell.client()

        answers = [await client.call(heartbeat()) for _ in range(10)]

        assert {throttle_of(answer) for answer in answers} == {0}
        assert shell.server.throttling.muted == 0


async def test_pipelined_requests_of_one_turn_stop_when_the_quota_is_exceeded() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 0.4}) as shell:
        client = await shell.client()

        client.send(b"".join(client.framed(heartbeat()) for _ in range(50)))
        await poll_sockets()

        assert shell.handled == 3
        answers = [await client.answer() for _ in range(3)]
        assert [throttle_of(answer) for _, answer in answers] == [0, 0, 1_000]


async def test_a_client_with_a_quota_of_time_has_one_request_at_a_time() -> None:
    """As in Kafka: otherwise all that the quota allows could wait for the disk at once."""
    async with Throttled(TEN_PERCENT, {OffsetCommitRequest: 0.001}) as shell:
        client = await shell.client()
        client.send(b"".join(client.framed(commit()) for _ in range(3)))
        for number in range(1, 4):
            await poll_sockets()
            assert shell.handled == number
            shell.core.answer(shell.core.asked[-1][1], OffsetCommitResponse())
        assert [throttle_of((await client.answer())[1]) for _ in range(3)] == [0, 0, 0]


async def test_the_time_of_a_handler_counts_when_its_answer_comes_later() -> None:
    async with Throttled(TEN_PERCENT, {OffsetCommitRequest: 5.0}) as shell:
        client = await shell.client()
        client.ask(commit())
        await poll_sockets()
        shell.core.answer(shell.core.asked[-1][1], OffsetCommitResponse())

        assert throttle_of((await client.answer())[1]) == 1_000


async def test_others_pipeline_as_before() -> None:
    table = {(("client-id", "greedy"),): {"request_percentage": 1.0}}
    async with Throttled(table, {OffsetCommitRequest: 5.0}) as shell:
        client = await shell.client()
        client.send(b"".join(client.framed(commit()) for _ in range(3)))
        await poll_sockets()

        assert shell.handled == 3


async def test_muting_one_connection_does_not_delay_another() -> None:
    async with Throttled(
        {(("client-id", "greedy"),): {"request_percentage": 1.0}}, {HeartbeatRequest: 5.0}
    ) as shell:
        greedy, other = await shell.client(), await shell.client()
        greedy.client_id = "greedy"
        assert throttle_of(await greedy.call(heartbeat())) == 1_000
        greedy.ask(heartbeat())
        await poll_sockets()

        answers = [await other.call(heartbeat()) for _ in range(3)]

        assert {throttle_of(answer) for answer in answers} == {0}
        assert shell.handled == 4


async def test_an_old_version_has_no_throttle_time_and_is_muted_all_the_same() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 5.0}) as shell:
        client = await shell.client()

        assert throttle_of(await client.call(heartbeat(), 0)) == 0

        assert shell.server.throttling.muted == 1


async def test_a_muted_connection_that_is_reset_is_forgotten() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 5.0}) as shell:
        client = await shell.client()
        await client.call(heartbeat())
        client.reset()
        await poll_sockets()

        assert shell.server.throttling.muted == 0
        assert not shell.server.connections


async def test_a_muted_connection_that_is_ended_is_closed_at_once() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 5.0}) as shell:
        client = await shell.client()
        await client.call(heartbeat())
        client.writer.write_eof()

        assert await client.closed() == b""
        assert not shell.server.connections


async def test_what_a_muted_client_sent_before_it_ended_is_answered() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 5.0}) as shell:
        client = await shell.client()
        await client.call(heartbeat())
        client.ask(heartbeat())
        client.writer.write_eof()
        await poll_sockets()
        assert shell.handled == 1

        shell.pass_s(1.0)

        await client.answer()
        assert await client.closed() == b""


async def test_closed_connections_do_not_pile_up_while_their_throttles_last() -> None:
    table = {(("user", None),): {"producer_byte_rate": 0.001}}
    async with Throttled(table) as shell:
        for _ in range(200):
            client = await shell.client()
            assert throttle_of(await client.call(ProduceRequest(acks=1))) > 1_000_000
            client.reset()
            await poll_sockets()

        assert len(shell.server.throttling.deadlines) <= 70


async def test_produced_bytes_are_throttled_for_as_long_as_it_takes() -> None:
    table = {(("user", None),): {"producer_byte_rate": 1.0}}
    async with Throttled(table) as shell:
        client = await shell.client()
        request = ProduceRequest(acks=1)

        first = await client.call(request)

        size = len(client.framed(request)) - 4
        assert throttle_of(first) == (size - 10) * 1_000  # ten seconds have ten bytes


async def test_a_produce_without_an_answer_mutes_by_its_bytes_but_not_by_its_time() -> None:
    async with Throttled(TEN_PERCENT, {ProduceRequest: 9.0}) as shell:
        client = await shell.client()
        client.ask(ProduceRequest(acks=0))
        await poll_sockets()
        assert shell.server.throttling.muted == 0

        shell.server.throttling.use({(("user", None),): {"producer_byte_rate": 1.0}})
        client.ask(ProduceRequest(acks=0))
        await poll_sockets()
        assert shell.server.throttling.muted == 1


async def test_requests_between_brokers_are_counted_and_not_throttled() -> None:
    async with Throttled(TEN_PERCENT, {WriteTxnMarkersRequest: 9.0}) as shell:
        client = await shell.client()
        await client.call(WriteTxnMarkersRequest())

        assert shell.server.throttling.muted == 0
        assert shell.server.throttling.exempt_seconds == 9.0


async def test_a_quota_that_is_removed_leaves_the_client_unthrottled() -> None:
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 5.0}) as shell:
        client = await shell.client()
        assert throttle_of(await client.call(heartbeat())) == 1_000
        shell.server.throttling.use({})
        shell.pass_s(1.0)

        assert throttle_of(await client.call(heartbeat())) == 0
        assert shell.server.throttling.muted == 0


async def test_what_comes_before_authentication_counts_against_no_quota() -> None:
    """Otherwise who has no password could have the clients of User:ANONYMOUS throttled, and those
    who are about to log in."""
    async with Throttled(TEN_PERCENT, {HeartbeatRequest: 1.5}) as shell:
        anonymous = await shell.client()
        await anonymous.call(heartbeat())
        assert shell.server.throttling.muted == 1
        shell.server.access = {"PLAINTEXT": access()}

        alice = await shell.client()
        assert throttle_of(await alice.call(ApiVersionsRequest())) == 0
        await log_in(alice)
        assert shell.server.throttling.muted == 1
        measures = shell.server.throttling.rates[QuotaKey.REQUEST].measures
        assert [user for (user, _), _ in measures.newest_first()] == ["ANONYMOUS"]

        await alice.call(heartbeat())
        assert [user for (user, _), _ in measures.newest_first()] == ["alice", "ANONYMOUS"]


async def connections(shell: Shell, number: int) -> list[Client]:
    made = [await shell.client() for _ in range(number)]
    await poll_sockets()
    return made


async def test_connections_beyond_the_rate_of_their_address_are_kept_unserved_then_closed() -> None:
    table = {(("ip", "127.0.0.1"),): {"connection_creation_rate": 1.0}}
    async with Throttled(table) as shell:
        clients = await connections(shell, 11)  # ten seconds' connections at once, and one more
        late = clients[-1]
        late.ask(heartbeat())
        await poll_sockets()
        assert shell.handled == 0
        assert len(shell.server.connections) == 11

        shell.pass_s(1.0)

        assert await late.closed() == b""
        assert shell.handled == 0
        await clients[0].call(heartbeat())


async def test_only_a_limited_number_of_refused_connections_is_kept() -> None:
    table = {(("ip", None),): {"connection_creation_rate": 1.0}}
    async with Throttled(table) as shell:
        kept_max = shell.limits.socket_listen_backlog_size
        clients = await connections(shell, 10 + kept_max + 5)

        for client in clients[-5:]:
            assert await client.closed() == b""
        assert len(shell.server.connections) == 10 + kept_max
