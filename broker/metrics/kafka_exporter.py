"""kafka_exporter: the names and labels of danielqsj/kafka_exporter, for its dashboards.

That exporter polls a Kafka from outside. Rollcall exports the same numbers itself, so the process
of the exporter is not needed. `rollcall.metrics.aliases` turns them on and off. Its ZooKeeper
families have no counterpart. One difference: the exporter shows a lag of -1 for a partition without
a commit; here such a partition has no series, and no lag is negative.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from broker.metrics.family import Family, MetricKind, Portions
from broker.metrics.group_series import MEMBERS_OF, by_group, in_portions
from broker.metrics.labelled import Labelled
from broker.metrics.topics import ShownPartition, ShownTopics

KAFKA_EXPORTER: Final = "kafka_exporter"
GROUP_LABEL: Final = "consumergroup"


def _family(name: str, help_text: str, *labels: str) -> Family:
    return Family(name, MetricKind.GAUGE, help_text, labels, exporter=KAFKA_EXPORTER)


_BROKERS = _family("kafka_brokers", "Nodes of the cluster.")
_BROKER_INFO = _family("kafka_broker_info", "1 for each node.", "id", "address")
_TOPIC_PARTITIONS = _family("kafka_topic_partitions", "Partitions of a topic.", "topic")

_PLACE = ("topic", "partition")

_CURRENT_OFFSET = _family("kafka_topic_partition_current_offset", "High watermark.", *_PLACE)
_OLDEST_OFFSET = _family(
    "kafka_topic_partition_oldest_offset", "The first offset of the log.", *_PLACE
)
_LEADER = _family("kafka_topic_partition_leader", "The leader's node id.", *_PLACE)
_IS_PREFERRED = _family(
    "kafka_topic_partition_leader_is_preferred", "1 if the leader is the preferred one.", *_PLACE
)
_REPLICAS = _family("kafka_topic_partition_replicas", "Replicas of a partition.", *_PLACE)
_IN_SYNC = _family(
    "kafka_topic_partition_in_sync_replica", "In-sync replicas of a partition.", *_PLACE
)
_UNDER_REPLICATED = _family(
    "kafka_topic_partition_under_replicated_partition",
    "1 if not all replicas are in sync.",
    *_PLACE,
)

_GROUP_MEMBERS = _family("kafka_consumergroup_members", "Members of a group.", GROUP_LABEL)
_GROUP_OFFSET = _family(
    "kafka_consumergroup_current_offset", "The group's committed offset.", GROUP_LABEL, *_PLACE
)
_GROUP_OFFSET_SUM = _family(
    "kafka_consumergroup_current_offset_sum",
    "Sum of the group's committed offsets over all partitions of a topic.",
    GROUP_LABEL,
    "topic",
)
_GROUP_LAG = _family("kafka_consumergroup_lag", "Lag in records.", GROUP_LABEL, *_PLACE)
_GROUP_LAG_SUM = _family(
    "kafka_consumergroup_lag_sum",
    "Lag in records, over all partitions of a topic.",
    GROUP_LABEL,
    "topic",
)

_OF_PARTITIONS: Final[tuple[tuple[Family, Callable[[ShownPartition, int], int]], ...]] = (
    (_CURRENT_OFFSET, lambda partition, _: partition.end_offset),
    (_OLDEST_OFFSET, lambda partition, _: partition.start_offset),
    # One node is the leader and the only copy of everything.
    (_LEADER, lambda _, node_id: node_id),
    (_IS_PREFERRED, lambda *_: 1),
    (_REPLICAS, lambda *_: 1),
    (_IN_SYNC, lambda *_: 1),
    (_UNDER_REPLICATED, lambda *_: 0),
)


def collect(
    labelled: Labelled, topics: ShownTopics, node_id: int, addresses: Sequence[str]
) -> Portions:
    yield _BROKERS.sample(1)
    yield _BROKER_INFO.samples(((str(node_id), address), 1) for address in addresses[:1])
    yield from in_portions(
        _TOPIC_PARTITIONS,
        (
            f"{_TOPIC_PARTITIONS.name}{{topic={quoted}}} {count}\n"
            for quoted, count in topics.counts
        ),
    )
    for family, value_of in _OF_PARTITIONS:
        yield from in_portions(
            family,
            (
                f"{family.name}{{{shown.labels}}} {value_of(shown, node_id)}\n"
                for shown in topics.partitions
            ),
        )
    yield from by_group(_GROUP_MEMBERS, labelled.groups, MEMBERS_OF, GROUP_LABEL)
    yield from _partitions(labelled)
    yield from _topics(labelled)


def _partitions(labelled: Labelled) -> Portions:
    rows = labelled.rows
    head = f"{_GROUP_OFFSET.name}{{{GROUP_LABEL}="
    yield from in_portions(
        _GROUP_OFFSET,
        (f"{head}{group},{place}}} {offset}\n" for group, place, offset, *_ in rows),
    )
    head = f"{_GROUP_LAG.name}{{{GROUP_LABEL}="
    yield from in_portions(
        _GROUP_LAG,
        (
            f"{head}{group},{place}}} {lag}\n"
            for group, place, _, lag, *_ in rows
            if lag is not None
        ),
    )


def _topics(labelled: Labelled) -> Portions:
    for family, which in ((_GROUP_OFFSET_SUM, 0), (_GROUP_LAG_SUM, 1)):
        yield from in_portions(family, iter(_topic_lines(family, labelled, which)))


def _topic_lines(family: Family, labelled: Labelled, which: int) -> Iterable[str]:
    head = f"{family.name}{{{GROUP_LABEL}="
    return (
        f"{head}{group.quoted},topic={labelled.quoted_topic(topic)}}} {sums[which]}\n"
        for group in labelled.groups
        for topic, sums in group.topics.items()
    )
