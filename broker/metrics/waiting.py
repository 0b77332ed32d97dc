"""Purgatory: how many operations of each kind wait, and until when.

Kafka's names of the two numbers and of the operations are those of its old coordinator, which had a
purgatory: Heartbeat and Rebalance. `kind` says more: whether members are waited for to join for
the first time, to rejoin, to sync, or to speak at all.
Kafka's counterpart: `DelayedOperationPurgatory`.
"""

from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions
from purgatory.purgatory import by_kind

OPERATIONS_PER_SLICE: Final = 250
"""About half a millisecond: a group of 5,000 members has as many operations in one purgatory."""

_LABELS = ("operation", "kind")

_OPERATIONS: Final = Family(
    "rollcall_purgatory_operations",
    MetricKind.GAUGE,
    "Delayed operations that wait in the purgatory.",
    _LABELS,
    kafka="NumDelayedOperations{delayedOperation}",
)
_WATCHED: Final = Family(
    "rollcall_purgatory_watched",
    MetricKind.GAUGE,
    "Pairs of a delayed operation and a key that it is watched under.",
    _LABELS,
    kafka="PurgatorySize{delayedOperation}",
)
_NEXT_DEADLINE: Final = Family(
    "rollcall_purgatory_next_deadline_seconds",
    MetricKind.GAUGE,
    "Time until the first of these operations expires; no series if none waits.",
    _LABELS,
)

_SESSION = ("Heartbeat", "session")
_FETCH = ("Fetch", "fetch")
_KINDS: Final = {
    "DelayedHeartbeat": _SESSION,
    "InitialDelayedJoin": ("Rebalance", "initial_join"),
    "DelayedJoin": ("Rebalance", "join"),
    "DelayedSync": ("Rebalance", "sync"),
    "ConsumerSessionTimeout": ("Heartbeat", "consumer_session"),
    "RebalanceTimeout": ("Rebalance", "revocation"),
    "ClassicRejoinTimeout": ("Rebalance", "classic_rejoin"),
    "ClassicSyncTimeout": ("Rebalance", "classic_sync"),
}


def collect(daemon: Daemon) -> Portions:
    delayed = dict.fromkeys((*_KINDS.values(), _FETCH), 0)
    watched = dict(delayed)
    deadlines: dict[tuple[str, str], int] = {}
    for purgatory in tuple(daemon.coordinator.purgatories()):
        operations = purgatory.operations()
        for start in range(0, len(operations), OPERATIONS_PER_SLICE):
            found = by_kind(operations[start : start + OPERATIONS_PER_SLICE])
            for name, (ops, keys, deadline_ms) in found.items():
                kind = _KINDS.get(name, (name, name))
                delayed[kind] = delayed.get(kind, 0) + ops
                watched[kind] = watched.get(kind, 0) + keys
                deadlines[kind] = min(deadline_ms, deadlines.get(kind, deadline_ms))
            yield None
    delayed[_FETCH] = daemon.data_plane.delayed_fetches
    watched[_FETCH] = daemon.data_plane.watched_fetches
    now_ms = daemon.clock.now().mono_ms
    yield _OPERATIONS.samples(delayed.items())
    yield _WATCHED.samples(watched.items())
    yield _NEXT_DEADLINE.samples(
        (kind, (deadline_ms - now_ms) / 1000) for kind, deadline_ms in deadlines.items()
    )
