"""The table of keys: do names, defaults and ranges agree with Kafka's, and with the parts?"""

from collections.abc import Callable

import pytest
from msgspec import Struct
from msgspec.structs import replace

from config.kafka_names import is_kafka_name, kafka_names, refusal_reason
from config.keys import Config, keys
from config.settings import (
    cleaner_settings,
    group_settings,
    history_index_limits,
    history_record_limits,
    lag_limits,
    server_limits,
    verdict_limits,
)
from config.sources import command_line_setting, load_config
from config.storage_settings import journal_limits, offsets_log_settings, topic_settings
from coordinator.settings import GroupSettings, MigrationPolicy
from protocol.config_def import ConfigException, Range, convert_to_string
from protocol.names import LAG_TOPIC, OFFSETS_TOPIC
from storage.api import LogSettings
from topics.configs import TopicConfigs
from topics.coordinator_topics import coordinator_topic_configs
from topics.settings import TopicSettings

LIMITS_WITHOUT_A_KEY = {
    *("queue_entries", "batch_bytes", "group_bytes", "group_entries"),  # of the journal
    "by_listener",  # listener.name.NAME.max.connections is in test_sources.py
}

# Ours on purpose; docs/configuration.md shows Kafka's beside them.
OTHER_DEFAULTS = {
    "listeners",  # this machine only, until somebody decides otherwise
    "log.dir",
    "node.id",  # Kafka demands one
    "controller.listener.names",  # Kafka demands one; we have no controller
    "offsets.topic.replication.factor",  # one node
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
}

OF_A_LATER_KAFKA = {"group.consumer.assignor.offload.enable"}  # 4.4

OF_THE_AUTHORIZER = {"super.users", "allow.everyone.if.no.acl.found"}
"""Kafka's class reads them itself: they are in no table of the broker's keys."""


def test_every_key_is_kafkas_or_begins_with_rollcall() -> None:
    kafkas = kafka_names("broker").keys() | OF_A_LATER_KAFKA | OF_THE_AUTHORIZER
    for name in keys():
        assert name.startswith("rollcall.") != (name in kafkas), name


def test_defaults_are_kafkas_unless_listed_here() -> None:
    kafkas = kafka_names("broker")
    served = [key for key in keys().values() if key.name in kafkas]
    different = {
        key.name for key in served if convert_to_string(key.default) != kafkas[key.name].default
    }

    assert len(served) > 40
    assert different == OTHER_DEFAULTS


def test_types_are_kafkas() -> None:
    kafkas = kafka_names("broker")
    for key in keys().values():
        if key.name in kafkas:
            assert key.type.name.lower() == kafkas[key.name].kind, key.name


def test_where_kafka_has_a_lower_bound_ours_is_no_lower() -> None:
    for key in keys().values():
        low, dots, _ = kafka_names("broker").get(key.name, _NO_RANGE).range.partition("..")
        if dots:
            assert isinstance(key.validator, Range), key.name
            assert key.validator.low >= int(low), key.name


def test_every_default_is_within_its_own_range() -> None:
    for key in keys().values():
        if key.default is not None:
            assert key.parse(convert_to_string(key.default)) == key.default, key.name


def test_the_parts_are_built_with_the_defaults_that_they_declare_themselves() -> None:
    config = Config()

    for settings in (
        cleaner_settings(config),
        group_settings(config),
        history_index_limits(config),
        history_record_limits(config),
        lag_limits(config),
        server_limits(config),
        verdict_limits(config),
    ):
        assert settings == type(settings)()
    assert offsets_log_settings(config) == LogSettings(
        segment_bytes=104_857_600,
        cleanup_delete=False,
        cleanup_compact=True,
        min_compaction_lag_ms=config.rollcall_offsets_history_ms,
        min_compaction_lag_max_bytes=config.rollcall_offsets_history_bytes,
    )


@pytest.mark.parametrize(
    "pairs",
    [
        (),
        ("rollcall.offsets.history.ms=7", "log.cleaner.min.compaction.lag.ms=3"),
        ("offsets.topic.segment.bytes=2048", "log.roll.ms=50", "log.index.interval.bytes=16"),
        ("log.cleaner.min.cleanable.ratio=0.25", "log.cleaner.max.compaction.lag.ms=86400001"),
        ("log.cleaner.delete.retention.ms=5", "log.segment.delete.delay.ms=6"),
    ],
)
def test_what_is_shown_of_the_offsets_topic_is_what_its_logs_go_by(pairs: tuple[str, ...]) -> None:
    config = load_config(command_line=[command_line_setting(pair) for pair in pairs])
    settings = topic_settings(config)
    shown = (
        TopicConfigs(settings.broker_properties)
        .effective(coordinator_topic_configs(settings)[OFFSETS_TOPIC])
        .log
    )
    applied = offsets_log_settings(config)
    own = {  # there is no key of Kafka's for it
        "min_compaction_lag_max_bytes": applied.min_compaction_lag_max_bytes,
    }
    never = {"retention_ms": applied.retention_ms, "retention_bytes": applied.retention_bytes}
    assert replace(shown, **own, **never) == applied
    assert not applied.cleanup_delete


