"""Client quotas: who uses how much of its quota, and who was throttled.

Clients choose their client ids, so the number of series is limited: of each kind of quota the
clients that were active last are shown. One without a quota is not. Quotas that several clients
share have one series; a label that does not matter for them is empty.
Kafka's counterpart: the sensors of `ClientQuotaManager` and `ConnectionQuotas`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, TypeVar

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portion, Portions
from broker.net.throttling import Throttling
from security.quotas.client_quotas import Measure, Measures, MutationBucket
from security.quotas.limits import UNLIMITED, QuotaKey
from security.quotas.rate import Rate

SERIES_MAX: Final = 500
"""Of one kind of quota."""

_LABELS: Final = ("quota", "user", "client_id")
_MS_PER_S: Final = 1_000.0

_USE: Final = Family(
    "rollcall_client_quota_use",
    MetricKind.GAUGE,
    "What clients with a quota use per second, as it is compared with the quota: bytes, percent of "
    "the thread, or partitions.",
    _LABELS,
    kafka="byte-rate, request-time, mutation-rate{user,client-id}",
)
_LIMIT: Final = Family(
    "rollcall_client_quota_limit",
    MetricKind.GAUGE,
    "The quota itself.",
    _LABELS,
)
_THROTTLES: Final = Family(
    "rollcall_client_quota_throttles_total",
    MetricKind.COUNTER,
    "Answers with a throttle time because of this quota.",
    _LABELS,
)
_THROTTLED: Final = Family(
    "rollcall_client_quota_throttle_seconds_total",
    MetricKind.COUNTER,
    "The sum of these throttle times.",
    _LABELS,
    kafka="throttle-time{user,client-id}",
)
_TOKENS: Final = Family(
    "rollcall_client_quota_tokens",
    MetricKind.GAUGE,
    "Partitions that may be created or deleted at once; negative: none for a while.",
    ("user", "client_id"),
    kafka="tokens{user,client-id}",
)
_ADDRESS_RATE: Final = Family(
    "rollcall_address_connection_rate",
    MetricKind.GAUGE,
    "New connections per second from an address with a quota.",
    ("address",),
    kafka="connection-creation-rate{ip}",
)
_ADDRESS_THROTTLES: Final = Family(
    "rollcall_address_connection_throttles_total",
    MetricKind.COUNTER,
    "New connections that were closed because of the quota of their address.",
    ("address",),
    kafka="connection-accept-throttle-time",
)
_MUTED: Final = Family(
    "rollcall_muted_connections",
    MetricKind.GAUGE,
    "Connections that are muted now because of a quota.",
    kafka="queue-size{Produce,Fetch,Request,ControllerMutation}",
)
_EXEMPT: Final = Family(
    "rollcall_exempt_request_seconds_total",
    MetricKind.COUNTER,
    "Time of requests between brokers, which have no quota; measured while there is any of time.",
    kafka="exempt-request-time",
)

_Row = tuple[tuple[str, ...], float]
ShownT = TypeVar("ShownT")
UseT = TypeVar("UseT")


def collect(daemon: Daemon) -> Portions:
    throttling, now_ms = daemon.server.throttling, daemon.clock.now().mono_ms
    use: list[_Row] = []
    limits: list[_Row] = []
    throttles: list[_Row] = []
    throttled: list[_Row] = []
    tokens: list[_Row] = []
    for labels, measure, rate in _clients(throttling):
        use.append((labels, rate.measure(now_ms)))
        limits.append((labels, measure.limit))
        throttles.append((labels, measure.throttled))
        throttled.append((labels, measure.throttled_ms / _MS_PER_S))
    yield None
    for (user, client_id), bucket in _shown(throttling.mutations.measures):
        tokens.append(((user, client_id), bucket.stat.bucket.measure(bucket.limit, now_ms)))
    for family, rows in (
        (_USE, use),
        (_LIMIT, limits),
        (_THROTTLES, throttles),
        (_THROTTLED, throttled),
        (_TOKENS, tokens),
    ):
        yield family.samples(rows)
    yield from _addresses(throttling, now_ms)
    yield _MUTED.sample(throttling.muted)
    yield _EXEMPT.sample(throttling.exempt_seconds)


def _addresses(throttling: Throttling, now_ms: int) -> Iterator[Portion]:
    shown = list(_shown(throttling.connections.measures))
    yield _ADDRESS_RATE.by_label({ip: each.stat.measure(now_ms) for ip, each in shown})
    yield _ADDRESS_THROTTLES.by_label({ip: each.throttled for ip, each in shown})


def _clients(
    throttling: Throttling,
) -> Iterator[tuple[tuple[str, ...], Measure[Rate] | Measure[MutationBucket], Rate]]:
    for key, quota in throttling.rates.items():
        for (user, client_id), measure in _shown(quota.measures):
            yield (key.value, user, client_id), measure, measure.stat
    key = QuotaKey.CONTROLLER_MUTATION
    for (user, client_id), mutation in _shown(throttling.mutations.measures):
        yield (key.value, user, client_id), mutation, mutation.stat.rate


def _shown(measures: Measures[ShownT, UseT]) -> Iterator[tuple[ShownT, Measure[UseT]]]:
    limited = (
        (key, measure) for key, measure in measures.newest_first() if measure.limit != UNLIMITED
    )
    return islice(limited, SERIES_MAX)
