"""Whole daemon: with a hand on its disk and on its requests."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from broker.net.dispatch import Delay, Drop, Respond
from protocol.messages import Request
from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.names import HISTORY_TOPIC, ApiKey, ErrorCode, TopicName
from purgatory.purgatory import by_kind
from seams.reply_token import ReplyToken
from storage.api import TopicPartition
from tests.broker.members import Member, as_other, make_topic
from tests.broker.node import Node
from tests.broker.shell import WAIT_S


@pytest.mark.pure
async def test_after_a_failed_fsync_reads_are_served_and_writes_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody else writes meanwhile: it is the commit that meets the fault.
    async with Node(tmp_path, {"rollcall_lag_interval_ms": 3_600_000}) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE
        assert node.daemon.health.ready

        # When an fsync fails under a commit.
        def fail(_fd: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr("storage.disk.os.fdatasync", fail)
        assert await member.commit(8) is ErrorCode.NOT_COORDINATOR
        await _until_loaded(node)

        # Then nothing is acknowledged any more, what was is still read, and the operator is told.
        assert await member.commit(9) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await member.committed() == 7
        assert await member.beat() is ErrorCode.NONE
        assert not node.daemon.health.ready
        assert "the journal has failed" in str(node.daemon.health.reason)
        assert "The journal has failed" in node.log.getvalue()
        monkeypatch.undo()

    # And a restart goes on: what was acknowledged is there, what was refused may be.
    async with Node(tmp_path) as node:
        again = as_other(member, await node.client())
        assert await again.committed() in (7, 8)
        assert await again.commit(10) is ErrorCode.NONE
        assert await again.committed() == 10


@pytest.mark.pure
async def test_a_bug_in_a_shard_costs_a_reload_and_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await make_topic(client)
        member, bystander = Member(client), Member(await node.client(), "another group")
        await member.enter()
        await bystander.enter()
        assert await member.commit(5) is ErrorCode.NONE

        def bug(*_args: object) -> None:
            raise ZeroDivisionError("a mistake of ours")

        # In a decision it fails the request alone.
        with monkeypatch.context() as patched:
            patched.setattr("coordinator.shard.judge_heartbeat", bug)
            assert await member.beat() is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await member.beat() is ErrorCode.NONE
        assert "ZeroDivisionError" in node.log.getvalue()

        # Later it costs the shard.
        with monkeypatch.context() as patched:
            patched.setattr("coordinator.group_store.GroupStore.append", bug)
            assert await member.commit(9) is ErrorCode.NOT_COORDINATOR

        # Other partitions did not notice, and this one is loaded again from its log.
        assert await bystander.beat() is ErrorCode.NONE
        async with asyncio.timeout(WAIT_S):
            while (answer := await member.beat()) is not ErrorCode.NONE:
                assert answer is ErrorCode.NOT_COORDINATOR
        await _until_loaded(node)
        assert await member.committed() == 5
        assert await member.commit(6) is ErrorCode.NONE
        assert "ZeroDivisionError" in node.log.getvalue()


async def test_offsets_of_a_topic_that_is_deleted_just_before_the_end_do_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE

        # The process ends before the coordinator hears of the deletion.
        monkeypatch.setattr("broker.daemon.Daemon._notify_coordinator", lambda *_: None)
        answer = await client.call(DeleteTopicsRequest(topics=[DeleteTopicState(TopicName("t"))]))
        assert isinstance(answer, DeleteTopicsResponse)
        assert answer.responses[0].error_code is ErrorCode.NONE
        assert await member.committed() == 7
    monkeypatch.undo()

    async with Node(tmp_path) as node:
        client = await node.client()
        again = as_other(member, client)
        async with asyncio.timeout(WAIT_S):
            while node.daemon.data_plane.registry.forgetting:
                assert await again.committed() in (7, -1)
        await make_topic(client)
        assert await again.committed() == -1


async def test_a_request_can_be_answered_dropped_and_delayed_on_real_sockets(
    tmp_path: Path,
) -> None:
    async with Node(tmp_path) as node:
        member = Member(await node.client())
        await member.enter()
        seen: list[Request] = []

        def refuse(request: Request, token: ReplyToken) -> Respond:
            seen.append(request)
            return Respond(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

        node.daemon.dispatcher.intercept(ApiKey.HEARTBEAT, refuse)
        assert await member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        assert [type(request) for request in seen] == [HeartbeatRequest]

        node.daemon.dispatcher.intercept(ApiKey.HEARTBEAT, lambda request, token: Delay(20))
        assert await member.beat() is ErrorCode.NONE

        node.daemon.dispatcher.intercept(ApiKey.HEARTBEAT, None)
        assert await member.beat() is ErrorCode.NONE

        # A dropped SyncGroup: the client hears nothing, others are served, and it may try again.
        node.daemon.dispatcher.intercept(ApiKey.SYNC_GROUP, lambda request, token: Drop())
        lost = as_other(member, await node.client())
        lost.client.ask(
            SyncGroupRequest(lost.group_id, lost.generation_id, lost.member_id), version=3
        )
        assert await member.beat() is ErrorCode.NONE
        node.daemon.dispatcher.intercept(ApiKey.SYNC_GROUP, None)
        lost.client.close()
        assert isinstance(await member.sync(), SyncGroupResponse)


async def test_a_stop_answers_a_parked_join(tmp_path: Path) -> None:
    async with Node(tmp_path, {"group_initial_rebalance_delay_ms": 60_000}) as node:
        member = Member(await node.client())
        await member.get_id()
        member.client.ask(member.join_request())
        async with asyncio.timeout(WAIT_S):
            while not _is_waiting(node, "InitialDelayedJoin"):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
    _, answer = await member.client.answer()
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR


async def _until_loaded(node: Node) -> None:
    async with asyncio.timeout(WAIT_S):
        while node.daemon.ownership.loading:  # noqa: ASYNC110 - a number tells nobody
            await asyncio.sleep(0)


def _is_waiting(node: Node, kind: str) -> bool:
    purgatories = node.daemon.coordinator.purgatories()
    return any(kind in by_kind(purgatory.operations()) for purgatory in purgatories)


async def test_the_history_reads_its_log_as_it_is_shown_now(tmp_path: Path) -> None:
    """After topics came, and the journal reopened the log: as when a full disk has room."""
    async with Node(tmp_path) as node:
        await make_topic(await node.client())
        assert node.daemon.history is not None
        key = TopicPartition(HISTORY_TOPIC, 0)
        before = node.daemon.history.view(0)
        node.daemon.journal.log(key)
        after = node.daemon.history.view(0)
        assert after is not before
        assert after is node.daemon.store.partitions()[key]