def test_what_must_be_compacted_is_closed_in_time() -> None:
    assert offsets_log_settings(Config(log_cleaner_max_compaction_lag_ms=7)).segment_ms == 7
    assert offsets_log_settings(Config(log_roll_ms=5)).segment_ms == 5


def test_topic_settings_have_the_broker_keys_that_were_set() -> None:
    config = load_config(
        command_line=[
            command_line_setting("log.retention.hours= 24"),
            command_line_setting("log.cleanup.policy=compact, delete"),
        ]
    )

    assert topic_settings(config).broker_properties == {
        "log.retention.hours": "24",
        "log.cleanup.policy": "compact,delete",
    }
    settings = topic_settings(Config())
    assert settings == TopicSettings(internal_topics=settings.internal_topics)


@pytest.mark.parametrize(
    "limits",
    [
        cleaner_settings,
        history_index_limits,
        journal_limits,
        lag_limits,
        server_limits,
        verdict_limits,
    ],
)
def test_every_limit_follows_a_key(limits: Callable[[Config], Struct]) -> None:
    numbers = {
        key.field: _other(key.default)
        for key in keys().values()
        if isinstance(key.default, int | float)
    }
    before = limits(Config())
    after = limits(Config(**numbers, max_connections_per_ip_overrides="127.0.0.1:1"))

    same = {
        name for name in before.__struct_fields__ if getattr(after, name) == getattr(before, name)
    }
    assert same <= LIMITS_WITHOUT_A_KEY


def test_the_daemons_own_topics_are_kept_as_their_keys_say() -> None:
    config = Config(rollcall_lag_retention_ms=7, rollcall_lag_retention_bytes=8)
    topic = topic_settings(config).internal_topics[LAG_TOPIC]
    assert (topic.configs["retention.ms"], topic.configs["retention.bytes"]) == ("7", "8")


def test_every_topic_setting_that_has_a_key_follows_it() -> None:
    names = set(TopicSettings.__struct_fields__)
    names -= {"broker_properties", "internal_topics"}
    fields = {name if hasattr(Config(), name) else f"rollcall_{name}" for name in names}
    defaults = Config()
    changed = Config(**{name: _other(getattr(defaults, name)) for name in fields})

    for name in names:
        assert getattr(topic_settings(changed), name) != getattr(TopicSettings(), name), name


def _other(value: bool | float | str) -> bool | float | str:
    if isinstance(value, str):
        return value + "other"
    if isinstance(value, bool):
        return not value
    return value + 2 if isinstance(value, int) else value / 2


def test_every_group_setting_that_has_a_key_follows_it() -> None:
    changed = group_settings(
        Config(
            offsets_topic_num_partitions=7,
            group_min_session_timeout_ms=1,
            group_max_session_timeout_ms=2,
            group_initial_rebalance_delay_ms=3,
            group_max_size=4,
            group_coordinator_rebalance_protocols=("classic",),
            group_consumer_session_timeout_ms=14,
            group_consumer_min_session_timeout_ms=15,
            group_consumer_max_session_timeout_ms=16,
            group_consumer_heartbeat_interval_ms=17,
            group_consumer_min_heartbeat_interval_ms=18,
            group_consumer_max_heartbeat_interval_ms=19,
            group_consumer_assignment_interval_ms=20,
            group_consumer_min_assignment_interval_ms=21,
            group_consumer_max_assignment_interval_ms=22,
            group_consumer_max_size=23,
            group_consumer_assignors=("range",),
            group_consumer_migration_policy="Upgrade",
            group_consumer_regex_refresh_interval_ms=24,
            group_consumer_assignor_offload_enable=False,
            rollcall_consumer_assignor_inline_max=25,
            offset_metadata_max_bytes=5,
            offsets_retention_minutes=6,
            offsets_retention_check_interval_ms=7,
            rollcall_offsets_value_version=3,
            message_max_bytes=8,
            offsets_commit_timeout_ms=13,
            rollcall_groups_max=11,
            rollcall_group_pending_members_max=12,
            rollcall_generation_records=False,
            rollcall_forgive_slow_member=False,
            rollcall_forgive_max_ms=9,
            rollcall_rebalance_on_partition_change=True,
            rollcall_partition_change_delay_ms=10,
            producer_id_expiration_ms=26,
            producer_id_expiration_check_interval_ms=27,
        )
    )
    defaults = GroupSettings()

    same = {
        name
        for name in GroupSettings.__struct_fields__
        if getattr(changed, name) == getattr(defaults, name)
    }
    assert same == {"new_member_join_timeout_ms"}  # a constant of the protocol
    assert changed.group_consumer_migration_policy is MigrationPolicy.UPGRADE
    assert not changed.is_consumer_protocol_enabled
    assert defaults.is_consumer_protocol_enabled


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [
        ("disabled", False, False),
        ("downgrade", False, True),
        ("upgrade", True, False),
        ("bidirectional", True, True),
    ],
)
def test_a_migration_policy_allows_its_directions(
    policy: str, *, upgrade: bool, downgrade: bool
) -> None:
    assert MigrationPolicy(policy).is_upgrade_enabled is upgrade
    assert MigrationPolicy(policy).is_downgrade_enabled is downgrade


