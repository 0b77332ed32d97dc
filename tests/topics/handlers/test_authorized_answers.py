"""Authorized answers: what is hidden from a client, and what else of them depends on rights."""

import pytest

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages.alter_configs import AlterConfigsResourceResponse
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from protocol.names import (
    OPERATIONS_NOT_REQUESTED,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    ErrorCode,
    TopicName,
)
from tests.topics.plane import Plane
from tests.topics.rights import Rights, cluster_right, topic_right
from topics.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from topics.config_resources import ConfigResourceType

FORBIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NONE = ErrorCode.NONE
INTERNAL = TRANSACTION_STATE_TOPIC


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
def plane(rights: Rights) -> Plane:
    """With two topics, a and b."""
    plane = Plane(authorizer=rights)
    rights.grant_all()
    plane.given("a", 2)
    plane.given("b", 2)
    rights.granted = set()
    return plane


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


# Metadata


def metadata(plane: Plane, request: MetadataRequest, version: int = 12) -> MetadataResponse:
    return plane.ask(request, version, MetadataResponse)


def by_name(*names: str, **options: bool) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=TopicName(name)) for name in names]
    return MetadataRequest(topics, **options)


def test_metadata_of_all_topics_leaves_out_those_that_are_hidden(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}

    answer = metadata(plane, MetadataRequest(None))

    assert [topic.name for topic in answer.topics] == ["b"]
    assert rights.logged == [], "nothing was refused"


def test_the_cluster_right_shows_no_topics(plane: Plane, rights: Rights) -> None:
    rights.granted = {cluster_right(AclOperation.DESCRIBE)}

    assert not metadata(plane, MetadataRequest(None)).topics


def test_a_hidden_topic_is_answered_as_an_absent_one(plane: Plane, rights: Rights) -> None:
    hidden, absent, internal = metadata(plane, by_name("a", "absent", INTERNAL)).topics

    assert hidden == MetadataResponseTopic(FORBIDDEN, TopicName("a"))
    assert absent == MetadataResponseTopic(FORBIDDEN, TopicName("absent"))
    assert internal == MetadataResponseTopic(FORBIDDEN, INTERNAL)
    assert [right.name for right in rights.logged] == ["a", "absent", INTERNAL]


def test_metadata_by_id_does_not_show_the_name_of_a_hidden_topic(plane: Plane) -> None:
    topic_id = plane.topic_id("a")
    request = MetadataRequest((MetadataRequestTopic(topic_id, None),))

    assert list(metadata(plane, request).topics) == [
        MetadataResponseTopic(FORBIDDEN, None, topic_id)
    ]


def test_one_hidden_topic_does_not_hide_the_others(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}

    a, b = metadata(plane, by_name("a", "b")).topics

    assert (a.error_code, b.error_code) == (FORBIDDEN, NONE)
    assert len(b.partitions) == 2


def test_a_topic_is_not_created_without_the_right(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "fresh")}

    (topic,) = metadata(plane, by_name("fresh")).topics

    assert topic.error_code is FORBIDDEN
    assert plane.data.registry.by_name(TopicName("fresh")) is None
    assert rights.logged == [topic_right(AclOperation.CREATE, "fresh")]


def test_a_topic_that_may_not_be_created_is_shown_as_internal(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, INTERNAL)}

    (topic,) = metadata(plane, by_name(INTERNAL)).topics

    assert (topic.error_code, topic.is_internal) == (FORBIDDEN, True)


def test_a_client_that_creates_nothing_needs_no_right_to_create(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "fresh")}

    (topic,) = metadata(plane, by_name("fresh", allow_auto_topic_creation=False)).topics

    assert topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_authorized_operations_of_a_topic_are_those_that_are_allowed(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.READ, "a")}
    request = by_name("a", "b", include_topic_authorized_operations=True)

    a, b = metadata(plane, request).topics

    assert a.topic_authorized_operations == bits(AclOperation.READ, AclOperation.DESCRIBE)
    assert b.topic_authorized_operations == OPERATIONS_NOT_REQUESTED
    assert rights.logged == [topic_right(AclOperation.DESCRIBE, "b")]


def test_operations_that_were_not_asked_for_are_not_shown(plane: Plane, rights: Rights) -> None:
    rights.grant_all()

    answer = metadata(plane, by_name("a"), 10)

    assert answer.topics[0].topic_authorized_operations == OPERATIONS_NOT_REQUESTED
    assert answer.cluster_authorized_operations == OPERATIONS_NOT_REQUESTED


