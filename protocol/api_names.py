"""API names: Kafka's name of each api key, served here or not.

For log lines about requests that are not served. The order is that of Kafka 4.3's `ApiKeys`, with
those that 4.0 removed; the index is the api key.
"""

from typing import Final

_NAMES: Final = """
    Produce Fetch ListOffsets Metadata LeaderAndIsr StopReplica UpdateMetadata
    ControlledShutdown OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
    SyncGroup DescribeGroups ListGroups SaslHandshake ApiVersions CreateTopics DeleteTopics
    DeleteRecords InitProducerId OffsetForLeaderEpoch AddPartitionsToTxn AddOffsetsToTxn EndTxn
    WriteTxnMarkers TxnOffsetCommit DescribeAcls CreateAcls DeleteAcls DescribeConfigs
    AlterConfigs AlterReplicaLogDirs DescribeLogDirs SaslAuthenticate CreatePartitions
    CreateDelegationToken RenewDelegationToken ExpireDelegationToken DescribeDelegationToken
    DeleteGroups ElectLeaders IncrementalAlterConfigs AlterPartitionReassignments
    ListPartitionReassignments OffsetDelete DescribeClientQuotas AlterClientQuotas
    DescribeUserScramCredentials AlterUserScramCredentials Vote BeginQuorumEpoch EndQuorumEpoch
    DescribeQuorum AlterPartition UpdateFeatures Envelope FetchSnapshot DescribeCluster
    DescribeProducers BrokerRegistration BrokerHeartbeat UnregisterBroker DescribeTransactions
    ListTransactions AllocateProducerIds ConsumerGroupHeartbeat ConsumerGroupDescribe
    ControllerRegistration GetTelemetrySubscriptions PushTelemetry AssignReplicasToDirs
    ListConfigResources DescribeTopicPartitions ShareGroupHeartbeat ShareGroupDescribe
    ShareFetch ShareAcknowledge AddRaftVoter RemoveRaftVoter UpdateRaftVoter
    InitializeShareGroupState ReadShareGroupState WriteShareGroupState DeleteShareGroupState
    ReadShareGroupStateSummary StreamsGroupHeartbeat StreamsGroupDescribe
    DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets
""".split()  # noqa: SIM905 - a page of names is for reading


def api_name(api_key: int) -> str:
    """Kafka's name and the number, or the number alone where Kafka 4.3 has no name for it."""
    if 0 <= api_key < len(_NAMES):
        return f"{_NAMES[api_key]} (api key {api_key})"
    return f"api key {api_key}"
