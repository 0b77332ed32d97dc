"""CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs: what an admin client asks."""

from uuid import UUID

from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.names import OFFSETS_TOPIC, TopicName
from tests.compare.client import Client
from tests.compare.script import Script, scenario

STRANGE_ID = UUID("11111111-2222-4333-8444-555555555555")
TOPIC, BROKER = 2, 4


def create(
    client: Client, *asked: CreatableTopic, version: int = 7, only_validate: bool = False
) -> None:
    client.ask(CreateTopicsRequest(asked, 30_000, only_validate), version)


@scenario()
def a_topic_is_created_in_every_version(script: Script) -> None:
    a = script.client("a")
    for version in range(2, 8):
        name = TopicName(f"{script.group}.{version}")
        create(a, CreatableTopic(name, 3, 1), version=version)
        script.until_topic(name, 3)
        create(a, CreatableTopic(name, 3, 1), version=version)


@scenario()
def a_topic_is_only_validated(script: Script) -> None:
    a = script.client("a")
    name = TopicName(f"{script.group}.t")
    for version in (2, 5, 7):
        create(a, CreatableTopic(name, 3, 1), version=version, only_validate=True)
    there = script.topic("there")
    create(a, CreatableTopic(there, 3, 1), only_validate=True)


@scenario()
def a_topic_takes_the_default_numbers(script: Script) -> None:
    a = script.client("a")
    for version in (4, 7):
        name = TopicName(f"{script.group}.{version}")
        create(a, CreatableTopic(name, -1, -1), version=version)
        script.until_topic(name, 2)


@scenario()
def a_topic_needs_sensible_numbers(script: Script) -> None:
    a = script.client("a")
    name = TopicName(f"{script.group}.t")
    for partitions, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (1, 99), (0, 0)):
        for version in (2, 7):
            create(a, CreatableTopic(name, partitions, replicas), version=version)


@scenario()
def a_topic_needs_a_sensible_name(script: Script) -> None:
    a = script.client("a")
    for name in ("", ".", "..", "a/b", "a b", "größer", "x" * 250, OFFSETS_TOPIC):
        create(a, CreatableTopic(TopicName(name), 1, 1))
        create(a, CreatableTopic(TopicName(name), 1, 1), only_validate=True, version=4)


@scenario()
def names_that_metrics_cannot_tell_apart_collide(script: Script) -> None:
    a = script.client("a")
    script.topic("a.b")
    create(a, CreatableTopic(TopicName(f"{script.group}.a_b"), 1, 1))
    create(a, CreatableTopic(TopicName(f"{script.group}_a_b"), 1, 1))


@scenario()
def a_topic_may_say_where_its_replicas_are(script: Script) -> None:
    a = script.client("a")

    def assigned(*partitions: tuple[int, list[int]]) -> list[CreatableReplicaAssignment]:
        return [CreatableReplicaAssignment(index, brokers) for index, brokers in partitions]

    name = TopicName(f"{script.group}.t")
    create(a, CreatableTopic(name, 1, 1, assigned((0, [1]))))
    create(a, CreatableTopic(name, -1, -1, assigned((0, [99]))))
    create(a, CreatableTopic(name, -1, -1, assigned((0, [1]), (2, [1]))))
    create(a, CreatableTopic(name, -1, -1, assigned((1, [1]))))
    create(a, CreatableTopic(name, -1, -1, assigned((0, [1, 1]))))
    create(a, CreatableTopic(name, -1, -1, assigned((0, []))))
    create(a, CreatableTopic(name, -1, -1, assigned((0, [1]), (0, [1]))))
    create(a, CreatableTopic(name, -1, -1, assigned((0, [1]), (1, [1]))))
    script.until_topic(name, 2)


@scenario()
def a_topic_may_have_configs_of_its_own(script: Script) -> None:
    a = script.client("a")
    settings = (
        ("retention.ms", "60000"),
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "no such policy"),
        ("no.such.config", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", "-2"),
        ("segment.bytes", "1"),
        ("max.message.bytes", ""),
        ("cleanup.policy", None),
        ("", "x"),
    )
    for number, (key, value) in enumerate(settings):
        name = TopicName(f"{script.group}.{number}")
        topic = CreatableTopic(name, 1, 1, (), [CreatableTopicConfig(key, value)])
        create(a, topic, version=4)
        create(a, topic, only_validate=True, version=4)


@scenario()
def many_topics_are_created_at_once(script: Script) -> None:
    a = script.client("a")
    first, second = (TopicName(f"{script.group}.{name}") for name in ("one", "two"))
    create(
        a,
        CreatableTopic(first, 1, 1),
        CreatableTopic(second, 1, 1),
        CreatableTopic(first, 2, 1),
        version=4,
    )
    script.until_topic(second, 1)
    create(a, CreatableTopic(first, 1, 1), CreatableTopic(second, 1, 1), version=4)
    a.ask(CreateTopicsRequest(()), 7)


