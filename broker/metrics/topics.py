"""Topic partitions: size, first offset and high watermark of each log.

Topics are created by operators, but clients may cause it: their partitions share the limit
`rollcall.metrics.partitions.max`. Beyond it the first topics by name are shown. What is in the
logs of the whole node is in the families without labels.
Kafka's counterpart: `kafka.log:type=Log`.
"""

from collections.abc import Generator
from typing import Final, NamedTuple

from broker.daemon import Daemon
from broker.metrics.family import Family, MetricKind, Portions, escaped
from broker.metrics.group_series import in_portions
from topics.registry import TopicRegistry

_PARTITIONS_PER_SLICE: Final = 200

_TOPICS: Final = Family("rollcall_topics", MetricKind.GAUGE, "Topics.", kafka="GlobalTopicCount")
_PARTITIONS: Final = Family(
    "rollcall_topic_partitions",
    MetricKind.GAUGE,
    "Partitions of all topics.",
    kafka="PartitionCount",
)
_OFFLINE: Final = Family(
    "rollcall_offline_partitions",
    MetricKind.GAUGE,
    "Partitions that cannot be used: they have no log, or the log's disk has failed.",
    kafka="OfflinePartitionsCount, OfflineReplicaCount",
)
_LOG_BYTES: Final = Family(
    "rollcall_log_bytes", MetricKind.GAUGE, "Size of all logs.", kafka="Size, of all logs together"
)
_PARTITION_LOG_BYTES: Final = Family(
    "rollcall_partition_log_bytes",
    MetricKind.GAUGE,
    "Size of a partition's log.",
    ("topic", "partition"),
    kafka="Size",
)
_START_OFFSET: Final = Family(
    "rollcall_partition_start_offset",
    MetricKind.GAUGE,
    "The first offset of a partition's log.",
    ("topic", "partition"),
    kafka="LogStartOffset",
)
_END_OFFSET: Final = Family(
    "rollcall_partition_end_offset",
    MetricKind.GAUGE,
    "The high watermark: the offset after the last record that may be read.",
    ("topic", "partition"),
    kafka="LogEndOffset",
)
_LEFT_OUT: Final = Family(
    "rollcall_metrics_topic_partitions_left_out",
    MetricKind.GAUGE,
    "Partitions of topics without their own series (rollcall.metrics.partitions.max).",
)
_RECORDS_APPENDED: Final = Family(
    "rollcall_appended_records_total",
    MetricKind.COUNTER,
    "Records produced.",
    kafka="MessagesInPerSec",
)
_BYTES_APPENDED: Final = Family(
    "rollcall_appended_bytes_total", MetricKind.COUNTER, "Bytes produced.", kafka="BytesInPerSec"
)
_BYTES_FETCHED: Final = Family(
    "rollcall_fetched_bytes_total", MetricKind.COUNTER, "Bytes fetched.", kafka="BytesOutPerSec"
)
_FETCH_SESSIONS: Final = Family(
    "rollcall_fetch_sessions",
    MetricKind.GAUGE,
    "Open fetch sessions (max.incremental.fetch.session.cache.slots).",
    kafka="NumIncrementalFetchSessions",
)
_FETCH_SESSION_PARTITIONS: Final = Family(
    "rollcall_fetch_session_partitions",
    MetricKind.GAUGE,
    "Partitions of all fetch sessions (rollcall.fetch.session.partitions.max).",
    kafka="NumIncrementalFetchPartitionsCached",
)
_FETCH_SESSION_EVICTIONS: Final = Family(
    "rollcall_fetch_session_evictions_total",
    MetricKind.COUNTER,
    "Fetch sessions that were evicted for others.",
    kafka="IncrementalFetchSessionEvictionsPerSec",
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
        """At each pause other work of the event loop may run."""
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
                if steps % _PARTITIONS_PER_SLICE == 0:
                    yield


def collect(daemon: Daemon, shown: ShownTopics) -> Portions:
    counters = daemon.observer.counters
    yield _TOPICS.sample(shown.topics)
    yield _PARTITIONS.sample(shown.total)
    yield _OFFLINE.sample(shown.offline)
    yield _LOG_BYTES.sample(shown.log_bytes)
    yield _LEFT_OUT.sample(shown.left_out)
    for family, of in (
        (_PARTITION_LOG_BYTES, "size_bytes"),
        (_START_OFFSET, "start_offset"),
        (_END_OFFSET, "end_offset"),
    ):
        head = f"{family.name}{{"
        yield from in_portions(
            family,
            (f"{head}{row.labels}}} {getattr(row, of)}\n" for row in shown.partitions),
        )
    yield _RECORDS_APPENDED.sample(counters.records_appended)
    yield _BYTES_APPENDED.sample(counters.bytes_appended)
    yield _BYTES_FETCHED.sample(counters.bytes_fetched)
    sessions = daemon.data_plane.fetch_sessions
    yield _FETCH_SESSIONS.sample(len(sessions))
    yield _FETCH_SESSION_PARTITIONS.sample(sessions.partitions)
    yield _FETCH_SESSION_EVICTIONS.sample(sessions.evictions)
