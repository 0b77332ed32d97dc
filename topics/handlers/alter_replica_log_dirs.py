"""AlterReplicaLogDirs: moves replicas to another log directory; this node has only one.

A replica that is there already needs no move. Kafka's counterpart:
`ReplicaManager.alterReplicaLogDirs`.
"""

from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from protocol.names import ErrorCode, TopicName
from storage.api import TopicPartition
from topics.cluster import ClusterView
from topics.registry import TopicRegistry


def answer_alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, registry: TopicRegistry, cluster: ClusterView
) -> AlterReplicaLogDirsResponse:
    """Of a partition that is named with two directories the later one counts."""
    wanted = {
        TopicPartition(topic.name, index): log_dir.path
        for log_dir in request.dirs
        for topic in log_dir.topics
        for index in topic.partitions
    }
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for key, path in wanted.items():
        error_code = _move(key, path, registry, cluster)
        result = AlterReplicaLogDirPartitionResult(key.partition, error_code)
        topics.setdefault(key.topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(TopicName(n), topics[n]) for n in topics]
    )


def _move(
    key: TopicPartition, path: str, registry: TopicRegistry, cluster: ClusterView
) -> ErrorCode:
    if path != cluster.log_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = registry.partition(*key)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.KAFKA_STORAGE_ERROR if partition.offline else ErrorCode.NONE
