"""Messages: the request and response class of each api key. One file per API.

A message may be declared before a handler for it exists: only APIs with a handler are served and
advertised.
"""

from typing import Final

from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from protocol.names import ApiKey

Request = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | MetadataRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | FindCoordinatorRequest
    | JoinGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | SyncGroupRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | SaslHandshakeRequest
    | ApiVersionsRequest
    | CreateTopicsRequest
    | DeleteTopicsRequest
    | DeleteRecordsRequest
    | InitProducerIdRequest
    | OffsetForLeaderEpochRequest
    | AddPartitionsToTxnRequest
    | AddOffsetsToTxnRequest
    | EndTxnRequest
    | WriteTxnMarkersRequest
    | TxnOffsetCommitRequest
    | DescribeAclsRequest
    | CreateAclsRequest
    | DeleteAclsRequest
    | DescribeConfigsRequest
    | AlterConfigsRequest
    | AlterReplicaLogDirsRequest
    | DescribeLogDirsRequest
    | SaslAuthenticateRequest
    | CreatePartitionsRequest
    | CreateDelegationTokenRequest
    | RenewDelegationTokenRequest
    | ExpireDelegationTokenRequest
    | DescribeDelegationTokenRequest
    | DeleteGroupsRequest
    | ElectLeadersRequest
    | IncrementalAlterConfigsRequest
    | AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | OffsetDeleteRequest
    | DescribeClientQuotasRequest
    | AlterClientQuotasRequest
    | DescribeUserScramCredentialsRequest
    | AlterUserScramCredentialsRequest
    | DescribeQuorumRequest
    | UpdateFeaturesRequest
    | DescribeClusterRequest
    | DescribeProducersRequest
    | UnregisterBrokerRequest
    | DescribeTransactionsRequest
    | ListTransactionsRequest
    | ConsumerGroupHeartbeatRequest
    | ConsumerGroupDescribeRequest
    | ListConfigResourcesRequest
    | DescribeTopicPartitionsRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
)
Response = (
    ProduceResponse
    | FetchResponse
    | ListOffsetsResponse
    | MetadataResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | FindCoordinatorResponse
    | JoinGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | SyncGroupResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | SaslHandshakeResponse
    | ApiVersionsResponse
    | CreateTopicsResponse
    | DeleteTopicsResponse
    | DeleteRecordsResponse
    | InitProducerIdResponse
    | OffsetForLeaderEpochResponse
    | AddPartitionsToTxnResponse
    | AddOffsetsToTxnResponse
    | EndTxnResponse
    | WriteTxnMarkersResponse
    | TxnOffsetCommitResponse
    | DescribeAclsResponse
    | CreateAclsResponse
    | DeleteAclsResponse
    | DescribeConfigsResponse
    | AlterConfigsResponse
    | AlterReplicaLogDirsResponse
    | DescribeLogDirsResponse
    | SaslAuthenticateResponse
    | CreatePartitionsResponse
    | CreateDelegationTokenResponse
    | RenewDelegationTokenResponse
    | ExpireDelegationTokenResponse
    | DescribeDelegationTokenResponse
    | DeleteGroupsResponse
    | ElectLeadersResponse
    | IncrementalAlterConfigsResponse
    | AlterPartitionReassignmentsResponse
    | ListPartitionReassignmentsResponse
    | OffsetDeleteResponse
    | DescribeClientQuotasResponse
    | AlterClientQuotasResponse
    | DescribeUserScramCredentialsResponse
    | AlterUserScramCredentialsResponse
    | DescribeQuorumResponse
    | UpdateFeaturesResponse
    | DescribeClusterResponse
    | DescribeProducersResponse
    | UnregisterBrokerResponse
    | DescribeTransactionsResponse
    | ListTransactionsResponse
    | ConsumerGroupHeartbeatResponse
    | ConsumerGroupDescribeResponse
    | ListConfigResourcesResponse
    | DescribeTopicPartitionsResponse
    | AddRaftVoterResponse
    | RemoveRaftVoterResponse
)

