"""What can be measured? The families that /metrics shows, read from the parts when somebody asks.

Nothing on the road of a request knows of this file: the parts count in plain integers. A scrape
walks over many groups and timers, so it takes a breath now and then: a None among the families,
at which the caller lets the loop do its work. No label has a value that clients choose: the
number of series stays bounded. What Kafka calls NumGroups or PurgatorySize is told in each
family's help. Kafka's counterpart: `GroupCoordinatorMetrics`, `RequestChannelMetrics`,
`SocketServer`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from time import time
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from broker.daemon import Daemon
from broker.stats import Histogram
from protocol.names import ApiKey, ErrorCode
from rollcall import __version__

GROUPS_A_BREATH: Final = 1_000

_KAFKA_OPERATIONS: Final = {
    "DelayedHeartbeat": "Heartbeat",
    "DelayedJoin": "Rebalance",
    "InitialDelayedJoin": "Rebalance",
    "DelayedSync": "Rebalance",
}

Families = Iterator[Metric | None]


class Metrics:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._process = ProcessCollector(registry=None)
        self._started = time()

    def families(self) -> Families:
        """All of them; at each None the loop may be let go on."""
        for part in (self._groups, self._waiting, self._network, self._requests, self._node):
            yield from part()
            yield None

    def _groups(self) -> Families:
        coordinator, counters = self._daemon.coordinator, self._daemon.observer.counters
        census = coordinator.census
        yield _gauge(
            "group_coordinator_groups",
            "Groups by state (Kafka's NumGroups and NumGroups<State>)",
            {str(state.value): count for state, count in census.states.items()},
            "state",
        )
        yield GaugeMetricFamily("group_coordinator_members", "Members of groups", census.members)
        offsets = 0
        for number, group in enumerate(tuple(coordinator.groups()), start=1):
            offsets += sum(len(partitions) for partitions in group.offsets.values())
            if number % GROUPS_A_BREATH == 0:
                yield None
        yield GaugeMetricFamily(
            "group_coordinator_offsets", "Committed offsets that are kept (NumOffsets)", offsets
        )
        yield _counter(
            "group_coordinator_offset_commits",
            "Partitions whose offset was committed (offset-commit-count)",
            counters.offsets_committed,
        )
        yield _counters(
            "group_coordinator_offset_deletions",
            "Offsets that are gone, by cause (offset-expiration-count, offset-deletion-count)",
            counters.offsets_deleted,
            "cause",
        )
        yield _counters(
            "group_coordinator_group_deletions",
            "Groups that are gone, by cause",
            counters.groups_deleted,
            "cause",
        )
        yield _counters(
            "group_coordinator_rebalances_begun",
            "Rebalances that began, by what began them",
            counters.rebalances_begun,
            "cause",
        )
        yield _counters(
            "group_coordinator_rebalances_completed",
            "Rebalances that ended in a Stable group, by what began them "
            "(group-completed-rebalance-count)",
            counters.rebalances_completed,
            "cause",
        )
        yield _histogram(
            "group_coordinator_rebalance_seconds",
            "From a rebalance's begin until the group is Stable",
            {(): counters.rebalance_seconds},
        )
        yield _counter(
            "group_coordinator_members_added", "Members that joined", counters.members_added
        )
        yield _counters(
            "group_coordinator_members_removed",
            "Members that were removed, by cause",
            counters.members_removed,
            "cause",
        )
        yield _counter(
            "group_coordinator_sessions_forgiven",
            "Silent members that were heard before a rebalance was needed",
            counters.lapses_forgiven,
        )
        ownership = self._daemon.ownership
        failed, loading = len(ownership.failed), ownership.loading
        yield _gauge(
            "group_coordinator_partitions",
            "Partitions of the offsets topic by state (num-partitions)",
            {
                "loading": loading,
                "failed": failed,
                "active": ownership.owned - loading - failed,
            },
            "state",
        )

    def _waiting(self) -> Families:
        delayed: Counter[str] = Counter(Heartbeat=0, Rebalance=0)
        watched: Counter[str] = Counter(delayed)
        for purgatory in tuple(self._daemon.coordinator.purgatories()):
            for kind, (ops, keys) in purgatory.by_kind().items():
                operation = _KAFKA_OPERATIONS.get(kind, kind)
                delayed[operation] += ops
                watched[operation] += keys
            yield None
        delayed["Fetch"] = self._daemon.data_plane.delayed_fetches
        watched["Fetch"] = self._daemon.data_plane.watched_fetches
        yield _gauge(
            "rollcall_purgatory_delayed_operations",
            "Operations that wait for people or time (Kafka's NumDelayedOperations)",
            delayed,
            "delayedOperation",
        )
        yield _gauge(
            "rollcall_purgatory_size",
            "Keys that those operations are watched under (Kafka's PurgatorySize)",
            watched,
            "delayedOperation",
        )

    def _network(self) -> Families:
        server = self._daemon.server
        yield GaugeMetricFamily("rollcall_connections", "Open connections", len(server.connections))
        yield _counter(
            "rollcall_connections_accepted", "Connections since the start", server.connections_made
        )
        yield _counters(
            "rollcall_connections_dropped",
            "Connections that were closed or refused here, by cause",
            {fault.value: count for fault, count in server.complaints.counts.items()},
            "cause",
        )
        yield GaugeMetricFamily(
            "rollcall_queued_request_bytes",
            "Bytes of requests that are not answered yet",
            server.queued_bytes,
        )

    def _requests(self) -> Families:
        requests = CounterMetricFamily(
            "rollcall_requests", "Requests by api and version", labels=("request", "version")
        )
        errors = CounterMetricFamily(
            "rollcall_request_errors", "Errors in answers, each as often as it stands there",
            labels=("request", "error"),
        )  # fmt: skip
        failures = CounterMetricFamily(
            "rollcall_request_failures", "Requests that failed by a mistake of ours",
            labels=("request",),
        )  # fmt: skip
        seconds: dict[tuple[str, ...], Histogram] = {}
        for api_key, route in self._daemon.dispatcher.routes.items():
            stats, name = route.stats, _api_name(api_key)
            for version, count in enumerate(stats.by_version):
                if count:
                    requests.add_metric((name, str(version)), count)
            for code, count in stats.errors.items():
                errors.add_metric((name, ErrorCode(code).name), count)
            if stats.failures:
                failures.add_metric((name,), stats.failures)
            if any(stats.by_version):
                seconds[(name,)] = stats.seconds
        yield requests
        yield errors
        yield failures
        yield None
        yield _histogram(
            "rollcall_request_seconds",
            "From a request's last byte read until its answer is made (TotalTimeMs)",
            seconds,
            labels=("request",),
        )

    def _node(self) -> Families:
        daemon = self._daemon
        counters, journal = daemon.observer.counters, daemon.journal
        yield InfoMetricFamily("rollcall_build", "What runs here", {"version": __version__})
        yield GaugeMetricFamily(
            "rollcall_start_time_seconds", "When the daemon was started", self._started
        )
        yield GaugeMetricFamily(
            "rollcall_ready", "Whether clients may be sent here (/readyz)", daemon.health.ready
        )
        yield _counter(
            "rollcall_journal_flushes", "Groups of records that were stored", daemon.relay.flushes
        )
        yield _counter(
            "rollcall_journal_bytes", "Bytes of record batches that were stored",
            journal.stored_bytes,
        )  # fmt: skip
        yield _counter(
            "rollcall_journal_flush_seconds", "Time that storing them took", journal.flush_seconds
        )
        yield GaugeMetricFamily(
            "rollcall_journal_queue_bytes", "Bytes that wait for the disk", journal.queued_bytes
        )
        yield GaugeMetricFamily(
            "rollcall_journal_failed",
            "1 once the disk has failed and nothing is written any more",
            daemon.health.journal_failed is not None,
        )
        yield _counter("rollcall_records_appended", "Records produced", counters.records_appended)
        yield _counter("rollcall_appended_bytes", "Bytes produced", counters.bytes_appended)
        yield _counter("rollcall_fetched_bytes", "Bytes fetched", counters.bytes_fetched)
        yield GaugeMetricFamily(
            "rollcall_event_loop_lag_seconds",
            "How late the event loop ran at its last pulse",
            daemon.ticker.lag_seconds,
        )
        yield GaugeMetricFamily(
            "rollcall_event_loop_lag_max_seconds",
            "The latest that the event loop ever ran",
            daemon.ticker.lag_seconds_max,
        )
        yield _counter(
            "rollcall_event_loop_stalls", "Times that the daemon was deaf", counters.stalls
        )
        yield _counter(
            "rollcall_event_loop_stall_seconds",
            "How long it was deaf; sessions were extended by as much",
            counters.stalled_ms / 1000,
        )
        yield _counter(
            "rollcall_internal_failures", "Unexpected errors outside of requests",
            counters.parts_failed,
        )  # fmt: skip
        yield from self._process.collect()


def _api_name(api_key: ApiKey) -> str:
    """OFFSET_COMMIT is OffsetCommit, as in Kafka's metrics."""
    return api_key.name.title().replace("_", "")


def _counter(name: str, help_text: str, count: float) -> Metric:
    return CounterMetricFamily(name, help_text, count)


def _counters(name: str, help_text: str, counts: Mapping[str, int], label: str) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=(label,))
    for value, count in counts.items():
        family.add_metric((value,), count)
    return family


def _gauge(name: str, help_text: str, values: Mapping[str, int], label: str) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=(label,))
    for value, number in values.items():
        family.add_metric((value,), number)
    return family


def _histogram(
    name: str,
    help_text: str,
    histograms: Mapping[tuple[str, ...], Histogram],
    labels: Iterable[str] = (),
) -> Metric:
    family = HistogramMetricFamily(name, help_text, labels=tuple(labels))
    for values, histogram in histograms.items():
        below = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*histogram.bounds, None), histogram.counts, strict=True):
            below += count
            buckets.append(("+Inf" if bound is None else repr(bound), below))
        family.add_metric(values, buckets, histogram.total)
    return family
