"""Rights for tests: an authorizer that allows what a test has granted.

A right to read, write, delete or alter implies DESCRIBE, and ALTER_CONFIGS implies
DESCRIBE_CONFIGS, as with Kafka's `StandardAuthorizer`.
"""

from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, ResourceType
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.reply_token import ReplyToken

_IMPLYING: Final = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class Right(NamedTuple):
    operation: AclOperation
    resource_type: ResourceType
    name: str


def topic_right(operation: AclOperation, name: str = "topic") -> Right:
    return Right(operation, ResourceType.TOPIC, name)


def cluster_right(operation: AclOperation) -> Right:
    return Right(operation, ResourceType.CLUSTER, CLUSTER_NAME)


class Rights(Authorizer):
    """`granted` is None: everything is. `logged` has the refusals that an audit log would have."""

    is_enabled = True

    def __init__(self, *granted: Right) -> None:
        self.granted: set[Right] | None = set(granted)
        self.logged: list[Right] = []

    def grant_all(self) -> None:
        self.granted = None

    def allows(
        self,
        _token: ReplyToken,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        /,
        *,
        logs_refusal: bool = True,
    ) -> bool:
        asked = Right(operation, resource_type, name)
        is_allowed = self.granted is None or any(
            Right(enough, resource_type, name) in self.granted
            for enough in (operation, *_IMPLYING.get(operation, ()))
        )
        if not is_allowed and logs_refusal:
            self.logged.append(asked)
        return is_allowed
