"""Group settings: the limits and timeouts of the coordinator, named as in Kafka.

`config/keys.py` fills this in from the configuration; the defaults are Kafka 4.3.1's. Durations
are in ms unless the name says otherwise.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr


class MigrationPolicy(StrEnum):
    """Which groups are converted to the other protocol. Kafka: `ConsumerGroupMigrationPolicy`."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def is_upgrade_enabled(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def is_downgrade_enabled(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class GroupSettings(Struct, frozen=True):
    offsets_topic_num_partitions: int = 50
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")  # the first is the default
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_assignor_offload_enable: bool = True
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    new_member_join_timeout_ms: int = 300_000  # a constant in Kafka, not a config
    offsets_value_version: int = 4  # rollcall.offsets.value.version: 3 for readers such as Burrow
    max_batch_bytes: int = 1_048_588  # the offsets topic's max.message.bytes
    # Kafka has no such limits; docs/differences.md says what happens at each.
    groups_max: int = 200_000  # rollcall.groups.max: some 1.5 KB each, without members
    pending_members_max: int = 10_000  # rollcall.group.pending.members.max: ids out, a group
    # rollcall.consumer.assignor.inline.max: members x partitions; the turn takes up to 10 ms
    assignor_inline_max: int = 500_000
    # A generation is written down before its joins are answered; docs/adr. False = Kafka.
    generation_records: bool = True
    # The protocol's original design, where Kafka left it; docs/differences.md. False = Kafka.
    forgive_slow_member: bool = True
    forgive_max_ms: int = 60_000
    rebalance_on_partition_change: bool = False
    partition_change_delay_ms: int = 1_000

    @property
    def is_consumer_protocol_enabled(self) -> bool:
        """Whether members may join with the consumer group protocol."""
        return "consumer" in self.group_coordinator_rebalance_protocols


DYNAMIC_SETTINGS: Final = ("max_batch_bytes", "producer_id_expiration_ms")
"""Those whose keys can be changed while the broker runs."""


def apply_dynamic_settings(settings: GroupSettings, changed: GroupSettings) -> None:
    """Take over what was changed while the broker runs: all parts share these settings."""
    for name in DYNAMIC_SETTINGS:
        force_setattr(settings, name, getattr(changed, name))
