"""Administration: replicas, the quorum, features, quotas and security."""

from uuid import UUID

from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
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
    ScramCredentialUpsertion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    QuotaFilterComponent,
)
from protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.names import TopicName
from tests.compare.batches import a_batch
from tests.compare.scenarios.data_plane import produce
from tests.compare.script import Script, scenario

NOPE = TopicName("nope")
METADATA = TopicName("__cluster_metadata")
TIMEOUT_MS = 10_000


@scenario()
def log_directories_are_described_in_every_version(script: Script) -> None:
    a = script.client("a")
    topic = script.topic(partitions=2)
    produce(a, topic, a_batch(b"one"))
    asked = [DescribableLogDirTopic(topic, [0, 1, 7]), DescribableLogDirTopic(NOPE, [0])]
    for version in range(1, 6):
        a.ask(DescribeLogDirsRequest(asked), version)
    a.ask(DescribeLogDirsRequest([]), 5)
    a.ask(DescribeLogDirsRequest([asked[0], asked[0], DescribableLogDirTopic(NOPE, [])]), 5)


@scenario()
def there_is_no_other_log_directory(script: Script) -> None:
    a = script.client("a")
    topics = [AlterReplicaLogDirTopic(script.topic(), [0, 7]), AlterReplicaLogDirTopic(NOPE, [0])]
    for version in (1, 2):
        a.ask(AlterReplicaLogDirsRequest([AlterReplicaLogDir("/nowhere", topics)]), version)
    a.ask(AlterReplicaLogDirsRequest([AlterReplicaLogDir("relative", topics)]), 2)
    a.ask(AlterReplicaLogDirsRequest([]), 2)


@scenario()
def a_leader_need_not_be_elected(script: Script) -> None:
    a = script.client("a")
    asked = [ElectLeadersTopic(script.topic(), [0, 0, 7]), ElectLeadersTopic(NOPE, [0])]
    for version in range(3):
        a.ask(ElectLeadersRequest(0, asked, TIMEOUT_MS), version)
    for election_type in (1, 9, -1):
        a.ask(ElectLeadersRequest(election_type, asked, TIMEOUT_MS), 2)
    a.ask(ElectLeadersRequest(0, [], TIMEOUT_MS), 2)


@scenario()
def partitions_stay_where_they_are(script: Script) -> None:
    a = script.client("a")
    topic = script.topic(partitions=2)
    assignments = ([1], [2], [], [1, 1], [1, 2], [2, 2], [-1], None)
    for version in (0, 1):
        for replicas in assignments:
            topics = [
                ReassignableTopic(
                    name, [ReassignablePartition(0, replicas), ReassignablePartition(7, replicas)]
                )
                for name in (topic, NOPE)
            ]
            request = AlterPartitionReassignmentsRequest(TIMEOUT_MS, version == 0, topics)
            a.ask(request, version)
    a.ask(AlterPartitionReassignmentsRequest(TIMEOUT_MS, topics=[]), 1)
    for named in (None, [], [ListPartitionReassignmentsTopics(topic, [0, 7])]):
        a.ask(ListPartitionReassignmentsRequest(TIMEOUT_MS, named), 0)