@scenario()
def a_topic_is_deleted_in_every_version(script: Script) -> None:
    a = script.client("a")
    nowhere = TopicName(f"{script.group}.nowhere")
    for version in range(1, 6):
        topic = script.topic(str(version))
        a.ask(DeleteTopicsRequest(topic_names=[topic, nowhere], timeout_ms=30_000), version)
        script.until_no_topic(topic)
        a.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), version)
    topic = script.topic("6")
    asked = [DeleteTopicState(topic), DeleteTopicState(nowhere)]
    a.ask(DeleteTopicsRequest(asked, timeout_ms=30_000), 6)
    script.until_no_topic(topic)


@scenario()
def a_topic_is_deleted_by_id(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    topic_id = script.topic_id(topic)
    for wrong in (
        DeleteTopicState(None, STRANGE_ID),
        DeleteTopicState(topic, topic_id),
        DeleteTopicState(None, UUID(int=0)),
        DeleteTopicState(TopicName(""), UUID(int=0)),
    ):
        a.ask(DeleteTopicsRequest([wrong], timeout_ms=30_000), 6)
    a.ask(DeleteTopicsRequest([DeleteTopicState(None, topic_id)], timeout_ms=30_000), 6)
    script.until_no_topic(topic)


@scenario()
def a_topic_cannot_be_deleted_twice_at_once(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    topic_id = script.topic_id(topic)
    twice = [DeleteTopicState(topic), DeleteTopicState(topic)]
    a.ask(DeleteTopicsRequest(twice, timeout_ms=30_000), 6)
    mixed = [DeleteTopicState(topic), DeleteTopicState(None, topic_id)]
    a.ask(DeleteTopicsRequest(mixed, timeout_ms=30_000), 6)
    a.ask(DeleteTopicsRequest(topic_names=[topic, topic], timeout_ms=30_000), 5)
    a.ask(DeleteTopicsRequest(timeout_ms=30_000), 6)


@scenario()
def a_topic_grows_in_every_version(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    nowhere = TopicName(f"{script.group}.nowhere")
    for version in range(4):
        grown = CreatePartitionsTopic(topic, version + 2, None)
        other = CreatePartitionsTopic(nowhere, 5, None)
        a.ask(CreatePartitionsRequest([grown, other], 30_000), version)
        script.until_topic(topic, version + 2)


@scenario()
def a_topic_never_shrinks(script: Script) -> None:
    a = script.client("a")
    topic = script.topic(partitions=3)
    for count in (3, 2, 0, -1):
        a.ask(CreatePartitionsRequest([CreatePartitionsTopic(topic, count, None)], 30_000), 3)
    four = CreatePartitionsTopic(topic, 4, None)
    a.ask(CreatePartitionsRequest([four], 30_000, True), 3)
    a.ask(CreatePartitionsRequest([four, four], 30_000, True), 3)
    a.ask(CreatePartitionsRequest([], 30_000), 3)
    a.ask(CreatePartitionsRequest([CreatePartitionsTopic(TopicName(""), 4, None)], 30_000), 3)


@scenario()
def new_partitions_may_say_where_they_are(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    choices: list[list[list[int]]] = [[], [[1], [1]], [[99]], [[1, 1]], [[]], [[1]]]
    for brokers in choices:
        assigned = [CreatePartitionsAssignment(ids) for ids in brokers]
        a.ask(CreatePartitionsRequest([CreatePartitionsTopic(topic, 2, assigned)], 30_000), 3)


@scenario()
def configs_are_described_in_every_version(script: Script) -> None:
    a = script.client("a")
    topic = script.topic(retention_ms="60000")
    keys = ["retention.ms", "cleanup.policy", "no.such.config"]
    for version in range(1, 5):
        asked = (DescribeConfigsResource(TOPIC, topic, keys),)
        a.ask(DescribeConfigsRequest(asked), version)


@scenario()
def configs_of_what_is_not_there(script: Script) -> None:
    a = script.client("a")
    for kind, name in (
        (TOPIC, f"{script.group}.nowhere"),
        (TOPIC, ""),
        (TOPIC, "not/a/name"),
        (BROKER, "99"),
        (BROKER, "one"),
        (0, "x"),
        (3, "x"),
        (77, "x"),
    ):
        a.ask(DescribeConfigsRequest((DescribeConfigsResource(kind, name, ["a"]),)), 4)
    a.ask(DescribeConfigsRequest(()), 4)
    a.ask(DescribeConfigsRequest((DescribeConfigsResource(BROKER, "1", ["no.such.config"]),)), 4)
    a.ask(DescribeConfigsRequest((DescribeConfigsResource(TOPIC, OFFSETS_TOPIC, []),)), 4)


@scenario()
def a_request_has_a_limit_of_partitions(script: Script) -> None:
    a = script.client("a")
    name, other = (TopicName(f"{script.group}.{part}") for part in ("t", "other"))
    create(a, CreatableTopic(name, 10_001, 1), only_validate=True, version=4)
    create(a, CreatableTopic(name, 10_000, 1), only_validate=True, version=4)
    create(a, CreatableTopic(name, 9_999, 1), only_validate=True, version=4)
    twice = [CreatableTopic(name, 1, 1), CreatableTopic(name, 1, 1)]
    create(a, *twice, CreatableTopic(f"{name}-large", 10_000, 1), only_validate=True, version=4)
    two = CreatableTopic(name, 9_999, 1), CreatableTopic(other, 2, 1)
    create(a, *two, only_validate=True, version=4)


@scenario()
def a_config_of_a_new_topic_is_named_twice(script: Script) -> None:
    a = script.client("a")
    configs = [CreatableTopicConfig("retention.ms", value) for value in ("1", "2")]
    create(a, CreatableTopic(TopicName(f"{script.group}.t"), 1, 1, (), configs))
    null = [CreatableTopicConfig("retention.ms", None), CreatableTopicConfig("segment.ms", None)]
    create(a, CreatableTopic(TopicName(f"{script.group}.u"), 1, 1, (), null))


@scenario()
def a_new_topic_has_conflicting_configs(script: Script) -> None:
    a = script.client("a")
    for number, pairs in enumerate(
        (
            (("min.compaction.lag.ms", "7"), ("max.compaction.lag.ms", "5")),
            (("min.insync.replicas", "2"),),
            (("min.insync.replicas", "0"),),
            (("remote.storage.enable", "true"),),
            (("remote.log.copy.disable", "true"),),
            (("remote.log.delete.on.disable", "true"),),
            (("local.retention.ms", "7"), ("retention.ms", "5")),
            (("local.retention.bytes", "7"), ("retention.bytes", "5")),
            (("local.retention.ms", "-1"), ("retention.ms", "5")),
            (("local.retention.ms", "-3"),),
            (("segment.jitter.ms", "-1"),),
            (("segment.index.bytes", "3"),),
            (("index.interval.bytes", "-1"),),
            (("flush.messages", "0"),),
            (("flush.ms", "-1"),),
            (("cleanup.policy", ""),),
            (("cleanup.policy", "compact,delete,compact"),),
            (("cleanup.policy", "none"),),
            (("compression.gzip.level", "0"),),
            (("compression.lz4.level", "18"),),
            (("compression.zstd.level", "23"),),
            (("compression.type", "none"),),
            (("message.timestamp.type", "x"),),
            (("message.timestamp.before.max.ms", "-1"),),
            (("message.timestamp.difference.max.ms", "5"),),
            (("message.format.version", "2.0"),),
            (("message.downconversion.enable", "true"),),
            (("file.delete.delay.ms", "-1"),),
            (("delete.retention.ms", "-1"),),
            (("min.cleanable.dirty.ratio", "1.1"),),
            (("max.message.bytes", "-1"),),
            (("preallocate", "yes"),),
            (("unclean.leader.election.enable", "1"),),
            (("leader.replication.throttled.replicas", "x"),),
            (("follower.replication.throttled.replicas", "*"),),
            (("retention.bytes", "-2"),),
            (("internal.segment.bytes", "1"),),
        )
    ):
        configs = [CreatableTopicConfig(*pair) for pair in pairs]
        topic = CreatableTopic(TopicName(f"{script.group}.{number}"), 1, 1, (), configs)
        create(a, topic, only_validate=True, version=4)


@scenario()
def an_internal_topic_is_created_by_a_client(script: Script) -> None:
    a = script.client("a")
    for name in ("__share_group_state", "__cluster_metadata"):
        create(a, CreatableTopic(TopicName(name), 2, 1), only_validate=True, version=4)


@scenario()
def partitions_of_a_topic_are_described_in_portions(script: Script) -> None:
    a = script.client("a")
    topic, other = script.topic("a", partitions=3), script.topic("b", partitions=2)
    nowhere = TopicName(f"{script.group}.nowhere")
    names = [TopicRequest(name) for name in (other, topic, nowhere)]
    for limit in (0, 1, 2, 3, 4, 5, 6, 2_000, -1):
        a.ask(DescribeTopicPartitionsRequest(names, limit), 0)
    for cursor in (
        Cursor(topic, 0),
        Cursor(topic, 2),
        Cursor(topic, 3),
        Cursor(topic, -1),
        Cursor(other, 1),
        Cursor(TopicName(f"{script.group}.c"), 0),
        Cursor(TopicName(""), 0),
    ):
        a.ask(DescribeTopicPartitionsRequest(names, 2, cursor), 0)
    a.ask(DescribeTopicPartitionsRequest([TopicRequest(topic), TopicRequest(topic)], 2_000), 0)
    a.ask(DescribeTopicPartitionsRequest([TopicRequest(TopicName("a b"))], 2_000), 0)
