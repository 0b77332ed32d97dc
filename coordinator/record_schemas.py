"""Record schemas: the fields of each record of `__consumer_offsets`, by version.

Declares the key and the value of every record type that Kafka 4.3 and 4.4 know, field for field as
the JSON files in kafka-group-coordinator, so that any log can be shown and kept. Rollcall writes
types 1 to 3, 5 to 8 and 16. `records.py` has fast readers and writers of types 1 and 2.

A key is versioned by its record type alone, so each key class has one version, 0. Version notes:
OffsetCommitValue v1 expire_timestamp (and only v1), v3 leader_epoch, v4 flexible and topic_id;
GroupMetadataValue v1 rebalance_timeout, v2 current_state_timestamp, v3 group_instance_id, v4
flexible. All others have only v0, flexible from the start.

A trap of Kafka's: three tagged fields are declared with the JSON literal null as their default. Its
generator takes that as "empty", so an absent tag reads as an empty value and a null is written out.
They have an empty default here as well. Kafka's counterpart: `CoordinatorRecordType`.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import field

from protocol.names import ZERO_TOPIC_ID, TopicId
from protocol.schema import (
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NEVER,
    STRING,
    UINT16,
    UUID,
    Message,
    Struct,
    array,
    between,
    nullable,
    since,
    tagged,
)

# ---------------------------------------------------------------- keys, one class for each shape


class OffsetCommitKey(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group: Annotated[str, STRING] = ""
    topic: Annotated[str, STRING] = ""
    partition: Annotated[int, INT32] = 0


class GroupMetadataKey(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group: Annotated[str, STRING] = ""


class GroupKey(Message):
    """Of all that a newer group protocol keeps once for a group."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: Annotated[str, STRING] = ""


class GroupMemberKey(Message):
    """Of all that a newer group protocol keeps for each member."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: Annotated[str, STRING] = ""
    member_id: Annotated[str, STRING] = ""


class RegularExpressionKey(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group_id: Annotated[str, STRING] = ""
    regular_expression: Annotated[str, STRING] = ""


# ---------------------------------------------------------------- offsets and classic groups


class LegacyOffsetCommitValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    offset: Annotated[int, INT64] = 0
    metadata: Annotated[str, STRING] = ""
    commit_timestamp: Annotated[int, INT64] = 0


class OffsetCommitValue(Message):
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4

    offset: Annotated[int, INT64] = 0
    leader_epoch: Annotated[int, since(INT32, 3, ignorable=True)] = -1
    metadata: Annotated[str, STRING] = ""
    commit_timestamp: Annotated[int, INT64] = 0
    expire_timestamp: Annotated[int, between(INT64, 1, 1, ignorable=True)] = -1
    topic_id: Annotated[TopicId, tagged(UUID, 0, since=4, ignorable=True)] = ZERO_TOPIC_ID


class MemberMetadata(Struct):
    member_id: Annotated[str, STRING] = ""
    group_instance_id: Annotated[str | None, since(STRING, 3, nullable=True, ignorable=True)] = None
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    rebalance_timeout: Annotated[int, since(INT32, 1, ignorable=True)] = -1
    session_timeout: Annotated[int, INT32] = 0
    subscription: Annotated[bytes, BYTES] = b""
    assignment: Annotated[bytes, BYTES] = b""


class GroupMetadataValue(Message):
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 4

    protocol_type: Annotated[str, STRING] = ""
    generation: Annotated[int, INT32] = 0
    protocol: Annotated[str | None, nullable(STRING)] = ""
    leader: Annotated[str | None, nullable(STRING)] = ""
    current_state_timestamp: Annotated[int, since(INT64, 2, ignorable=True)] = -1
    members: Annotated[Sequence[MemberMetadata], array(MemberMetadata)] = ()


# ---------------------------------------------------------------- consumer groups (KIP-848)


class ConsumerGroupMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    epoch: Annotated[int, INT32] = 0
    metadata_hash: Annotated[int, tagged(INT64, 0)] = 0


class PartitionMetadata(Struct):
    partition: Annotated[int, INT32] = 0
    racks: Annotated[Sequence[str], array(STRING)] = ()


class TopicMetadata(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    topic_name: Annotated[str, STRING] = ""
    num_partitions: Annotated[int, INT32] = 0
    partition_metadata: Annotated[Sequence[PartitionMetadata], array(PartitionMetadata)] = ()


class ConsumerGroupPartitionMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: Annotated[Sequence[TopicMetadata], array(TopicMetadata)] = ()


class ClassicProtocol(Struct):
    name: Annotated[str, STRING] = ""
    metadata: Annotated[bytes, BYTES] = b""


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Annotated[int, INT32] = 0
    supported_protocols: Annotated[Sequence[ClassicProtocol], array(ClassicProtocol)] = ()


class ConsumerGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    instance_id: Annotated[str | None, nullable(STRING)] = ""
    rack_id: Annotated[str | None, nullable(STRING)] = ""
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    subscribed_topic_names: Annotated[Sequence[str], array(STRING)] = ()
    subscribed_topic_regex: Annotated[str | None, nullable(STRING)] = ""
    rebalance_timeout_ms: Annotated[int, INT32] = -1
    server_assignor: Annotated[str | None, nullable(STRING)] = ""
    classic_member_metadata: Annotated[
        ClassicMemberMetadata | None, tagged(ClassicMemberMetadata, 0, nullable=True)
    ] = field(default_factory=ClassicMemberMetadata)


class TargetAssignmentMetadataValue(Message):
    """The same for consumer, share and streams groups."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    assignment_epoch: Annotated[int, INT32] = 0
    assignment_timestamp: Annotated[int, tagged(INT64, 0)] = 0


