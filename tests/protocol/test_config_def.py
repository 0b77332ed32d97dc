"""ConfigDef: values are read, refused and written as Kafka 4.3.1 does, for brokers and topics.

`golden/config_values.jsonl` holds Kafka's answers; `golden/make_config_values.py` recorded them.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from config.keys import keys
from protocol.config_def import (
    ConfigException,
    ConfigKey,
    ConfigType,
    NonEmptyString,
    Range,
    ValidList,
    WrittenValue,
    convert_to_string,
    parse_type,
)
from tests.protocol.golden.make_config_values import BROKER, CASES, TOPIC, TYPES
from topics.configs import KEYS as TOPIC_KEYS

RECORDED: Final = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden/config_values.jsonl").read_text().splitlines()
]
ANSWERS: Final = {
    (line["kind"], line["name"], line["value"]): line.get("parsed", f"! {line.get('refused')}")
    for line in RECORDED
}


# Kafka differs: it reads the digits of every script (docs/differences.md).
OTHER_DIGITS: Final = ("\u0665", "\uff15")


def _kafkas(kind: str, name: str, values: Iterable[str]) -> dict[str, str]:
    return {value: ANSWERS[kind, name, value] for value in values if value not in OTHER_DIGITS}


def test_every_case_was_recorded() -> None:
    assert set(ANSWERS) == set(CASES)


def _read(key: ConfigKey | None, type_name: str, value: WrittenValue) -> str:
    try:
        if key is not None:
            return convert_to_string(key.parse(value))
        return convert_to_string(parse_type("key", value, ConfigType[type_name]))
    except ConfigException as refused:
        return f"! {refused}"


@pytest.mark.parametrize("name", TYPES)
def test_every_type_reads_what_kafka_reads(name: str) -> None:
    kafkas = _kafkas("type", name, TYPES[name])
    assert {value: _read(None, name, value) for value in kafkas} == kafkas


@pytest.mark.parametrize("name", BROKER)
def test_a_brokers_key_reads_what_kafka_reads(name: str) -> None:
    kafkas = _kafkas("broker", name, BROKER[name])
    assert {value: _read(keys()[name], name, value) for value in kafkas} == kafkas


@pytest.mark.parametrize("name", TOPIC)
def test_a_topics_key_reads_what_kafka_reads(name: str) -> None:
    kafkas = _kafkas("topic", name, TOPIC[name])
    assert {value: _read(TOPIC_KEYS[name], name, value) for value in kafkas} == kafkas


def test_both_tables_read_a_value_in_the_same_way() -> None:
    """A topic's key and the broker's key of the same meaning, over all odd values of the type."""
    for topic_name, broker_name in (
        ("cleanup.policy", "log.cleanup.policy"),
        ("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
        ("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
        ("compression.gzip.level", "compression.gzip.level"),
    ):
        topics, brokers = TOPIC_KEYS[topic_name], keys()[broker_name]
        assert topics.type is brokers.type
        for value in TYPES[topics.type.name]:
            of_topic = _read(topics, "", value).replace(topic_name, "KEY")
            assert of_topic == _read(brokers, "", value).replace(broker_name, "KEY"), value


@pytest.mark.parametrize(
    ("config_type", "written", "value"),
    [
        (ConfigType.BOOLEAN, True, True),
        (ConfigType.INT, 7, 7),
        (ConfigType.LONG, 1 << 40, 1 << 40),
        (ConfigType.DOUBLE, 1, 1.0),
        (ConfigType.DOUBLE, 0.5, 0.5),
        (ConfigType.LIST, ["a", " b "], ("a", "b")),
        (ConfigType.PASSWORD, " p ", "p"),
        (ConfigType.CLASS, " a.B ", "a.B"),
    ],
)
def test_typed_values_of_a_toml_file_are_taken(
    config_type: ConfigType, written: WrittenValue, value: object
) -> None:
    assert parse_type("k", written, config_type) == value


@pytest.mark.parametrize(
    ("config_type", "written", "reason"),
    [
        (ConfigType.BOOLEAN, 1, "Expected value to be either true or false"),
        (ConfigType.INT, True, "Expected value to be a 32-bit integer, but it was a boolean"),
        (ConfigType.INT, 1.5, "Expected value to be a 32-bit integer, but it was a double"),
        (ConfigType.INT, 1 << 31, "Not a number of type INT"),
        (ConfigType.SHORT, [], "Expected value to be a 16-bit integer (short), but it was a list"),
        (ConfigType.LONG, 1 << 63, "Not a number of type LONG"),
        (ConfigType.DOUBLE, True, "Expected value to be a double, but it was a boolean"),
        (ConfigType.STRING, 3, "Expected value to be a string, but it was an integer"),
        (ConfigType.LIST, 3, "Expected a comma separated list."),
        (ConfigType.LIST, ["a", 3], "Expected a comma separated list."),
    ],
)
def test_typed_values_of_another_type_are_refused(
    config_type: ConfigType, written: WrittenValue, reason: str
) -> None:
    with pytest.raises(ConfigException) as refused:
        parse_type("k", written, config_type)
    assert refused.value.reason == reason


@pytest.mark.parametrize("digit", OTHER_DIGITS)
@pytest.mark.parametrize("name", ["SHORT", "INT", "LONG", "DOUBLE"])
def test_digits_are_those_of_ascii(name: str, digit: str) -> None:
    with pytest.raises(ConfigException, match=f"Not a number of type {name}"):
        parse_type("k", digit, ConfigType[name])


@pytest.mark.parametrize("text", ["NaN", "-NaN"])
def test_a_nan_is_in_no_range(text: str) -> None:
    """Kafka differs: it takes one, and then compares with it."""
    key = ConfigKey("k", ConfigType.DOUBLE, "", Range(0, 1))
    with pytest.raises(ConfigException, match=r"Invalid value NaN .* Value must be at least 0"):
        key.parse(text)


def test_a_string_that_must_not_be_empty() -> None:
    key = ConfigKey("k", ConfigType.STRING, "", NonEmptyString())
    assert key.parse(" x ") == "x"
    with pytest.raises(ConfigException, match="String must be non-empty"):
        key.parse("  ")


def test_a_list_of_any_words_has_no_duplicates_and_no_empty_word() -> None:
    key = ConfigKey("k", ConfigType.LIST, "", ValidList())
    assert key.parse("a, b,a") == ("a", "b")
    assert key.parse("") == ()
    with pytest.raises(ConfigException, match="Configuration 'k' values must not be empty"):
        key.parse("a,")
