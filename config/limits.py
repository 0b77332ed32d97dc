"""Limits of the daemon's own parts: what clients may use, and how the log cleaner works.

Values alone. They are declared here and not beside their users because `settings.py` fills them in,
and no module of config imports the daemon. The limits of the other packages are declared there:
`coordinator/settings.py`, `topics/settings.py`, `JournalLimits`, `LagLimits`, `IndexLimits`.
"""

from typing import Final

from msgspec import Struct, field

from security.quotas.settings import ClientQuotaSettings

NO_CONNECTION_LIMIT: Final = 2_147_483_647
"""Kafka's default of the limits on connections."""


class ListenerLimits(Struct, frozen=True):
    """What one listener has for itself: `listener.name.NAME.max.connections` and the rate."""

    max_connections: int = NO_CONNECTION_LIMIT
    max_connection_creation_rate: int = NO_CONNECTION_LIMIT


class ServerLimits(Struct, frozen=True):
    """What clients may use of the server, named as Kafka names it; the defaults are Kafka's."""

    socket_request_max_bytes: int = 104_857_600
    request_max_bytes: int = 33_554_432  # of every request but Produce
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = 600_000
    max_connections: int = NO_CONNECTION_LIMIT
    max_connections_per_ip: int = NO_CONNECTION_LIMIT
    max_connections_by_ip: dict[str, int] = field(default_factory=dict)
    max_connection_creation_rate: int = NO_CONNECTION_LIMIT  # per second
    by_listener: dict[str, ListenerLimits] = field(default_factory=dict)
    queued_max_request_bytes: int = -1
    connection_unsent_max_bytes: int = 16_777_216
    connections_unsent_max_bytes: int = 268_435_456
    client_quotas: ClientQuotaSettings = ClientQuotaSettings()
    authentication_timeout_ms: int = 30_000
    failed_authentication_delay_ms: int = 100


class CleanerSettings(Struct, frozen=True):
    """The keys `log.cleaner.*` that hold for all logs; the defaults are Kafka's."""

    is_enabled: bool = True
    backoff_ms: int = 15_000
    io_max_bytes_per_second: float = 1.7976931348623157e308
    map_bytes: int = 128 << 20
