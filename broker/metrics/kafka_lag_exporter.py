"""kafka-lag-exporter: the names and labels of lightbend's exporter, for its dashboards.

Rollcall exports these series itself, so the exporter's process is not needed.
`rollcall.metrics.aliases` turns them on and off. `cluster_name` is `rollcall.metrics.cluster.name`,
or else the cluster id. The exporter estimates seconds by interpolation between its polls; here they
are read from the records.
"""

from typing import Final

from broker.metrics.family import Family, MetricKind, Portions, escaped
from broker.metrics.group_series import (
    LAG_SECONDS_MAX_OF,
    by_group,
    in_portions,
    lag_max_of,
    lag_sum_of,
)
from broker.metrics.labelled import Labelled
from broker.metrics.topics import ShownTopics

KAFKA_LAG_EXPORTER: Final = "kafka-lag-exporter"


def _family(name: str, help_text: str, *labels: str) -> Family:
    return Family(
        name, MetricKind.GAUGE, help_text, ("cluster_name", *labels), exporter=KAFKA_LAG_EXPORTER
    )


_PLACE = ("topic", "partition")
_OWNED = ("group", *_PLACE, "member_host", "consumer_id", "client_id")

_LATEST_OFFSET = _family("kafka_partition_latest_offset", "High watermark.", *_PLACE)
_EARLIEST_OFFSET = _family(
    "kafka_partition_earliest_offset", "The first offset of the log.", *_PLACE
)
_GROUP_OFFSET = _family(
    "kafka_consumergroup_group_offset", "The group's committed offset.", *_OWNED
)
_GROUP_LAG = _family("kafka_consumergroup_group_lag", "Lag in records.", *_OWNED)
_GROUP_LAG_SECONDS = _family(
    "kafka_consumergroup_group_lag_seconds",
    "Lag in seconds: age of the first record that the group has not committed.",
    *_OWNED,
)
_GROUP_MAX_LAG = _family(
    "kafka_consumergroup_group_max_lag",
    "Lag in records of the partition with the most lag.",
    "group",
)
_GROUP_MAX_LAG_SECONDS = _family(
    "kafka_consumergroup_group_max_lag_seconds",
    "Lag in seconds of the partition that is furthest behind.",
    "group",
)
_GROUP_SUM_LAG = _family(
    "kafka_consumergroup_group_sum_lag", "Lag in records, over all partitions.", "group"
)
_GROUP_TOPIC_SUM_LAG = _family(
    "kafka_consumergroup_group_topic_sum_lag",
    "Lag in records, over all partitions of a topic.",
    "group",
    "topic",
)
_POLL_TIME = _family("kafka_consumergroup_poll_time_ms", "Time to read all groups for this scrape.")


def collect(
    labelled: Labelled, topics: ShownTopics, cluster_name: str, poll_time_ms: float
) -> Portions:
    cluster = f'cluster_name="{escaped(cluster_name)}"'
    for family, of in ((_LATEST_OFFSET, "end_offset"), (_EARLIEST_OFFSET, "start_offset")):
        head = f"{family.name}{{{cluster},"
        yield from in_portions(
            family,
            (f"{head}{shown.labels}}} {getattr(shown, of)}\n" for shown in topics.partitions),
        )
    yield from _partitions(labelled, cluster)
    groups, label = labelled.groups, f"{cluster},group"
    yield from by_group(_GROUP_MAX_LAG, groups, lag_max_of, label)
    yield from by_group(_GROUP_MAX_LAG_SECONDS, groups, LAG_SECONDS_MAX_OF, label)
    yield from by_group(_GROUP_SUM_LAG, groups, lag_sum_of, label)
    head = f"{_GROUP_TOPIC_SUM_LAG.name}{{{label}="
    yield from in_portions(
        _GROUP_TOPIC_SUM_LAG,
        (
            f"{head}{group.quoted},topic={labelled.quoted_topic(topic)}}} {lag}\n"
            for group in groups
            for topic, (_, lag) in group.topics.items()
        ),
    )
    yield _POLL_TIME.samples([((cluster_name,), poll_time_ms)])


def _partitions(labelled: Labelled, cluster: str) -> Portions:
    rows = labelled.rows
    head = f"{_GROUP_OFFSET.name}{{{cluster},group="
    yield from in_portions(
        _GROUP_OFFSET,
        (
            f"{head}{group},{place},{owner}}} {offset}\n"
            for group, place, offset, _, _, owner, _ in rows
        ),
    )
    head = f"{_GROUP_LAG.name}{{{cluster},group="
    yield from in_portions(
        _GROUP_LAG,
        (
            f"{head}{group},{place},{owner}}} {lag}\n"
            for group, place, _, lag, _, owner, _ in rows
            if lag is not None
        ),
    )
    head = f"{_GROUP_LAG_SECONDS.name}{{{cluster},group="
    yield from in_portions(
        _GROUP_LAG_SECONDS,
        (
            f"{head}{group},{place},{owner}}} {seconds}\n"
            for group, place, _, _, seconds, owner, _ in rows
            if seconds is not None
        ),
    )
