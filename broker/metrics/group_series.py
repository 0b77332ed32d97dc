"""Per-group series: members, state, generation, and lag of each partition.

The families with a label that clients choose; labelled.py keeps their number bounded. They are the
bulk of a scrape, so their lines are made in the plainest way there is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

from broker.metrics.family import Family, MetricKind, Number, Portion, Portions, number
from broker.metrics.labelled import Labelled, PartitionRow, ShownGroup
from history.lag.model import LagStatus

LINES_A_PORTION: Final = 500
"""A third of a millisecond's work."""

MEMBERS_OF: Final = attrgetter("members")
LAG_SECONDS_MAX_OF: Final = attrgetter("lag_seconds_max")
_GENERATION_OF: Final = attrgetter("generation_id")


def lag_sum_of(group: ShownGroup) -> int | None:
    """None of a group that has no offsets by its type."""
    return group.lag_records if group.has_offsets else None


def lag_max_of(group: ShownGroup) -> int | None:
    return group.lag_max if group.has_offsets else None


_GROUP_MEMBERS: Final = Family(
    "group_coordinator_group_members", MetricKind.GAUGE, "Members of a group.", ("group",)
)
_GROUP_STATE: Final = Family(
    "group_coordinator_group_state",
    MetricKind.GAUGE,
    "1 for the group's current state; the other states have no series.",
    ("group", "state"),
)
_GROUP_GENERATION: Final = Family(
    "group_coordinator_group_generation",
    MetricKind.GAUGE,
    "The group's generation, which increases with each completed rebalance; of a consumer group "
    "the group epoch.",
    ("group",),
)
_GROUP_LAG: Final = Family(
    "group_coordinator_group_lag_records",
    MetricKind.GAUGE,
    "Lag in records, over all partitions of the group.",
    ("group",),
)
_GROUP_MAX_LAG: Final = Family(
    "group_coordinator_group_max_lag_records",
    MetricKind.GAUGE,
    "Lag in records of the group's partition with the most lag.",
    ("group",),
)
_COMMITTED_OFFSET: Final = Family(
    "group_coordinator_committed_offset",
    MetricKind.GAUGE,
    "The group's newest committed offset for a partition.",
    ("group", "topic", "partition"),
)
_LAG: Final = Family(
    "group_coordinator_lag_records",
    MetricKind.GAUGE,
    "Lag in records: from the committed offset to the high watermark; never negative.",
    ("group", "topic", "partition"),
    kafka="records-lag (of the consumer)",
)
_LAG_SECONDS: Final = Family(
    "group_coordinator_lag_seconds",
    MetricKind.GAUGE,
    "Lag in seconds: age of the first record that the group has not committed; 0 without one.",
    ("group", "topic", "partition"),
)
_GROUP_MAX_LAG_SECONDS: Final = Family(
    "group_coordinator_group_max_lag_seconds",
    MetricKind.GAUGE,
    "Lag in seconds of the group's partition that is furthest behind in time.",
    ("group",),
)
_STATUS: Final = Family(
    "group_coordinator_lag_verdict",
    MetricKind.GAUGE,
    "1 for the status of a partition's lag, by Burrow's rules; partitions that are OK have no "
    "series.",
    ("group", "topic", "partition", "verdict"),
)
_GROUP_STATUS: Final = Family(
    "group_coordinator_group_lag_verdict",
    MetricKind.GAUGE,
    "1 for the status of a group's lag: OK, WARN or ERR; the other values have no series.",
    ("group", "verdict"),
)
_STATUSES: Final = Family(
    "group_coordinator_groups_by_lag_verdict",
    MetricKind.GAUGE,
    "Groups by the status of their lag, including groups without their own series.",
    ("verdict",),
)
_GROUPS_LEFT_OUT: Final = Family(
    "rollcall_metrics_groups_left_out",
    MetricKind.GAUGE,
    "Groups without their own series, because rollcall.metrics.groups.max is reached.",
)
_LAG_LEFT_OUT: Final = Family(
    "rollcall_metrics_left_out_lag_records",
    MetricKind.GAUGE,
    "Lag in records of all groups without their own series.",
)
_PARTITIONS_LEFT_OUT: Final = Family(
    "rollcall_metrics_partitions_left_out",
    MetricKind.GAUGE,
    "Partitions of groups without their own series, because of rollcall.metrics.partitions.max "
    "or because their group has none.",
)


def collect(labelled: Labelled) -> Portions:
    yield _GROUPS_LEFT_OUT.sample(labelled.groups_left_out)
    yield _LAG_LEFT_OUT.sample(labelled.lag_left_out)
    yield _PARTITIONS_LEFT_OUT.sample(labelled.partitions_left_out)
    yield _STATUSES.by_label({status.value: count for status, count in labelled.statuses.items()})
    groups, rows = labelled.groups, labelled.rows
    yield from by_group(_GROUP_MEMBERS, groups, MEMBERS_OF)
    head = _GROUP_STATE.name
    yield from in_portions(
        _GROUP_STATE, (f'{head}{{group={g.quoted},state="{g.state}"}} 1\n' for g in groups)
    )
    yield from by_group(_GROUP_GENERATION, groups, _GENERATION_OF)
    yield from by_group(_GROUP_LAG, groups, lag_sum_of)
    yield from by_group(_GROUP_MAX_LAG, groups, lag_max_of)
    yield from by_group(_GROUP_MAX_LAG_SECONDS, groups, LAG_SECONDS_MAX_OF)
    head = _GROUP_STATUS.name
    yield from in_portions(
        _GROUP_STATUS,
        (
            f'{head}{{group={g.quoted},verdict="{g.status.value}"}} 1\n'
            for g in groups
            if g.status is not None
        ),
    )
    yield from _partitions(rows)


def _partitions(rows: Sequence[PartitionRow]) -> Portions:
    head = _COMMITTED_OFFSET.name
    yield from in_portions(
        _COMMITTED_OFFSET,
        (f"{head}{{group={group},{place}}} {offset}\n" for group, place, offset, *_ in rows),
    )
    head = _LAG.name
    yield from in_portions(
        _LAG,
        (
            f"{head}{{group={group},{place}}} {lag}\n"
            for group, place, _, lag, *_ in rows
            if lag is not None
        ),
    )
    head = _LAG_SECONDS.name
    yield from in_portions(
        _LAG_SECONDS,
        (
            f"{head}{{group={group},{place}}} {seconds}\n"
            for group, place, _, _, seconds, *_ in rows
            if seconds is not None
        ),
    )
    head = _STATUS.name
    yield from in_portions(
        _STATUS,
        (
            f'{head}{{group={group},{place},verdict="{status.value}"}} 1\n'
            for group, place, *_, status in rows
            if status is not None and status is not LagStatus.OK
        ),
    )


def by_group(
    family: Family,
    groups: Iterable[ShownGroup],
    value_of: Callable[[ShownGroup], Number | None],
    label: str = "group",
) -> Portions:
    """A series for each group; `label` is what stands before its id, other labels included."""
    head = f"{family.name}{{{label}="
    return in_portions(
        family,
        (
            f"{head}{group.quoted}}} {number(value)}\n"
            for group in groups
            if (value := value_of(group)) is not None
        ),
    )


def in_portions(family: Family, lines: Iterator[str]) -> Portions:
    while portion := list(islice(lines, LINES_A_PORTION)):
        yield Portion(family, portion)
