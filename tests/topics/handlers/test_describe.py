"""DescribeCluster, DescribeTopicPartitions and DescribeConfigs: what tools print."""

import pytest

from protocol.config_def import ConfigType
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.names import OFFSETS_TOPIC, ConfigSource, ErrorCode, TopicName
from tests.topics.plane import Plane
from topics.broker_properties import ConfigSynonym
from topics.cluster import BrokerConfig
from topics.config_resources import ConfigResourceType
from topics.settings import TopicSettings

# DescribeCluster


def test_the_cluster_is_one_node_at_the_address_of_the_clients_listener(plane: Plane) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = plane.ask(request, 2, DescribeClusterResponse, "/10.0.0.1")
    assert (answer.cluster_id, answer.controller_id) == ("a-cluster", 1)
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, "inside", 9093)
    assert not broker.is_fenced
    assert answer.cluster_authorized_operations == 8_096


@pytest.mark.parametrize(
    ("endpoint_type", "error_code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_brokers_are_described(
    plane: Plane, endpoint_type: int, error_code: ErrorCode
) -> None:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    answer = plane.ask(request, 1, DescribeClusterResponse)
    assert answer.error_code is error_code
    assert list(answer.brokers) == []


# DescribeTopicPartitions


def page(
    plane: Plane, *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    topics = [TopicRequest(TopicName(name)) for name in names]
    request = DescribeTopicPartitionsRequest(topics, limit, cursor)
    return plane.ask(request, 0, DescribeTopicPartitionsResponse)


def described(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]


def test_topics_are_described_in_the_order_of_their_names(plane: Plane) -> None:
    plane.given("b", 2)
    plane.given("a", 1)
    answer = page(plane, "b", "a")
    assert described(answer) == [("a", [0]), ("b", [0, 1])]
    assert answer.next_cursor is None
    assert answer.topics[0].topic_id == plane.topic_id("a")
    assert answer.topics[0].topic_authorized_operations == 3_576
    partition = answer.topics[0].partitions[0]
    assert list(partition.isr_nodes) == [1]
    assert partition.eligible_leader_replicas == ()


def test_all_topics_are_described_where_none_is_named(plane: Plane) -> None:
    plane.given("a")
    assert [name for name, _ in described(page(plane))] == [OFFSETS_TOPIC, "a"]


def test_all_pages_together_have_every_partition_once(plane: Plane) -> None:
    for name, count in (("a", 2), ("b", 5), ("c", 1)):
        plane.given(name, count)
    found: list[tuple[str | None, int]] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        answer = page(plane, "a", "b", "c", limit=3, cursor=cursor)
        found += [(name, index) for name, indexes in described(answer) for index in indexes]
        cursor, pages = answer.next_cursor, pages + 1
    assert found == [("a", 0), ("a", 1), *(("b", n) for n in range(5)), ("c", 0)]
    assert pages == 3


def test_a_page_that_ends_with_a_topic_goes_on_with_the_next(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given("b", 1)
    assert page(plane, "a", "b", limit=2).next_cursor == Cursor(TopicName("b"), 0)


def test_the_brokers_own_limit_holds_whatever_is_asked() -> None:
    plane = Plane(TopicSettings(max_request_partition_size_limit=2))
    plane.given("a", 3)
    assert described(page(plane, "a")) == [("a", [0, 1])]
    # And no page is empty.
    assert described(page(plane, "a", limit=0)) == [("a", [0])]


def test_unknown_topics_get_an_error(plane: Plane) -> None:
    answer = page(plane, "a", "b b")
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


@pytest.mark.parametrize("cursor", [Cursor(TopicName("x"), 0), Cursor(TopicName("a"), -1)])
def test_a_cursor_that_points_nowhere_is_an_invalid_request(plane: Plane, cursor: Cursor) -> None:
    plane.given("a")
    answer = page(plane, "a", cursor=cursor)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_a_cursor_of_a_topic_that_was_deleted_meanwhile_goes_on_behind_it(plane: Plane) -> None:
    plane.given("a")
    plane.given("c")
    assert described(page(plane, cursor=Cursor(TopicName("b"), 3))) == [("c", [0])]


# DescribeConfigs


def describe(
    plane: Plane,
    resource_type: int,
    name: str,
    keys: tuple[str, ...] | None = None,
    *,
    version: int = 4,
    synonyms: bool = True,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type, name, keys)
    request = DescribeConfigsRequest((resource,), synonyms, documentation)
    (result,) = plane.ask(request, version, DescribeConfigsResponse).results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


def test_a_topics_configs_are_described_with_their_source(plane: Plane) -> None:
    plane.given("a", cleanup_policy=" compact , delete ", retention_ms="5000")
    result = describe(plane, ConfigResourceType.TOPIC, "a", ("cleanup.policy", "retention.ms"))
    assert result.configs == (
        DescribeConfigsResourceResult(
            "cleanup.policy",
            "compact,delete",
            read_only=False,
            config_source=1,
            synonyms=(
                DescribeConfigsSynonym("cleanup.policy", "compact,delete", 1),
                DescribeConfigsSynonym("log.cleanup.policy", "delete", 5),
            ),
            config_type=ConfigType.LIST,
            documentation=None,
        ),
        DescribeConfigsResourceResult(
            "retention.ms",
            "5000",
            read_only=False,
            config_source=1,
            synonyms=(DescribeConfigsSynonym("retention.ms", "5000", 1),),
            config_type=ConfigType.LONG,
            documentation=None,
        ),
    )


@pytest.mark.parametrize("keys", [None, ()])
def test_all_configs_are_described_if_none_is_named(
    plane: Plane, keys: tuple[str, ...] | None
) -> None:
    plane.given("a")
    result = describe(plane, ConfigResourceType.TOPIC, "a", keys, documentation=True)
    assert len(result.configs) == 33
    assert all(config.documentation for config in result.configs)


def test_synonyms_and_documentation_are_returned_on_request_only(plane: Plane) -> None:
    plane.given("a")
    for config in describe(plane, ConfigResourceType.TOPIC, "a", synonyms=False).configs:
        assert config.synonyms == ()
        assert config.documentation is None
    for config in describe(plane, ConfigResourceType.TOPIC, "a", version=1).configs:
        assert config.config_type == ConfigType.UNKNOWN  # came with version 3


def test_the_broker_key_of_a_topics_default_is_a_synonym() -> None:
    plane = Plane(TopicSettings(broker_properties={"log.segment.bytes": "2000000"}))
    plane.given("a")
    (config,) = describe(plane, ConfigResourceType.TOPIC, "a", ("segment.bytes",)).configs
    assert (config.value, config.config_source) == ("2000000", ConfigSource.STATIC_BROKER_CONFIG)


@pytest.mark.parametrize(
    ("name", "error_code"),
    [("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_a_topic_that_is_not_there_has_no_configs(
    plane: Plane, name: str, error_code: ErrorCode
) -> None:
    result = describe(plane, ConfigResourceType.TOPIC, name)
    assert result.error_code is error_code
    assert result.configs == ()


def test_the_brokers_configs_are_those_of_the_cluster_view(plane: Plane) -> None:
    plane.cluster.configs = [
        BrokerConfig(
            "num.partitions",
            "3",
            ConfigType.INT,
            (
                ConfigSynonym("num.partitions", "3", ConfigSource.STATIC_BROKER_CONFIG),
                ConfigSynonym("num.partitions", "1", ConfigSource.DEFAULT_CONFIG),
            ),
        ),
        BrokerConfig(
            "log.retention.hours",
            "168",
            ConfigType.INT,
            (ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),),
        ),
        BrokerConfig("sasl.password", "x", ConfigType.PASSWORD, is_sensitive=True),
    ]
    first, second, third = describe(plane, ConfigResourceType.BROKER, "1").configs
    assert (first.value, first.config_source, first.read_only) == ("3", 4, True)
    assert first.synonyms == (
        DescribeConfigsSynonym("num.partitions", "3", 4),
        DescribeConfigsSynonym("num.partitions", "1", 5),
    )
    assert second.synonyms == (DescribeConfigsSynonym("log.retention.hours", "168", 5),)
    assert (third.value, third.is_sensitive, third.synonyms) == (None, True, ())


@pytest.mark.parametrize(
    ("resource_type", "name", "message"),
    [
        (
            ConfigResourceType.BROKER,
            "2",
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (ConfigResourceType.BROKER, "x", "Broker id must be an integer, but it is: x"),
        # Integers of Python, but not of Java.
        (ConfigResourceType.BROKER, "0_1", "Broker id must be an integer, but it is: 0_1"),
        (ConfigResourceType.BROKER_LOGGER, " 1", "Broker id must be an integer, but it is:  1"),
        (
            ConfigResourceType.BROKER,
            "2147483648",
            "Broker id must be an integer, but it is: 2147483648",
        ),
        (ConfigResourceType.BROKER_LOGGER, "", "Broker id must not be empty"),
        (ConfigResourceType.BROKER_LOGGER, "3", "Unexpected broker id, expected 1 but received 3"),
        (
            ConfigResourceType.CLIENT_METRICS,
            "",
            "Client metrics subscription name must not be empty",
        ),
        (ConfigResourceType.GROUP, "", "Group name must not be empty"),
    ],
)
def test_what_has_no_configs_is_refused_in_kafkas_words(
    plane: Plane, resource_type: int, name: str, message: str
) -> None:
    result = describe(plane, resource_type, name)
    assert result.error_code is ErrorCode.INVALID_REQUEST
    assert result.error_message == message


def test_without_dynamic_configs_the_cluster_has_no_entries(plane: Plane) -> None:
    result = describe(plane, ConfigResourceType.BROKER, "")
    assert result.error_code is ErrorCode.NONE
    assert result.configs == ()


def test_loggers_are_described_by_their_levels(plane: Plane) -> None:
    root, other = describe(plane, ConfigResourceType.BROKER_LOGGER, "1").configs
    assert (root.name, root.value, root.config_source) == ("root", "INFO", 6)
    assert (other.name, other.value) == ("a.part", "INFO")


def test_a_subscription_that_is_not_there_has_the_defaults(plane: Plane) -> None:
    configs = describe(plane, ConfigResourceType.CLIENT_METRICS, "m").configs
    assert [(entry.name, entry.value, entry.config_source) for entry in configs] == [
        ("interval.ms", "300000", 5),
        ("match", "", 5),
        ("metrics", "", 5),
    ]


def test_an_unknown_resource_type_fails_the_whole_request(plane: Plane) -> None:
    plane.given("a")
    resources = [DescribeConfigsResource(kind, "a", None) for kind in (ConfigResourceType.TOPIC, 7)]
    answer = plane.ask(DescribeConfigsRequest(resources), 4, DescribeConfigsResponse)
    assert [r.error_code for r in answer.results] == [ErrorCode.INVALID_REQUEST] * 2
