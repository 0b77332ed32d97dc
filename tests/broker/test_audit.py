"""Audit log of the daemon: refusals, failed authentications and administrative actions."""

import json
from pathlib import Path

from broker.audit.entry import AuditEntry
from broker.observe.events import PeerFault
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.names import GroupId, TopicName
from security.acls.authorizer import STANDARD_AUTHORIZER
from tests.broker.net.test_authentication import access
from tests.broker.node import Node
from tests.broker.shell import Client
from topics.config_resources import ConfigOperation, ConfigResourceType

CLOSED = {"authorizer_class_name": STANDARD_AUTHORIZER}


async def administer(client: Client) -> None:
    await client.call(CreateTopicsRequest([CreatableTopic(TopicName("t"), 1, 1)]))
    config = IncrementalAlterableConfig("retention.ms", ConfigOperation.SET, "77777")
    resource = IncrementalAlterConfigsResource(ConfigResourceType.TOPIC, "t", [config])
    await client.call(IncrementalAlterConfigsRequest([resource]))
    upsertion = ScramCredentialUpsertion("alice", 1, 4096, b"the-salt", b"the-password")
    await client.call(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    await client.call(DeleteGroupsRequest([GroupId("none\x1b[31m")]))
    await client.call(DeleteTopicsRequest([DeleteTopicState(TopicName("t"))]))


def found(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_administrative_actions_are_in_the_log(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        await administer(await node.client())
    lines = [line for line in node.log.getvalue().splitlines() if "Administrative action" in line]
    requests = ("CreateTopics", "IncrementalAlterConfigs", "AlterUserScramCredentials")
    for line, request in zip(lines, (*requests, "DeleteGroups", "DeleteTopics"), strict=True):
        assert f"request={request} " in line
        assert "audit=administrative" in line
        assert "host=127.0.0.1" in line
    assert "SET retention.ms" in lines[1]
    assert "error=GROUP_ID_NOT_FOUND" in lines[3]
    assert "none\\x1b[31m" in lines[3]
    assert not any(secret in "".join(lines) for secret in ("77777", "the-salt", "the-password"))


async def test_with_a_file_they_are_there_and_not_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    async with Node(tmp_path, {"rollcall_audit_log": str(path)}) as node:
        await administer(await node.client())
    assert "Administrative action" not in node.log.getvalue()
    created, altered, user, group, deleted = found(path)
    assert created["resource"] == deleted["resource"] == "Topic:LITERAL:t"
    assert (altered["detail"], altered["error"]) == ("SET retention.ms", "NONE")
    assert user["resource"] == "User:LITERAL:alice"
    assert group["resource"] == r"Group:LITERAL:none\x1b[31m"
    assert {line["principal"] for line in found(path)} == {"User:ANONYMOUS"}


async def test_refusals_have_kafkas_words_and_are_counted(tmp_path: Path) -> None:
    async with Node(tmp_path, CLOSED) as node:
        client = await node.client()
        for _ in range(50):
            await client.call(DeleteGroupsRequest([GroupId("g")]))
    words = (
        "Principal = User:ANONYMOUS is Denied operation = DELETE from host = 127.0.0.1 on "
        "resource = Group:LITERAL:g for request = DeleteGroups"
    )
    first, counted = [line for line in node.log.getvalue().splitlines() if words in line]
    assert "audit=refused" in first
    assert "times=49" in counted


async def test_failed_authentications_name_the_user_and_no_password(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    async with Node(tmp_path, {"rollcall_audit_log": str(path)}) as node:
        node.daemon.server.access = {"PLAINTEXT": access()}
        client = await node.client()
        await client.call(SaslHandshakeRequest("PLAIN"), 1)
        client.ask(SaslAuthenticateRequest(b"\0eve\0a-guess"))
        await client.closed()
    (line,) = found(path)
    assert line["audit"] == "authentication failed"
    assert (line["principal"], line["operation"]) == ("User:eve", "PLAIN")
    assert (line["host"], line["listener"]) == ("127.0.0.1", "PLAINTEXT")
    assert "a-guess" not in path.read_text()


async def test_a_failed_authentication_has_one_line_in_each_place(tmp_path: Path) -> None:
    for number, settings in enumerate(({}, {"rollcall_audit_log": str(tmp_path / "audit.log")})):
        async with Node(tmp_path / str(number), settings) as node:
            server = node.daemon.server
            server.access = {"PLAINTEXT": access()}
            client = await node.client()
            await client.call(SaslHandshakeRequest("PLAIN"), 1)
            client.ask(SaslAuthenticateRequest(b"\0eve\0a-guess"))
            await client.closed()
            assert server.fault_log.counts[PeerFault.AUTHENTICATION] == 1
        words = "Invalid username or password"
        (line,) = [line for line in node.log.getvalue().splitlines() if words in line]
        assert ("Failed authentication" in line) is (not settings)
        assert ("Closing connection" in line) is bool(settings)
    assert len(found(tmp_path / "audit.log")) == 1


async def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    async with Node(tmp_path, {"rollcall_audit_log": str(tmp_path / "none" / "a.log")}) as node:
        client = await node.client()
        await administer(client)
        await administer(client)


def test_entries_are_short() -> None:
    assert not {"value", "password", "token"} & set(AuditEntry.__struct_fields__)


async def test_an_offset_that_is_set_back_from_outside_is_an_action(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await client.call(CreateTopicsRequest([CreatableTopic(TopicName("t"), 1, 1)]))
        for offset in (5, 9, 2):
            partition = OffsetCommitRequestPartition(0, offset)
            topic = OffsetCommitRequestTopic(TopicName("t"), partitions=[partition])
            await client.call(OffsetCommitRequest(GroupId("g"), topics=[topic]), 9)
    actions = [line for line in node.log.getvalue().splitlines() if "request=OffsetCommit" in line]
    (reset,) = actions
    assert "t-0 9 to 2" in reset
    assert "resource=Group:LITERAL:g" in reset
