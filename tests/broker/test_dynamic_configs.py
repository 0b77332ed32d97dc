"""Dynamic configs of the broker: each part has the new value when the change is answered."""

from pathlib import Path

from msgspec.structs import replace

from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode
from storage.api import TopicPartition
from tests.broker.members import Member
from tests.broker.node import Node
from tests.broker.shell import Client
from topics.config_resources import ConfigOperation, ConfigResourceType


async def alter(client: Client, **configs: str) -> None:
    """For the cluster; config names have _ for dots, and an empty value deletes one."""
    edits = [
        IncrementalAlterableConfig(
            key.replace("_", "."),
            ConfigOperation.SET if value else ConfigOperation.DELETE,
            value or None,
        )
        for key, value in configs.items()
    ]
    resource = IncrementalAlterConfigsResource(ConfigResourceType.BROKER, "", edits)
    answer = await client.call(IncrementalAlterConfigsRequest([resource]), 1)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    (response,) = answer.responses
    assert response.error_code is ErrorCode.NONE, response.error_message


async def test_the_coordinators_logs_and_limits_follow(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        member = Member(client)
        await member.get_id()
        large = replace_metadata(member, b"x" * 1_000)
        await alter(client, message_max_bytes="500", log_cleaner_delete_retention_ms="77")

        assert (await joined(client, large)).error_code is ErrorCode.MESSAGE_TOO_LARGE
        log = node.daemon.store.partition_log(TopicPartition(OFFSETS_TOPIC, 0))
        assert log is not None
        assert log.settings.delete_retention_ms == 77
        assert log.settings.min_compaction_lag_ms == 86_400_000  # the offsets topic's own

        await alter(client, message_max_bytes="")
        assert (await joined(client, large)).error_code is ErrorCode.NONE

    async with Node(tmp_path) as node:
        log = node.daemon.store.partition_log(TopicPartition(OFFSETS_TOPIC, 0))
        assert log is not None
        assert log.settings.delete_retention_ms == 77


def replace_metadata(member: Member, metadata: bytes) -> JoinGroupRequest:
    request = member.join_request()
    return replace(request, protocols=[JoinGroupRequestProtocol("range", metadata)])


async def joined(client: Client, request: JoinGroupRequest) -> JoinGroupResponse:
    answer = await client.call(request)
    assert isinstance(answer, JoinGroupResponse)
    return answer
