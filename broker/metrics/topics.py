"""Topic partitions: how large is each log, and where does it begin and end?

Topics are created by operators, but clients may cause it: their partitions share the limit
`rollcall.metrics.partitions.max`. Beyond it the first topics by name are shown. What is in the
logs of the whole node is in the families without labels.
Kafka's counterpart: `kafka.log:type=Log`.
"""

from collections.abc import Generator
from typing import Final, NamedTuple

from broker.daemon import Daemon
from broker.metrics.family import Family, Kind, Portions, escaped
from broker.metrics.group_series import in_portions
from topics.registry import TopicRegistry

PARTITIONS_A_BREATH: Final = 200

TOPICS: Final = Family("rollcall_topics", Kind.GAUGE, "Topics.", kafka="GlobalTopicCount")
PARTITIONS: Final = Family(
    "rollcall_topic_partitions", Kind.GAUGE, "Partitions of all topics.", kafka="PartitionCount"
)
OFFLINE: Final = Family(
    "rollcall_offline_partitions",
    Kind.GAUGE,
    "Partitions that cannot be used: they have no log, or the log's disk has failed.",
    kafka="OfflinePartitionsCount, OfflineReplicaCount",
)
LOG_BYTES: Final = Family(
    "rollcall_log_bytes", Kind.GAUGE, "Size of all logs.", kafka="Size, of all logs together"
)
PARTITION_LOG_BYTES: Final = Family(
    "rollcall_partition_log_bytes",
    Kind.GAUGE,
    "Size of a partition's log.",
    ("topic", "partition"),
    kafka="Size",
)
START_OFFSET: Final = Family(
    "rollcall_partition_start_offset",
    Kind.GAUGE,
    "The first offset of a partition's log.",
    ("topic", "partition"),
    kafka="LogStartOffset",
)
END_OFFSET: Final = Family(
    "rollcall_partition_end_offset",
    Kind.GAUGE,
    "The high watermark: the offset after the last record that may be read.",
    ("topic", "partition"),
    kafka="LogEndOffset",
)
LEFT_OUT: Final = Family(
    "rollcall_metrics_topic_partitions_left_out",
    Kind.GAUGE,
    "Partitions of topics without their own series (rollcall.metrics.partitions.max).",
)
RECORDS_APPENDED: Final = Family(
    "rollcall_appended_records_total", Kind.COUNTER, "Records produced.", kafka="MessagesInPerSec"
)
BYTES_APPENDED: Final = Family(
    "rollcall_appended_bytes_total", Kind.COUNTER, "Bytes produced.", kafka="BytesInPerSec"
)
BYTES_FETCHED: Final = Family(
    "rollcall_fetched_bytes_total", Kind.COUNTER, "Bytes fetched.", kafka="BytesOutPerSec"
)


class ShownPartition(NamedTuple):
    labels: str
    start_offset: int
    end_offset: int
    size_bytes: int


class ShownTopics:
    """The topics as this scrape found them; `counts` are (name in quotes, partitions)."""

    def __init__(self, registry: TopicRegistry, partitions_max: int) -> None:
        self._registry = registry
        self._partitions_max = partitions_max
        self.counts: list[tuple[str, int]] = []
        self.partitions: list[ShownPartition] = []
        self.topics = self.total = self.offline = self.log_bytes = 0

    @property
    def left_out(self) -> int:
        return self.total - self.offline - len(self.partitions)

    def read(self) -> Generator[None, None, None]:
        """At each pause the event loop may go on."""
        steps = 0
        for name in sorted(self._registry.names()):
            topic = self._registry.by_name(name)
            if topic is None:
                continue  # deleted meanwhile
            quoted = f'"{escaped(name)}"'
            self.topics += 1
            if len(self.partitions) < self._partitions_max:
                self.counts.append((quoted, len(topic.partitions)))
            for index, partition in enumerate(tuple(topic.partitions)):
                self.total += 1
                log = None if partition.offline else partition.log
                if log is None:
                    self.offline += 1
                else:
                    size_bytes = log.size_bytes
                    self.log_bytes += size_bytes
                    if len(self.partitions) < self._partitions_max:
                        labels = f'topic={quoted},partition="{index}"'
                        start, end = log.log_start_offset, log.high_watermark
                        self.partitions.append(ShownPartition(labels, start, end, size_bytes))
                steps += 1
                if steps % PARTITIONS_A_BREATH == 0:
                    yield


def collect(daemon: Daemon, shown: ShownTopics) -> Portions:
    counters = daemon.observer.counters
    yield TOPICS.one(shown.topics)
    yield PARTITIONS.one(shown.total)
    yield OFFLINE.one(shown.offline)
    yield LOG_BYTES.one(shown.log_bytes)
    yield LEFT_OUT.one(shown.left_out)
    for family, of in (
        (PARTITION_LOG_BYTES, "size_bytes"),
        (START_OFFSET, "start_offset"),
        (END_OFFSET, "end_offset"),
    ):
        head = f"{family.name}{{"
        yield from in_portions(
            family,
            (f"{head}{one.labels}}} {getattr(one, of)}\n" for one in shown.partitions),
        )
    yield RECORDS_APPENDED.one(counters.records_appended)
    yield BYTES_APPENDED.one(counters.bytes_appended)
    yield BYTES_FETCHED.one(counters.bytes_fetched)
