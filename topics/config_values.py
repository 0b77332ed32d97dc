"""How is the text of one configuration value read, and when is it refused?

Kafka's rules, because a client sees both: which texts are numbers, which values a key takes, and in
what words it is told otherwise. `configs.py` says which key has which rule.
Kafka's counterpart: `ConfigDef.parseType`, its validators, and `ConfigException`.
"""

import re
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from protocol import java_text
from protocol.java_text import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, split_list, trim

Value = bool | int | float | str | tuple[str, ...]


class ConfigType(IntEnum):
    """The `config_type` of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The `config_source` of DescribeConfigs and CreateTopics."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class BadConfig(ValueError):
    """A name or a value that is refused with INVALID_CONFIG; the text is what the client reads."""


def refused(name: str, value: object, reason: str) -> BadConfig:
    return BadConfig(f"Invalid value {_java_text(value)} for configuration {name}: {reason}")


def parse(name: str, text: str, config_type: ConfigType) -> Value:
    """The typed value of a text, or BadConfig."""
    trimmed = trim(text)
    match config_type:
        case ConfigType.BOOLEAN:
            word = trimmed.lower()
            if word not in ("true", "false"):
                raise refused(name, text, "Expected value to be either true or false")
            return word == "true"
        case ConfigType.INT:
            return _integer(name, text, INT_MIN, INT_MAX, "INT")
        case ConfigType.LONG:
            return _integer(name, text, LONG_MIN, LONG_MAX, "LONG")
        case ConfigType.DOUBLE:
            return _double(name, text)
        case ConfigType.LIST:
            return tuple(dict.fromkeys(split_list(text)))  # a word that comes twice counts once
        case _:
            return trimmed


def as_text(value: Value) -> str:
    """A typed value as Kafka shows it; `parse` reads it back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")


def _integer(name: str, text: str, low: int, high: int, type_name: str) -> int:
    number = java_text.integer(text, low, high)
    if number is None:
        raise refused(name, text, f"Not a number of type {type_name}")
    return number


def _double(name: str, text: str) -> float:
    trimmed = trim(text)
    if not _DOUBLE.fullmatch(trimmed):
        raise refused(name, text, "Not a number of type DOUBLE")
    return float(trimmed.rstrip("dDfF"))


def _java_text(value: object) -> str:
    """A value as Java's string concatenation writes it: lists in brackets, no quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return str(value)


# Checks of a parsed value, by the names of Kafka's validators.

Check = Callable[[str, Value], None]


def at_least(low: int) -> Check:
    def check(name: str, value: Value) -> None:
        if isinstance(value, int | float) and value < low:
            raise refused(name, value, f"Value must be at least {low}")

    return check


def between(low: int, high: int) -> Check:
    def check(name: str, value: Value) -> None:
        at_least(low)(name, value)
        if isinstance(value, int | float) and value > high:
            raise refused(name, value, f"Value must be no more than {high}")

    return check


def between_or(low: int, high: int, other: int) -> Check:
    def check(name: str, value: Value) -> None:
        if isinstance(value, int) and not low <= value <= high and value != other:
            raise refused(
                name, value, f"Value must be between {low} and {high} or equal to {other}"
            )

    return check


def one_of(*words: str) -> Check:
    def check(name: str, value: Value) -> None:
        if value not in words:
            raise refused(name, value, f"String must be one of: {', '.join(words)}")

    return check


def list_of(*words: str) -> Check:
    def check(name: str, value: Value) -> None:
        assert isinstance(value, tuple)
        for word in value:
            if not word:
                raise BadConfig(f"Configuration '{name}' values must not be empty.")
            one_of(*words)(name, word)

    return check


def replica_list(name: str, value: Value) -> None:
    """For the two throttles of replication: `*`, or pairs of partition and broker."""
    assert isinstance(value, tuple)
    if value == ("*",) or all(re.fullmatch(r"([0-9]+:[0-9]+)?", trim(word)) for word in value):
        return
    raise refused(
        name,
        value,
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    )