@pytest.mark.parametrize(
    ("values", "expected_ms"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": 1}, 3_600_000),
        ({"log_retention_hours": 1, "log_retention_minutes": 2}, 120_000),
        ({"log_retention_minutes": 2, "log_retention_ms": 3}, 3),
        ({"log_retention_hours": -1}, -1),
        ({"log_retention_minutes": -1}, -1),
    ],
)
def test_the_finest_retention_that_is_set_counts(values: dict[str, int], expected_ms: int) -> None:
    assert Config(**values).retention_ms == expected_ms  # type: ignore[arg-type] # names of ints


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("group.max.size", "1_000"),
        ("group.max.size", "3000000000"),
        ("group.max.size", ""),
        ("group.max.size", True),
        ("group.max.size", 1.5),
        ("group.max.size", 0),
        ("auto.create.topics.enable", "yes"),
        ("auto.create.topics.enable", 1),
        ("connections.max.idle.ms", "9223372036854775808"),
        ("log.segment.bytes", 14),
        ("log.cleanup.policy", "compress"),
        ("log.cleanup.policy", ["delete", 3]),
        ("log.cleanup.policy", "delete,"),
        ("rollcall.flush", "never"),
        ("rollcall.flush", 3),
        ("rollcall.offsets.value.version", 5),
    ],
)
def test_values_that_kafka_would_refuse_are_refused(name: str, written: str | int) -> None:
    with pytest.raises(ConfigException):
        keys()[name].parse(written)


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("group.max.size", " +5 ", 5),
        ("group.max.size", 5, 5),
        ("auto.create.topics.enable", "FALSE", False),
        ("auto.create.topics.enable", False, False),
        ("connections.max.idle.ms", "-1", -1),
        ("log.cleanup.policy", "compact , delete", ("compact", "delete")),
        ("log.cleanup.policy", "", ()),
        ("log.cleanup.policy", "delete,delete", ("delete",)),
        ("log.cleaner.min.cleanable.ratio", "0.5d", 0.5),
        ("log.cleanup.policy", ["compact"], ("compact",)),
        ("max.connections.per.ip.overrides", " a:1 ", "a:1"),
    ],
)
def test_values_are_read_as_kafka_reads_them(
    name: str, written: str | int, value: float | str | tuple[str, ...]
) -> None:
    assert keys()[name].parse(written) == value


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Config().group_max_size = 3  # type: ignore[misc] # that is the point


def test_connection_overrides_keep_addresses_with_colons() -> None:
    config = Config(max_connections_per_ip_overrides="127.0.0.1:3, ::1:4,host:5")

    assert config.connections_by_address == {"127.0.0.1": 3, "::1": 4, "host": 5}


def test_kafkas_list_is_complete_enough_to_judge_by() -> None:
    assert len(kafka_names("broker")) == 360
    assert kafka_names("broker")["group.max.size"].range == "1.."
    assert kafka_names("broker")["node.id"].default is None
    assert "segment.ms" in kafka_names("topic")
    assert not is_kafka_name("segment.ms")  # a topic's name is no broker's
    assert is_kafka_name("listener.name.outside.max.connections")
    assert is_kafka_name("zookeeper.connect")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.engine.factory.class", "com.example.Engine"),
        ("listener.name.outside.ssl.engine.factory.class", "com.example.Engine"),
        ("principal.builder.class", "com.example.Builder"),
        ("min.insync.replicas", "2"),
        ("default.replication.factor", "3"),
        ("offsets.topic.replication.factor", "3"),
        ("remote.log.storage.system.enable", "true"),
    ],
)
def test_what_would_weaken_security_or_durability_is_refused(name: str, value: str) -> None:
    assert refusal_reason(name, value) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.keystore.location", ""),
        ("authorizer.class.name", ""),
        ("security.inter.broker.protocol", "SSL"),
        ("min.insync.replicas", "1"),
        ("default.replication.factor", "-1"),
        ("num.network.threads", "3"),
    ],
)
def test_what_asks_for_nothing_is_not_refused(name: str, value: str) -> None:
    assert refusal_reason(name, value) is None


_NO_RANGE = kafka_names("broker")["process.roles"]
