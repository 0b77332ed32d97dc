"""Rights: an authorizer whose clients may do exactly what a test says."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from protocol.acl_codes import AclOperation, ResourceType
from protocol.messages import Response
from protocol.names import ErrorCode
from seams.authorizer import CLUSTER_NAME, Authorizer
from seams.reply_token import ReplyToken

Right = tuple[str, str]
"""The operation, and the resource as "group g"; the cluster is "cluster kafka-cluster"."""

_KINDS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "txn": ResourceType.TRANSACTIONAL_ID,
}
ON_CLUSTER: Final = f"cluster {CLUSTER_NAME}"
REFUSALS: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Rights(Authorizer):
    """Nothing implies anything, so that each question shows. `lacks` takes rights from all."""

    is_enabled = True

    def __init__(self, *granted: Right, allows_all: bool = False) -> None:
        self.granted = set(granted)
        self.allows_all = allows_all
        self.lacking: set[Right] = set()
        self.asked: list[Right] = []
        self.logged: list[Right] = []

    def lacks(self, *rights: Right) -> None:
        self.allows_all = True
        self.lacking = set(rights)

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
        kind = next(kind for kind, known in _KINDS.items() if known is resource_type)
        right = (operation.name, f"{kind} {name}")
        self.asked.append(right)
        is_allowed = right in self.granted or (self.allows_all and right not in self.lacking)
        if not is_allowed and logs_refusal:
            self.logged.append(right)
        return is_allowed

    def allows_any_resource(
        self, _token: ReplyToken, operation: AclOperation, resource_type: ResourceType, /
    ) -> bool:
        kind = next(kind for kind, known in _KINDS.items() if known is resource_type)
        return any(
            granted == operation.name and resource.startswith(f"{kind} ")
            for granted, resource in self.granted
        )


def refusals_in(response: Response) -> set[tuple[str, ErrorCode]]:
    """Where in a response there are authorization errors, and which."""
    return {(place, code) for place, code in error_codes(response) if code in REFUSALS}


def error_codes(found: object, place: str = "") -> Iterator[tuple[str, ErrorCode]]:
    """All error codes with the path of their fields."""
    if isinstance(found, ErrorCode):
        yield place, found
    elif isinstance(found, msgspec.Struct):
        for name in found.__struct_fields__:
            yield from error_codes(getattr(found, name), f"{place}.{name}".lstrip("."))
    elif isinstance(found, Iterable) and not isinstance(found, str | bytes):
        for item in found:
            yield from error_codes(item, place)
