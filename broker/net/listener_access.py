"""Listener access: what a client of a listener does before its first request is handled.

Made once for each listener at the start. PLAINTEXT has nothing to do.
Kafka's counterpart: `ChannelBuilders`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from security.sasl.exchange import SaslServer

if TYPE_CHECKING:
    from broker.net.tls.listener_tls import ListenerTls


class SaslMechanism(Struct, frozen=True):
    """One mechanism of a listener. `new_server` makes the server's side of one authentication."""

    new_server: Callable[[], SaslServer]
    max_reauth_ms: int


class SaslAccess(Struct, frozen=True):
    """The mechanisms by their names, and the largest request before a client is authenticated."""

    mechanisms: Mapping[str, SaslMechanism]
    receive_max_bytes: int


class ListenerAccess(Struct, frozen=True):
    """TLS first, then SASL."""

    tls: "ListenerTls | None" = None
    sasl: SaslAccess | None = None


OPEN_ACCESS: ListenerAccess = ListenerAccess()
