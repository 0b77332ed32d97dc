"""Cluster administration: the requests about nodes, replicas, features and security.

They read the table of topics and what this node knows of itself: a cluster of one node has one
replica of each partition, and one controller. Each is answered at once, except for DescribeLogDirs
and what changes a file. `DataPlane` adds `handlers` to its own.
Kafka's counterpart: `ControllerApis`, as far as a client can use it through a broker.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from protocol.features import finalized_levels
from protocol.messages import Request, Response
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import UpdateFeaturesRequest
from protocol.names import ApiKey
from seams.authorizer import Authorizer
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from topics.admin_queue import Steps
from topics.client_quota_store import ClientQuotaStore
from topics.cluster import ClusterView
from topics.handlers.alter_replica_log_dirs import answer_alter_replica_log_dirs
from topics.handlers.client_quotas import answer_alter_client_quotas, answer_describe_client_quotas
from topics.handlers.delegation_tokens import (
    answer_create_delegation_token,
    answer_describe_delegation_token,
    answer_expire_delegation_token,
    answer_renew_delegation_token,
)
from topics.handlers.describe_log_dirs import answer_describe_log_dirs
from topics.handlers.elect_leaders import answer_elect_leaders
from topics.handlers.metadata_quorum import (
    answer_add_raft_voter,
    answer_describe_quorum,
    answer_remove_raft_voter,
)
from topics.handlers.partition_reassignments import (
    answer_alter_partition_reassignments,
    answer_list_partition_reassignments,
)
from topics.handlers.sasl import answer_sasl_authenticate, answer_sasl_handshake
from topics.handlers.unregister_broker import answer_unregister_broker
from topics.handlers.update_features import answer_update_features
from topics.handlers.user_scram_credentials import UserScramCredentials
from topics.registry import TopicRegistry

AnyRequest = TypeVar("AnyRequest")


class ClusterAdmin:
    def __init__(
        self,
        registry: TopicRegistry,
        cluster: ClusterView,
        authorizer: Authorizer,
        scram: UserScramCredentials,
        quotas: ClientQuotaStore,
        *,
        reply: Callable[[ReplyToken, Response | None], None],
        answer_in_reader: Callable[[ReplyToken, Callable[[], Response]], None],
        answer_in_queue: Callable[[ReplyToken, Callable[[], Steps[Response]]], None],
    ) -> None:
        """`answer_in_reader` makes the answer in the reader thread, and gives it;
        `answer_in_queue` runs a change in the admin queue, and gives its answer."""
        self._quotas = quotas
        self._answer_in_queue = answer_in_queue
        self._registry = registry
        self._cluster = cluster
        self._authorizer = authorizer
        self._scram = scram
        self._reply = reply
        self._answer_in_reader = answer_in_reader
        self._answer_in_queue = answer_in_queue
        self.handlers: Mapping[ApiKey, Handler] = {
            **self._of_replicas(),
            **self._of_the_cluster(),
            **self._of_security(),
            ApiKey.DESCRIBE_QUORUM: self._describe_quorum,
            ApiKey.DESCRIBE_LOG_DIRS: self._describe_log_dirs,
        }

    def _of_replicas(self) -> Mapping[ApiKey, Handler]:
        registry, cluster = self._registry, self._cluster
        return {
            ApiKey.ALTER_REPLICA_LOG_DIRS: self._at_once(
                AlterReplicaLogDirsRequest,
                lambda request: answer_alter_replica_log_dirs(request, registry, cluster),
            ),
            ApiKey.ELECT_LEADERS: self._at_once(
                ElectLeadersRequest, lambda request: answer_elect_leaders(request, registry)
            ),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._at_once(
                AlterPartitionReassignmentsRequest,
                lambda request: answer_alter_partition_reassignments(
                    request, registry, cluster.node_id
                ),
            ),
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self._always(answer_list_partition_reassignments),
        }

    def _of_the_cluster(self) -> Mapping[ApiKey, Handler]:
        cluster = self._cluster
        return {
            ApiKey.UPDATE_FEATURES: self._by_version(
                UpdateFeaturesRequest,
                lambda request, version: answer_update_features(
                    request, version, cluster.node_id, finalized_levels(cluster.transaction_version)
                ),
            ),
            ApiKey.UNREGISTER_BROKER: self._at_once(
                UnregisterBrokerRequest,
                lambda request: answer_unregister_broker(request, cluster.node_id),
            ),
            ApiKey.ADD_RAFT_VOTER: self._at_once(
                AddRaftVoterRequest, lambda request: answer_add_raft_voter(request, cluster)
            ),
            ApiKey.REMOVE_RAFT_VOTER: self._at_once(
                RemoveRaftVoterRequest, lambda request: answer_remove_raft_voter(request, cluster)
            ),
        }

    def _of_security(self) -> Mapping[ApiKey, Handler]:
        """Quotas of clients included: they are of users, too."""
        quotas = self._quotas
        return {
            ApiKey.SASL_HANDSHAKE: self._at_once(SaslHandshakeRequest, answer_sasl_handshake),
            ApiKey.SASL_AUTHENTICATE: self._at_once(
                SaslAuthenticateRequest, answer_sasl_authenticate
            ),
            ApiKey.CREATE_DELEGATION_TOKEN: self._create_delegation_token,
            ApiKey.RENEW_DELEGATION_TOKEN: self._by_client(answer_renew_delegation_token),
            ApiKey.EXPIRE_DELEGATION_TOKEN: self._by_client(answer_expire_delegation_token),
            ApiKey.DESCRIBE_DELEGATION_TOKEN: self._by_client(answer_describe_delegation_token),
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self._at_once(
                DescribeClientQuotasRequest,
                lambda request: answer_describe_client_quotas(request, quotas),
            ),
            ApiKey.ALTER_CLIENT_QUOTAS: self._alter_client_quotas,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self._at_once(
                DescribeUserScramCredentialsRequest, self._scram.describe
            ),
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self._alter_scram_credentials,
        }

    def _at_once(self, kind: type[AnyRequest], answer: Callable[[AnyRequest], Response]) -> Handler:
        return self._by_version(kind, lambda request, _version: answer(request))

    def _by_version(
        self, kind: type[AnyRequest], answer: Callable[[AnyRequest, int], Response]
    ) -> Handler:
        def handle(request: Request, token: ReplyToken, _now: Now) -> None:
            assert isinstance(request, kind)
            self._reply(token, answer(request, token.api_version))

        return handle

    def _always(self, answer: Callable[[], Response]) -> Handler:
        """Of a request whose content does not matter."""
        return self._by_client(lambda _token: answer())

    def _by_client(self, answer: Callable[[ReplyToken], Response]) -> Handler:
        """Of a request whose content does not matter, only who asks."""

        def handle(_request: Request, token: ReplyToken, _now: Now) -> None:
            self._reply(token, answer(token))

        return handle

    def _create_delegation_token(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, CreateDelegationTokenRequest)
        self._reply(token, answer_create_delegation_token(request, token, self._authorizer))

    def _alter_scram_credentials(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, AlterUserScramCredentialsRequest)
        self._answer_in_queue(token, lambda: self._scram.alter(request))

    def _alter_client_quotas(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, AlterClientQuotasRequest)
        self._answer_in_queue(token, lambda: answer_alter_client_quotas(request, self._quotas))

    def _describe_quorum(self, request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(request, DescribeQuorumRequest)
        node_id = self._cluster.node_id
        self._reply(token, answer_describe_quorum(request, token.api_version, node_id, now))

    def _describe_log_dirs(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DescribeLogDirsRequest)
        self._answer_in_reader(
            token, lambda: answer_describe_log_dirs(request, self._registry, self._cluster)
        )
