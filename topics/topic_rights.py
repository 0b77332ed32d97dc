"""Topic rights: which of the topics of a request the client may not use.

Without ACLs none is forbidden, and no name is looked at.
Kafka's counterpart: `AuthHelper.filterByAuthorized`.
"""

from collections.abc import Iterable
from typing import Final

from protocol.acl_codes import AclOperation, ResourceType
from protocol.names import TopicName
from seams.authorizer import Authorizer
from seams.reply_token import ReplyToken

NONE_FORBIDDEN: Final[frozenset[TopicName]] = frozenset()


def forbidden_topics(
    authorizer: Authorizer,
    token: ReplyToken,
    operation: AclOperation,
    names: Iterable[TopicName],
    *,
    logs_refusals: bool = True,
) -> frozenset[TopicName]:
    """TOPIC_AUTHORIZATION_FAILED for these, or they are left out of the answer."""
    if not authorizer.is_enabled:
        return NONE_FORBIDDEN
    asked = list(names)
    allowed = authorizer.allowed_names(
        token, operation, ResourceType.TOPIC, asked, logs_refusals=logs_refusals
    )
    return frozenset(asked) - allowed
