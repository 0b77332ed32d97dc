"""Verdicts: which of them hold on which groups, as numbers for alerts.

`group_coordinator_troubles` counts all of them; single groups are shown only if they have
series of their own (labelled.py). The evidence and the remedy are in the log and the console.
Kafka's counterpart: none.
"""

from collections import Counter
from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions
from broker.metrics.group_series import in_portions
from broker.metrics.labelled import Labelled
from history.verdicts.model import VerdictKind

_VERDICTS: Final = Family(
    "group_coordinator_troubles",
    MetricKind.GAUGE,
    "Current verdicts on all groups and producers.",
    ("kind",),
)
_FOUND: Final = Family(
    "group_coordinator_troubles_found_total",
    MetricKind.COUNTER,
    "Verdicts that began.",
    ("kind",),
)
_GROUP_VERDICTS: Final = Family(
    "group_coordinator_group_troubles",
    MetricKind.GAUGE,
    "Current verdicts on a group, by kind; a group without verdicts has no series.",
    ("group", "kind"),
)
_WATCHED: Final = Family(
    "rollcall_groups_watched", MetricKind.GAUGE, "Groups whose recent past is kept for verdicts."
)
_FORGOTTEN: Final = Family(
    "rollcall_groups_watched_forgotten_total",
    MetricKind.COUNTER,
    "Groups whose past was dropped because of rollcall.trouble.groups.max.",
)


def collect(daemon: Daemon, labelled: Labelled) -> Portions:
    watch = daemon.verdicts
    of_producers = daemon.transaction_watch
    yield _VERDICTS.by_label(watch.counts() | of_producers.counts())
    found = watch.found | {VerdictKind.HUNG_PRODUCER.value: of_producers.found}
    yield _FOUND.by_label({kind.value: 0 for kind in VerdictKind} | found)
    yield _WATCHED.sample(watch.groups_watched)
    yield _FORGOTTEN.sample(watch.forgotten)
    quoted: dict[str, str] = {shown.group_id: shown.quoted for shown in labelled.groups}
    yield None
    counts = Counter(
        (standing.verdict.group_id, standing.verdict.kind.value) for standing in watch.active()
    )
    yield None
    head = _GROUP_VERDICTS.name
    yield from in_portions(
        _GROUP_VERDICTS,
        (
            f'{head}{{group={quoted[group_id]},kind="{kind}"}} {count}\n'
            for (group_id, kind), count in counts.items()
            if group_id in quoted
        ),
    )
