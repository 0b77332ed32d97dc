"""The broker's configuration as DescribeConfigs tells it: values, sources, and defaults."""

from broker.cluster_view import ClusterOfOne
from config.sources import command_line_setting, load_config
from config.storage_settings import topic_settings
from protocol.config_def import ConfigType
from protocol.names import ConfigSource
from topics.broker_properties import BrokerProperties
from topics.cluster import BrokerConfig

STATIC, DEFAULT = ConfigSource.STATIC_BROKER_CONFIG, ConfigSource.DEFAULT_CONFIG


def described(*pairs: str, environment: dict[str, str] | None = None) -> dict[str, BrokerConfig]:
    config = load_config(
        command_line=[command_line_setting(pair) for pair in pairs], environment=environment
    )
    properties = BrokerProperties(topic_settings(config).broker_properties)
    entries = ClusterOfOne(config, "cluster").broker_configs(properties)
    return {entry.name: entry for entry in entries}


def shown(config: BrokerConfig) -> tuple[str | None, ConfigSource, str | None]:
    last = config.synonyms[-1] if config.synonyms else None
    default = last.text if last is not None and last.source is DEFAULT else None
    return config.value, config.source, default


def test_what_is_configured_is_static_also_where_it_is_the_default() -> None:
    configs = described("num.partitions=6", "min.insync.replicas=1")
    assert shown(configs["num.partitions"]) == ("6", STATIC, "1")
    assert shown(configs["min.insync.replicas"]) == ("1", STATIC, "1")
    assert shown(configs["log.segment.bytes"])[1] is DEFAULT


def test_what_a_finer_name_of_a_stronger_source_overrides_is_static_too() -> None:
    # As a Kafka shows both of one file.
    configs = described("log.retention.ms=7", environment={"KAFKA_LOG_RETENTION_HOURS": "10"})
    assert shown(configs["log.retention.ms"]) == ("7", STATIC, "168")
    assert shown(configs["log.retention.hours"]) == ("10", STATIC, "168")


def test_what_kafka_has_no_default_for_has_none() -> None:
    configs = described("log.dirs=/somewhere")
    assert shown(configs["log.dirs"]) == ("/somewhere", STATIC, None)
    for name in ("advertised.listeners", "broker.rack", "controller.listener.names"):
        assert shown(configs[name]) == (None, DEFAULT, None)
    assert configs["offsets.topic.replication.factor"].config_type is ConfigType.SHORT


def test_internal_keys_are_not_shown() -> None:
    """As in Kafka 4.3.1, whose ConfigDef says which these are."""
    configs = described("group.consumer.regex.refresh.interval.ms=20000")
    assert "group.consumer.regex.refresh.interval.ms" not in configs
    assert "producer.id.expiration.check.interval.ms" not in configs
    assert "producer.id.expiration.ms" in configs