@pytest.mark.parametrize(
    ("granted", "expected"),
    [
        ((), 0),
        ((AclOperation.CREATE,), 0),
        ((AclOperation.DESCRIBE,), bits(AclOperation.DESCRIBE)),
        ((AclOperation.ALTER,), bits(AclOperation.ALTER, AclOperation.DESCRIBE)),
    ],
)
def test_the_operations_on_the_cluster_need_the_right_to_describe_it(
    plane: Plane, rights: Rights, granted: tuple[AclOperation, ...], expected: int
) -> None:
    rights.granted = set(map(cluster_right, granted))
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)

    described = plane.ask(asked, 1, DescribeClusterResponse)
    listed = metadata(plane, by_name(include_cluster_authorized_operations=True), 10)

    assert described.error_code is NONE
    assert described.cluster_authorized_operations == expected
    assert listed.cluster_authorized_operations == expected


def test_with_all_rights_the_operations_are_all(plane: Plane, rights: Rights) -> None:
    rights.grant_all()
    request = by_name(
        "a", include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )

    answer = metadata(plane, request, 10)

    assert answer.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS


# DescribeTopicPartitions


def pages(
    plane: Plane, *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    topics = [TopicRequest(TopicName(name)) for name in names]
    request = DescribeTopicPartitionsRequest(topics, limit, cursor)
    return plane.ask(request, 0, DescribeTopicPartitionsResponse)


def test_a_hidden_topic_has_no_place_in_a_page(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}

    answer = pages(plane, "a", "b", limit=1)

    assert [(t.name, t.error_code) for t in answer.topics] == [("b", NONE), ("a", FORBIDDEN)]
    assert answer.next_cursor == Cursor(TopicName("b"), 1)
    assert answer.topics[0].topic_authorized_operations == bits(AclOperation.DESCRIBE)
    assert answer.topics[1].topic_authorized_operations == OPERATIONS_NOT_REQUESTED
    assert answer.topics[1].topic_id == ZERO_TOPIC_ID


def test_the_next_page_has_the_hidden_topics_from_its_cursor_on(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}

    answer = pages(plane, "a", "b", "c", cursor=Cursor(TopicName("b"), 1))

    assert [(t.name, t.error_code) for t in answer.topics] == [("b", NONE), ("c", FORBIDDEN)]


def test_the_pages_of_all_topics_leave_out_those_that_are_hidden(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}

    answer = pages(plane, limit=2)

    assert [topic.name for topic in answer.topics] == ["b"]
    assert answer.next_cursor is None, "a hidden topic would be disclosed"


# Topics


def created(plane: Plane, *names: str) -> dict[str, tuple[ErrorCode, str | None]]:
    request = CreateTopicsRequest([CreatableTopic(TopicName(name), 1, 1) for name in names])
    answer = plane.ask(request, 7, CreateTopicsResponse)
    return {topic.name: (topic.error_code, topic.error_message) for topic in answer.topics}


def test_only_topics_that_may_be_created_are(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.CREATE, "mine")}

    assert created(plane, "mine", "other", "a") == {
        "mine": (NONE, None),
        "other": (FORBIDDEN, "Authorization failed."),
        "a": (FORBIDDEN, "Authorization failed."),
    }
    assert plane.data.registry.by_name(TopicName("mine")) is not None
    assert plane.data.registry.by_name(TopicName("other")) is None


def test_a_repeated_or_prohibited_name_is_refused_before_rights(plane: Plane) -> None:
    codes = created(plane, "twice", "twice", "__cluster_metadata")

    assert {code for code, _ in codes.values()} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", [5, 7])
def test_the_configs_of_a_new_topic_need_a_right_of_their_own(
    plane: Plane, rights: Rights, version: int
) -> None:
    rights.granted = {cluster_right(AclOperation.CREATE)}

    result = plane.create("mine", 3, version)

    assert result.error_code is NONE
    assert result.topic_config_error_code is FORBIDDEN
    assert not result.configs
    assert (result.num_partitions, result.replication_factor) == (-1, -1)
    assert rights.logged == []

    rights.granted.add(topic_right(AclOperation.DESCRIBE_CONFIGS, "shown"))
    shown = plane.create("shown", 3, version)
    assert shown.topic_config_error_code is NONE
    assert shown.configs
    assert shown.num_partitions == 3


def deleted(plane: Plane, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    answer = plane.ask(DeleteTopicsRequest(topics), 6, DeleteTopicsResponse)
    return [
        DeletableTopicResult(result.name, result.topic_id, result.error_code)
        for result in answer.responses
    ]


def test_the_name_of_a_topic_with_an_id_is_not_disclosed(plane: Plane, rights: Rights) -> None:
    a, b = plane.topic_id("a"), plane.topic_id("b")
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}

    assert deleted(plane, DeleteTopicState(None, a), DeleteTopicState(None, b)) == [
        DeletableTopicResult(None, a, FORBIDDEN),
        DeletableTopicResult(TopicName("b"), b, FORBIDDEN),
    ]
    assert plane.data.registry.by_name(TopicName("b")) is not None


