"""The end of a connection: what is still done for a client that has sent a FIN, or an RST."""

import asyncio
from pathlib import Path

import pytest

from broker.net.request import PendingRequest
from broker.observe.events import PeerFault
from config.limits import ServerLimits
from protocol.codec import RequestHeader, encode_request
from protocol.messages import Request
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.names import TopicName
from seams.reply_token import ReplyToken
from tests.broker.members import make_topic
from tests.broker.node import Node
from tests.broker.shell import WAIT_S, Client, Shell, commit, heartbeat, join
from tests.broker.wire import Wire
from tests.topics.batches import batch

MANY = 1_000


async def test_a_half_closed_client_gets_all_its_answers() -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.send(b"".join(client.framed(heartbeat()) for _ in range(MANY)))
        client.writer.write_eof()
        assert [(await client.answer())[0] for _ in range(MANY)] == list(range(1, MANY + 1))
        assert await client.closed() == b""


async def test_a_half_closed_client_gets_the_answer_that_waits_for_the_disk() -> None:
    async with Shell() as shell:
        client = await shell.client()
        client.ask(commit())
        client.writer.write_eof()
        await shell.core.until(lambda: len(shell.core.asked) == 1)
        # When the end has surely been read.
        await (await shell.client()).call(heartbeat())
        shell.core.answer(shell.core.asked[0][1], OffsetCommitResponse())
        await client.answer()
        assert await client.closed() == b""


async def test_what_a_client_sent_before_it_closed_is_handled() -> None:
    """A producer with acks=0: nothing is ever written to it, so nothing tells it is gone."""
    async with Shell() as shell:
        client = await shell.client()
        shell.core.on_request = lambda request, token: shell.server.reply(token, None)
        client.send(b"".join(client.framed(commit()) for _ in range(20 * MANY)))
        await client.writer.drain()
        client.close()
        await shell.core.until(lambda: len(shell.core.asked) == 20 * MANY)
        async with asyncio.timeout(WAIT_S):
            while shell.server.connections:  # noqa: ASYNC110 - no event reports it
                await asyncio.sleep(0.001)


async def test_what_was_produced_without_acks_before_a_close_is_in_the_log(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        producer, reader = await node.client(), await node.client()
        await make_topic(reader)
        data = PartitionProduceData(0, batch(b"v"))
        request = ProduceRequest(
            acks=0, topic_data=[TopicProduceData(name=TopicName("t"), partition_data=[data])]
        )
        frame = encode_request(RequestHeader(request.API_KEY, 9, 1, "p"), request)
        for _ in range(20):
            producer.send(frame * 100)
        await producer.writer.drain()
        producer.close()
        async with asyncio.timeout(WAIT_S):
            while await _log_end(reader) < 2_000:  # noqa: ASYNC110 - no event reports it
                await asyncio.sleep(0.001)


async def _log_end(client: Client) -> int:
    asked = ListOffsetsTopic(TopicName("t"), [ListOffsetsPartition(timestamp=-1)])
    answer = await client.call(ListOffsetsRequest(topics=[asked]))
    assert isinstance(answer, ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


def test_postponed_requests_are_handled_after_the_end() -> None:
    """The FIN comes while a request waits for people; others stand behind it."""
    wire = Wire()
    pipe = wire.connect()
    pipe.ask(join(), *[heartbeat()] * 250)
    pipe.end()
    wire.run_until_idle()
    assert len(wire.core.asked) == 1

    wire.core.answer(wire.core.asked[0][1], JoinGroupResponse())
    wire.run_until_idle()
    assert pipe.answered == list(range(1, 252))
    assert pipe.is_lost


def test_a_request_that_is_cut_short_by_the_end_is_none() -> None:
    wire = Wire()
    pipe = wire.connect()
    pipe.ask(heartbeat())
    pipe.send(pipe.framed(heartbeat())[:-1])
    pipe.end()
    wire.run_until_idle()
    assert pipe.answered == [1]
    assert pipe.is_lost
    assert wire.dropped() == []


def test_a_client_that_says_nothing_but_goodbye_is_let_go_at_once() -> None:
    wire = Wire()
    pipe = wire.connect()
    pipe.end()
    wire.run_until_idle()
    assert pipe.is_lost
    assert wire.server.connections == set()


def test_nothing_is_handled_after_a_reset() -> None:
    wire = Wire()
    pipe = wire.connect()
    pipe.ask(join(), heartbeat())
    wire.run_until_idle()
    (_, token), *_ = wire.core.asked
    pipe.cut()
    wire.run_until_idle()
    wire.core.answer(token, JoinGroupResponse())
    wire.run_until_idle()
    assert len(wire.core.asked) == 1
    assert wire.core.gone == [token]


@pytest.mark.parametrize("idle_ms", [20_000, 600_000])
def test_who_ended_its_side_and_waits_for_people_is_not_kept_for_ever(idle_ms: int) -> None:
    """It has probably gone; Kafka closes whom it has not heard for so long in any case."""
    wire = Wire(ServerLimits(connections_max_idle_ms=idle_ms))
    ended, waiting = wire.connect(), wire.connect()
    for pipe in (ended, waiting):
        pipe.ask(join())
    ended.end()
    wire.run_until_idle()
    wire.pass_time(idle_ms // 2)
    assert not ended.is_lost
    wire.pass_time(idle_ms)
    assert ended.is_lost
    assert wire.core.gone == [wire.core.asked[0][1]]
    # Who might still speak and waits for an answer of ours is not silent.
    assert not waiting.is_lost
    assert [drop.fault for drop in wire.dropped()] == [PeerFault.IDLE]


def test_who_ended_its_side_and_does_not_read_is_cut_off() -> None:
    wire = Wire(ServerLimits(connections_max_idle_ms=20_000))
    pipe = wire.connect()
    wire.core.on_request = lambda request, token: _answer_at_length(wire, request, token)
    pipe.ask(*[heartbeat()] * 3, *[commit()] * 20_000)
    pipe.end()
    wire.run_until_idle(reading=False)
    assert not pipe.is_lost
    wire.pass_time(60_000)
    assert pipe.is_lost
    assert [drop.fault for drop in wire.dropped()] == [PeerFault.NOT_READING]


def _answer_at_length(wire: Wire, request: Request, token: ReplyToken) -> None:
    assert isinstance(token, PendingRequest)
    answer = OffsetCommitResponse() if type(request) is type(commit()) else HeartbeatResponse()
    wire.server.reply(token, answer)
