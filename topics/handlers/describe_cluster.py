"""DescribeCluster: the nodes of the cluster: this one, at the address of the client's listener.

Kafka's counterpart: `AuthHelper.computeDescribeClusterResponse`.
"""

from typing import Final

from protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from protocol.names import OPERATIONS_NOT_REQUESTED, ErrorCode
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from topics.authorized_operations import cluster_operations
from topics.cluster import ClusterView

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def answer_describe_cluster(
    request: DescribeClusterRequest,
    token: ReplyToken,
    cluster: ClusterView,
    authorizer: Authorizer,
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to an endpoint of type BROKER, "
                "but we wanted an endpoint of type CONTROLLER"
            ),
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    node_id, host, port = cluster.endpoint(token)
    operations = OPERATIONS_NOT_REQUESTED
    if request.include_cluster_authorized_operations:
        operations = cluster_operations(authorizer, token)
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=node_id,
        brokers=[DescribeClusterBroker(node_id, host, port, cluster.rack)],
        cluster_authorized_operations=operations,
    )
