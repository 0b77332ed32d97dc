"""Slow catalog: a disk that is slow for the topic catalog delays only the requests that need it."""

from pathlib import Path

from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.names import ErrorCode, TopicName
from storage.open import TOPICS_FILE
from tests.broker.faulty_disk import FaultyDisk, broken_disk
from tests.broker.node import Node

__all__ = ["broken_disk"]

TOPIC = TopicName("t")


async def test_while_the_catalog_is_synced_the_others_are_answered(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, {"offsets_topic_num_partitions": 2}) as node:
        admin, other = await node.client(), await node.client()
        broken_disk.slow_syncs_of = TOPICS_FILE
        broken_disk.may_sync.clear()
        try:
            admin.ask(CreateTopicsRequest([CreatableTopic(TOPIC, 3, 1)]))
            admin.ask(InitProducerIdRequest(None, 0, -1, -1))
            admin.ask(DeleteTopicsRequest([DeleteTopicState(TOPIC)]))
            while not node.daemon.io.admin.pending:
                await other.call(ApiVersionsRequest())
            await other.call(ApiVersionsRequest())
            assert node.daemon.data_plane.registry.by_name(TOPIC) is None
            assert node.daemon.io.admin.pending == 1  # one after the other
        finally:
            broken_disk.may_sync.set()
        answers = [(await admin.answer())[1] for _ in range(3)]
        created, given, deleted = answers
        assert isinstance(created, CreateTopicsResponse)
        assert created.topics[0].error_code is ErrorCode.NONE
        assert isinstance(given, InitProducerIdResponse)
        assert given.error_code is ErrorCode.NONE
        assert isinstance(deleted, DeleteTopicsResponse)
        assert deleted.responses[0].error_code is ErrorCode.NONE
    assert not list((tmp_path / "data").glob("t-*"))


async def test_a_stop_waits_for_a_change_that_has_begun(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, {"offsets_topic_num_partitions": 2}) as node:
        admin, other = await node.client(), await node.client()
        broken_disk.slow_syncs_of = TOPICS_FILE
        broken_disk.may_sync.clear()
        admin.ask(CreateTopicsRequest([CreatableTopic(TOPIC, 3, 1)]))
        while not node.daemon.io.admin.pending:
            await other.call(ApiVersionsRequest())
        node.daemon.loop.call_later(0.05, broken_disk.may_sync.set)
    async with Node(tmp_path, {"offsets_topic_num_partitions": 2}) as node:
        assert node.daemon.data_plane.registry.partition_count(TOPIC) == 3
        assert "offline" not in node.log.getvalue()
