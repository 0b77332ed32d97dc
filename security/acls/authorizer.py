"""ACL authorizer: decides by the ACL entries, the super users and the default.

Decisions are kept, so that a heartbeat does not search the table again. A change of the entries
forgets them all: it is in effect for the next request of every open connection.
Kafka's counterpart: `StandardAuthorizer`.
"""

from collections.abc import Callable, Iterable
from typing import Final

from protocol.acl_codes import AclOperation, ResourceType
from seams.authorizer import Authorizer
from seams.principal import Principal, parse_principal
from seams.reply_token import ReplyToken
from security.acls.entry import Acl
from security.acls.table import AclTable

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The `authorizer.class.name` that selects this one."""

DECISIONS_MAX: Final = 20_000
"""Decisions that are kept; with one more all are forgotten. A decision takes about 300 bytes."""

NAME_LENGTH_KEPT_MAX: Final = 255
"""Decisions about longer names are not kept: a client could fill the memory with them. A topic's
name has at most 249 characters; group ids and transactional ids may be longer."""

OnRefusal = Callable[[ReplyToken, AclOperation, ResourceType, str], None]


def _ignore_refusal(
    _token: ReplyToken, _operation: AclOperation, _resource_type: ResourceType, _name: str
) -> None:
    pass


class AclAuthorizer(Authorizer):
    """Not thread-safe: used on one thread.

    `on_refusal` is called for each refusal that fails a request, also for one that was kept.
    """

    is_enabled = True

    def __init__(
        self,
        super_users: frozenset[Principal] = frozenset(),
        *,
        allows_without_acl: bool = False,
        on_refusal: OnRefusal = _ignore_refusal,
    ) -> None:
        """`allows_without_acl`: `allow.everyone.if.no.acl.found`."""
        self.acls = AclTable(allows_without_acl=allows_without_acl)
        self.super_users = super_users
        self.on_refusal = on_refusal
        self._kept: dict[tuple[Principal, str, AclOperation, ResourceType, str | None], bool] = {}

    @property
    def kept(self) -> int:
        """The number of decisions that are kept."""
        return len(self._kept)

    def change(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        """In effect when it returns."""
        self.acls.change(added, removed)
        self._kept.clear()

    def allows(
        self,
        token: ReplyToken,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        /,
        *,
        logs_refusal: bool = True,
    ) -> bool:
        key = (token.principal, token.client_host, operation, resource_type, name)
        is_allowed = self._kept.get(key)
        if is_allowed is None:
            is_allowed = token.principal in self.super_users or self.acls.allows(
                str(token.principal), _address(token), operation, resource_type, name
            )
            if len(name) <= NAME_LENGTH_KEPT_MAX:
                self._keep(key, is_allowed)
        if logs_refusal and not is_allowed:
            self.on_refusal(token, operation, resource_type, name)
        return is_allowed

    def allows_any_resource(
        self, token: ReplyToken, operation: AclOperation, resource_type: ResourceType, /
    ) -> bool:
        key = (token.principal, token.client_host, operation, resource_type, None)
        is_allowed = self._kept.get(key)
        if is_allowed is None:
            is_allowed = token.principal in self.super_users or self.acls.allows_any(
                str(token.principal), _address(token), operation, resource_type
            )
            self._keep(key, is_allowed)
        return is_allowed

    def _keep(
        self,
        key: tuple[Principal, str, AclOperation, ResourceType, str | None],
        is_allowed: bool,  # noqa: FBT001 - the value of the entry
    ) -> None:
        if len(self._kept) >= DECISIONS_MAX:
            self._kept.clear()
        self._kept[key] = is_allowed


def _address(token: ReplyToken) -> str:
    """As ACLs have it: `client_host` has a slash before the address."""
    return token.client_host.removeprefix("/")


def parse_super_users(text: str) -> frozenset[Principal]:
    """The value of `super.users`: principals, separated by semicolons. Raises ValueError."""
    names = (part.strip() for part in text.split(";"))
    return frozenset(parse_principal(name) for name in names if name)
