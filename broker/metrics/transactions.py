"""Transactions: how many are open, for how long, and how they end.

Kafka's counterparts: `transaction-coordinator-metrics`, `TransactionMarkerChannelManager`; it has
no numbers of the transactions themselves.
"""

from collections import Counter
from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions
from transactions.events import AbortCause
from transactions.metadata import STORED_STATES, TransactionState

_IDS_PER_SLICE: Final = 2_000
"""Transactional ids that are counted in one slice: less than a millisecond."""

_BY_PRODUCER: Final = "producer"
"""The cause of an abort that the producer asked for."""

_IDS: Final = Family(
    "transaction_coordinator_transactional_ids",
    MetricKind.GAUGE,
    "Transactional ids, by the state of their last transaction.",
    ("state",),
)
_OPEN: Final = Family(
    "transaction_coordinator_open_transactions",
    MetricKind.GAUGE,
    "Transactions that have begun and are not completed.",
)
_OLDEST: Final = Family(
    "transaction_coordinator_oldest_open_transaction_seconds",
    MetricKind.GAUGE,
    "For how long the oldest open transaction has been open; 0 without one.",
)
_PARTITIONS: Final = Family(
    "transaction_coordinator_partitions",
    MetricKind.GAUGE,
    "Partitions of __transaction_state, by state.",
    ("state",),
)
_COMMITTED: Final = Family(
    "transaction_coordinator_committed_total",
    MetricKind.COUNTER,
    "Transactions that were committed: all partitions have their marker.",
)
_ABORTED: Final = Family(
    "transaction_coordinator_aborted_total",
    MetricKind.COUNTER,
    "Transactions whose abort was decided, by cause.",
    ("cause",),
)
_MARKERS: Final = Family(
    "transaction_coordinator_markers_total",
    MetricKind.COUNTER,
    "Markers that partitions have taken.",
)
_DELAYED: Final = Family(
    "transaction_coordinator_markers_delayed_total",
    MetricKind.COUNTER,
    "Transactions whose markers were not taken by all partitions at the first attempt.",
    kafka="UnknownDestinationQueueSize",
)
_REFUSED: Final = Family(
    "transaction_coordinator_markers_refused_total",
    MetricKind.COUNTER,
    "Markers that a partition refused for good.",
)
_SYNCS_FAILED: Final = Family(
    "transaction_coordinator_syncs_failed_total",
    MetricKind.COUNTER,
    "Commits that were refused because the records could not be synced.",
)
_INITIALIZED: Final = Family(
    "transaction_coordinator_producers_initialized_total",
    MetricKind.COUNTER,
    "Transactional ids that were given a producer epoch.",
)
_EXPIRED: Final = Family(
    "transaction_coordinator_transactional_ids_expired_total",
    MetricKind.COUNTER,
    "Transactional ids that were removed after transactional.id.expiration.ms.",
)


def collect(daemon: Daemon) -> Portions:
    counters, ownership = daemon.observer.counters, daemon.transaction_topic.ownership
    states: Counter[TransactionState] = Counter()
    for count, transaction in enumerate(daemon.transactions.transactions()):
        states[transaction.metadata.state] += 1
        if count % _IDS_PER_SLICE == _IDS_PER_SLICE - 1:
            yield None
    shown = [TransactionState(state) for state in sorted(STORED_STATES)]
    yield _IDS.by_label({state.wire_name: states[state] for state in shown})
    open_transactions = daemon.transactions.open_transactions()
    yield _OPEN.sample(len(open_transactions))
    now_ms = daemon.clock.now().wall_ms
    oldest_ms = min((each.started_at_ms for each in open_transactions), default=now_ms)
    yield _OLDEST.sample(max(now_ms - oldest_ms, 0) / 1000)
    failed, loading = len(ownership.failed), ownership.loading
    yield _PARTITIONS.by_label(
        {"loading": loading, "failed": failed, "active": ownership.owned - loading - failed}
    )
    yield _COMMITTED.sample(counters.transactions_committed)
    causes = (_BY_PRODUCER, *(cause.value for cause in AbortCause))
    yield _ABORTED.by_label(dict.fromkeys(causes, 0) | counters.transactions_aborted)
    yield _MARKERS.sample(counters.markers_written)
    yield _DELAYED.sample(counters.markers_delayed)
    yield _REFUSED.sample(counters.markers_refused)
    yield _SYNCS_FAILED.sample(counters.transaction_syncs_failed)
    yield _INITIALIZED.sample(counters.producers_initialized)
    yield _EXPIRED.sample(counters.transactional_ids_expired)
