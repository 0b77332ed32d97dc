"""ACL store: the file that has the ACL entries, and their changes.

The file is written as a whole before a change takes effect: a change that was answered survives a
crash, and a change that failed has no effect. Then the authorizer has the change, and so has every
open connection. A change is an operation of the admin queue: it yields its disk work.
Kafka's counterparts: `AclControlManager`, and `AclPublisher`, which informs the authorizer.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeVar

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from security.acls.entry import Acl, AclFilter
from storage.api import Corrupt
from topics.admin_queue import Steps
from topics.catalog import CatalogFile
from topics.checked_json import JsonDocument, dump_checked
from topics.events import AclsChanged, AclsLost, SaveFailed, TopicEvent
from topics.stored_document import StoredDocument

ACLS_FORMAT: Final = 1

_NOT_IN_ENTRIES: Final = frozenset(("UNKNOWN", "ANY", "MATCH"))

AnyCode = TypeVar("AnyCode", AclOperation, PatternType, PermissionType, ResourceType)


class AclsDamaged(Corrupt):
    """Without the file a DENY would be forgotten, and every ALLOW."""

    remedy = (
        "restore the file from a copy, or start once with --repair, which keeps it as "
        "*.damaged: then there are no ACLs until they are set again"
    )


class AclStore:
    """A change raises OSError if the disk fails; then nothing changed."""

    def __init__(
        self,
        file: CatalogFile,
        authorizer: AclAuthorizer,
        observe: Callable[[TopicEvent], None],
        *,
        acls_max: int,
        repair: bool = False,
    ) -> None:
        """Reads the file, for the authorizer. With `repair` a damaged one is kept as a copy.

        Raises Corrupt, NewerFormat, OSError.
        """
        self.authorizer = authorizer
        self.acls = authorizer.acls
        self.acls_max = acls_max
        self.was_repaired = False
        self._file = file
        self._observe = observe
        self._load(repair=repair)

    @property
    def room(self) -> int:
        """How many entries may be added."""
        return max(0, self.acls_max - len(self.acls))

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Reads every entry: for the thread of the admin queue."""
        return [acl for acl in self.acls if wanted.matches(acl)]

    def add(self, acls: Collection[Acl], token: ReplyToken) -> Steps[None]:
        """Add entries that are not there yet, for which there is room."""
        yield from self._change(tuple(acls), (), token)

    def remove(self, acls: Collection[Acl], token: ReplyToken) -> Steps[None]:
        """Remove entries that are there."""
        yield from self._change((), tuple(acls), token)

    def _change(
        self, added: tuple[Acl, ...], removed: tuple[Acl, ...], token: ReplyToken
    ) -> Steps[None]:
        if not added and not removed:
            return
        leaving = frozenset(removed)

        def save() -> None:
            # In the thread, as writing thousands of entries takes a while. The table does not
            # change meanwhile: this operation is the only one of the queue that runs.
            staying = [acl for acl in self.acls if acl not in leaving]
            self._file.save(_dump([*staying, *added]))

        try:
            yield save
        except OSError as fault:
            self._observe(SaveFailed("ACLs", str(fault)))
            raise
        self.authorizer.change(added, removed)
        self._observe(
            AclsChanged(added, removed, token.principal, token.client_id, token.client_host)
        )

    def _load(self, *, repair: bool) -> None:
        if repair:
            acls, self.was_repaired = _ACLS_FILE.load_or_repair(
                self._file, _dump(()), lambda kept_as: self._observe(AclsLost(kept_as))
            )
        else:
            acls = _ACLS_FILE.load(self._file)
        self.authorizer.change(acls or (), ())


def _dump(acls: Iterable[Acl]) -> bytes:
    document = {
        "acls": [
            {
                "resource_type": acl.resource_type.name,
                "pattern_type": acl.pattern_type.name,
                "name": acl.name,
                "principal": acl.principal,
                "host": acl.host,
                "operation": acl.operation.name,
                "permission": acl.permission.name,
            }
            for acl in acls
        ]
    }
    return dump_checked(document, ACLS_FORMAT)


def _acls(document: JsonDocument) -> list[Acl]:
    """Raises ValueError and others of `StoredDocument`."""
    return [_acl(entry) for entry in document["acls"]]


def _acl(entry: dict[str, object]) -> Acl:
    """Raises ValueError, KeyError, TypeError."""
    acl = Acl(
        _code(ResourceType, entry["resource_type"]),
        _code(PatternType, entry["pattern_type"]),
        _text(entry["name"]),
        _text(entry["principal"]),
        entry["host"] if entry["host"] == "" else _text(entry["host"]),
        _code(AclOperation, entry["operation"]),
        _code(PermissionType, entry["permission"]),
    )
    if ":" not in acl.principal:
        raise ValueError(f"the principal {acl.principal!r} has no type")
    return acl


def _code(codes: type[AnyCode], name: object) -> AnyCode:
    if not isinstance(name, str) or name in _NOT_IN_ENTRIES:
        raise ValueError(f"{name!r} is no code of an entry")
    return codes[name]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no text of an entry")
    return value


_ACLS_FILE: Final = StoredDocument(ACLS_FORMAT, _acls, AclsDamaged)
