"""Requests and connections: what clients ask, how long it takes, who is connected.

The numbers are counted where answers are made (broker/observe/stats.py). A label names an API, a
version or an error: things that Kafka's protocol has few of.
Kafka's counterpart: `RequestMetrics`, `SocketServer`.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions
from broker.observe.events import PeerFault
from broker.observe.stats import Histogram
from protocol.names import ApiKey, ErrorCode

CONNECTIONS: Final = Family(
    "rollcall_connections", Kind.GAUGE, "Open connections of clients.", kafka="connection-count"
)
ACCEPTED: Final = Family(
    "rollcall_connections_accepted_total",
    Kind.COUNTER,
    "Connections accepted since the start.",
    kafka="connection-creation-total",
)
DROPPED: Final = Family(
    "rollcall_connections_dropped_total",
    Kind.COUNTER,
    "Connections that the daemon closed or refused, by cause.",
    ("cause",),
)
QUEUED_BYTES: Final = Family(
    "rollcall_queued_request_bytes",
    Kind.GAUGE,
    "Bytes of requests that are not answered yet; counted only if queued.max.request.bytes sets "
    "a limit.",
    kafka="RequestQueueSize, in bytes",
)
UNSENT_BYTES: Final = Family(
    "rollcall_unsent_answer_bytes",
    Kind.GAUGE,
    "Bytes of answers that wait until clients read them, or for the answer to an earlier "
    "request; the limit is rollcall.connections.unsent.max.bytes.",
)
REQUESTS: Final = Family(
    "rollcall_requests_total",
    Kind.COUNTER,
    "Requests by API and version.",
    ("request", "version"),
    kafka="RequestsPerSec{request,version}",
)
ERRORS: Final = Family(
    "rollcall_request_errors_total",
    Kind.COUNTER,
    "Error codes in answers; one answer may have several.",
    ("request", "error"),
    kafka="ErrorsPerSec{request,error}",
)
FAILURES: Final = Family(
    "rollcall_request_failures_total",
    Kind.COUNTER,
    "Requests that failed because of a bug in Rollcall.",
    ("request",),
)
SECONDS: Final = Family(
    "rollcall_request_seconds",
    Kind.HISTOGRAM,
    "Time from the last byte of a request read until its answer is ready. For JoinGroup, "
    "SyncGroup and Fetch it includes the wait for others.",
    ("request",),
    kafka="TotalTimeMs{request}",
)


def collect(daemon: Daemon) -> Portions:
    server = daemon.server
    yield CONNECTIONS.one(len(server.connections))
    yield ACCEPTED.one(server.connections_made)
    faults = dict.fromkeys(PeerFault, 0) | dict(server.fault_log.counts)
    yield DROPPED.each({fault.value: count for fault, count in faults.items()})
    yield QUEUED_BYTES.one(server.quotas.requests.queued_bytes)
    yield UNSENT_BYTES.one(server.quotas.unsent.total_bytes())
    requests: list[tuple[tuple[str, str], int]] = []
    errors: list[tuple[tuple[str, str], int]] = []
    failures: dict[str, int] = {}
    seconds: dict[tuple[str, ...], Histogram] = {}
    for api_key, route in daemon.dispatcher.routes.items():
        stats, name = route.stats, api_name(api_key)
        requests += [
            ((name, str(version)), count) for version, count in enumerate(stats.by_version) if count
        ]
        errors += [((name, _error_name(code)), count) for code, count in stats.errors.items()]
        failures[name] = stats.failures
        if any(stats.by_version):
            seconds[(name,)] = stats.seconds
    yield REQUESTS.rows(requests)
    yield ERRORS.rows(errors)
    yield FAILURES.each(failures)
    yield SECONDS.histograms(seconds)


def api_name(api_key: ApiKey) -> str:
    """OFFSET_COMMIT is OffsetCommit, as in Kafka's metrics."""
    return api_key.name.title().replace("_", "")


def _error_name(code: int) -> str:
    return ErrorCode(code).name
