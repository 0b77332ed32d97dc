"""Authorized operations: what a client may do, for the answers that list it.

Bit fields of `AclOperation` codes, for Metadata, DescribeCluster and DescribeTopicPartitions.
Without ACLs a client may do everything. Kafka's counterpart: `AuthHelper`.
"""

from typing import Final

from protocol.acl_codes import AclOperation, ResourceType
from seams.authorizer import ALLOW_ALL, CLUSTER_NAME, Authorizer
from seams.reply_token import ReplyToken

_ANY_TOKEN: Final = ReplyToken(0, "", "")
TOPIC_OPERATIONS: Final = ALLOW_ALL.authorized_operations(_ANY_TOKEN, ResourceType.TOPIC, "")
CLUSTER_OPERATIONS: Final = ALLOW_ALL.authorized_operations(
    _ANY_TOKEN, ResourceType.CLUSTER, CLUSTER_NAME
)
NO_OPERATIONS: Final = 0


def topic_operations(authorizer: Authorizer, token: ReplyToken, name: str) -> int:
    if not authorizer.is_enabled:
        return TOPIC_OPERATIONS
    return authorizer.authorized_operations(token, ResourceType.TOPIC, name)


def cluster_operations(authorizer: Authorizer, token: ReplyToken) -> int:
    """None of them without DESCRIBE, which alone lets a client see what else it may do."""
    if not authorizer.is_enabled:
        return CLUSTER_OPERATIONS
    if not authorizer.allows_on_cluster(token, AclOperation.DESCRIBE):
        return NO_OPERATIONS
    return authorizer.authorized_operations(token, ResourceType.CLUSTER, CLUSTER_NAME)
