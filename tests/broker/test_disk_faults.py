"""Disk faults: a full or failing disk; which answers clients get, and how the daemon resumes.

The daemon in the test's own loop, on a real disk that obeys the test (`faulty_disk.py`).
"""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.main import Ports, _run
from broker.net.sockets import bind_listener
from broker.observe.observer import Observer, open_log
from config.keys import Config
from config.listeners import Listener
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, GroupId, GroupState, TopicName
from storage.batch.record_batch import iter_batches, read_records
from storage.data_dir import DataDir
from tests.broker.faulty_disk import FaultyDisk, broken_disk
from tests.broker.members import ASSIGNMENT, Member, as_other, make_topic
from tests.broker.node import Node
from tests.broker.shell import Client
from tests.topics.batches import batch

__all__ = ["broken_disk"]

# Nobody writes but the test: it is what it asks for that meets the fault.
SETTINGS = {
    "rollcall_disk_full_retry_ms": 10,
    "rollcall_checkpoint_idle_ms": 3_600_000,
    "rollcall_lag_interval_ms": 3_600_000,
}
SEGMENTS = "/__consumer_offsets-"
JOURNAL = "rollcall-journal"


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not fact():  # noqa: ASYNC110 - a disk tells nobody
            await asyncio.sleep(0.002)


async def commit_at_last(member: Member, offset: int) -> None:
    """As a client does: again while the coordinator is not there, or loads."""
    again = {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
    async with asyncio.timeout(60):
        while (answer := await member.commit(offset)) in again:  # noqa: ASYNC110 - nobody tells a client
            await asyncio.sleep(0.002)
    assert answer is ErrorCode.NONE


async def a_member_with(node: Node, offset: int) -> Member:
    client = await node.client()
    await make_topic(client)
    member = Member(client)
    await member.enter()
    assert await member.commit(offset) is ErrorCode.NONE
    return member


async def values_over_the_wire(client: Client, partition: int) -> list[bytes | None]:
    """The values of what Fetch shows of a partition of the offsets topic."""
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic=TopicName(OFFSETS_TOPIC), partitions=[asked])],
    )
    answer = await client.call(request, 12)
    assert isinstance(answer, FetchResponse)
    (found,) = answer.responses[0].partitions
    assert found.error_code is ErrorCode.NONE
    content = found.records or b""
    return [fields[3] for at, _ in iter_batches(content) for fields in read_records(content, at)]


