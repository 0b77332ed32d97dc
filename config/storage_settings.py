"""Storage settings: how the data directory, its journal and its topics are opened and kept.

For the daemon and for the commands on a stopped data directory: what one of them writes has the
size and the settings that the other expects. Apart from settings.py, which imports what only the
daemon needs.
"""

from typing import Final

from config.keys import Config, keys
from protocol.config_def import convert_to_string
from protocol.names import COORDINATOR_TOPICS, HISTORY_TOPIC, LAG_TOPIC, TopicName
from storage.api import LogSettings
from storage.disk import Disk, RealDisk
from storage.drill_faults import FaultsFile, drilled_disk
from storage.journal.journal_limits import JournalLimits
from storage.loop_guard import LoopGuard
from storage.open import StorageSettings
from topics.settings import InternalTopic, TopicSettings

WRITE_AHEAD_FILES: Final = 2
"""The journal writes to them in turn; `rollcall.journal.bytes` is their sum."""

LAG_SEGMENT_BYTES: Final = 64 << 20
"""Of `__group_lag`. Retention deletes whole segments: a sixteenth of its default limit in bytes."""

HISTORY_SEGMENT_MS_MIN: Final = 1_000
_DAY_MS: Final = 86_400_000


def topic_settings(config: Config) -> TopicSettings:
    """The data plane's."""
    return TopicSettings(
        auto_create_topics_enable=config.auto_create_topics_enable,
        delete_topic_enable=config.delete_topic_enable,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        offsets_topic_num_partitions=config.offsets_topic_num_partitions,
        offsets_topic_segment_bytes=config.offsets_topic_segment_bytes,
        offsets_history_ms=config.rollcall_offsets_history_ms,
        transaction_state_log_num_partitions=config.transaction_state_log_num_partitions,
        transaction_state_log_segment_bytes=config.transaction_state_log_segment_bytes,
        transaction_state_log_min_isr=config.transaction_state_log_min_isr,
        fetch_max_bytes=config.fetch_max_bytes,
        max_incremental_fetch_session_cache_slots=config.max_incremental_fetch_session_cache_slots,
        fetch_session_partitions_max=config.rollcall_fetch_session_partitions_max,
        max_request_partition_size_limit=config.max_request_partition_size_limit,
        log_retention_check_interval_ms=config.log_retention_check_interval_ms,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        producer_id_expiration_check_interval_ms=config.producer_id_expiration_check_interval_ms,
        producer_snapshot_interval_ms=config.rollcall_producer_snapshot_interval_ms,
        transaction_partition_verification_enable=config.transaction_partition_verification_enable,
        flush=config.rollcall_flush,
        broker_rack=config.broker_rack,
        internal_topics=_internal_topics(config),
        broker_properties={
            key.name: convert_to_string(config.value(key))
            for key in keys().values()
            if key.name in config.origins
        },
    )


def _internal_topics(config: Config) -> dict[TopicName, InternalTopic]:
    topics = {LAG_TOPIC: InternalTopic(1, _lag_topic(config))}
    if config.rollcall_history_enable:
        partitions = config.rollcall_history_topic_num_partitions
        topics[HISTORY_TOPIC] = InternalTopic(partitions, _history_topic(config))
    return topics


def _history_topic(config: Config) -> dict[str, str]:
    retention_ms = config.rollcall_history_retention_ms
    # Retention deletes whole segments: they have to be rolled more often than that.
    roll_ms = _DAY_MS
    if retention_ms >= 0:
        roll_ms = max(min(_DAY_MS, retention_ms // 4), HISTORY_SEGMENT_MS_MIN)
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(max(retention_ms, -1)),
        "retention.bytes": str(max(config.rollcall_history_retention_bytes, -1)),
        "segment.bytes": str(config.rollcall_history_segment_bytes),
        "segment.ms": str(roll_ms),
    }


def _lag_topic(config: Config) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(config.rollcall_lag_retention_ms),
        "retention.bytes": str(config.rollcall_lag_retention_bytes),
        "segment.bytes": str(LAG_SEGMENT_BYTES),
    }


def offsets_log_settings(config: Config) -> LogSettings:
    """The logs of __consumer_offsets."""
    return LogSettings(
        segment_bytes=config.offsets_topic_segment_bytes,
        # An active segment is not compacted.
        segment_ms=min(config.roll_ms, config.log_cleaner_max_compaction_lag_ms),
        segment_index_bytes=config.log_index_size_max_bytes,
        index_interval_bytes=config.log_index_interval_bytes,
        cleanup_delete=False,
        cleanup_compact=True,
        min_cleanable_dirty_ratio=config.log_cleaner_min_cleanable_ratio,
        min_compaction_lag_ms=config.rollcall_offsets_history_ms,
        min_compaction_lag_max_bytes=config.rollcall_offsets_history_bytes,
        max_compaction_lag_ms=config.log_cleaner_max_compaction_lag_ms,
        delete_retention_ms=config.log_cleaner_delete_retention_ms,
        file_delete_delay_ms=config.log_segment_delete_delay_ms,
    )


def journal_limits(config: Config) -> JournalLimits:
    """Raises ValueError, in one line, if the write-ahead files could not hold one flush."""
    try:
        return JournalLimits(
            queue_bytes=config.rollcall_journal_queue_max_bytes,
            file_bytes=config.rollcall_journal_bytes // WRITE_AHEAD_FILES,
            pass_bytes=config.rollcall_checkpoint_bytes,
            linger_ms=config.group_coordinator_append_linger_ms,
            idle_ms=config.rollcall_checkpoint_idle_ms,
            reserve_bytes=config.rollcall_disk_reserve_bytes,
            retry_ms=config.rollcall_disk_full_retry_ms,
        )
    except ValueError as error:
        raise ValueError(
            f"rollcall.journal.bytes = {config.rollcall_journal_bytes}: "
            f"each of its two files is half of that, and {error}"
        ) from None


def storage_settings(config: Config) -> StorageSettings:
    """How the data directory is opened. Raises ValueError as `journal_limits` does."""
    return StorageSettings(
        journal=journal_limits(config),
        required=tuple(sorted(COORDINATOR_TOPICS)),
        dispensable=(HISTORY_TOPIC,),  # groups are served without their history
        is_synced=config.rollcall_flush == "commit",
    )


def faults_file(config: Config) -> FaultsFile | None:
    """Of the drill that has started this daemon; None for every other daemon. Raises OSError."""
    path = config.rollcall_drill_faults
    return FaultsFile(path) if path else None


def disk_of(config: Config, guard: LoopGuard) -> Disk:
    """The real disk, with the faults of a drill before it if there is one. Raises OSError."""
    return drilled_disk(RealDisk(guard), faults_file(config))
