"""Requests and connections: counts, durations, errors and limits.

The numbers are counted where answers are made (broker/observe/stats.py). A label is an API, a
version or an error, of which Kafka's protocol has few.
Kafka's counterpart: `RequestMetrics`, `SocketServer`.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions
from broker.observe.events import PeerFault
from broker.observe.stats import Histogram
from protocol.names import ApiKey, ErrorCode

_CONNECTIONS: Final = Family(
    "rollcall_connections",
    MetricKind.GAUGE,
    "Open connections of clients.",
    kafka="connection-count",
)
_ACCEPTED: Final = Family(
    "rollcall_connections_accepted_total",
    MetricKind.COUNTER,
    "Connections accepted since the start.",
    kafka="connection-creation-total",
)
_DROPPED: Final = Family(
    "rollcall_connections_dropped_total",
    MetricKind.COUNTER,
    "Connections that the daemon closed or refused, by cause.",
    ("cause",),
)
_QUEUED_BYTES: Final = Family(
    "rollcall_queued_request_bytes",
    MetricKind.GAUGE,
    "Bytes of requests that are not answered yet; counted only if queued.max.request.bytes sets "
    "a limit.",
    kafka="RequestQueueSize, in bytes",
)
_UNSENT_BYTES: Final = Family(
    "rollcall_unsent_answer_bytes",
    MetricKind.GAUGE,
    "Bytes of answers that wait until clients read them, or for the answer to an earlier "
    "request; the limit is rollcall.connections.unsent.max.bytes.",
)
_REQUESTS: Final = Family(
    "rollcall_requests_total",
    MetricKind.COUNTER,
    "Requests by API and version.",
    ("request", "version"),
    kafka="RequestsPerSec{request,version}",
)
_ERRORS: Final = Family(
    "rollcall_request_errors_total",
    MetricKind.COUNTER,
    "Error codes in answers; one answer may have several.",
    ("request", "error"),
    kafka="ErrorsPerSec{request,error}",
)
_FAILURES: Final = Family(
    "rollcall_request_failures_total",
    MetricKind.COUNTER,
    "Requests that failed because of a bug in Rollcall.",
    ("request",),
)
_SECONDS: Final = Family(
    "rollcall_request_seconds",
    MetricKind.HISTOGRAM,
    "Time from the last byte of a request read until its answer is ready. For JoinGroup, "
    "SyncGroup and Fetch it includes the wait for others.",
    ("request",),
    kafka="TotalTimeMs{request}",
)


def collect(daemon: Daemon) -> Portions:
    server = daemon.server
    yield _CONNECTIONS.sample(len(server.connections))
    yield _ACCEPTED.sample(server.connections_made)
    faults = dict.fromkeys(PeerFault, 0) | dict(server.fault_log.counts)
    yield _DROPPED.by_label({fault.value: count for fault, count in faults.items()})
    yield _QUEUED_BYTES.sample(server.quotas.request_bytes.queued_bytes)
    yield _UNSENT_BYTES.sample(server.quotas.unsent.total_bytes())
    requests: list[tuple[tuple[str, str], int]] = []
    errors: list[tuple[tuple[str, str], int]] = []
    failures: dict[str, int] = {}
    seconds: dict[tuple[str, ...], Histogram] = {}
    for api_key, route in daemon.dispatcher.routes.items():
        stats, name = route.stats, _api_name(api_key)
        requests += [
            ((name, str(version)), count) for version, count in enumerate(stats.by_version) if count
        ]
        errors += [((name, _error_name(code)), count) for code, count in stats.errors.items()]
        failures[name] = stats.failures
        if any(stats.by_version):
            seconds[(name,)] = stats.seconds
    yield _REQUESTS.samples(requests)
    yield _ERRORS.samples(errors)
    yield _FAILURES.by_label(failures)
    yield _SECONDS.histograms(seconds)


def _api_name(api_key: ApiKey) -> str:
    """OFFSET_COMMIT is OffsetCommit, as in Kafka's metrics."""
    return api_key.name.title().replace("_", "")


def _error_name(code: int) -> str:
    return ErrorCode(code).name
