"""Scrape: all families of one exposition, in their order.

`Metrics.portions` joins the subjects; a family's lines are together, as the format demands.
`exposition` makes the text of it: headers where a family begins, the end mark of OpenMetrics.
Nothing on the request path uses this package: the parts count in plain integers, and everything
here is work of a scrape, done in slices (console/scraping.py).
"""

from collections.abc import Iterator
from time import perf_counter
from types import ModuleType
from typing import Final

from broker.daemon import Daemon
from broker.lag.reader import LagReader
from broker.metrics import (
    cleaner,
    client_quotas,
    durability,
    group_series,
    groups,
    kafka_exporter,
    kafka_lag_exporter,
    loading,
    node,
    rebalance_costs,
    requests,
    security,
    topics,
    transactions,
    verdicts,
    waiting,
)
from broker.metrics.family import Family, Portion, Portions, declared
from broker.metrics.labelled import Labelled
from broker.metrics.lag import SampledLag
from broker.metrics.rebalance_costs import RebalanceCosts
from broker.metrics.topics import ShownTopics

SUBJECTS: Final[tuple[ModuleType, ...]] = (
    groups,
    group_series,
    rebalance_costs,
    verdicts,
    waiting,
    transactions,
    requests,
    client_quotas,
    security,
    durability,
    loading,
    cleaner,
    topics,
    node,
    kafka_exporter,
    kafka_lag_exporter,
)
"""In the order of the exposition and of docs/metrics.md."""


def all_families() -> list[Family]:
    return [family for subject in SUBJECTS for family in declared(vars(subject))]


class Metrics:
    """Of one daemon. One scrape at a time: `portions` must not run twice at once."""

    def __init__(self, daemon: Daemon, costs: RebalanceCosts, started_s: float) -> None:
        """`costs`: what the history has reported since `started_s` (Unix epoch)."""
        config = daemon.config
        self._daemon = daemon
        self._started_s = started_s
        self._costs = costs
        self._aliases = config.rollcall_metrics_aliases
        self._labelled = Labelled(
            daemon.coordinator,
            SampledLag(LagReader(daemon.coordinator, daemon.data_plane.registry), daemon.lag.book),
            groups_max=config.rollcall_metrics_groups_max,
            partitions_max=config.rollcall_metrics_partitions_max,
            with_owners=kafka_lag_exporter.KAFKA_LAG_EXPORTER in self._aliases,
            skipped=daemon.lag.skipped,
            topic_id=daemon.data_plane.registry.topic_id,
        )

    def portions(self) -> Portions:
        """At each of them, and at each None, other work of the event loop may run."""
        daemon, labelled = self._daemon, self._labelled
        try:
            began_s = perf_counter()
            for _ in labelled.read():
                yield None
            read_ms = round((perf_counter() - began_s) * 1000, 3)
            shown = ShownTopics(
                daemon.data_plane.registry, daemon.config.rollcall_metrics_partitions_max
            )
            for _ in shown.read():
                yield None
            yield from groups.collect(daemon)
            yield from group_series.collect(labelled)
            yield from rebalance_costs.collect(daemon, self._costs)
            yield from verdicts.collect(daemon, labelled)
            yield from waiting.collect(daemon)
            yield from transactions.collect(daemon)
            yield from requests.collect(daemon)
            yield from client_quotas.collect(daemon)
            yield from security.collect(daemon)
            yield from durability.collect(daemon)
            yield from loading.collect(daemon)
            yield from cleaner.collect(daemon)
            yield from topics.collect(daemon, shown)
            yield from node.collect(daemon, self._started_s)
            yield from self._of_exporters(shown, read_ms)
            for _ in labelled.release():
                yield None
        finally:
            labelled.drop()  # a scraper that disconnects does not wait for slices

    def _of_exporters(self, shown: ShownTopics, read_ms: float) -> Portions:
        daemon, config, labelled = self._daemon, self._daemon.config, self._labelled
        if kafka_exporter.KAFKA_EXPORTER in self._aliases:
            addresses = [f"{at.advertised_host}:{at.advertised_port}" for at in config.endpoints]
            yield from kafka_exporter.collect(labelled, shown, config.node_id, addresses)
        if kafka_lag_exporter.KAFKA_LAG_EXPORTER in self._aliases:
            name = config.rollcall_metrics_cluster_name or daemon.data_plane.cluster_id
            yield from kafka_lag_exporter.collect(labelled, shown, name, read_ms)


def exposition(portions: Iterator[Portion | None], *, openmetrics: bool) -> Iterator[str | None]:
    """The text, piece by piece; a None is a pause."""
    latest: Family | None = None
    for portion in portions:
        if portion is None:
            yield None
            continue
        family, lines = portion
        if not lines:
            continue
        if family is not latest:
            latest = family
            yield family.header(openmetrics=openmetrics)
        yield "".join(lines)
    if openmetrics:
        yield "# EOF\n"
