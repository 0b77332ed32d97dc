"""Principal: who is behind a connection, as its listener has authenticated it.

Written TYPE:NAME, as ACLs, `super.users` and log lines have it. A client of a listener
without authentication is ANONYMOUS. Kafka's counterpart: `KafkaPrincipal`.
"""

from typing import Final

from msgspec import Struct

USER_TYPE: Final = "User"


class Principal(Struct, frozen=True):
    """`name` is the user of SASL, or what `ssl.principal.mapping.rules` makes of a certificate."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = Principal(USER_TYPE, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Of TYPE:NAME, as Kafka's `SecurityUtils.parseKafkaPrincipal`. Raises ValueError."""
    principal_type, colon, name = text.partition(":")
    if not colon or not principal_type or not name:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(principal_type, name)
