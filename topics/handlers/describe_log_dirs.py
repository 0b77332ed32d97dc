"""DescribeLogDirs: the log directory of this node, and the size of each replica in it.

Answered in the reader thread, because it asks the file system for the size of the volume.
Kafka's counterpart: `ReplicaManager.describeLogDirs`.
"""

from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from protocol.names import ErrorCode, TopicName
from storage.api import TopicPartition
from topics.cluster import ClusterView
from topics.registry import TopicRegistry


def answer_describe_log_dirs(
    request: DescribeLogDirsRequest, registry: TopicRegistry, cluster: ClusterView
) -> DescribeLogDirsResponse:
    """Unknown partitions are left out, as are those that have no log."""
    try:
        space = cluster.log_dir_space()
    except OSError:
        fault = DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, cluster.log_dir)
        return DescribeLogDirsResponse(results=(fault,))
    topics: dict[TopicName, list[DescribeLogDirsPartition]] = {}
    for key in _wanted(request, registry):
        partition = registry.partition(*key)
        if partition is None or partition.log is None or partition.offline:
            continue
        described = DescribeLogDirsPartition(key.partition, partition.log.size_bytes)
        topics.setdefault(TopicName(key.topic), []).append(described)
    result = DescribeLogDirsResult(
        log_dir=cluster.log_dir,
        topics=[DescribeLogDirsTopic(name, topics[name]) for name in sorted(topics)],
        total_bytes=space.total_bytes,
        usable_bytes=space.usable_bytes,
    )
    return DescribeLogDirsResponse(results=(result,))


def _wanted(request: DescribeLogDirsRequest, registry: TopicRegistry) -> list[TopicPartition]:
    """Each partition once; null asks for all."""
    if request.topics is None:
        return [partition.topic_partition for partition in registry.partitions()]
    wanted = [TopicPartition(t.topic, index) for t in request.topics for index in t.partitions]
    return list(dict.fromkeys(wanted))
