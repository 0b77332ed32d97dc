"""Verdicts: which of them hold on which groups, as numbers for alerts.

`group_coordinator_troubles` counts all of them; of single groups only those are told that have
series of their own (labelled.py). The evidence and the remedy are told by the log and the console.
Kafka's counterpart: none.
"""

from collections import Counter
from typing import Final

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions
from broker.metrics.group_series import in_portions
from broker.metrics.labelled import Labelled
from history.verdicts.model import VerdictKind

TROUBLES: Final = Family(
    "group_coordinator_troubles", Kind.GAUGE, "Current verdicts on all groups.", ("kind",)
)
FOUND: Final = Family(
    "group_coordinator_troubles_found_total",
    Kind.COUNTER,
    "Verdicts that began.",
    ("kind",),
)
GROUP_TROUBLES: Final = Family(
    "group_coordinator_group_troubles",
    Kind.GAUGE,
    "Current verdicts on a group, by kind; a group without verdicts has no series.",
    ("group", "kind"),
)
WATCHED: Final = Family(
    "rollcall_groups_watched", Kind.GAUGE, "Groups whose recent past is kept for verdicts."
)
FORGOTTEN: Final = Family(
    "rollcall_groups_watched_forgotten_total",
    Kind.COUNTER,
    "Groups whose past was dropped because of rollcall.trouble.groups.max.",
)


def collect(daemon: Daemon, labelled: Labelled) -> Portions:
    watch = daemon.verdicts
    yield TROUBLES.each(watch.counts())
    yield FOUND.each({kind.value: 0 for kind in VerdictKind} | watch.found)
    yield WATCHED.one(watch.groups_watched)
    yield FORGOTTEN.one(watch.forgotten)
    quoted: dict[str, str] = {shown.group_id: shown.quoted for shown in labelled.groups}
    yield None
    counts = Counter(
        (standing.verdict.group_id, standing.verdict.kind.value) for standing in watch.active()
    )
    yield None
    head = GROUP_TROUBLES.name
    yield from in_portions(
        GROUP_TROUBLES,
        (
            f'{head}{{group={quoted[group_id]},kind="{kind}"}} {count}\n'
            for (group_id, kind), count in counts.items()
            if group_id in quoted
        ),
    )