@scenario()
def the_quorum_is_one_voter(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    log = QuorumTopic(METADATA, [QuorumPartition(0)])
    for version in range(3):
        a.ask(DescribeQuorumRequest([log]), version)
    for asked in (
        [QuorumTopic(topic, [QuorumPartition(0)])],
        [QuorumTopic(METADATA, [QuorumPartition(1)])],
        [QuorumTopic(METADATA, [QuorumPartition(0), QuorumPartition(1)])],
        [QuorumTopic(METADATA, [])],
        [log, QuorumTopic(topic, [QuorumPartition(0)])],
        [],
    ):
        a.ask(DescribeQuorumRequest(asked), 2)


@scenario()
def voters_and_brokers_are_not_removed(script: Script) -> None:
    a = script.client("a")
    directory = UUID(int=77 << 64)
    a.ask(RemoveRaftVoterRequest(None, 2, directory), 0)
    a.ask(RemoveRaftVoterRequest(None, 2), 0)
    a.ask(RemoveRaftVoterRequest(None, -1, directory), 0)
    for broker_id in (9, -1):
        a.ask(UnregisterBrokerRequest(broker_id), 0)


@scenario()
def a_listener_without_sasl(script: Script) -> None:
    a = script.client("a")
    for version in (0, 1):
        a.ask(SaslHandshakeRequest("PLAIN"), version)
    for version in (0, 1, 2):
        a.ask(SaslAuthenticateRequest(b"\0user\0password"), version)


@scenario()
def features_keep_their_levels(script: Script) -> None:
    a = script.client("a")
    metadata, group = "metadata.version", "group.version"
    for name, level, upgrade_type in (
        (metadata, 30, 1),
        (metadata, 30, 2),
        (metadata, 30, 0),
        (metadata, 30, 9),
        (metadata, 29, 1),
        (metadata, 29, 2),
        (metadata, 29, 3),
        (metadata, 99, 1),
        (metadata, 3, 3),
        (metadata, 0, 1),
        (metadata, -1, 1),
        (group, 1, 1),
        (group, 1, 3),
        (group, 0, 1),
        (group, 2, 1),
        ("bogus.version", 1, 1),
        ("", 1, 1),
    ):
        update = FeatureUpdateKey(name, level, upgrade_type=upgrade_type)
        a.ask(UpdateFeaturesRequest(TIMEOUT_MS, [update], True), 2)
    same = FeatureUpdateKey(metadata, 30)
    for version in range(2):
        a.ask(UpdateFeaturesRequest(TIMEOUT_MS, [same]), version)
        a.ask(UpdateFeaturesRequest(TIMEOUT_MS, [same, FeatureUpdateKey("bogus", 1)]), version)
    a.ask(UpdateFeaturesRequest(TIMEOUT_MS, []), 2)


@scenario()
def there_are_no_quotas(script: Script) -> None:
    a = script.client("a")
    for version in (0, 1):
        a.ask(DescribeClientQuotasRequest([QuotaFilterComponent("user", 2, None)]), version)
    a.ask(DescribeClientQuotasRequest([], strict=True), 1)
    for components in (
        [("bogus", 0, "x")],
        [("", 0, "x")],
        [("user", 0, "x"), ("user", 1, None)],
        [("user", 0, None)],
        [("user", 1, "x")],
        [("user", 2, "x")],
        [("user", 7, "x")],
        [("ip", 0, "no address")],
        [("ip", 2, None), ("client-id", 2, None)],
        [("client-id", 2, None), ("user", 1, None)],
    ):
        asked = [QuotaFilterComponent(*component) for component in components]
        a.ask(DescribeClientQuotasRequest(asked), 1)


@scenario()
def a_quota_that_does_not_exist_can_be_removed(script: Script) -> None:
    a = script.client("a")
    for entity, key in (
        ([("user", "amy")], "producer_byte_rate"),
        ([("user", None), ("client-id", "x")], "request_percentage"),
        ([("ip", "127.0.0.1")], "connection_creation_rate"),
        ([("ip", "127.0.0.1")], "producer_byte_rate"),
        ([("user", "amy")], "connection_creation_rate"),
        ([("user", "amy")], "bogus"),
        ([("user", ""), ("client-id", "")], "bogus"),
        ([("user", "amy"), ("user", "bob")], "producer_byte_rate"),
        ([("bogus", "amy")], "producer_byte_rate"),
        ([("user", "amy"), ("ip", "127.0.0.1")], "producer_byte_rate"),
        ([], "producer_byte_rate"),
    ):
        alteration = QuotaAlteration(
            [QuotaEntity(*part) for part in entity], [QuotaOperation(key, 0.0, remove=True)]
        )
        a.ask(AlterClientQuotasRequest([alteration]), 1)
    for entity, key in (("user", "bogus"), ("ip", "producer_byte_rate"), ("bogus", "bogus")):
        quota = QuotaAlteration([QuotaEntity(entity, "::1")], [QuotaOperation(key, 1.0)])
        a.ask(AlterClientQuotasRequest([quota]), 1)
    a.ask(AlterClientQuotasRequest([]), 0)


@scenario()
def there_are_no_scram_credentials(script: Script) -> None:
    a = script.client("a")
    for names in (None, [], ["amy"], ["amy", "bob", "amy", ""]):
        users = None if names is None else [UserName(name) for name in names]
        a.ask(DescribeUserScramCredentialsRequest(users), 0)
    deletions = [ScramCredentialDeletion(*each) for each in (("amy", 1), ("bob", 9), ("", 1))]
    a.ask(AlterUserScramCredentialsRequest(deletions, []), 0)
    upsertions = [
        ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"hash")
        for name, mechanism, iterations in (
            ("amy", 1, 4_095),
            ("bob", 2, 16_385),
            ("cleo", 3, 8_192),
            ("", 1, 8_192),
        )
    ]
    a.ask(AlterUserScramCredentialsRequest([], upsertions), 0)
    a.ask(AlterUserScramCredentialsRequest([], []), 0)


@scenario()
def there_is_no_authorizer(script: Script) -> None:
    a = script.client("a")
    creation = AclCreation(2, "t", 3, "User:amy", "*", 2, 3)
    acl_filter = DeleteAclsFilter(2, "t", 3, None, None, 1, 1)
    for version in range(1, 4):
        a.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version)
        a.ask(CreateAclsRequest([creation, creation]), version)
        a.ask(DeleteAclsRequest([acl_filter]), version)
    a.ask(CreateAclsRequest([]), 3)
    a.ask(DeleteAclsRequest([]), 3)


@scenario()
def a_client_that_nobody_knows_gets_no_token(script: Script) -> None:
    a = script.client("a")
    for version in range(1, 4):
        a.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), version)
        a.ask(DescribeDelegationTokenRequest(None), version)
    a.ask(CreateDelegationTokenRequest("User", "amy", max_lifetime_ms=-1), 3)
    for version in range(1, 3):
        a.ask(RenewDelegationTokenRequest(b"token", 1), version)
        a.ask(ExpireDelegationTokenRequest(b"token", 1), version)
