"""Config rights: whether the client may read or change the configs of one resource.

The configs of topics and groups need a right on that topic or group; those of the broker, its
loggers and client metrics need it on the cluster.
Kafka's counterparts: `ConfigHelper.handleDescribeConfigsRequest`,
`ControllerApis.authorizeAlterResource`.
"""

from protocol.acl_codes import AclOperation, ResourceType
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken
from topics.api_error import CLUSTER_REFUSED, GROUP_REFUSED, TOPIC_REFUSED, ApiError
from topics.config_resources import ConfigResourceType


def config_refusal(
    authorizer: Authorizer,
    token: ReplyToken,
    operation: AclOperation,
    resource_type: int,
    name: str,
) -> ApiError | None:
    """None if the client may do it."""
    if not authorizer.is_enabled:
        return None
    if resource_type == ConfigResourceType.TOPIC:
        allowed = authorizer.allows(token, operation, ResourceType.TOPIC, name)
        return None if allowed else TOPIC_REFUSED
    if resource_type == ConfigResourceType.GROUP:
        allowed = authorizer.allows(token, operation, ResourceType.GROUP, name)
        return None if allowed else GROUP_REFUSED
    return None if authorizer.allows_on_cluster(token, operation) else CLUSTER_REFUSED
