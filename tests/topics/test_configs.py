"""Topic configs: which are taken, what they mean, and where a value comes from."""

import pytest

from protocol.config_def import ConfigException
from protocol.names import ConfigSource
from topics.configs import KEYS, TopicConfigs, displayed_value

DAY_MS = 86_400_000


@pytest.fixture
def configs() -> TopicConfigs:
    return TopicConfigs({})


def test_the_defaults_are_kafkas(configs: TopicConfigs) -> None:
    effective = configs.effective({})
    assert effective.max_message_bytes == 1_048_588
    assert effective.segment_bytes == 1_073_741_824
    assert effective.log.retention_ms == 7 * DAY_MS
    assert effective.log.retention_bytes == -1
    assert effective.log.segment_ms == 7 * DAY_MS
    assert effective.log.cleanup_delete
    assert not effective.compact
    assert not effective.log_append_time
    assert effective.flush_ms is None
    assert effective.compression_type == "producer"


def test_a_topics_own_value_beats_the_brokers_and_that_beats_the_default() -> None:
    configs = TopicConfigs({"log.retention.ms": "5000"})
    assert configs.effective({}).log.retention_ms == 5_000
    assert configs.effective({"retention.ms": "7"}).log.retention_ms == 7


def test_the_brokers_coarser_keys_are_converted() -> None:
    configs = TopicConfigs({"log.retention.hours": "24", "log.roll.hours": "1"})
    assert configs.effective({}).log.retention_ms == DAY_MS
    assert configs.effective({}).log.segment_ms == 3_600_000


def test_the_finest_of_the_brokers_keys_wins() -> None:
    configs = TopicConfigs({"log.retention.hours": "24", "log.retention.minutes": "2"})
    assert configs.effective({}).log.retention_ms == 120_000


def test_no_retention_in_hours_is_no_retention() -> None:
    assert TopicConfigs({"log.retention.hours": "-1"}).effective({}).log.retention_ms == -1


def test_a_compacted_topic_rolls_its_files_before_compaction_is_overdue(
    configs: TopicConfigs,
) -> None:
    own = {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000"}
    assert configs.effective(own).log.segment_ms == 1_000
    assert configs.effective({"max.compaction.lag.ms": "1000"}).log.segment_ms == 7 * DAY_MS


def test_an_empty_cleanup_policy_keeps_everything(configs: TopicConfigs) -> None:
    log = configs.effective({"cleanup.policy": ""}).log
    assert not log.cleanup_delete
    assert not log.cleanup_compact


def test_policies_may_have_blanks_around_them_and_come_twice(configs: TopicConfigs) -> None:
    own = {"cleanup.policy": " compact , delete,compact"}
    configs.validate(own)
    log = configs.effective(own).log
    assert log.cleanup_delete
    assert log.cleanup_compact


def test_the_internal_segment_size_may_be_tiny(configs: TopicConfigs) -> None:
    own = {"internal.segment.bytes": "100"}
    configs.validate(own)
    assert configs.effective(own).segment_bytes == 100


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nope", "1", "Unknown topic config name: nope"),
        (
            "retention.ms",
            "x",
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "1_0",
            "Invalid value 1_0 for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            "-5",
            "Invalid value -5 for configuration retention.ms: Value must be at least -1",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "segment.bytes",
            "100",
            "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "cleanup.policy",
            "foo",
            (
                "Invalid value foo for configuration cleanup.policy: "
                "String must be one of: compact, delete"
            ),
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "min.cleanable.dirty.ratio",
            "2",
            (
                "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: "
                "Value must be no more than 1"
            ),
        ),
        (
            "min.cleanable.dirty.ratio",
            "half",
            (
                "Invalid value half for configuration min.cleanable.dirty.ratio: "
                "Not a number of type DOUBLE"
            ),
        ),
        (
            "compression.gzip.level",
            "11",
            (
                "Invalid value 11 for configuration compression.gzip.level: "
                "Value must be between 1 and 9 or equal to -1"
            ),
        ),
        (
            "preallocate",
            "yes",
            (
                "Invalid value yes for configuration preallocate: "
                "Expected value to be either true or false"
            ),
        ),
        (
            "leader.replication.throttled.replicas",
            "1",
            (
                "Invalid value [1] for configuration leader.replication.throttled.replicas: "
                "leader.replication.throttled.replicas must be the literal '*' or a list of "
                "replicas in the following format: [partitionId]:[brokerId],"
                "[partitionId]:[brokerId],..."
            ),
        ),
        (
            "remote.storage.enable",
            "true",
            (
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            ),
        ),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(
    configs: TopicConfigs, name: str, text: str, message: str
) -> None:
    with pytest.raises(ConfigException) as refusal:
        configs.validate({name: text})
    assert str(refusal.value) == message


def test_the_two_lags_of_compaction_must_fit_together(configs: TopicConfigs) -> None:
    with pytest.raises(ConfigException, match=r"min.compaction.lag.ms \(10\) > max"):
        configs.validate({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("segment.ms", " 5 ", "5"),
        ("retention.ms", "+7", "7"),
        ("preallocate", "TRUE", "true"),
        ("leader.replication.throttled.replicas", "*", "*"),
        ("min.cleanable.dirty.ratio", "5e-1", "0.5"),
        ("compression.gzip.level", "-1", "-1"),
    ],
)
def test_what_kafka_takes_is_taken_and_shown_in_its_plain_form(
    configs: TopicConfigs, name: str, text: str, value: str
) -> None:
    configs.validate({name: text})
    entry = next(e for e in configs.entries({name: text}) if e.key.name == name)
    assert displayed_value(entry) == value


def test_every_default_passes_its_own_check() -> None:
    for key in KEYS.values():
        if key.default is not None:
            assert shown_default(key.name) == key.default


def shown_default(name: str) -> str:
    return next(displayed_value(e) for e in TopicConfigs({}).entries({}) if e.key.name == name)


def test_a_value_has_its_source() -> None:
    configs = TopicConfigs({"log.segment.bytes": "2000000"})
    sources = {e.key.name: e.source for e in configs.entries({"retention.ms": "1"})}
    assert sources["retention.ms"] is ConfigSource.TOPIC_CONFIG
    assert sources["segment.bytes"] is ConfigSource.STATIC_BROKER_CONFIG
    assert sources["max.message.bytes"] is ConfigSource.DEFAULT_CONFIG
    assert "internal.segment.bytes" not in sources


@pytest.mark.parametrize(
    ("properties", "name", "synonyms"),
    [
        ({}, "segment.bytes", [("log.segment.bytes", "1073741824", 5)]),
        (
            {"log.segment.bytes": "2000000"},
            "segment.bytes",
            [("log.segment.bytes", "2000000", 4), ("log.segment.bytes", "1073741824", 5)],
        ),
        ({}, "retention.ms", []),
        ({"log.retention.hours": "1"}, "retention.ms", []),
        (
            {"log.retention.ms": "5"},
            "retention.ms",
            [("log.retention.ms", "5", 4), ("log.retention.hours", "168", 5)],
        ),
        ({}, "remote.storage.enable", []),
    ],
)
def test_the_brokers_keys_of_a_value_are_its_synonyms_as_in_kafka(
    properties: dict[str, str], name: str, synonyms: list[tuple[str, str, int]]
) -> None:
    assert TopicConfigs(properties).broker_synonyms(KEYS[name]) == synonyms