def test_a_topic_that_may_be_described_differs_from_an_absent_one(
    plane: Plane, rights: Rights
) -> None:
    rights.granted = {
        topic_right(AclOperation.DESCRIBE, "a"),
        topic_right(AclOperation.DESCRIBE, "absent"),
        topic_right(AclOperation.DELETE, "b"),
    }
    names = [DeleteTopicState(TopicName(name)) for name in ("a", "absent", "other", "b")]

    assert deleted(plane, *names) == [
        DeletableTopicResult(TopicName("a"), ZERO_TOPIC_ID, FORBIDDEN),
        DeletableTopicResult(
            TopicName("absent"), ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
        DeletableTopicResult(TopicName("other"), ZERO_TOPIC_ID, FORBIDDEN),
        DeletableTopicResult(TopicName("b"), deleted_id(plane, rights), NONE),
    ]


def deleted_id(plane: Plane, rights: Rights) -> object:
    """Of the second topic that the fixture has created."""
    rights.grant_all()
    return type(plane.topic_id("a"))(int=plane.topic_id("a").int + 1)


def test_a_name_and_an_id_of_one_forbidden_topic_disclose_nothing(plane: Plane) -> None:
    a = plane.topic_id("a")

    assert deleted(plane, DeleteTopicState(TopicName("a")), DeleteTopicState(None, a)) == [
        DeletableTopicResult(None, a, FORBIDDEN),
        DeletableTopicResult(TopicName("a"), ZERO_TOPIC_ID, FORBIDDEN),
    ]


# Configs


def described(plane: Plane, *resources: tuple[int, str]) -> DescribeConfigsResponse:
    request = DescribeConfigsRequest([DescribeConfigsResource(*each, None) for each in resources])
    return plane.ask(request, 4, DescribeConfigsResponse)


def test_refused_configs_come_last_and_without_any_config(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE_CONFIGS, "b")}
    topic, broker, group = (
        ConfigResourceType.TOPIC,
        ConfigResourceType.BROKER,
        ConfigResourceType.GROUP,
    )

    results = described(plane, (topic, "a"), (broker, "1"), (group, "g"), (topic, "b")).results

    assert [(r.resource_type, r.resource_name, r.error_message) for r in results] == [
        (topic, "b", ""),
        (topic, "a", "Topic authorization failed."),
        (broker, "1", "Cluster authorization failed."),
        (group, "g", "Group authorization failed."),
    ]
    assert [bool(result.configs) for result in results] == [True, False, False, False]


def altered(
    plane: Plane, resource_type: ConfigResourceType, name: str, key: str, text: str
) -> AlterConfigsResourceResponse:
    config = IncrementalAlterableConfig(key, 0, text)
    resource = IncrementalAlterConfigsResource(resource_type, name, (config,))
    request = IncrementalAlterConfigsRequest((resource,))
    return plane.ask(request, 1, IncrementalAlterConfigsResponse).responses[0]


def test_a_refused_change_of_configs_changes_nothing(plane: Plane) -> None:
    result = altered(plane, ConfigResourceType.TOPIC, "a", "retention.ms", "1")

    assert result.error_message == "Topic authorization failed."
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    assert topic.configs == {}


def test_the_configs_of_an_absent_topic_are_forbidden(plane: Plane) -> None:
    result = altered(plane, ConfigResourceType.TOPIC, "absent", "no.such.key", "1")

    assert result.error_code is FORBIDDEN


def test_a_value_for_the_broker_is_checked_before_the_right(plane: Plane, rights: Rights) -> None:
    wrong = altered(plane, ConfigResourceType.BROKER, "", "log.retention.ms", "never")
    right = altered(plane, ConfigResourceType.BROKER, "", "log.retention.ms", "1000")

    assert wrong.error_code is ErrorCode.INVALID_REQUEST
    assert right.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert len(rights.logged) == 1


def test_the_right_on_a_group_is_one_on_that_group(plane: Plane, rights: Rights) -> None:
    rights.granted = {
        topic_right(AclOperation.ALTER_CONFIGS, "g"),
        cluster_right(AclOperation.ALTER_CONFIGS),
    }
    key = "consumer.session.timeout.ms"

    refused = altered(plane, ConfigResourceType.GROUP, "g", key, "50000")

    assert refused.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert rights.logged[0].resource_type is ResourceType.GROUP


# Some topics of several


def test_list_offsets_answers_for_the_topics_that_are_allowed(plane: Plane, rights: Rights) -> None:
    rights.granted = {topic_right(AclOperation.DESCRIBE, "b")}
    asked = [
        ListOffsetsTopic(TopicName(name), (ListOffsetsPartition(0, timestamp=-1),) * times)
        for name, times in (("a", 2), ("b", 1))
    ]

    answer = plane.ask(
        ListOffsetsRequest(-1, isolation_level=1, topics=asked), 7, ListOffsetsResponse
    )

    assert [[p.error_code for p in topic.partitions] for topic in answer.topics] == [
        [FORBIDDEN],
        [NONE],
    ]
