"""ACLs in the daemon: in effect on open connections, and after a restart."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.names import ErrorCode, GroupId, TopicName
from security.acls.authorizer import STANDARD_AUTHORIZER
from tests.broker.members import make_topic
from tests.broker.node import Node
from tests.broker.shell import Client
from topics.acl_store import AclsDamaged

OPEN: Mapping[str, str | bool] = {
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "allow_everyone_if_no_acl_found": True,
}
"""Everyone may do everything until there are entries, so that a test needs one user only."""

REFUSED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


async def forbid(client: Client, *resource_types: ResourceType) -> None:
    """Everything whose name begins with `t`, to everyone."""
    creations = [
        AclCreation(
            resource_type,
            "t",
            PatternType.PREFIXED,
            "User:*",
            "*",
            AclOperation.ALL,
            PermissionType.DENY,
        )
        for resource_type in resource_types
    ]
    answer = await client.call(CreateAclsRequest(creations), 3)
    assert isinstance(answer, CreateAclsResponse)
    assert {result.error_code for result in answer.results} == {ErrorCode.NONE}


async def allow_again(client: Client) -> None:
    wanted = DeleteAclsFilter(1, None, 1, None, None, 1, PermissionType.DENY)
    answer = await client.call(DeleteAclsRequest([wanted]), 3)
    assert isinstance(answer, DeleteAclsResponse)
    assert answer.filter_results[0].matching_acls


async def asked(client: Client) -> dict[ResourceType, ErrorCode]:
    """What the data plane, the groups and the transactions answer."""
    topics = await client.call(MetadataRequest([MetadataRequestTopic(name=TopicName("t"))]), 12)
    assert isinstance(topics, MetadataResponse)
    beat = ConsumerGroupHeartbeatRequest(
        GroupId("t"), member_id="m", member_epoch=1, topic_partitions=None
    )
    group = await client.call(beat, 1)
    assert isinstance(group, ConsumerGroupHeartbeatResponse)
    producer = await client.call(InitProducerIdRequest("t", 60_000), 4)
    assert isinstance(producer, InitProducerIdResponse)
    return {
        ResourceType.TOPIC: topics.topics[0].error_code,
        ResourceType.GROUP: group.error_code,
        ResourceType.TRANSACTIONAL_ID: producer.error_code,
    }


def is_refused(codes: Mapping[ResourceType, ErrorCode]) -> dict[ResourceType, bool]:
    return {
        resource_type: codes[resource_type] is REFUSED[resource_type] for resource_type in codes
    }


async def test_changes_are_in_effect_on_open_connections_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async with Node(tmp_path, OPEN) as node:
        member, admin = await node.client(), await node.client()
        await make_topic(member)
        assert not any(is_refused(await asked(member)).values())
        await forbid(admin, *REFUSED)
        assert await asked(member) == REFUSED
    assert "Added ACLs" in node.log.getvalue()
    assert "principal=User:ANONYMOUS" in node.log.getvalue()

    async with Node(tmp_path, OPEN) as node:
        member, admin = await node.client(), await node.client()
        assert await asked(member) == REFUSED
        await allow_again(admin)
        assert not any(is_refused(await asked(member)).values())
    assert "Removed ACLs" in node.log.getvalue()

    async with Node(tmp_path, OPEN) as node:
        assert not any(is_refused(await asked(await node.client())).values())


async def test_nothing_is_allowed_by_default(tmp_path: Path) -> None:
    async with Node(tmp_path, {"authorizer_class_name": STANDARD_AUTHORIZER}) as node:
        assert await asked(await node.client()) == REFUSED


async def test_super_users_may_do_everything(tmp_path: Path) -> None:
    settings = {**OPEN, "super_users": "User:root;User:ANONYMOUS"}
    async with Node(tmp_path, settings) as node:
        client = await node.client()
        await make_topic(client)
        await forbid(client, *REFUSED)
        assert not any(is_refused(await asked(client)).values())


async def test_a_damaged_file_prevents_the_start(tmp_path: Path) -> None:
    async with Node(tmp_path, OPEN) as node:
        await forbid(await node.client(), ResourceType.TOPIC)
    file = node.config.data_dir / "rollcall-acls.json"
    file.write_bytes(file.read_bytes().replace(b"DENY", b"ALLOW"))
    with pytest.raises(AclsDamaged):
        async with node:
            pass
    # Without an authorizer the file is not even read, nor changed.
    damaged = file.read_bytes()
    async with Node(tmp_path) as other:
        await make_topic(await other.client())
    assert file.read_bytes() == damaged
    node.repair = True
    async with node:
        assert "Dropped the damaged ACLs" in node.log.getvalue()
    assert [kept.name for kept in file.parent.glob("*.damaged")] == ["rollcall-acls.json.damaged"]
