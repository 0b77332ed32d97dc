"""Audit entry: one line of the audit log, before it is written anywhere.

No entry has a value of a config, a password or a token. Kafka's counterpart of a refusal: the line
of `kafka.authorizer.logger`.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

TEXT_LENGTH_MAX: Final = 249
"""Characters of a text that a client chose; the longest topic name. More would fill the memory."""

NAMES_MAX: Final = 20
"""Names in one detail, such as the configs that were altered."""


class AuditKind(StrEnum):
    """What the entry is about."""

    REFUSED = "refused"
    AUTHENTICATION_FAILED = "authentication failed"
    ADMINISTRATIVE = "administrative"


class AuditEntry(Struct, frozen=True):
    """`request` is Kafka's name of the API; `operation` that of a right, or the SASL mechanism.

    `times`: how often this happened since the last entry about it. `unnamed`: how many other ones
    of the client had no room.
    """

    kind: AuditKind
    principal: str
    host: str
    client_id: str = ""
    request: str = ""
    operation: str = ""
    resource: str = ""
    error: str = ""
    detail: str = ""
    listener: str = ""
    times: int = 1
    unnamed: int = 0

    @property
    def message(self) -> str:
        """In Kafka's words where Kafka has such a line."""
        if self.unnamed:
            return "Audit entries that are not named, because there are too many"
        match self.kind:
            case AuditKind.REFUSED:
                return (
                    f"Principal = {self.principal} is Denied operation = {self.operation} from "
                    f"host = {self.host} on resource = {self.resource} for request = {self.request}"
                )
            case AuditKind.AUTHENTICATION_FAILED:
                return "Failed authentication"
            case AuditKind.ADMINISTRATIVE:
                return "Administrative action"


def bounded(text: str) -> str:
    """A text that a client chose, or its beginning."""
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    return f"{text[:TEXT_LENGTH_MAX]}… ({len(text)} characters)"


def names_of(names: list[str]) -> str:
    """The first names, and how many more there are."""
    first = ", ".join(bounded(name) for name in names[:NAMES_MAX])
    more = len(names) - NAMES_MAX
    return first if more <= 0 else f"{first} and {more} more"
