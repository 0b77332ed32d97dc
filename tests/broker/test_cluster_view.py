"""The broker's configuration as DescribeConfigs tells it: values, sources, and defaults."""

from pathlib import Path

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
    assert "group.consumer.assignor.offload.enable" not in configs
    assert "producer.id.expiration.check.interval.ms" not in configs
    assert "producer.id.expiration.ms" in configs


def test_a_dynamic_config_beats_the_static_one_and_shows_all_levels() -> None:
    config = load_config(command_line=[command_line_setting("log.roll.hours=5")])
    properties = BrokerProperties(
        topic_settings(config).broker_properties,
        cluster={"log.roll.ms": " 7 ", "num.io.threads": "9", "a.plug.in": "secret"},
        broker={"log.roll.ms": "8"},
    )
    cluster = ClusterOfOne(config, "cluster")
    shown_configs = {entry.name: entry for entry in cluster.broker_configs(properties)}
    roll = shown_configs["log.roll.ms"]
    assert (roll.value, roll.source, roll.is_read_only) == (
        "8",
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        False,
    )
    assert [(s.name, s.text, s.source) for s in roll.synonyms] == [
        ("log.roll.ms", "8", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("log.roll.ms", " 7 ", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.roll.hours", "5", STATIC),
        ("log.roll.hours", "168", DEFAULT),
    ]
    assert shown_configs["log.roll.hours"].is_read_only
    assert shown_configs["num.io.threads"].value == "9"
    secret = shown_configs["a.plug.in"]
    assert (secret.is_sensitive, secret.value) == (True, None)
    of_all = {entry.name: entry for entry in cluster.cluster_configs(properties)}
    assert of_all["log.roll.ms"].value == "7"
    assert [entry.source for entry in of_all.values()] == [
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    ] * 3


def test_every_dynamic_config_of_the_cluster_is_shown_without_its_default() -> None:
    config = load_config()
    cluster = ClusterOfOne(config, "cluster")
    properties = BrokerProperties(cluster={"num.io.threads": "9"})
    (shown_config,) = cluster.cluster_configs(properties)
    assert [synonym.text for synonym in shown_config.synonyms] == ["9"]


def test_the_log_directory_is_an_absolute_path_on_a_volume(tmp_path: Path) -> None:
    config = load_config(command_line=[command_line_setting(f"log.dirs={tmp_path}")])
    cluster = ClusterOfOne(config, "cluster")
    space = cluster.log_dir_space()

    assert cluster.log_dir == str(tmp_path)
    assert 0 < space.usable_bytes <= space.total_bytes
    assert ClusterOfOne(load_config(), "cluster").log_dir == str(Path.cwd() / "rollcall-data")