@pytest.mark.parametrize("where", ["segment", "everything", "reserve"])
async def test_a_full_disk_refuses_writes_and_serves_on_once_it_has_room(
    tmp_path: Path, broken_disk: FaultyDisk, where: str
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        member = await a_member_with(node, 1)
        partition = node.daemon.coordinator.partition_for(member.group_id)
        before = await values_over_the_wire(member.client, partition)
        assert before

        # When there is no more room.
        match where:
            case "segment":
                broken_disk.full_for = SEGMENTS
            case "everything":
                broken_disk.full_for = "/"
            case _:
                broken_disk.free = 4_096
                await asyncio.sleep(0.6)  # the reserve is looked at twice a second
        assert await member.commit(2) is ErrorCode.NOT_COORDINATOR
        await until(lambda: not node.daemon.ownership.loading)

        # Then writes are refused with what clients retry, and it is said why.
        assert await member.commit(3) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert str(node.daemon.health.reason).startswith("the journal has failed: disk full: ")
        assert "until the disk has room again" in node.log.getvalue()
        # What was acknowledged is read; what was not may only be seen if it is there to stay.
        shown = await member.committed()
        assert shown in (1, 2)
        assert await member.beat() is ErrorCode.NONE
        seen = await values_over_the_wire(member.client, partition)
        assert seen[: len(before)] == before

        # And when there is room, it goes on by itself.
        broken_disk.full_for, broken_disk.free = "", 1 << 40
        await until(lambda: node.daemon.health.ready)
        assert "The disk has room again" in node.log.getvalue()
        assert await member.committed() in (shown, 2)
        assert (await values_over_the_wire(member.client, partition))[: len(seen)] == seen
        await commit_at_last(member, 4)
        assert await member.committed() == 4
        assert await member.beat() is ErrorCode.NONE

    async with Node(tmp_path) as node:
        again = as_other(member, await node.client())
        assert await again.committed() == 4


async def test_every_api_that_writes_is_refused_and_every_one_that_reads_is_served(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        member = await a_member_with(node, 7)
        broken_disk.full_for = SEGMENTS
        assert await member.commit(8) is ErrorCode.NOT_COORDINATOR
        await until(lambda: not node.daemon.ownership.loading)
        refused = ErrorCode.COORDINATOR_NOT_AVAILABLE
        client, group_id = member.client, member.group_id

        assert await member.commit(9) is refused
        joined = await (await node.client()).call(Member(client, "new").join_request())
        assert isinstance(joined, JoinGroupResponse)
        assert joined.error_code is refused
        leaving = LeaveGroupRequest(group_id, members=[MemberIdentity(member.member_id)])
        left = await client.call(leaving)
        assert isinstance(left, LeaveGroupResponse)
        assert left.error_code is refused
        forgetting = OffsetDeleteRequest(
            group_id,
            [OffsetDeleteRequestTopic(TopicName("t"), [OffsetDeleteRequestPartition(0)])],
        )
        forgot = await client.call(forgetting)
        assert isinstance(forgot, OffsetDeleteResponse)
        assert forgot.error_code is refused
        deleted = await client.call(DeleteGroupsRequest([group_id]))
        assert isinstance(deleted, DeleteGroupsResponse)
        assert [result.error_code for result in deleted.results] == [refused]

        assert await member.committed() in (7, 8)
        assert await member.beat() is ErrorCode.NONE
        described = await client.call(DescribeGroupsRequest([group_id]))
        assert isinstance(described, DescribeGroupsResponse)
        assert [group.group_state for group in described.groups] == [GroupState.STABLE]
        listed = await client.call(ListGroupsRequest())
        assert isinstance(listed, ListGroupsResponse)
        assert [group.group_id for group in listed.groups] == [GroupId("g")]

        broken_disk.full_for = ""
        await until(lambda: node.daemon.health.ready)
        left = await client.call(leaving)
        assert isinstance(left, LeaveGroupResponse)
        assert left.error_code is ErrorCode.NONE


@pytest.mark.parametrize("fault", ["write", "sync", "checkpoint"])
async def test_a_failed_disk_needs_a_restart(
    tmp_path: Path, broken_disk: FaultyDisk, fault: str
) -> None:
    settings = SETTINGS | ({"rollcall_checkpoint_idle_ms": 1} if fault == "checkpoint" else {})
    async with Node(tmp_path, settings) as node:
        member = await a_member_with(node, 1)
        match fault:
            case "write":
                broken_disk.failing_writes_of = JOURNAL
            case "sync":
                broken_disk.failing_syncs_of = JOURNAL
            case _:
                broken_disk.failing_syncs_of = SEGMENTS
        await member.commit(2)
        await until(lambda: node.daemon.health.journal_failed is not None)
        await until(lambda: not node.daemon.ownership.loading)
        broken_disk.failing_writes_of = broken_disk.failing_syncs_of = ""

        assert str(node.daemon.health.journal_failed).startswith("storage failed: ")
        assert await member.commit(3) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await member.committed() in (1, 2)
        assert not node.daemon.journal.try_reopen()
        assert "nothing is written until a restart" in node.log.getvalue()

    async with Node(tmp_path) as node:
        again = as_other(member, await node.client())
        assert await again.committed() in (1, 2)
        await commit_at_last(again, 4)
        assert await again.committed() == 4


@pytest.mark.parametrize("fault", ["write", "sync"])
async def test_a_failed_disk_ends_the_process_with_exit_code_1(
    tmp_path: Path,
    broken_disk: FaultyDisk,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The process monitor starts it again; what waits is answered first."""
    monkeypatch.setattr("broker.main.STOP_AFTER_FAULT_S", 3_600.0)  # it would end this process
    config = Config(
        log_dirs=(str(tmp_path / "data"),),
        group_initial_rebalance_delay_ms=0,
        rollcall_lag_interval_ms=3_600_000,
    )
    data_dir = DataDir(str(config.data_dir), config.node_id)
    bound = bind_listener(
        Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0),
        backlog=50,
        send_buffer_bytes=-1,
        receive_buffer_bytes=-1,
    )
    log = io.StringIO()
    observer = Observer(open_log("human", "info", log))
    ports = Ports([bound], None)
    running = asyncio.ensure_future(
        _run(config, observer, data_dir, ports, {}, {}, None, lambda *_: None, repair=False)
    )
    client = await Client.connect(bound.port)
    await until(lambda: "Startup complete." in log.getvalue())
    await make_topic(client)
    member = Member(client)
    await member.enter()
    assert await member.commit(1) is ErrorCode.NONE
    if fault == "write":
        broken_disk.failing_writes_of = JOURNAL
    else:
        broken_disk.failing_syncs_of = JOURNAL
    assert await member.commit(2) is ErrorCode.NOT_COORDINATOR
    async with asyncio.timeout(60):
        assert await running == 1
    (line,) = [
        line for line in capfd.readouterr().err.splitlines() if line.startswith("rollcall: ")
    ]
    assert "has failed (storage failed: " in line
    assert "the next start recovers what was acknowledged" in line
    data_dir.close()
    broken_disk.failing_writes_of = broken_disk.failing_syncs_of = ""
    async with Node(tmp_path) as node:
        assert await as_other(member, await node.client()).committed() in (1, 2)


async def test_a_slow_fsync_delays_commits_and_nothing_else(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        member = await a_member_with(node, 1)
        bystander = Member(await node.client(), "bystander")
        await bystander.enter()
        broken_disk.may_sync.clear()
        member.client.ask(member.commit_request(2), 9)
        await until(lambda: node.daemon.journal.queued_bytes > 0)
        assert await bystander.beat() is ErrorCode.NONE
        described = await bystander.client.call(DescribeGroupsRequest([bystander.group_id]))
        assert isinstance(described, DescribeGroupsResponse)
        broken_disk.may_sync.set()
        await member.client.answer()
        assert await member.committed() == 2
        assert node.daemon.health.ready


# --- the data plane ------------------------------------------------------------------------------


async def test_a_commit_whose_fsync_takes_too_long_is_answered_as_by_kafka(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    settings = {**SETTINGS, "offsets_commit_timeout_ms": 50}
    async with Node(tmp_path, {**settings, "rollcall_forgive_slow_member": False}) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        async with asyncio.timeout(60):  # a slow machine's own fsync may take as long
            while await member.commit(1) is not ErrorCode.NONE:
                pass
        broken_disk.slow_syncs_of = JOURNAL
        broken_disk.may_sync.clear()
        assert await member.commit(2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        broken_disk.may_sync.set()
        await commit_at_last(member, 3)
        again = as_other(member, await node.client())
        assert await again.committed() == 3


async def test_an_assignment_whose_fsync_takes_too_long_is_answered_as_by_kafka(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    settings = {**SETTINGS, "offsets_commit_timeout_ms": 50}
    async with Node(tmp_path, settings) as node:
        member = Member(await node.client())
        async with asyncio.timeout(60):  # a slow machine's own fsync may take as long
            while (await member.join()).error_code is not ErrorCode.NONE:
                pass
            broken_disk.slow_syncs_of = JOURNAL
            broken_disk.may_sync.clear()
            assert (await member.sync()).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            broken_disk.may_sync.set()
            refused_in = member.generation_id
            while (await member.join()).error_code is not ErrorCode.NONE or (
                (await member.sync()).assignment != ASSIGNMENT
            ):
                pass
        assert member.generation_id > refused_in


async def produce(client: Client, topic: str) -> ErrorCode:
    data = PartitionProduceData(index=0, records=batch(b"value"))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=TopicName(topic), partition_data=[data])],
    )
    answer = await client.call(request, 9)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0].error_code


@pytest.mark.parametrize("fault", ["full", "reserve", "write"])
async def test_a_partition_that_cannot_be_written_says_so_and_harms_no_other(
    tmp_path: Path, broken_disk: FaultyDisk, fault: str
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        client = await node.client()
        await make_topic(client, "one")
        await make_topic(client, "two")
        assert await produce(client, "one") is ErrorCode.NONE
        match fault:
            case "full":
                broken_disk.full_for = "/one-0/"
            case "write":
                broken_disk.failing_writes_of = "/one-0/"
            case _:
                broken_disk.free = 4_096
                await asyncio.sleep(0.6)
        assert await produce(client, "one") is ErrorCode.KAFKA_STORAGE_ERROR
        if fault != "reserve":
            assert await produce(client, "two") is ErrorCode.NONE
            assert node.daemon.health.ready
        broken_disk.full_for, broken_disk.failing_writes_of = "", ""
        broken_disk.free = 1 << 40
        assert await produce(client, "one") is ErrorCode.NONE
        log = node.daemon.data_plane.registry.partition(TopicName("one"), 0)
        assert log is not None
        assert log.log is not None
        assert log.log.log_end_offset == 2