class TopicPartitions(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class TargetAssignmentMemberValue(Message):
    """The same for consumer and share groups."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    topic_partitions: Annotated[Sequence[TopicPartitions], array(TopicPartitions)] = ()


class TopicPartitionsWithEpochs(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    partitions: Annotated[Sequence[int], array(INT32)] = ()
    assignment_epochs: Annotated[Sequence[int] | None, tagged(array(INT32), 0, nullable=True)] = ()


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    member_epoch: Annotated[int, INT32] = 0
    previous_member_epoch: Annotated[int, INT32] = 0
    state: Annotated[int, INT8] = 0
    assigned_partitions: Annotated[
        Sequence[TopicPartitionsWithEpochs], array(TopicPartitionsWithEpochs)
    ] = ()
    partitions_pending_revocation: Annotated[
        Sequence[TopicPartitionsWithEpochs], array(TopicPartitionsWithEpochs)
    ] = ()


class ConsumerGroupRegularExpressionValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    topics: Annotated[Sequence[str], array(STRING)] = ()
    version: Annotated[int, INT64] = 0
    timestamp: Annotated[int, INT64] = 0


# ---------------------------------------------------------------- share groups (KIP-932)


class ShareGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    rack_id: Annotated[str | None, nullable(STRING)] = ""
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    subscribed_topic_names: Annotated[Sequence[str], array(STRING)] = ()


class ShareGroupMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    epoch: Annotated[int, INT32] = 0
    metadata_hash: Annotated[int, INT64] = 0


class ShareGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    member_epoch: Annotated[int, INT32] = 0
    previous_member_epoch: Annotated[int, INT32] = 0
    state: Annotated[int, INT8] = 0
    assigned_partitions: Annotated[Sequence[TopicPartitions], array(TopicPartitions)] = ()


class TopicPartitionsInfo(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    topic_name: Annotated[str, STRING] = ""
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class ShareTopicInfo(Struct):
    topic_id: Annotated[TopicId, UUID] = ZERO_TOPIC_ID
    topic_name: Annotated[str, STRING] = ""


class ShareGroupStatePartitionMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    initializing_topics: Annotated[Sequence[TopicPartitionsInfo], array(TopicPartitionsInfo)] = ()
    initialized_topics: Annotated[Sequence[TopicPartitionsInfo], array(TopicPartitionsInfo)] = ()
    deleting_topics: Annotated[Sequence[ShareTopicInfo], array(ShareTopicInfo)] = ()


# ---------------------------------------------------------------- streams groups (KIP-1071)


class KeyValue(Struct):
    key: Annotated[str, STRING] = ""
    value: Annotated[str, STRING] = ""


class StreamsGroupMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    epoch: Annotated[int, INT32] = 0
    metadata_hash: Annotated[int, INT64] = 0
    validated_topology_epoch: Annotated[int, tagged(INT32, 0)] = -1
    last_assignment_configs: Annotated[
        Sequence[KeyValue] | None, tagged(array(KeyValue), 1, nullable=True)
    ] = ()
    stored_description_topology_epoch: Annotated[int, tagged(INT32, 2)] = -1
    failed_description_topology_epoch: Annotated[int, tagged(INT32, 3)] = -1


class Endpoint(Struct):
    host: Annotated[str, STRING] = ""
    port: Annotated[int, UINT16] = 0


class StreamsGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    instance_id: Annotated[str | None, nullable(STRING)] = ""
    rack_id: Annotated[str | None, nullable(STRING)] = ""
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    rebalance_timeout_ms: Annotated[int, INT32] = -1
    topology_epoch: Annotated[int, INT32] = 0
    process_id: Annotated[str, STRING] = ""
    user_endpoint: Annotated[Endpoint | None, nullable(Endpoint)] = None
    client_tags: Annotated[Sequence[KeyValue], array(KeyValue)] = ()


class TaskIds(Struct):
    subtopology_id: Annotated[str, STRING] = ""
    partitions: Annotated[Sequence[int], array(INT32)] = ()


class StreamsGroupTargetAssignmentMemberValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    active_tasks: Annotated[Sequence[TaskIds], array(TaskIds)] = ()
    standby_tasks: Annotated[Sequence[TaskIds], array(TaskIds)] = ()
    warmup_tasks: Annotated[Sequence[TaskIds], array(TaskIds)] = ()


class TaskIdsWithEpochs(Struct):
    subtopology_id: Annotated[str, STRING] = ""
    partitions: Annotated[Sequence[int], array(INT32)] = ()
    assignment_epochs: Annotated[Sequence[int] | None, tagged(array(INT32), 0, nullable=True)] = ()


class StreamsGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    member_epoch: Annotated[int, INT32] = 0
    previous_member_epoch: Annotated[int, INT32] = 0
    state: Annotated[int, INT8] = 0
    active_tasks: Annotated[Sequence[TaskIdsWithEpochs], array(TaskIdsWithEpochs)] = ()
    standby_tasks: Annotated[Sequence[TaskIdsWithEpochs], array(TaskIdsWithEpochs)] = ()
    warmup_tasks: Annotated[Sequence[TaskIdsWithEpochs], array(TaskIdsWithEpochs)] = ()
    active_tasks_pending_revocation: Annotated[
        Sequence[TaskIdsWithEpochs], array(TaskIdsWithEpochs)
    ] = ()
    standby_tasks_pending_revocation: Annotated[
        Sequence[TaskIdsWithEpochs], array(TaskIdsWithEpochs)
    ] = ()
    warmup_tasks_pending_revocation: Annotated[
        Sequence[TaskIdsWithEpochs], array(TaskIdsWithEpochs)
    ] = ()


class StreamsTopicInfo(Struct):
    name: Annotated[str, STRING] = ""
    partitions: Annotated[int, INT32] = 0
    replication_factor: Annotated[int, INT16] = 0
    topic_configs: Annotated[Sequence[KeyValue], array(KeyValue)] = ()


class CopartitionGroup(Struct):
    source_topics: Annotated[Sequence[int], array(INT16)] = ()
    source_topic_regex: Annotated[Sequence[int], array(INT16)] = ()
    repartition_source_topics: Annotated[Sequence[int], array(INT16)] = ()


class Subtopology(Struct):
    subtopology_id: Annotated[str, STRING] = ""
    source_topics: Annotated[Sequence[str], array(STRING)] = ()
    source_topic_regex: Annotated[Sequence[str], array(STRING)] = ()
    state_changelog_topics: Annotated[Sequence[StreamsTopicInfo], array(StreamsTopicInfo)] = ()
    repartition_sink_topics: Annotated[Sequence[str], array(STRING)] = ()
    repartition_source_topics: Annotated[Sequence[StreamsTopicInfo], array(StreamsTopicInfo)] = ()
    copartition_groups: Annotated[Sequence[CopartitionGroup], array(CopartitionGroup)] = ()


class StreamsGroupTopologyValue(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    epoch: Annotated[int, INT32] = 0
    subtopologies: Annotated[Sequence[Subtopology], array(Subtopology)] = ()


# ---------------------------------------------------------------- the table


class RecordSchema(NamedTuple):
    """A record type: its name as Kafka's tools print it, and the classes of its key and value."""

    name: str
    key: type[Message]
    value: type[Message]


RECORD_SCHEMAS: Final[dict[int, RecordSchema]] = {
    0: RecordSchema("LegacyOffsetCommit", OffsetCommitKey, LegacyOffsetCommitValue),
    1: RecordSchema("OffsetCommit", OffsetCommitKey, OffsetCommitValue),
    2: RecordSchema("GroupMetadata", GroupMetadataKey, GroupMetadataValue),
    3: RecordSchema("ConsumerGroupMetadata", GroupKey, ConsumerGroupMetadataValue),
    4: RecordSchema(
        "ConsumerGroupPartitionMetadata", GroupKey, ConsumerGroupPartitionMetadataValue
    ),
    5: RecordSchema(
        "ConsumerGroupMemberMetadata", GroupMemberKey, ConsumerGroupMemberMetadataValue
    ),
    6: RecordSchema(
        "ConsumerGroupTargetAssignmentMetadata", GroupKey, TargetAssignmentMetadataValue
    ),
    7: RecordSchema(
        "ConsumerGroupTargetAssignmentMember", GroupMemberKey, TargetAssignmentMemberValue
    ),
    8: RecordSchema(
        "ConsumerGroupCurrentMemberAssignment",
        GroupMemberKey,
        ConsumerGroupCurrentMemberAssignmentValue,
    ),
    10: RecordSchema("ShareGroupMemberMetadata", GroupMemberKey, ShareGroupMemberMetadataValue),
    11: RecordSchema("ShareGroupMetadata", GroupKey, ShareGroupMetadataValue),
    12: RecordSchema("ShareGroupTargetAssignmentMetadata", GroupKey, TargetAssignmentMetadataValue),
    13: RecordSchema(
        "ShareGroupTargetAssignmentMember", GroupMemberKey, TargetAssignmentMemberValue
    ),
    14: RecordSchema(
        "ShareGroupCurrentMemberAssignment", GroupMemberKey, ShareGroupCurrentMemberAssignmentValue
    ),
    15: RecordSchema(
        "ShareGroupStatePartitionMetadata", GroupKey, ShareGroupStatePartitionMetadataValue
    ),
    16: RecordSchema(
        "ConsumerGroupRegularExpression", RegularExpressionKey, ConsumerGroupRegularExpressionValue
    ),
    17: RecordSchema("StreamsGroupMetadata", GroupKey, StreamsGroupMetadataValue),
    19: RecordSchema("StreamsGroupMemberMetadata", GroupMemberKey, StreamsGroupMemberMetadataValue),
    20: RecordSchema(
        "StreamsGroupTargetAssignmentMetadata", GroupKey, TargetAssignmentMetadataValue
    ),
    21: RecordSchema(
        "StreamsGroupTargetAssignmentMember",
        GroupMemberKey,
        StreamsGroupTargetAssignmentMemberValue,
    ),
    22: RecordSchema(
        "StreamsGroupCurrentMemberAssignment",
        GroupMemberKey,
        StreamsGroupCurrentMemberAssignmentValue,
    ),
    23: RecordSchema("StreamsGroupTopology", GroupKey, StreamsGroupTopologyValue),
}
"""Every record type by the number its key opens with; 9 and 18 were never used."""
