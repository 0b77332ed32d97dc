"""Requests of administrators: DeleteRecords, log folders, elections, reassignments, and more."""

from collections.abc import Mapping

from protocol.messages.alter_client_quotas import AlterClientQuotasRequest
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
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    QuotaFilterComponent,
)
from protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    QuorumPartition,
    QuorumTopic,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.names import OFFSETS_TOPIC, TopicName
from tests.compare.batches import a_batch
from tests.compare.client import Client
from tests.compare.script import Script, scenario


def delete_records(
    client: Client, topics: Mapping[str, Mapping[int, int]], version: int = 2
) -> None:
    named = [
        DeleteRecordsTopic(
            TopicName(name), [DeleteRecordsPartition(index, at) for index, at in of_topic.items()]
        )
        for name, of_topic in topics.items()
    ]
    client.ask(DeleteRecordsRequest(named, 10_000), version)


def written(script: Script, client: Client, partitions: int = 1, **configs: str) -> str:
    """A topic with four records in each partition."""
    topic = script.topic("t" + "".join(configs), partitions, **configs)
    for partition in range(partitions):
        for value in (b"1", b"2"):
            client.ask_produce({topic: {partition: a_batch(value, value, key=b"k")}})
    return topic


@scenario()
def records_are_deleted_up_to_an_offset(script: Script) -> None:
    a = script.client("a")
    topic = written(script, a, partitions=3)
    for version in range(3):
        delete_records(a, {topic: {0: 1 + version}}, version)
        a.read(topic, 1 + version)
        a.read(topic, version)
        a.list_offset(topic, -2)
    delete_records(a, {topic: {0: 1, 1: -1, 2: 4}})
    delete_records(a, {topic: {0: 5, 1: -2, 2: -1}})
    delete_records(a, {topic: {0: 2**62}})
    for partition in range(3):
        a.list_offset(topic, -2, partition=partition)
        a.list_offset(topic, -1, partition=partition)
    a.ask_produce({topic: {1: a_batch(b"new")}})
    a.read(topic, 4, partition=1)


@scenario()
def records_are_deleted_where_they_may_be(script: Script) -> None:
    a = script.client("a")
    compacted = written(script, a, cleanup_policy="compact")
    both = written(script, a, cleanup_policy="compact,delete", retention_ms="-1")
    nowhere = f"{script.name}.nowhere"
    for version in range(3):
        delete_records(a, {nowhere: {0: 1}, compacted: {0: 1}, both: {0: 1, 9: 1}}, version)
    delete_records(a, {OFFSETS_TOPIC: {0: 1, 99: 1}})
    delete_records(a, {"": {0: 1}, "not/a/name": {0: 0}})
    delete_records(a, {})
    delete_records(a, {both: {}})


@scenario()
def log_folders_are_described(script: Script) -> None:
    a = script.client("a")
    topic = written(script, a, partitions=2)
    asked = [
        DescribableLogDirTopic(TopicName(topic), [0, 1, 9]),
        DescribableLogDirTopic(TopicName(f"{script.name}.nowhere"), [0]),
    ]
    for version in range(1, 6):
        a.ask(DescribeLogDirsRequest(asked), version)
        a.ask(DescribeLogDirsRequest([]), version)
        a.ask(DescribeLogDirsRequest(None), version)
        a.ask(DescribeLogDirsRequest(asked[1:]), version)
    a.ask(DescribeLogDirsRequest([DescribableLogDirTopic(TopicName(topic), [])]), 4)


@scenario()
def replicas_have_one_log_folder(script: Script) -> None:
    topic = script.topic()
    a = script.client("a")
    topics = [AlterReplicaLogDirTopic(TopicName(topic), [0, 9])]
    for version in (1, 2):
        for path in ("/nowhere", "relative", ""):
            a.ask(AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics)]), version)
        a.ask(AlterReplicaLogDirsRequest([]), version)


