"""Settings: what each part of the daemon is configured with, made from the configuration's values.

One function `Config -> *Settings | *Limits` for each part; those of the data directory, which the
commands on it share, are in storage_settings.py. Single values (a number of partitions, an
interval) need no function.
"""

from config.keys import Config
from config.limits import CleanerSettings, ServerLimits
from coordinator.settings import GroupSettings, MigrationPolicy
from history.index import IndexLimits
from history.lag.store import LagLimits
from history.recording.record_limits import RecordLimits
from history.verdicts.model import VerdictLimits
from security.quotas.rate import QuotaWindow
from security.quotas.settings import ClientQuotaSettings
from storage.api import JOURNALED_BATCH_BYTES_MAX
from transactions.settings import TransactionSettings


def server_limits(config: Config) -> ServerLimits:
    """What clients may use."""
    return ServerLimits(
        socket_request_max_bytes=config.socket_request_max_bytes,
        request_max_bytes=config.rollcall_request_max_bytes,
        socket_listen_backlog_size=config.socket_listen_backlog_size,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_by_ip=config.connections_by_address,
        max_connection_creation_rate=config.max_connection_creation_rate,
        by_listener=dict(config.listener_limits),
        queued_max_request_bytes=config.queued_max_request_bytes,
        connection_unsent_max_bytes=config.rollcall_connection_unsent_max_bytes,
        connections_unsent_max_bytes=config.rollcall_connections_unsent_max_bytes,
        client_quotas=client_quota_settings(config),
        authentication_timeout_ms=config.rollcall_authentication_timeout_ms,
        failed_authentication_delay_ms=config.connection_failed_authentication_delay_ms,
    )


def client_quota_settings(config: Config) -> ClientQuotaSettings:
    """How the use of quotas is measured."""
    return ClientQuotaSettings(
        QuotaWindow(config.quota_window_num, config.quota_window_size_seconds),
        QuotaWindow(
            config.controller_quota_window_num, config.controller_quota_window_size_seconds
        ),
        measures_max=config.rollcall_client_quota_measures_max,
    )


def group_settings(config: Config) -> GroupSettings:
    """The group coordinator's."""
    return GroupSettings(
        offsets_topic_num_partitions=config.offsets_topic_num_partitions,
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        group_max_size=config.group_max_size,
        group_coordinator_rebalance_protocols=config.group_coordinator_rebalance_protocols,
        group_consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
        group_consumer_min_session_timeout_ms=config.group_consumer_min_session_timeout_ms,
        group_consumer_max_session_timeout_ms=config.group_consumer_max_session_timeout_ms,
        group_consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        group_consumer_min_heartbeat_interval_ms=config.group_consumer_min_heartbeat_interval_ms,
        group_consumer_max_heartbeat_interval_ms=config.group_consumer_max_heartbeat_interval_ms,
        group_consumer_assignment_interval_ms=config.group_consumer_assignment_interval_ms,
        group_consumer_min_assignment_interval_ms=config.group_consumer_min_assignment_interval_ms,
        group_consumer_max_assignment_interval_ms=config.group_consumer_max_assignment_interval_ms,
        group_consumer_max_size=config.group_consumer_max_size,
        group_consumer_assignors=config.group_consumer_assignors,
        group_consumer_migration_policy=MigrationPolicy(
            config.group_consumer_migration_policy.lower()
        ),
        group_consumer_regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        group_consumer_assignor_offload_enable=config.group_consumer_assignor_offload_enable,
        assignor_inline_max=config.rollcall_consumer_assignor_inline_max,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_minutes=config.offsets_retention_minutes,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offsets_commit_timeout_ms=config.offsets_commit_timeout_ms,
        offsets_value_version=config.rollcall_offsets_value_version,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        producer_id_expiration_check_interval_ms=config.producer_id_expiration_check_interval_ms,
        max_batch_bytes=min(config.message_max_bytes, JOURNALED_BATCH_BYTES_MAX),
        groups_max=config.rollcall_groups_max,
        pending_members_max=config.rollcall_group_pending_members_max,
        generation_records=config.rollcall_generation_records,
        forgive_slow_member=config.rollcall_forgive_slow_member,
        forgive_max_ms=config.rollcall_forgive_max_ms,
        rebalance_on_partition_change=config.rollcall_rebalance_on_partition_change,
        partition_change_delay_ms=config.rollcall_partition_change_delay_ms,
    )


def transaction_settings(config: Config) -> TransactionSettings:
    """The transaction coordinator's."""
    return TransactionSettings(
        transaction_max_timeout_ms=config.transaction_max_timeout_ms,
        transactional_id_expiration_ms=config.transactional_id_expiration_ms,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=(
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        ),
        transaction_remove_expired_transaction_cleanup_interval_ms=(
            config.transaction_remove_expired_transaction_cleanup_interval_ms
        ),
        add_partitions_to_txn_retry_backoff_max_ms=(
            config.add_partitions_to_txn_retry_backoff_max_ms
        ),
        offsets_topic_num_partitions=config.offsets_topic_num_partitions,
        max_batch_bytes=min(config.message_max_bytes, JOURNALED_BATCH_BYTES_MAX),
        transactional_ids_max=config.rollcall_transactional_ids_max,
    )


def cleaner_settings(config: Config) -> CleanerSettings:
    """The log cleaner's; what holds for one log is in its LogSettings."""
    return CleanerSettings(
        is_enabled=config.log_cleaner_enable,
        backoff_ms=config.log_cleaner_backoff_ms,
        io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
        map_bytes=config.log_cleaner_dedupe_buffer_size,
    )


def history_index_limits(config: Config) -> IndexLimits:
    """What of the groups' history is kept in memory."""
    return IndexLimits(
        config.rollcall_history_memory_rebalances_per_group,
        config.rollcall_history_memory_rebalances,
        config.rollcall_history_memory_bytes,
    )


def history_record_limits(config: Config) -> RecordLimits:
    """What one history record names."""
    return RecordLimits(members=config.rollcall_history_members_max)


def lag_limits(config: Config) -> LagLimits:
    """What the lag sampler keeps of each group."""
    return LagLimits(
        interval_ms=config.rollcall_lag_interval_ms,
        window_commits=config.rollcall_lag_window_commits,
        partitions_max=config.rollcall_lag_partitions_max,
    )


def verdict_limits(config: Config) -> VerdictLimits:
    """From when on a group's state is a verdict."""
    return VerdictLimits(
        window_ms=config.rollcall_trouble_window_ms,
        flapping_returns=config.rollcall_trouble_flapping_returns,
        loop_rebalances=config.rollcall_trouble_loop_rebalances,
        slow_join_ms=config.rollcall_trouble_slow_join_ms,
        stuck_ms=config.rollcall_trouble_stuck_ms,
        grace_ms=config.rollcall_trouble_settle_ms,
        no_progress_ms=config.rollcall_trouble_no_progress_ms,
        commits_per_second=config.rollcall_trouble_commits_per_second,
        skew_percent=config.rollcall_trouble_skew_percent,
    )
