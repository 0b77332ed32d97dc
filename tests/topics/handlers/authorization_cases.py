"""Authorization cases: requests with the rights that they need, and the codes without one of them.

The refusals are those of a live Kafka 4.3.1 with `StandardAuthorizer`, which was sent the same
requests in the same versions. It differs in one: DescribeUserScramCredentials of all users is not
answered by it.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages import Request
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from protocol.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from protocol.names import ZERO_TOPIC_ID, ApiKey, ProducerId, TopicId, TopicName
from storage.batch.record_batch import TRANSACTIONAL_FLAG
from tests.topics.batches import batch, damaged
from tests.topics.plane import MEBIBYTE, Plane
from tests.topics.rights import Right, cluster_right, topic_right
from topics.config_resources import ConfigResourceType

TOPIC: Final = TopicName("topic")
FRESH: Final = TopicName("fresh")
MADE: Final = TopicName("made")
GROUP: Final = "group"
TRANSACTION: Final = "txn"

TIMEOUT_MS: Final = 10_000

ANY: Final = None
"""In the place of a missing right: all of them are missing."""

Codes = tuple[int, ...]
Build = Callable[[Plane], Request]


class Case(NamedTuple):
    """`version` is that of the row; `versions` are those that have the same meaning."""

    name: str
    version: int
    build: Build
    needs: tuple[Right, ...]
    without: Mapping[Right | None, Codes]
    versions: range | None = None
    allowed: Codes = (0,)
    """Codes of the answer with the rights alone."""

    @property
    def served(self) -> range:
        return self.versions or _api(self.build)

    @property
    def tried(self) -> list[int]:
        return sorted({self.served[0], self.version, self.served[-1]})


def _api(build: Build) -> range:
    plane = Plane()
    given(plane)
    versions: range = build(plane).VERSIONS
    return versions


def given(plane: Plane) -> None:
    """What the requests are about."""
    plane.given(TOPIC)
    plane.given_records(TOPIC, 1)
    plane.given(MADE)


def api_key(case: Case) -> ApiKey:
    plane = Plane()
    given(plane)
    return case.build(plane).API_KEY


def _produced(
    name: TopicName, records: bytes, topic_id: TopicId = ZERO_TOPIC_ID, name_of: str | None = None
) -> ProduceRequest:
    partition = PartitionProduceData(0, records)
    return ProduceRequest(name_of, -1, 1_000, (TopicProduceData(name, topic_id, (partition,)),))


def _transactional() -> bytes:
    sound = batch(timestamp=1_700_000_000_000, producer_id=7, producer_epoch=0, sequence=0)
    return damaged(sound, attributes=TRANSACTIONAL_FLAG)


def _fetched(name: str, topic_id: TopicId = ZERO_TOPIC_ID) -> FetchRequest:
    partition = FetchPartition(0, partition_max_bytes=MEBIBYTE)
    topic = FetchTopic(TopicName(name), topic_id, (partition,))
    return FetchRequest(max_bytes=MEBIBYTE, min_bytes=1, topics=(topic,))


def _metadata(*names: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=TopicName(name)) for name in names]
    return MetadataRequest(topics, allow_auto_topic_creation=create)


def _describe_configs(resource_type: ConfigResourceType, name: str) -> Build:
    resource = DescribeConfigsResource(resource_type, name, None)
    return lambda _: DescribeConfigsRequest((resource,))


def _alter_configs(
    resource_type: ConfigResourceType, name: str, key: str, text: str
) -> tuple[Build, Build]:
    """AlterConfigs and IncrementalAlterConfigs."""
    config = AlterableConfig(key, text)
    increment = IncrementalAlterableConfig(key, 0, text)
    resource = AlterConfigsResource(resource_type, name, (config,))
    changed = IncrementalAlterConfigsResource(resource_type, name, (increment,))
    return (
        lambda _: AlterConfigsRequest((resource,)),
        lambda _: IncrementalAlterConfigsRequest((changed,)),
    )


def _create(plane: Plane) -> Request:
    return CreateTopicsRequest((CreatableTopic(FRESH, 1, 1),))


def _delete_by_name(plane: Plane) -> Request:
    return DeleteTopicsRequest((), (MADE,), TIMEOUT_MS)


def _alone(right: Right, code: int) -> tuple[tuple[Right, ...], dict[Right | None, Codes]]:
    return (right,), {ANY: (code,)}


def _cluster(operation: AclOperation) -> tuple[tuple[Right, ...], dict[Right | None, Codes]]:
    return _alone(cluster_right(operation), 31)


def _on(
    operation: AclOperation, name: str = TOPIC
) -> tuple[tuple[Right, ...], dict[Right | None, Codes]]:
    return _alone(topic_right(operation, name), 29)


_GROUP_CONFIGS = Right(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP, GROUP)
_GROUP_ALTERED = Right(AclOperation.ALTER_CONFIGS, ResourceType.GROUP, GROUP)
_TXN_WRITE = Right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, TRANSACTION)
_WRITE = topic_right(AclOperation.WRITE)
_FRESH_CREATE = topic_right(AclOperation.CREATE, FRESH)
_FRESH_DESCRIBE = topic_right(AclOperation.DESCRIBE, FRESH)
_MADE_DELETE = topic_right(AclOperation.DELETE, MADE)
_MADE_DESCRIBE = topic_right(AclOperation.DESCRIBE, MADE)

_TOPIC_CONFIGS = ConfigResourceType.TOPIC
_ALTER_TOPIC, _INCREMENT_TOPIC = _alter_configs(_TOPIC_CONFIGS, TOPIC, "retention.ms", "1000")
_ALTER_BROKER, _INCREMENT_BROKER = _alter_configs(
    ConfigResourceType.BROKER, "", "log.retention.ms", "1000"
)
_ALTER_GROUP, _INCREMENT_GROUP = _alter_configs(
    ConfigResourceType.GROUP, GROUP, "consumer.session.timeout.ms", "50000"
)
_ALTER_METRICS, _INCREMENT_METRICS = _alter_configs(
    ConfigResourceType.CLIENT_METRICS, "m", "interval.ms", "1000"
)
_, _INCREMENT_LOGGER = _alter_configs(ConfigResourceType.BROKER_LOGGER, "1", "a.part", "DEBUG")

_RECORDS: Final[tuple[Case, ...]] = (
    Case(
        "Produce by name",
        9,
        lambda plane: _produced(TOPIC, plane.batch()),
        *_on(AclOperation.WRITE),
        range(3, 13),
    ),
    Case(
        "Produce by id",
        13,
        lambda plane: _produced(TopicName(""), plane.batch(), plane.topic_id(TOPIC)),
        *_on(AclOperation.WRITE),
        range(13, 14),
    ),
    Case(
        "Produce to no topic",
        9,
        lambda plane: _produced(FRESH, plane.batch()),
        (_WRITE,),
        {ANY: (29,), _WRITE: (29,)},
        range(3, 13),
        allowed=(29,),
    ),
    Case(
        "Produce in a transaction",
        11,
        lambda _: _produced(TOPIC, _transactional(), name_of=TRANSACTION),
        (_TXN_WRITE, _WRITE),
        {ANY: (53,), _TXN_WRITE: (53,), _WRITE: (29,)},
        range(3, 13),
        allowed=(49,),  # these tests have no transaction coordinator
    ),
    Case(
        "Fetch by name",
        12,
        lambda _: _fetched(TOPIC),
        (topic_right(AclOperation.READ),),
        {ANY: (0, 29)},
        range(4, 13),
    ),
    Case(
        "Fetch by id",
        16,
        lambda plane: _fetched("", plane.topic_id(TOPIC)),
        (topic_right(AclOperation.READ),),
        {ANY: (0, 29)},
        range(13, FetchRequest.VERSIONS.stop),
    ),
    Case(
        "ListOffsets",
        7,
        lambda _: ListOffsetsRequest(
            -1, topics=(ListOffsetsTopic(TOPIC, (ListOffsetsPartition(0, timestamp=-2),)),)
        ),
        *_on(AclOperation.DESCRIBE),
    ),
    Case(
        "OffsetForLeaderEpoch",
        4,
        lambda _: OffsetForLeaderEpochRequest(
            topics=(OffsetForLeaderTopic(TOPIC, (OffsetForLeaderPartition(0),)),)
        ),
        *_on(AclOperation.DESCRIBE),
    ),
    Case(
        "OffsetForLeaderEpoch by a broker",
        4,
        lambda _: OffsetForLeaderEpochRequest(
            topics=(OffsetForLeaderTopic(TOPIC, (OffsetForLeaderPartition(0),)),)
        ),
        *_alone(cluster_right(AclOperation.CLUSTER_ACTION), 29),
    ),
    Case(
        "DeleteRecords",
        2,
        lambda _: DeleteRecordsRequest(
            (DeleteRecordsTopic(TOPIC, (DeleteRecordsPartition(0, 1),)),)
        ),
        *_on(AclOperation.DELETE),
    ),
    Case(
        "DescribeProducers",
        0,
        lambda _: DescribeProducersRequest((DescribeProducersTopic(TOPIC, (0,)),)),
        *_on(AclOperation.READ),
    ),
)

_TOPICS: Final[tuple[Case, ...]] = (
    Case("Metadata by name", 12, lambda _: _metadata(TOPIC), *_on(AclOperation.DESCRIBE)),
    Case(
        "Metadata by id",
        12,
        lambda plane: MetadataRequest(
            (MetadataRequestTopic(plane.topic_id(TOPIC), None),), allow_auto_topic_creation=False
        ),
        *_on(AclOperation.DESCRIBE),
        range(12, MetadataRequest.VERSIONS.stop),
    ),
    Case(
        "Metadata of all",
        12,
        lambda _: MetadataRequest(None),
        (topic_right(AclOperation.DESCRIBE),),
        {ANY: ()},
        range(1, MetadataRequest.VERSIONS.stop),
    ),
    Case(
        "Metadata of all in version 0",
        0,
        lambda _: MetadataRequest(()),
        (topic_right(AclOperation.DESCRIBE),),
        {ANY: ()},
        range(1),
    ),
    Case(
        "Metadata of no topic",
        12,
        lambda _: _metadata("absent"),
        (topic_right(AclOperation.DESCRIBE),),
        {ANY: (29,)},
        allowed=(29,),
    ),
    Case(
        "Metadata, auto-create",
        12,
        lambda _: _metadata(FRESH, create=True),
        (_FRESH_CREATE, _FRESH_DESCRIBE),
        {ANY: (29,), _FRESH_CREATE: (29,), _FRESH_DESCRIBE: (29,)},
    ),
    Case(
        "Metadata, auto-create by cluster right",
        12,
        lambda _: _metadata(FRESH, create=True),
        (cluster_right(AclOperation.CREATE), _FRESH_DESCRIBE),
        {ANY: (29,), cluster_right(AclOperation.CREATE): (29,), _FRESH_DESCRIBE: (29,)},
    ),
    Case(
        "DescribeTopicPartitions",
        0,
        lambda _: DescribeTopicPartitionsRequest((TopicRequest(TOPIC),)),
        *_on(AclOperation.DESCRIBE),
    ),
    Case(
        "DescribeTopicPartitions of all",
        0,
        lambda _: DescribeTopicPartitionsRequest(()),
        (topic_right(AclOperation.DESCRIBE),),
        {ANY: ()},
    ),
    Case("CreateTopics by topic right", 7, _create, *_on(AclOperation.CREATE, FRESH)),
    Case(
        "CreateTopics by cluster right",
        7,
        _create,
        *_alone(cluster_right(AclOperation.CREATE), 29),
    ),
    Case(
        "CreatePartitions",
        3,
        lambda _: CreatePartitionsRequest((CreatePartitionsTopic(MADE, 3, None),), TIMEOUT_MS),
        *_on(AclOperation.ALTER, MADE),
    ),
    Case(
        "DeleteTopics by name",
        5,
        _delete_by_name,
        *_on(AclOperation.DELETE, MADE),
        range(1, 6),
    ),
    Case(
        "DeleteTopics by name, describable",
        5,
        _delete_by_name,
        (_MADE_DELETE, _MADE_DESCRIBE),
        {ANY: (29,), _MADE_DELETE: (29,), _MADE_DESCRIBE: (0,)},
        range(1, 6),
    ),
    Case(
        "DeleteTopics by cluster right",
        5,
        _delete_by_name,
        *_alone(cluster_right(AclOperation.DELETE), 29),
        range(1, 6),
    ),
    Case(
        "DeleteTopics by id",
        6,
        lambda plane: DeleteTopicsRequest(
            (DeleteTopicState(None, plane.topic_id(MADE)),), (), TIMEOUT_MS
        ),
        *_on(AclOperation.DELETE, MADE),
        range(6, 7),
    ),
    Case(
        "DeleteTopics by name since version 6",
        6,
        lambda _: DeleteTopicsRequest((DeleteTopicState(MADE),), (), TIMEOUT_MS),
        *_on(AclOperation.DELETE, MADE),
        range(6, 7),
    ),
    Case(
        "DeleteTopics of no topic",
        5,
        lambda _: DeleteTopicsRequest((), (FRESH,), TIMEOUT_MS),
        (_MADE_DELETE,),
        {ANY: (29,)},
        range(1, 6),
        allowed=(29,),
    ),
)

_CONFIGS: Final[tuple[Case, ...]] = (
    Case(
        "DescribeConfigs of a topic",
        4,
        _describe_configs(_TOPIC_CONFIGS, TOPIC),
        *_on(AclOperation.DESCRIBE_CONFIGS),
    ),
    Case(
        "DescribeConfigs of a broker",
        4,
        _describe_configs(ConfigResourceType.BROKER, "1"),
        *_cluster(AclOperation.DESCRIBE_CONFIGS),
    ),
    Case(
        "DescribeConfigs of loggers",
        4,
        _describe_configs(ConfigResourceType.BROKER_LOGGER, "1"),
        *_cluster(AclOperation.DESCRIBE_CONFIGS),
    ),
    Case(
        "DescribeConfigs of client metrics",
        4,
        _describe_configs(ConfigResourceType.CLIENT_METRICS, "m"),
        *_cluster(AclOperation.DESCRIBE_CONFIGS),
    ),
    Case(
        "DescribeConfigs of a group",
        4,
        _describe_configs(ConfigResourceType.GROUP, GROUP),
        *_alone(_GROUP_CONFIGS, 30),
    ),
    Case("AlterConfigs of a topic", 2, _ALTER_TOPIC, *_on(AclOperation.ALTER_CONFIGS)),
    Case("AlterConfigs of a broker", 2, _ALTER_BROKER, *_cluster(AclOperation.ALTER_CONFIGS)),
    Case("AlterConfigs of a group", 2, _ALTER_GROUP, *_alone(_GROUP_ALTERED, 30)),
    Case("AlterConfigs of metrics", 2, _ALTER_METRICS, *_cluster(AclOperation.ALTER_CONFIGS)),
    Case(
        "IncrementalAlterConfigs of a topic",
        1,
        _INCREMENT_TOPIC,
        *_on(AclOperation.ALTER_CONFIGS),
    ),
    Case(
        "IncrementalAlterConfigs of a broker",
        1,
        _INCREMENT_BROKER,
        *_cluster(AclOperation.ALTER_CONFIGS),
    ),
    Case(
        "IncrementalAlterConfigs of a logger",
        1,
        _INCREMENT_LOGGER,
        *_cluster(AclOperation.ALTER_CONFIGS),
    ),
    Case(
        "IncrementalAlterConfigs of client metrics",
        1,
        _INCREMENT_METRICS,
        *_cluster(AclOperation.ALTER_CONFIGS),
    ),
    Case(
        "IncrementalAlterConfigs of a group",
        1,
        _INCREMENT_GROUP,
        *_alone(_GROUP_ALTERED, 30),
    ),
    Case(
        "ListConfigResources",
        1,
        lambda _: ListConfigResourcesRequest(),
        *_cluster(AclOperation.DESCRIBE_CONFIGS),
    ),
)

_SECURITY: Final[tuple[Case, ...]] = (
    Case(
        "CreateAcls",
        2,
        lambda _: CreateAclsRequest((AclCreation(2, TOPIC, 3, "User:a", "*", 3, 3),) * 2),
        (cluster_right(AclOperation.ALTER),),
        {ANY: (31, 31)},
        allowed=(54, 54),
    ),
    Case(
        "DescribeAcls",
        2,
        lambda _: DescribeAclsRequest(1, None, 1, None, None, 1, 1),
        *_cluster(AclOperation.DESCRIBE),
        allowed=(54,),
    ),
    Case(
        "DeleteAcls",
        2,
        lambda _: DeleteAclsRequest((DeleteAclsFilter(1, None, 1, None, None, 1, 1),)),
        *_cluster(AclOperation.ALTER),
        allowed=(54,),
    ),
    Case(
        "DescribeClientQuotas",
        1,
        lambda _: DescribeClientQuotasRequest(),
        *_cluster(AclOperation.DESCRIBE_CONFIGS),
    ),
    Case(
        "AlterClientQuotas",
        1,
        lambda _: AlterClientQuotasRequest(
            (
                QuotaAlteration(
                    (QuotaEntity("user", "a"),),
                    (QuotaOperation("producer_byte_rate", remove=True),),
                ),
            )
        ),
        *_cluster(AclOperation.ALTER_CONFIGS),
    ),
    Case(
        "DescribeUserScramCredentials",
        0,
        lambda _: DescribeUserScramCredentialsRequest((UserName("a"),)),
        (cluster_right(AclOperation.DESCRIBE),),
        {ANY: (31, 31)},
        allowed=(0, 91),
    ),
    Case(
        "DescribeUserScramCredentials of all",
        0,
        lambda _: DescribeUserScramCredentialsRequest(None),
        *_cluster(AclOperation.DESCRIBE),
    ),
    Case(
        "AlterUserScramCredentials",
        0,
        lambda _: AlterUserScramCredentialsRequest((ScramCredentialDeletion("a", 1),)),
        *_cluster(AclOperation.ALTER),
        allowed=(91,),
    ),
)

_CLUSTER: Final[tuple[Case, ...]] = (
    Case(
        "DescribeCluster",
        1,
        lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True),
        (cluster_right(AclOperation.DESCRIBE),),
        {ANY: (0,)},
    ),
    Case(
        "DescribeLogDirs",
        4,
        lambda _: DescribeLogDirsRequest(None),
        *_cluster(AclOperation.DESCRIBE),
        range(3, DescribeLogDirsRequest.VERSIONS.stop),
        allowed=(0, 0),
    ),
    Case(
        "DescribeLogDirs without a code",
        2,
        lambda _: DescribeLogDirsRequest(None),
        (cluster_right(AclOperation.DESCRIBE),),
        {ANY: (0,)},
        range(1, 3),
        allowed=(0, 0),
    ),
    Case(
        "ElectLeaders",
        2,
        lambda _: ElectLeadersRequest(0, (ElectLeadersTopic(TOPIC, (0,)),)),
        (cluster_right(AclOperation.ALTER),),
        {ANY: (31, 31)},
        range(1, 3),
        allowed=(0, 84),
    ),
    Case(
        "ElectLeaders in version 0",
        0,
        lambda _: ElectLeadersRequest(0, (ElectLeadersTopic(TOPIC, (0,)),)),
        (cluster_right(AclOperation.ALTER),),
        {ANY: (0, 31)},
        range(1),
        allowed=(0, 84),
    ),
    Case(
        "ListPartitionReassignments",
        0,
        lambda _: ListPartitionReassignmentsRequest(),
        *_cluster(AclOperation.DESCRIBE),
    ),
    Case(
        "AlterPartitionReassignments",
        0,
        lambda _: AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(TOPIC, (ReassignablePartition(0),)),)
        ),
        (cluster_right(AclOperation.ALTER),),
        {ANY: (31, 31)},
        allowed=(0, 85),
    ),
    Case(
        "AlterReplicaLogDirs",
        2,
        lambda _: AlterReplicaLogDirsRequest(
            (AlterReplicaLogDir("/data", (AlterReplicaLogDirTopic(TOPIC, (0,)),)),)
        ),
        *_cluster(AclOperation.ALTER),
    ),
    Case(
        "WriteTxnMarkers",
        1,
        lambda _: WriteTxnMarkersRequest(
            (WritableTxnMarker(ProducerId(7), topics=(WritableTxnMarkerTopic(TOPIC, (0,)),)),)
        ),
        *_cluster(AclOperation.ALTER),
    ),
    Case(
        "WriteTxnMarkers by a broker",
        1,
        lambda _: WriteTxnMarkersRequest(
            (WritableTxnMarker(ProducerId(7), topics=(WritableTxnMarkerTopic(TOPIC, (0,)),)),)
        ),
        *_cluster(AclOperation.CLUSTER_ACTION),
    ),
    Case(
        "UpdateFeatures",
        1,
        lambda _: UpdateFeaturesRequest(feature_updates=(FeatureUpdateKey("no.such", 1),)),
        *_cluster(AclOperation.ALTER),
        allowed=(95,),
    ),
    Case(
        "DescribeQuorum",
        1,
        lambda _: DescribeQuorumRequest(
            (QuorumTopic(TopicName("__cluster_metadata"), (QuorumPartition(0),)),)
        ),
        *_cluster(AclOperation.DESCRIBE),
        allowed=(0, 0),
    ),
    Case(
        "UnregisterBroker",
        0,
        lambda _: UnregisterBrokerRequest(9),
        *_cluster(AclOperation.ALTER),
        allowed=(102,),
    ),
    Case(
        "AddRaftVoter",
        0,
        lambda _: AddRaftVoterRequest(None),
        *_cluster(AclOperation.ALTER),
        allowed=(42,),
    ),
    Case(
        "RemoveRaftVoter",
        0,
        lambda _: RemoveRaftVoterRequest(None),
        *_cluster(AclOperation.ALTER),
        allowed=(42,),
    ),
)

CASES: Final = (*_RECORDS, *_TOPICS, *_CONFIGS, *_SECURITY, *_CLUSTER)
