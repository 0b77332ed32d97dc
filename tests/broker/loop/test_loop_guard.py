"""Loop guard: no file is opened, written, synced or renamed on the loop's thread after a start."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import LAG_TOPIC, ErrorCode, TopicName
from seams.now import Now
from storage.api import TopicLog
from storage.disk import RealDisk, RealFile
from storage.loop_guard import LoopGuard
from tests.broker.members import Member
from tests.broker.node import Node
from tests.broker.shell import WAIT_S, Client
from tests.topics.batches import batch
from topics.handlers.list_offsets import EARLIEST

TOPIC = TopicName("t")
MEBIBYTE = 1 << 20


def test_the_guard_names_the_thread_and_what_it_did(tmp_path: Path) -> None:
    guard = LoopGuard(is_strict=True)
    disk = RealDisk(guard)
    path = str(tmp_path / "f")
    file = disk.open(path, create=True)
    guard.begin()
    changes = (
        lambda: disk.open(path),
        lambda: file.pwrite(b"x", 0),
        lambda: file.truncate(0),
        lambda: file.allocate(10),
        file.sync,
        lambda: disk.listdir(str(tmp_path)),
        lambda: disk.make_dir(f"{path}-d"),
        lambda: disk.rename(path, f"{path}2"),
        lambda: disk.remove(path),
        lambda: disk.remove_dir(str(tmp_path)),
        lambda: disk.copy_mtime(path, path),
        lambda: disk.sync_dir(str(tmp_path)),
    )
    for change in changes:
        with pytest.raises(AssertionError, match="on the event loop's thread"):
            change()
    assert guard.operations == len(changes)
    assert (file.pread(10, 0), file.size(), disk.exists(path)) == (b"", 0, True)

    elsewhere = threading.Thread(target=lambda: file.pwrite(b"x", 0))
    elsewhere.start()
    elsewhere.join()
    assert file.pread(10, 0) == b"x"

    guard.is_strict = False
    file.pwrite(b"y", 0)
    assert (file.pread(10, 0), guard.operations) == (b"y", len(changes) + 1)
    guard.end()
    file.pwrite(b"z", 0)
    assert guard.operations == len(changes) + 1


async def test_what_the_data_plane_does_is_done_beside_the_loop(tmp_path: Path) -> None:
    async with Node(tmp_path, {"rollcall_lag_interval_ms": 100}) as node:
        client = await node.client()
        await _make_topic(client)
        # Appends that roll segments, of a producer whose state is kept.
        for sequence in range(40):
            assert await _produce(client, sequence) == sequence
        # Reads of sealed segments, and look-ups in them.
        await _fetch_all(client, 40)
        answer = await client.call(
            ListOffsetsRequest(
                -1, 0, (ListOffsetsTopic(TOPIC, (ListOffsetsPartition(0, timestamp=EARLIEST),)),)
            ),
            7,
        )
        assert isinstance(answer, ListOffsetsResponse)
        assert answer.topics[0].partitions[0].offset == 0
        asked = OffsetForLeaderTopic(TOPIC, (OffsetForLeaderPartition(0, -1, 0),))
        ends = await client.call(OffsetForLeaderEpochRequest(topics=(asked,)), 4)
        assert isinstance(ends, OffsetForLeaderEpochResponse)
        assert ends.topics[0].partitions[0].end_offset == 40
        # A group, its history, its lag.
        member = Member(client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE
        async with asyncio.timeout(WAIT_S):
            while not _log(node, LAG_TOPIC).log_end_offset:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        # Retention, late flushes, the snapshot of producers.
        now = node.daemon.clock.now()
        for later_ms in (0, 600_000, 1_200_000):
            at = Now(now.mono_ms + later_ms, now.wall_ms + later_ms)
            node.daemon.data_plane.tick(at)
            assert await node.daemon.io.wait_idle(WAIT_S)
        assert (tmp_path / "data" / "rollcall-producers.snapshot").exists()
        assert _log(node).log_start_offset > 0
        client.close()
    assert node.daemon.guard.operations == 0


async def test_a_flush_that_hangs_keeps_only_its_producer_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Node(tmp_path) as node:
        producer, other = await node.client(), await node.client()
        await _make_topic(producer, flush_messages="1")
        member = Member(other)
        await member.enter()
        hangs, goes_on = threading.Event(), threading.Event()
        sync = RealFile.sync

        def slow(file: RealFile) -> None:
            if f"/{TOPIC}-0/" in file._path:
                hangs.set()
                assert goes_on.wait(WAIT_S)
            sync(file)

        monkeypatch.setattr(RealFile, "sync", slow)
        producer.ask(_produce_request(0), 9)
        producer.ask(ApiVersionsRequest(), 0)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, hangs.wait, WAIT_S)

        assert await member.beat() is ErrorCode.NONE
        assert await member.commit(5) is ErrorCode.NONE
        goes_on.set()
        # What came behind the Produce was not looked at before it was answered.
        assert isinstance((await producer.answer())[1], ProduceResponse)
        assert isinstance((await producer.answer())[1], ApiVersionsResponse)


async def test_a_stop_flushes_what_is_on_its_way(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await _make_topic(client)
        for sequence in range(20):
            client.ask(_produce_request(sequence), 9)
        assert isinstance((await client.answer())[1], ProduceResponse)
    async with Node(tmp_path) as node:
        again = await node.client()
        end = _log(node).log_end_offset
        assert end >= 1
        assert await _produce(again, end - 1) == end - 1  # known to have been sent
        assert await _produce(again, end) == end


def _log(node: Node, topic: str = TOPIC) -> TopicLog:
    partition = node.daemon.data_plane.registry.partition(topic, 0)
    assert partition is not None
    assert partition.log is not None
    return partition.log


async def test_a_topic_that_goes_and_comes_back_never_mixes_with_its_namesake(
    tmp_path: Path,
) -> None:
    known = {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    async with Node(tmp_path) as node:
        admin, producer = await node.client(), await node.client()
        for _ in range(5):
            await _make_topic(admin)
            for sequence in range(10):
                producer.ask(_produce_request(sequence), 9)
            await producer.answer()
            deleted = await admin.call(DeleteTopicsRequest(topic_names=(TOPIC,)), 5)
            assert isinstance(deleted, DeleteTopicsResponse)
            assert deleted.responses[0].error_code is ErrorCode.NONE
            for _ in range(9):
                answer = (await producer.answer())[1]
                assert isinstance(answer, ProduceResponse)
                assert answer.responses[0].partition_responses[0].error_code in known
        await _make_topic(admin)
        assert (_log(node).log_end_offset, _log(node).size_bytes) == (0, 0)
        assert await _produce(admin, 0) == 0
    assert "Error on the log" not in node.log.getvalue()


async def _make_topic(client: Client, **configs: str) -> None:
    configs = {"segment_bytes": str(MEBIBYTE), "retention_ms": "1000", **configs}
    topic = CreatableTopic(
        TOPIC,
        1,
        1,
        (),
        [CreatableTopicConfig(key.replace("_", "."), text) for key, text in configs.items()],
    )
    answer = await client.call(CreateTopicsRequest((topic,)), 7)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code is ErrorCode.NONE, answer.topics[0].error_message


def _produce_request(sequence: int) -> ProduceRequest:
    records = batch(
        bytes(100_000),
        timestamp=time.time_ns() // 1_000_000,
        producer_id=7,
        producer_epoch=0,
        sequence=sequence,
    )
    data = TopicProduceData(TOPIC, partition_data=(PartitionProduceData(0, records),))
    return ProduceRequest(None, -1, 10_000, (data,))


async def _produce(client: Client, sequence: int) -> int:
    answer = await client.call(_produce_request(sequence), 9)
    assert isinstance(answer, ProduceResponse)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code is ErrorCode.NONE, partition.error_message
    return partition.base_offset


async def _fetch_all(client: Client, count: int) -> None:
    for offset in range(count):
        asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1)
        topics = (FetchTopic(TOPIC, partitions=(asked,)),)
        answer = await client.call(FetchRequest(max_bytes=MEBIBYTE, topics=topics), 12)
        assert isinstance(answer, FetchResponse)
        assert answer.responses[0].partitions[0].records
