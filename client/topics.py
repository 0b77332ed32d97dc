"""Topics: lists, creates, describes, alters and deletes topics.

Kafka's counterparts: `TopicCommand`, and `ConfigCommand` for the configs of topics.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from client.cluster import Cluster
from client.errors import NotThere, RequestRefused
from client.log_offsets import END, START, read_log_offsets
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from protocol.names import ErrorCode, TopicName

TIMEOUT_MS: Final = 30_000
BROKER_DEFAULT: Final = -1
"""As a number of partitions or of replicas."""

_TOPIC: Final = 2
"""The type of a config resource."""

_DYNAMIC_TOPIC_CONFIG: Final = 1
_SET, _REMOVE = 0, 1


class TopicListing(Struct, frozen=True):
    topic: str
    partitions: int
    internal: bool


class PartitionDescription(Struct, frozen=True):
    """`leader` None: there is none now; then the offsets are not known."""

    partition: int
    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    log_start_offset: int | None
    log_end_offset: int | None


class TopicDescription(Struct, frozen=True):
    """`configs` are those that the topic itself has."""

    topic: str
    topic_id: str
    internal: bool
    partitions: Sequence[PartitionDescription]
    configs: Mapping[str, str | None]


def list_topics(cluster: Cluster) -> list[TopicListing]:
    """All topics, by name. Raises ClusterFault."""
    found = [
        TopicListing(topic.name, len(topic.partitions), topic.is_internal)
        for topic in cluster.topics(None).topics
        if topic.name is not None
    ]
    return sorted(found, key=lambda topic: topic.topic)


def create_new_topic(
    cluster: Cluster, name: str, partitions: int, replicas: int, configs: Mapping[str, str]
) -> None:
    """Raises ClusterFault, RequestRefused."""
    settings = [CreatableTopicConfig(key, value) for key, value in configs.items()]
    topic = CreatableTopic(TopicName(name), partitions, replicas, (), settings)
    request = CreateTopicsRequest((topic,), TIMEOUT_MS)
    (result,) = cluster.controller().ask(request, CreateTopicsResponse).topics
    if result.error_code is not ErrorCode.NONE:
        raise RequestRefused(
            f"topic {name!r} cannot be created", result.error_code, result.error_message
        )


def describe_topic(cluster: Cluster, name: str) -> TopicDescription:
    """Raises ClusterFault, NotThere, RequestRefused."""
    topic = cluster.topic(name)
    led = [
        (name, partition.partition_index)
        for partition in topic.partitions
        if partition.leader_id >= 0
    ]
    starts = read_log_offsets(cluster, dict.fromkeys(led, START))
    ends = read_log_offsets(cluster, dict.fromkeys(led, END))
    partitions = [
        PartitionDescription(
            partition.partition_index,
            partition.leader_id if partition.leader_id >= 0 else None,
            list(partition.replica_nodes),
            list(partition.isr_nodes),
            starts.get((name, partition.partition_index)),
            ends.get((name, partition.partition_index)),
        )
        for partition in sorted(topic.partitions, key=lambda p: p.partition_index)
    ]
    return TopicDescription(
        name, str(topic.topic_id), topic.is_internal, partitions, _own_configs(cluster, name)
    )


def _own_configs(cluster: Cluster, name: str) -> dict[str, str | None]:
    request = DescribeConfigsRequest((DescribeConfigsResource(_TOPIC, name, None),))
    (result,) = cluster.first.ask(request, DescribeConfigsResponse).results
    if result.error_code is not ErrorCode.NONE:
        raise RequestRefused(
            f"configs of topic {name!r} cannot be read", result.error_code, result.error_message
        )
    return {
        config.name: config.value
        for config in sorted(result.configs, key=lambda config: config.name)
        if config.config_source == _DYNAMIC_TOPIC_CONFIG
    }


def add_partitions(cluster: Cluster, name: str, partitions: int) -> None:
    """`partitions`: how many there are then. Raises ClusterFault, NotThere, RequestRefused."""
    topic = CreatePartitionsTopic(TopicName(name), partitions, None)
    request = CreatePartitionsRequest((topic,), TIMEOUT_MS)
    (result,) = cluster.controller().ask(request, CreatePartitionsResponse).results
    _check(f"topic {name!r} cannot be altered", name, result.error_code, result.error_message)


def alter_configs(
    cluster: Cluster, name: str, changed: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Raises ClusterFault, NotThere, RequestRefused."""
    configs = [IncrementalAlterableConfig(key, _SET, value) for key, value in changed.items()]
    configs += [IncrementalAlterableConfig(key, _REMOVE, None) for key in removed]
    resource = IncrementalAlterConfigsResource(_TOPIC, name, configs)
    request = IncrementalAlterConfigsRequest((resource,))
    (result,) = cluster.controller().ask(request, IncrementalAlterConfigsResponse).responses
    _check(f"topic {name!r} cannot be altered", name, result.error_code, result.error_message)


def delete_topic(cluster: Cluster, name: str) -> None:
    """Raises ClusterFault, NotThere, RequestRefused."""
    request = DeleteTopicsRequest(topic_names=(TopicName(name),), timeout_ms=TIMEOUT_MS)
    controller = cluster.controller()
    (result,) = controller.ask(request, DeleteTopicsResponse).responses
    _check(f"topic {name!r} cannot be deleted", name, result.error_code, result.error_message)


def _check(what: str, name: str, error_code: ErrorCode, message: str | None) -> None:
    if error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NotThere(f"there is no topic {name!r}; `rollcall topic list` shows all")
    if error_code is not ErrorCode.NONE:
        raise RequestRefused(what, error_code, message)
