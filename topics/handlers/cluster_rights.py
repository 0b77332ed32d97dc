"""Cluster rights: the requests that a right on the cluster decides, and how each is refused.

The check stands before the handler, so the handlers themselves know nothing of rights. A refusal
has the shape of Kafka's `getErrorResponse`: what was named comes back, each with the error. The
requests whose answer depends on a right per topic or group check it in their own files.
Kafka's counterparts: `ControllerApis`, `AclApis` and `KafkaApis`, where they call
`authorizeClusterOperation`.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages import Request, Response
from protocol.messages.add_raft_voter import AddRaftVoterResponse
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlterationResult,
)
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.describe_acls import DescribeAclsResponse
from protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from protocol.messages.describe_quorum import DescribeQuorumResponse
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from protocol.messages.elect_leaders import (
    ElectedPartition,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from protocol.messages.list_config_resources import ListConfigResourcesResponse
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from protocol.messages.unregister_broker import UnregisterBrokerResponse
from protocol.messages.update_features import UpdateFeaturesResponse
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.names import ApiKey, ErrorCode
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from topics.api_error import CLUSTER_REFUSED

_REFUSED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_FIRST_ELECTION_WITH_CODE: Final = 1
_GENERIC: Final = CLUSTER_REFUSED.message

AnyRequest = TypeVar("AnyRequest")

RefusedAnswer = Callable[[Request, str, int], Response]
"""The answer to a refused request, in its version; the text names the right that it needs."""


class ClusterRight(NamedTuple):
    """`instead` is a right that is asked for first and is enough, too."""

    operation: AclOperation
    refusal: RefusedAnswer
    instead: AclOperation | None = None


def _for(kind: type[AnyRequest], refusal: Callable[[AnyRequest, str], Response]) -> RefusedAnswer:
    def refused(request: Request, text: str, _version: int) -> Response:
        assert isinstance(request, kind)
        return refusal(request, text)

    return refused


# Of replicas


def _elect_leaders(request: Request, text: str, version: int) -> ElectLeadersResponse:
    assert isinstance(request, ElectLeadersRequest)
    has_code = version >= _FIRST_ELECTION_WITH_CODE
    return ElectLeadersResponse(
        error_code=_REFUSED if has_code else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic,
                [ElectedPartition(index, _REFUSED, text) for index in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _alter_reassignments(
    request: AlterPartitionReassignmentsRequest, text: str
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=_REFUSED,
        error_message=text,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [
                    ReassignablePartitionResponse(asked.partition_index, _REFUSED, text)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _list_reassignments(
    request: ListPartitionReassignmentsRequest, text: str
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=_REFUSED,
        error_message=text,
        topics=[
            OngoingTopicReassignment(
                topic.name,
                [OngoingPartitionReassignment(index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


def _alter_log_dirs(request: AlterReplicaLogDirsRequest, _text: str) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name,
                [AlterReplicaLogDirPartitionResult(index, _REFUSED) for index in topic.partitions],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )


def _write_markers(request: WriteTxnMarkersRequest, _text: str) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [
                            WritableTxnMarkerPartitionResult(index, _REFUSED)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


# Of security


def _create_acls(request: CreateAclsRequest, text: str) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(_REFUSED, text) for _ in request.creations]
    )


def _delete_acls(request: DeleteAclsRequest, text: str) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(_REFUSED, text) for _ in request.filters]
    )


def _alter_quotas(request: AlterClientQuotasRequest, _text: str) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            QuotaAlterationResult(_REFUSED, _GENERIC, alteration.entity)
            for alteration in request.entries
        ]
    )


def _describe_scram(
    request: DescribeUserScramCredentialsRequest, _text: str
) -> DescribeUserScramCredentialsResponse:
    """One result without a name for each user. Kafka differs: a request for all of them, which
    names none, is not answered."""
    return DescribeUserScramCredentialsResponse(
        error_code=_REFUSED,
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(error_code=_REFUSED, error_message=None)
            for _ in request.users or ()
        ],
    )


def _alter_scram(
    request: AlterUserScramCredentialsRequest, text: str
) -> AlterUserScramCredentialsResponse:
    users = {deletion.name for deletion in request.deletions}
    users |= {upsertion.name for upsertion in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, _REFUSED, text) for user in sorted(users)]
    )


_DESCRIBED: Final[Mapping[ApiKey, ClusterRight]] = {
    ApiKey.DESCRIBE_ACLS: ClusterRight(
        AclOperation.DESCRIBE, lambda _, text, __: DescribeAclsResponse(0, _REFUSED, text)
    ),
    ApiKey.DESCRIBE_QUORUM: ClusterRight(
        AclOperation.DESCRIBE, lambda *_: DescribeQuorumResponse(_REFUSED, _GENERIC)
    ),
    ApiKey.DESCRIBE_LOG_DIRS: ClusterRight(
        AclOperation.DESCRIBE, lambda *_: DescribeLogDirsResponse(error_code=_REFUSED)
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ClusterRight(
        AclOperation.DESCRIBE, _for(ListPartitionReassignmentsRequest, _list_reassignments)
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ClusterRight(
        AclOperation.DESCRIBE, _for(DescribeUserScramCredentialsRequest, _describe_scram)
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ClusterRight(
        AclOperation.DESCRIBE_CONFIGS,
        lambda *_: DescribeClientQuotasResponse(0, _REFUSED, None, None),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: ClusterRight(
        AclOperation.DESCRIBE_CONFIGS,
        lambda *_: ListConfigResourcesResponse(error_code=_REFUSED),
    ),
}

_ALTERED: Final[Mapping[ApiKey, ClusterRight]] = {
    ApiKey.CREATE_ACLS: ClusterRight(AclOperation.ALTER, _for(CreateAclsRequest, _create_acls)),
    ApiKey.DELETE_ACLS: ClusterRight(AclOperation.ALTER, _for(DeleteAclsRequest, _delete_acls)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ClusterRight(
        AclOperation.ALTER, _for(AlterUserScramCredentialsRequest, _alter_scram)
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: ClusterRight(
        AclOperation.ALTER_CONFIGS, _for(AlterClientQuotasRequest, _alter_quotas)
    ),
    ApiKey.ELECT_LEADERS: ClusterRight(AclOperation.ALTER, _elect_leaders),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ClusterRight(
        AclOperation.ALTER, _for(AlterPartitionReassignmentsRequest, _alter_reassignments)
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ClusterRight(
        AclOperation.ALTER, _for(AlterReplicaLogDirsRequest, _alter_log_dirs)
    ),
    ApiKey.WRITE_TXN_MARKERS: ClusterRight(
        AclOperation.CLUSTER_ACTION,
        _for(WriteTxnMarkersRequest, _write_markers),
        instead=AclOperation.ALTER,
    ),
    ApiKey.UPDATE_FEATURES: ClusterRight(
        AclOperation.ALTER, lambda _, text, __: UpdateFeaturesResponse(0, _REFUSED, text)
    ),
    ApiKey.UNREGISTER_BROKER: ClusterRight(
        AclOperation.ALTER, lambda _, text, __: UnregisterBrokerResponse(0, _REFUSED, text)
    ),
    ApiKey.ADD_RAFT_VOTER: ClusterRight(
        AclOperation.ALTER, lambda *_: AddRaftVoterResponse(0, _REFUSED, _GENERIC)
    ),
    ApiKey.REMOVE_RAFT_VOTER: ClusterRight(
        AclOperation.ALTER, lambda *_: RemoveRaftVoterResponse(0, _REFUSED, _GENERIC)
    ),
}

CLUSTER_RIGHTS: Final[Mapping[ApiKey, ClusterRight]] = {**_DESCRIBED, **_ALTERED}


def with_cluster_rights(
    handlers: Mapping[ApiKey, Handler],
    authorizer: Authorizer,
    reply: Callable[[ReplyToken, Response], None],
) -> dict[ApiKey, Handler]:
    """The handlers, each behind the right that its request needs on the cluster."""
    checked = dict(handlers)
    for api_key, right in CLUSTER_RIGHTS.items():
        handler = handlers.get(api_key)
        if handler is not None:
            checked[api_key] = _checked(handler, right, authorizer, reply)
    return checked


def _checked(
    handler: Handler,
    right: ClusterRight,
    authorizer: Authorizer,
    reply: Callable[[ReplyToken, Response], None],
) -> Handler:
    text = f"The request needs {right.operation.name} permission."

    def handle(request: Request, token: ReplyToken, now: Now) -> None:
        if _is_allowed(right, authorizer, token):
            handler(request, token, now)
        else:
            reply(token, right.refusal(request, text, token.api_version))

    return handle


def _is_allowed(right: ClusterRight, authorizer: Authorizer, token: ReplyToken) -> bool:
    if right.instead is not None and authorizer.allows(
        token, right.instead, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=False
    ):
        return True
    return authorizer.allows_on_cluster(token, right.operation)
