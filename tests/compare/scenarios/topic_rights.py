"""Topic rights: what a client without a right is answered, for each request about topics, configs,
the cluster and security.

The client has another address than the rest of the scenario, and ACLs for that host alone. The
requests are those of the tests of the data plane.
"""

from collections.abc import Sequence
from typing import Final

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.names import ErrorCode, TopicId, TopicName
from tests.compare.client import Client
from tests.compare.script import Script, scenario
from tests.topics.handlers.authorization_cases import ANY, CASES, FRESH, MADE, TOPIC
from tests.topics.plane import Plane
from tests.topics.rights import Right, cluster_right, topic_right

PROFILE: Final = "acls"
ADMINISTRATOR: Final = "127.0.0.1"
CLIENT: Final = "127.0.0.2"
PRINCIPAL: Final = "User:ANONYMOUS"
EFFECTIVE_MS: Final = 200
"""Kafka's controller takes over ACLs by itself, when the broker has them already."""

UNANSWERED: Final = "DescribeUserScramCredentials of all"
"""Kafka does not answer it (a NullPointerException)."""


class Subject(Plane):
    """What the requests are about: topics of the broker that is compared."""

    def __init__(self, topic_ids: dict[str, TopicId]) -> None:
        super().__init__()
        self._topic_ids = topic_ids

    def topic_id(self, name: str) -> TopicId:
        return self._topic_ids[name]


@scenario(PROFILE)
def requests_without_the_rights_that_they_need(script: Script) -> None:
    _protect(script)
    subject = Subject(_created(script))
    client = script.client("a", host=CLIENT)
    granted: list[Right] = []
    for case in CASES:
        for missing in case.without:
            rights = [] if missing is ANY else [r for r in case.needs if r != missing]
            if case.name == UNANSWERED or (missing is not ANY and case.without[missing] == (0,)):
                continue
            if rights != granted:
                _grant(script, rights)
                granted = rights
            lacks = "any right" if missing is ANY else f"{missing.operation.name} {missing.name}"
            script.note(f"{case.name} without {lacks}")
            client.ask(case.build(subject), case.version)
    _operations(script, client)


def _operations(script: Script, client: Client) -> None:
    """What a client is shown of what it may do."""
    topics = [MetadataRequestTopic(name=TopicName(name)) for name in (TOPIC, MADE)]
    for rights in (
        [],
        [topic_right(AclOperation.READ), cluster_right(AclOperation.CREATE)],
        [topic_right(AclOperation.ALTER_CONFIGS), topic_right(AclOperation.DESCRIBE, MADE)],
        [cluster_right(AclOperation.DESCRIBE), topic_right(AclOperation.DELETE, MADE)],
        [cluster_right(AclOperation.ALTER), topic_right(AclOperation.ALL)],
    ):
        _grant(script, rights)
        words = [f"{r.operation.name} {r.name}" for r in rights]
        script.note(f"operations with {', '.join(words) or 'no right'}")
        for version in (8, 10):
            client.ask(MetadataRequest(topics, False, True, True), version)
        client.ask(MetadataRequest(None, include_topic_authorized_operations=True), 12)
        client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
        asked = [TopicRequest(topic.name) for topic in topics if topic.name is not None]
        client.ask(DescribeTopicPartitionsRequest(asked), 0)
    script.note("a new topic without the right to see its configs")
    _grant(script, [topic_right(AclOperation.CREATE, FRESH)])
    client.ask(CreateTopicsRequest((CreatableTopic(FRESH, 1, 1),)), 7)


def _protect(script: Script) -> None:
    """The administrator may do everything, and others nothing."""
    everything = (
        (ResourceType.CLUSTER, "kafka-cluster"),
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
    )
    _create_acls(script, [Right(AclOperation.ALL, *each) for each in everything], ADMINISTRATOR)


def _created(script: Script) -> dict[str, TopicId]:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in (TOPIC, MADE)])
    answer = script.ask_aside(request, 7, CreateTopicsResponse)
    topic_ids: dict[str, TopicId] = {topic.name: topic.topic_id for topic in answer.topics}
    script.topics.update({topic_id: name for name, topic_id in topic_ids.items()})
    for name in topic_ids:
        script.until_topic(name, 1)
    return topic_ids


def _grant(script: Script, rights: Sequence[Right]) -> None:
    """These rights and no others."""
    everything = DeleteAclsFilter(
        ResourceType.ANY, None, PatternType.ANY, None, CLIENT, AclOperation.ANY, PermissionType.ANY
    )
    answer = script.ask_aside(DeleteAclsRequest((everything,)), 3, DeleteAclsResponse)
    assert answer.filter_results[0].error_code is ErrorCode.NONE
    if rights:
        _create_acls(script, rights, CLIENT)
    script.until("the ACLs are in effect", lambda: _count(script) == len(rights))
    script.pause_ms(EFFECTIVE_MS)


def _create_acls(script: Script, rights: Sequence[Right], host: str) -> None:
    creations = [
        AclCreation(
            right.resource_type,
            right.name,
            PatternType.LITERAL,
            PRINCIPAL,
            host,
            right.operation,
            PermissionType.ALLOW,
        )
        for right in rights
    ]
    answer = script.ask_aside(CreateAclsRequest(creations), 3, CreateAclsResponse)
    assert not any(result.error_code for result in answer.results), answer


def _count(script: Script) -> int:
    """ACLs of the client's host."""
    request = DescribeAclsRequest(
        ResourceType.ANY, None, PatternType.ANY, None, CLIENT, AclOperation.ANY, PermissionType.ANY
    )
    answer = script.ask_aside(request, 3, DescribeAclsResponse)
    return sum(len(resource.acls) for resource in answer.resources)
