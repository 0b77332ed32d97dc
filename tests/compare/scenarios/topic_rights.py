"""Topic rights: what a client without a right is answered, for each request about topics, configs,
the cluster and security.

The client has another address than the rest of the scenario, and ACLs for that host alone. The
requests are those of the tests of the data plane.
"""

from typing import Final

from protocol.acl_codes import AclOperation
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.names import TopicId, TopicName
from tests.compare.client import Client
from tests.compare.granting import CLIENT, grant, protect
from tests.compare.script import Script, scenario
from tests.topics.handlers.authorization_cases import ANY, CASES, FRESH, MADE, TOPIC
from tests.topics.plane import Plane
from tests.topics.rights import Right, cluster_right, topic_right

PROFILE: Final = "acls"
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
    protect(script)
    subject = Subject(created(script))
    client = script.client("a", host=CLIENT)
    granted: list[Right] = []
    for case in CASES:
        for missing in case.without:
            rights = [] if missing is ANY else [r for r in case.needs if r != missing]
            if case.name == UNANSWERED or (missing is not ANY and case.without[missing] == (0,)):
                continue
            if rights != granted:
                grant(script, rights)
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
        grant(script, rights)
        words = [f"{r.operation.name} {r.name}" for r in rights]
        script.note(f"operations with {', '.join(words) or 'no right'}")
        for version in (8, 10):
            client.ask(MetadataRequest(topics, False, True, True), version)
        client.ask(MetadataRequest(None, include_topic_authorized_operations=True), 12)
        client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
        asked = [TopicRequest(topic.name) for topic in topics if topic.name is not None]
        client.ask(DescribeTopicPartitionsRequest(asked), 0)
    script.note("a new topic without the right to see its configs")
    grant(script, [topic_right(AclOperation.CREATE, FRESH)])
    client.ask(CreateTopicsRequest((CreatableTopic(FRESH, 1, 1),)), 7)


def created(script: Script) -> dict[str, TopicId]:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in (TOPIC, MADE)])
    answer = script.ask_aside(request, 7, CreateTopicsResponse)
    topic_ids: dict[str, TopicId] = {topic.name: topic.topic_id for topic in answer.topics}
    script.topics.update({topic_id: name for name, topic_id in topic_ids.items()})
    for name in topic_ids:
        script.until_topic(name, 1)
    return topic_ids
