"""What does one scrape say, from the first family to the last?

`Metrics.portions` strings the subjects together; a family's lines stand together, as the format
demands. `text` makes the exposition of it: headers where a family begins, the end mark of
OpenMetrics. Nothing on the request path knows of this package: the parts count in plain
integers, and everything here is work that a scrape pays for, in slices (console/scraping.py).
"""

from collections.abc import Iterator
from time import perf_counter, time
from types import ModuleType
from typing import Final

from broker.daemon import Daemon
from broker.lag.reader import LagReader
from broker.metrics import (
    cleaner,
    durability,
    group_series,
    groups,
    kafka_exporter,
    kafka_lag_exporter,
    loading,
    node,
    requests,
    topics,
    verdicts,
    waiting,
)
from broker.metrics import rebalance_costs as stories
from broker.metrics.family import Family, Portion, Portions, declared
from broker.metrics.labelled import Labelled
from broker.metrics.lag import SampledLag
from broker.metrics.rebalance_costs import Stories
from broker.metrics.topics import ShownTopics

SUBJECTS: Final[tuple[ModuleType, ...]] = (
    groups,
    group_series,
    stories,
    verdicts,
    waiting,
    requests,
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
    """Of one daemon. One scrape at a time: `portions` is not to be run twice at once."""

    def __init__(self, daemon: Daemon) -> None:
        config = daemon.config
        self._daemon = daemon
        self._started_s = time()
        self._stories = Stories()
        if daemon.history is not None:
            daemon.history.subscribe(self._stories.see)
        self._aliases = config.rollcall_metrics_aliases
        self._labelled = Labelled(
            daemon.coordinator,
            SampledLag(LagReader(daemon.coordinator, daemon.data_plane.registry), daemon.lag.book),
            groups_max=config.rollcall_metrics_groups_max,
            partitions_max=config.rollcall_metrics_partitions_max,
            with_owners=kafka_lag_exporter.EXPORTER in self._aliases,
            skipped=daemon.lag.skipped,
        )

    def portions(self) -> Portions:
        """At each of them, and at each None, the loop may run other work."""
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
            yield from stories.collect(daemon, self._stories)
            yield from verdicts.collect(daemon, labelled)
            yield from waiting.collect(daemon)
            yield from requests.collect(daemon)
            yield from durability.collect(daemon)
            yield from loading.collect(daemon)
            yield from cleaner.collect(daemon)
            yield from topics.collect(daemon, shown)
            yield from node.collect(daemon, self._started_s)
            yield from self._of_exporters(shown, read_ms)
            for _ in labelled.let_go():
                yield None
        finally:
            labelled.drop()  # a scraper that disconnects does not wait for slices

    def _of_exporters(self, shown: ShownTopics, read_ms: float) -> Portions:
        daemon, config, labelled = self._daemon, self._daemon.config, self._labelled
        if kafka_exporter.EXPORTER in self._aliases:
            addresses = [f"{one.advertised_host}:{one.advertised_port}" for one in config.endpoints]
            yield from kafka_exporter.collect(labelled, shown, config.node_id, addresses)
        if kafka_lag_exporter.EXPORTER in self._aliases:
            name = config.rollcall_metrics_cluster_name or daemon.data_plane.cluster_id
            yield from kafka_lag_exporter.collect(labelled, shown, name, read_ms)


def text(portions: Iterator[Portion | None], *, openmetrics: bool) -> Iterator[str | None]:
    """The exposition, piece by piece; a None is a pause."""
    told: Family | None = None
    for portion in portions:
        if portion is None:
            yield None
            continue
        family, lines = portion
        if not lines:
            continue
        if family is not told:
            told = family
            yield family.header(openmetrics=openmetrics)
        yield "".join(lines)
    if openmetrics:
        yield "# EOF\n"