@scenario()
def leaders_are_elected_already(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    asked = [
        ElectLeadersTopic(TopicName(topic), [0, 1, 9]),
        ElectLeadersTopic(TopicName(f"{script.name}.nowhere"), [0]),
    ]
    for version in range(3):
        for election in (0, 1) if version else (0,):
            a.ask(ElectLeadersRequest(election, asked, 10_000), version)
            a.ask(ElectLeadersRequest(election, None, 10_000), version)
            a.ask(ElectLeadersRequest(election, [], 10_000), version)
    a.ask(ElectLeadersRequest(7, asked, 10_000), 2)


@scenario()
def partitions_stay_where_they_are(script: Script) -> None:
    topic = script.topic(partitions=2)
    a = script.client("a")
    for version in range(2):
        for replicas in ([1], [2], [1, 2], [], [1, 1], [-1], None):
            partitions = [ReassignablePartition(index, replicas) for index in (0, 1, 9)]
            topics = [
                ReassignableTopic(TopicName(topic), partitions),
                ReassignableTopic(TopicName(f"{script.name}.nowhere"), partitions[:1]),
            ]
            a.ask(AlterPartitionReassignmentsRequest(10_000, True, topics), version)
        a.ask(AlterPartitionReassignmentsRequest(10_000, True, []), version)
    for named in (topic, f"{script.name}.nowhere"):
        asked = [ListPartitionReassignmentsTopics(TopicName(named), [0, 9])]
        a.ask(ListPartitionReassignmentsRequest(10_000, asked), 0)
    a.ask(ListPartitionReassignmentsRequest(10_000, []), 0)
    a.ask(ListPartitionReassignmentsRequest(10_000, None), 0)


@scenario()
def the_quorum_is_one_node(script: Script) -> None:
    a = script.client("a")
    for version in range(3):
        for name, index in (("__cluster_metadata", 0), ("__cluster_metadata", 1), ("other", 0)):
            topics = [QuorumTopic(TopicName(name), [QuorumPartition(index)])]
            a.ask(DescribeQuorumRequest(topics), version)
        a.ask(DescribeQuorumRequest([]), version)


@scenario()
def features_are_what_they_are(script: Script) -> None:
    a = script.client("a")
    for version in range(3):
        a.ask(UpdateFeaturesRequest(10_000, []), version)
        for name, level, kind in (
            ("transaction.version", 2, 1), ("group.version", 1, 1), ("no.such.feature", 1, 1),
            ("transaction.version", 99, 1), ("transaction.version", -1, 1),
            ("metadata.version", 1, 1), ("transaction.version", 2, 9),
        ):  # fmt: skip
            update = FeatureUpdateKey(name, level)
            if version >= 1:
                update.upgrade_type = kind
            a.ask(UpdateFeaturesRequest(10_000, [update]), version)


@scenario()
def nobody_has_a_quota(script: Script) -> None:
    a = script.client("a")
    for version in range(2):
        a.ask(DescribeClientQuotasRequest([], False), version)
        for kind in ("user", "client-id", "ip"):
            for match_type, match in ((0, "x"), (1, None), (2, None)):
                component = QuotaFilterComponent(kind, match_type, match)
                a.ask(DescribeClientQuotasRequest([component], True), version)
        a.ask(AlterClientQuotasRequest([], False), version)


@scenario()
def there_is_no_authorizer(script: Script) -> None:
    a = script.client("a")
    for version in range(1, 4):
        a.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version)
        a.ask(DescribeAclsRequest(2, "x", 3, "User:x", "*", 2, 3), version)
        creation = AclCreation(2, "x", 3, "User:x", "*", 2, 3)
        a.ask(CreateAclsRequest([creation, creation]), version)
        found = DeleteAclsFilter(2, "x", 3, "User:x", "*", 2, 3)
        a.ask(DeleteAclsRequest([found, found]), version)
    a.ask(CreateAclsRequest([]), 3)
    a.ask(DeleteAclsRequest([]), 3)


@scenario()
def there_are_no_credentials(script: Script) -> None:
    a = script.client("a")
    a.ask(DescribeUserScramCredentialsRequest(None), 0)
    a.ask(DescribeUserScramCredentialsRequest([]), 0)
    a.ask(DescribeUserScramCredentialsRequest([UserName("x")]), 0)
    a.ask(DescribeUserScramCredentialsRequest([UserName("x"), UserName("x")]), 0)
    for version in range(1, 4):
        a.ask(DescribeDelegationTokenRequest(None), version)


@scenario()
def brokers_that_are_not_there_cannot_be_unregistered(script: Script) -> None:
    a = script.client("a")
    for broker_id in (7, -1):
        a.ask(UnregisterBrokerRequest(broker_id), 0)
