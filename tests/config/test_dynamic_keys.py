"""Dynamic keys: the tables agree with the keys of the configuration, and with Kafka's."""

import pytest

from config.dynamic_keys import (
    DYNAMIC_KEYS,
    QUOTA_KEYS,
    STORED_KEYS,
    SYNONYMS,
    default_text,
    dynamic_key,
    is_per_broker,
    is_static,
    stored_key,
)
from config.dynamic_rules import DynamicRules
from config.kafka_names import kafka_names
from config.keys import Config, keys
from config.sources import given, load_config
from protocol.config_def import ConfigException
from topics.broker_properties import BrokerProperties


def test_a_dynamic_key_is_served_and_a_stored_one_is_not() -> None:
    """A key that is added to the table must have its effect when it is changed."""
    assert keys().keys() >= DYNAMIC_KEYS
    assert not keys().keys() & (STORED_KEYS | QUOTA_KEYS)


def test_every_key_is_kafkas() -> None:
    names = kafka_names("broker").keys()
    assert names >= DYNAMIC_KEYS | STORED_KEYS
    for group in SYNONYMS.values():
        assert names >= set(group)


def test_every_stored_key_accepts_its_default() -> None:
    for name in sorted(STORED_KEYS):
        key, default = stored_key(name), default_text(name)
        assert key is not None
        assert key.parse(default or "") is not None, name


def test_a_key_is_dynamic_or_static_or_unknown() -> None:
    assert dynamic_key("num.partitions") is None
    assert is_static("num.partitions")
    assert is_static("rollcall.flush")
    assert not is_static("log.retention.ms")
    assert not is_static("a.plug.in")
    assert is_per_broker("listener.name.a.ssl.keystore.location")
    assert not is_per_broker("listener.name.a.max.connections")


def test_the_configuration_in_effect_has_the_strongest_values() -> None:
    rules = DynamicRules(Config(log_roll_hours=5, message_max_bytes=7))
    config = rules.applied(
        BrokerProperties(
            cluster={"message.max.bytes": "8", "log.cleanup.policy": "compact", "x": "y"},
            broker={"message.max.bytes": " 9 ", "log.roll.ms": "5"},
        )
    )
    assert (config.message_max_bytes, config.roll_ms) == (9, 5)
    assert config.log_cleanup_policy == ("compact",)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.roll.jitter.ms", "-1", "requirement failed: log.roll.jitter.ms must be greater than"),
        ("max.connections.per.ip.overrides", "a", "Error parsing configuration property"),
        ("max.connections.per.ip", "0", "requirement failed: max.connections.per.ip can be set"),
        ("log.cleaner.dedupe.buffer.size", "1048576", "must be at least 1MB per cleaner thread"),
    ],
)
def test_values_that_do_not_fit_are_refused(name: str, text: str, message: str) -> None:
    rules = DynamicRules(Config())
    with pytest.raises(ConfigException, match=message):
        rules.check(BrokerProperties(broker={name: text}), per_broker=True)


def test_lists_are_known_by_their_default() -> None:
    rules = DynamicRules(Config())
    assert rules.list_default("log.cleanup.policy") == "delete"
    assert rules.list_default("metric.reporters") == "JmxReporter"
    assert rules.list_default("num.io.threads") is None
    with pytest.raises(KeyError):
        rules.list_default("no.such")


def test_a_listener_has_limits_of_its_own() -> None:
    rules = DynamicRules(load_config(command_line=[given("listeners", "PLAINTEXT://:0", "--set")]))
    own = "listener.name.plaintext.max.connections"
    dynamic = BrokerProperties(
        cluster={own: "7", "listener.name.b.max.connections": "8", "max.connections": "9"},
        broker={own: "6"},
    )
    limits = rules.applied(dynamic).listener_limits
    assert {name: limit.max_connections for name, limit in limits.items()} == {"PLAINTEXT": 6}
    assert rules.unused({own: "7", "num.io.threads": "1"}) == ["num.io.threads"]
