"""ApiVersions, FindCoordinator, Metadata, DescribeCluster: what a client asks first of all."""

from collections.abc import Sequence
from uuid import UUID

from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.names import OFFSETS_TOPIC, ApiKey, TopicName
from tests.compare.client import Client
from tests.compare.script import Script, scenario

STRANGE_ID = UUID("11111111-2222-4333-8444-555555555555")


def metadata(client: Client, asked: Sequence[MetadataRequestTopic] | None, version: int) -> None:
    """Ask without creating anything, where the version lets one say so."""
    client.ask(MetadataRequest(asked, allow_auto_topic_creation=version < 4), version)


@scenario()
def the_served_versions_are_told_in_every_version(script: Script) -> None:
    a = script.client("a")
    for version in range(5):
        a.ask(ApiVersionsRequest("librdkafka", "2.6.0"), version)


@scenario()
def a_version_of_the_future_is_answered_in_the_oldest(script: Script) -> None:
    a = script.client("a")
    for version in (5, 99, 32767):
        a.ask_raw(ApiKey.API_VERSIONS, version, b"\x00whatever", ApiVersionsResponse, 0)
    a.ask(ApiVersionsRequest("librdkafka", "2.6.0"), 3)


@scenario()
def a_client_must_name_itself_properly(script: Script) -> None:
    a = script.client("a")
    names = ("", "-x", "x-", "a b", "größer", "x", "a.b-c", "x" * 300, "1", ".")
    for name in names:
        a.ask(ApiVersionsRequest(name, "1.0"), 3)
    for version in ("", "v 1", "1.0-SNAPSHOT"):
        a.ask(ApiVersionsRequest("x", version), 4)


@scenario()
def the_coordinator_is_found_in_every_version(script: Script) -> None:
    a = script.client("a")
    for version in range(4):
        a.ask(FindCoordinatorRequest(script.group), version)
        a.ask(FindCoordinatorRequest(""), version)
    for version in range(4, 7):
        keys = [script.group, "another", "", script.group]
        a.ask(FindCoordinatorRequest(coordinator_keys=keys), version)
        a.ask(FindCoordinatorRequest(coordinator_keys=()), version)


@scenario()
def there_are_coordinators_of_certain_kinds_only(script: Script) -> None:
    a = script.client("a")
    for version in (1, 3):
        for kind in (2, 3, -1, 127):
            a.ask(FindCoordinatorRequest(script.group, kind), version)
    for version in (4, 6):
        for kind in (3, -1, 127):
            a.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[script.group]), version)
    a.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=["not a share key"]), 5)
    a.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=["not a share key"]), 6)


@scenario()
def topics_are_described_in_every_version(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    for version in range(14):
        named = (MetadataRequestTopic(name=topic),)
        metadata(a, named, version)


@scenario()
def all_or_no_topics_are_described(script: Script) -> None:
    script.topic("one")
    script.topic("two", partitions=3)
    a = script.client("a")
    for version in range(14):
        metadata(a, (), version)
        if version >= 1:
            metadata(a, None, version)


@scenario()
def topics_that_are_not_there_are_told_so(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    names = (f"{script.group}.nowhere", topic, "not/a/name", "", ".", "..", "x" * 250)
    asked = [MetadataRequestTopic(name=TopicName(name)) for name in names]
    for version in (0, 1, 3, 4, 9, 12, 13):
        metadata(a, asked, version)


@scenario()
def topics_are_described_by_id(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    topic_id = script.topic_id(topic)
    for version in (10, 11, 12, 13):
        for asked in (
            MetadataRequestTopic(topic_id, None),
            MetadataRequestTopic(STRANGE_ID, None),
            MetadataRequestTopic(UUID(int=0), None),
            MetadataRequestTopic(topic_id, topic),
        ):
            metadata(a, (asked,), version)
    both = (MetadataRequestTopic(topic_id, None), MetadataRequestTopic(name=topic))
    metadata(a, both, 12)
    twice = (MetadataRequestTopic(name=topic), MetadataRequestTopic(name=topic))
    metadata(a, twice, 12)


@scenario()
def the_offsets_topic_is_internal(script: Script) -> None:
    a = script.client("a")
    for version in (1, 9, 13):
        named = (MetadataRequestTopic(name=OFFSETS_TOPIC),)
        metadata(a, named, version)


@scenario()
def what_one_may_do_is_told_on_request(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    named = (MetadataRequestTopic(name=topic), MetadataRequestTopic(name=TopicName("nowhere")))
    for version in (8, 10):
        a.ask(MetadataRequest(named, False, True, True), version)
    a.ask(MetadataRequest(named, False, False, True), 12)


@scenario("creative")
def a_topic_that_is_asked_for_may_be_created(script: Script) -> None:
    a = script.client("a")
    made, kept_away = f"{script.group}.made", f"{script.group}.kept-away"
    a.ask(MetadataRequest((MetadataRequestTopic(name=TopicName(kept_away)),), False), 12)
    a.ask(MetadataRequest((MetadataRequestTopic(name=TopicName("not/a/name")),), True), 12)
    script.ask_aside_and_forget(
        MetadataRequest((MetadataRequestTopic(name=TopicName(made)),), True), 12
    )
    script.until_topic(made, 2)
    for name in (made, kept_away):
        a.ask(MetadataRequest((MetadataRequestTopic(name=TopicName(name)),), False), 12)
    old = f"{script.group}.old"
    script.ask_aside_and_forget(MetadataRequest((MetadataRequestTopic(name=TopicName(old)),)), 1)
    script.until_topic(old, 2)


@scenario()
def the_cluster_is_described(script: Script) -> None:
    a = script.client("a")
    for version in range(3):
        a.ask(DescribeClusterRequest(), version)
        a.ask(DescribeClusterRequest(True), version)
    for kind in (0, 2, 3):
        a.ask(DescribeClusterRequest(False, kind), 1)
    a.ask(DescribeClusterRequest(False, 1, True), 2)


@scenario()
def partitions_are_described_page_by_page(script: Script) -> None:
    first, second = script.topic("one", partitions=3), script.topic("two", partitions=2)
    a = script.client("a")
    named = (TopicRequest(second), TopicRequest(first), TopicRequest(TopicName(f"{first}.nowhere")))
    a.ask(DescribeTopicPartitionsRequest(named), 0)
    for limit in (1, 2, 3, 4, 5, 0, -1):
        a.ask(DescribeTopicPartitionsRequest(named, limit), 0)
    for cursor in (Cursor(first, 1), Cursor(first, 3), Cursor(second, 0), Cursor(first, -1)):
        a.ask(DescribeTopicPartitionsRequest(named, 2, cursor), 0)
