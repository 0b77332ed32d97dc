"""Data plane settings: all its limits, by Kafka's names.

`config/settings.py` makes them from the configuration; the defaults are Kafka 4.3.1's. Durations
are in ms. What a topic may set for itself is in `configs.py`: `broker_properties` has the broker's
keys as they were set, and the defaults of topics are derived from those.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field

from protocol.names import TopicName

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""Of one CreateTopics or CreatePartitions; a constant of Kafka's `ReplicationControlManager`."""

MAX_RECORDS_PER_REQUEST: Final = 10_000
"""Topics, partitions and configs that one CreateTopics creates together: each is a record of
Kafka's controller (`QuorumController.MAX_RECORDS_PER_USER_OP`)."""


TOPIC_PARTITIONS_MAX: Final = 100_000
"""Of one topic. Each has an entry in the table, in every Metadata response and, with its first
record, an open file. Kafka has no limit; its clusters end near there."""


FLUSH_COMMIT: Final = "commit"
"""The value of rollcall.flush with which a commit is durable when it is acknowledged."""


class InternalTopic(NamedTuple):
    """A topic that the daemon itself writes; created at a start, with these configs."""

    partitions: int
    configs: dict[str, str]


class TopicSettings(Struct, frozen=True):
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    offsets_topic_num_partitions: int = 50
    offsets_topic_segment_bytes: int = 104_857_600
    offsets_history_ms: int = 86_400_000  # the least age at which a commit is compacted
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_segment_bytes: int = 104_857_600
    transaction_state_log_min_isr: int = 1  # one node has one copy; Kafka's default is 2
    fetch_max_bytes: int = 57_671_680
    max_incremental_fetch_session_cache_slots: int = 1_000
    fetch_session_partitions_max: int = 250_000
    max_request_partition_size_limit: int = 2_000
    log_retention_check_interval_ms: int = 300_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    # Kafka writes a producer snapshot when a segment is rolled; ours bounds what a start has to
    # read, by time: after kill -9 the batches of the last minute are read again.
    producer_snapshot_interval_ms: int = 60_000
    transaction_partition_verification_enable: bool = True
    flush: str = FLUSH_COMMIT  # os: markers, too, are in the page cache when they are done
    broker_rack: str = ""  # without a rack
    internal_topics: Mapping[TopicName, InternalTopic] = field(default_factory=dict)
    """Besides the offsets topic. Each is read through the log that the broker attaches."""
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    """The broker's keys that are set, as text: `log.retention.hours` -> `24`."""
