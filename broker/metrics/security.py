"""Security metrics: the certificates of the listeners, and clients that authenticate now."""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions

_ENDS: Final = Family(
    "rollcall_certificate_expiry_timestamp_seconds",
    MetricKind.GAUGE,
    "When the certificate of a listener ends, in seconds since the epoch.",
    ("listener",),
)
_UNAUTHENTICATED: Final = Family(
    "rollcall_connections_unauthenticated",
    MetricKind.GAUGE,
    "Connections whose TLS handshake or authentication is not done yet.",
)


def collect(daemon: Daemon) -> Portions:
    server = daemon.server
    access = server.access.items()
    yield _ENDS.by_label(
        {name: own.tls.certificate_ends_at_s for name, own in access if own.tls is not None}
    )
    waiting = sum(not connection.is_authenticated for connection in tuple(server.connections))
    yield _UNAUTHENTICATED.sample(waiting)