REQUESTS: Final[dict[ApiKey, type[Request]]] = {
    ApiKey.PRODUCE: ProduceRequest,
    ApiKey.FETCH: FetchRequest,
    ApiKey.LIST_OFFSETS: ListOffsetsRequest,
    ApiKey.METADATA: MetadataRequest,
    ApiKey.OFFSET_COMMIT: OffsetCommitRequest,
    ApiKey.OFFSET_FETCH: OffsetFetchRequest,
    ApiKey.FIND_COORDINATOR: FindCoordinatorRequest,
    ApiKey.JOIN_GROUP: JoinGroupRequest,
    ApiKey.HEARTBEAT: HeartbeatRequest,
    ApiKey.LEAVE_GROUP: LeaveGroupRequest,
    ApiKey.SYNC_GROUP: SyncGroupRequest,
    ApiKey.DESCRIBE_GROUPS: DescribeGroupsRequest,
    ApiKey.LIST_GROUPS: ListGroupsRequest,
    ApiKey.SASL_HANDSHAKE: SaslHandshakeRequest,
    ApiKey.API_VERSIONS: ApiVersionsRequest,
    ApiKey.CREATE_TOPICS: CreateTopicsRequest,
    ApiKey.DELETE_TOPICS: DeleteTopicsRequest,
    ApiKey.DELETE_RECORDS: DeleteRecordsRequest,
    ApiKey.INIT_PRODUCER_ID: InitProducerIdRequest,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: OffsetForLeaderEpochRequest,
    ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnRequest,
    ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnRequest,
    ApiKey.END_TXN: EndTxnRequest,
    ApiKey.WRITE_TXN_MARKERS: WriteTxnMarkersRequest,
    ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitRequest,
    ApiKey.DESCRIBE_ACLS: DescribeAclsRequest,
    ApiKey.CREATE_ACLS: CreateAclsRequest,
    ApiKey.DELETE_ACLS: DeleteAclsRequest,
    ApiKey.DESCRIBE_CONFIGS: DescribeConfigsRequest,
    ApiKey.ALTER_CONFIGS: AlterConfigsRequest,
    ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsRequest,
    ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsRequest,
    ApiKey.SASL_AUTHENTICATE: SaslAuthenticateRequest,
    ApiKey.CREATE_PARTITIONS: CreatePartitionsRequest,
    ApiKey.CREATE_DELEGATION_TOKEN: CreateDelegationTokenRequest,
    ApiKey.RENEW_DELEGATION_TOKEN: RenewDelegationTokenRequest,
    ApiKey.EXPIRE_DELEGATION_TOKEN: ExpireDelegationTokenRequest,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: DescribeDelegationTokenRequest,
    ApiKey.DELETE_GROUPS: DeleteGroupsRequest,
    ApiKey.ELECT_LEADERS: ElectLeadersRequest,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsRequest,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsRequest,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsRequest,
    ApiKey.OFFSET_DELETE: OffsetDeleteRequest,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasRequest,
    ApiKey.ALTER_CLIENT_QUOTAS: AlterClientQuotasRequest,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeUserScramCredentialsRequest,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsRequest,
    ApiKey.DESCRIBE_QUORUM: DescribeQuorumRequest,
    ApiKey.UPDATE_FEATURES: UpdateFeaturesRequest,
    ApiKey.DESCRIBE_CLUSTER: DescribeClusterRequest,
    ApiKey.DESCRIBE_PRODUCERS: DescribeProducersRequest,
    ApiKey.UNREGISTER_BROKER: UnregisterBrokerRequest,
    ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsRequest,
    ApiKey.LIST_TRANSACTIONS: ListTransactionsRequest,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatRequest,
    ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeRequest,
    ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesRequest,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitionsRequest,
    ApiKey.ADD_RAFT_VOTER: AddRaftVoterRequest,
    ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterRequest,
}
RESPONSES: Final[dict[ApiKey, type[Response]]] = {
    ApiKey.PRODUCE: ProduceResponse,
    ApiKey.FETCH: FetchResponse,
    ApiKey.LIST_OFFSETS: ListOffsetsResponse,
    ApiKey.METADATA: MetadataResponse,
    ApiKey.OFFSET_COMMIT: OffsetCommitResponse,
    ApiKey.OFFSET_FETCH: OffsetFetchResponse,
    ApiKey.FIND_COORDINATOR: FindCoordinatorResponse,
    ApiKey.JOIN_GROUP: JoinGroupResponse,
    ApiKey.HEARTBEAT: HeartbeatResponse,
    ApiKey.LEAVE_GROUP: LeaveGroupResponse,
    ApiKey.SYNC_GROUP: SyncGroupResponse,
    ApiKey.DESCRIBE_GROUPS: DescribeGroupsResponse,
    ApiKey.LIST_GROUPS: ListGroupsResponse,
    ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse,
    ApiKey.API_VERSIONS: ApiVersionsResponse,
    ApiKey.CREATE_TOPICS: CreateTopicsResponse,
    ApiKey.DELETE_TOPICS: DeleteTopicsResponse,
    ApiKey.DELETE_RECORDS: DeleteRecordsResponse,
    ApiKey.INIT_PRODUCER_ID: InitProducerIdResponse,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: OffsetForLeaderEpochResponse,
    ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnResponse,
    ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnResponse,
    ApiKey.END_TXN: EndTxnResponse,
    ApiKey.WRITE_TXN_MARKERS: WriteTxnMarkersResponse,
    ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitResponse,
    ApiKey.DESCRIBE_ACLS: DescribeAclsResponse,
    ApiKey.CREATE_ACLS: CreateAclsResponse,
    ApiKey.DELETE_ACLS: DeleteAclsResponse,
    ApiKey.DESCRIBE_CONFIGS: DescribeConfigsResponse,
    ApiKey.ALTER_CONFIGS: AlterConfigsResponse,
    ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsResponse,
    ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsResponse,
    ApiKey.SASL_AUTHENTICATE: SaslAuthenticateResponse,
    ApiKey.CREATE_PARTITIONS: CreatePartitionsResponse,
    ApiKey.CREATE_DELEGATION_TOKEN: CreateDelegationTokenResponse,
    ApiKey.RENEW_DELEGATION_TOKEN: RenewDelegationTokenResponse,
    ApiKey.EXPIRE_DELEGATION_TOKEN: ExpireDelegationTokenResponse,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: DescribeDelegationTokenResponse,
    ApiKey.DELETE_GROUPS: DeleteGroupsResponse,
    ApiKey.ELECT_LEADERS: ElectLeadersResponse,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsResponse,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsResponse,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsResponse,
    ApiKey.OFFSET_DELETE: OffsetDeleteResponse,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasResponse,
    ApiKey.ALTER_CLIENT_QUOTAS: AlterClientQuotasResponse,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeUserScramCredentialsResponse,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsResponse,
    ApiKey.DESCRIBE_QUORUM: DescribeQuorumResponse,
    ApiKey.UPDATE_FEATURES: UpdateFeaturesResponse,
    ApiKey.DESCRIBE_CLUSTER: DescribeClusterResponse,
    ApiKey.DESCRIBE_PRODUCERS: DescribeProducersResponse,
    ApiKey.UNREGISTER_BROKER: UnregisterBrokerResponse,
    ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsResponse,
    ApiKey.LIST_TRANSACTIONS: ListTransactionsResponse,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatResponse,
    ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeResponse,
    ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesResponse,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitionsResponse,
    ApiKey.ADD_RAFT_VOTER: AddRaftVoterResponse,
    ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterResponse,
}
