"""ConfigDef: reads, checks and writes the value of a configuration key by Kafka's rules.

`ConfigKey` is one key with its type and its validator. `config/keys.py` declares the broker's keys
with it and `topics/configs.py` the topics' keys, so that both take and refuse the same texts, with
Kafka's words. A value comes as text, or typed from a TOML file.

Kafka differs: a NaN passes its ranges, here none has one. The digits of its whole numbers may be of
any script, here only of ASCII, because other tools do not read the others the same way.
Kafka's counterpart: `ConfigDef` (`parseType`, `convertToString`, `Range`, `ValidString`,
`ValidList`, `NonEmptyString`), `ConfigException`.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NoReturn, Protocol, assert_never

from msgspec import Struct

from protocol.java_text import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    SHORT_MAX,
    SHORT_MIN,
    double_text,
    parse_integer,
    split_list,
    trim,
)

HIDDEN: Final = "[hidden]"


class Password(str):
    """A secret, as Kafka's `types.Password`: it is not written by accident.

    `str()`, `repr()` and f-strings give `[hidden]`, and so does `convert_to_string`. As an argument
    and by its methods it is the text itself: `encode()`, `==`, `json.dumps`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return HIDDEN

    @property
    def value(self) -> str:
        return str.__str__(self)


ConfigValue = bool | int | float | str | tuple[str, ...]
"""A typed value."""

WrittenValue = bool | int | float | str | Sequence[object]
"""A value as its source has it: text, or what a TOML file made of it."""


class ConfigType(IntEnum):
    """ConfigDef.Type; the number is the `config_type` of DescribeConfigs."""

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


class ConfigException(ValueError):
    """A name or a value that is refused. The text is Kafka's message, `reason` its last part."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message


def reject_value(name: str, value: object, reason: str) -> NoReturn:
    """Raise Kafka's `ConfigException(name, value, reason)`."""
    text = f"Invalid value {_shown(value)} for configuration {name}: {reason}"
    raise ConfigException(text, reason)


class Validator(Protocol):
    """Checks a typed value."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        """Raises ConfigException."""

    def __str__(self) -> str:
        """The valid values, for the documentation; empty if every value of the type is valid."""


class ConfigKey(Struct, frozen=True):
    """One key: ConfigDef.ConfigKey."""

    name: str
    type: ConfigType
    documentation: str
    validator: Validator | None

    def parse(self, written: WrittenValue) -> ConfigValue:
        """The typed and checked value. Raises ConfigException."""
        value = parse_type(self.name, written, self.type)
        if isinstance(self.validator, ValidList) and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))  # Kafka removes duplicates too, with a warning
        if self.validator is not None:
            self.validator.ensure_valid(self.name, value)
        return value


def parse_type(name: str, written: WrittenValue, config_type: ConfigType) -> ConfigValue:
    """The typed value. Raises ConfigException."""
    match config_type:
        case ConfigType.BOOLEAN:
            return _boolean(name, written)
        case ConfigType.INT:
            return _integer(name, written, "INT", INT_MIN, INT_MAX)
        case ConfigType.SHORT:
            return _integer(name, written, "SHORT", SHORT_MIN, SHORT_MAX)
        case ConfigType.LONG:
            return _integer(name, written, "LONG", LONG_MIN, LONG_MAX)
        case ConfigType.DOUBLE:
            return _double(name, written)
        case ConfigType.LIST:
            return _list(name, written)
        # A class name is not looked up: there are no classes here.
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.UNKNOWN:
            return _string(name, written)
        case ConfigType.PASSWORD:
            if not isinstance(written, str):  # in a TOML file
                expected = f"Expected value to be a string, but it was {_kind(written)}"
                reject_value(name, HIDDEN, expected)
            return Password(trim(written))
        case _:
            assert_never(config_type)


def convert_to_string(value: ConfigValue | None) -> str:
    """A typed value as Kafka shows it, which `parse_type` reads back. None is the empty text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case tuple():
            return ",".join(value)
        case int() | str():
            return str(value)
        case _:
            assert_never(value)


# Types


def _boolean(name: str, written: WrittenValue) -> bool:
    if isinstance(written, bool):
        return written
    # `equalsIgnoreCase` compares in upper case first.
    word = trim(written).upper() if isinstance(written, str) else ""
    if word not in ("TRUE", "FALSE"):
        reject_value(name, written, "Expected value to be either true or false")
    return word == "TRUE"


def _string(name: str, written: WrittenValue) -> str:
    if not isinstance(written, str):
        reject_value(name, written, f"Expected value to be a string, but it was {_kind(written)}")
    return trim(written)


_INTEGER_NAMES: Final = {
    "INT": "a 32-bit integer",
    "SHORT": "a 16-bit integer (short)",
    "LONG": "a 64-bit integer (long)",
}


def _integer(name: str, written: WrittenValue, type_name: str, low: int, high: int) -> int:
    number: int | None = None
    if isinstance(written, str):
        number = parse_integer(written, low, high)
    elif isinstance(written, int) and not isinstance(written, bool):
        number = written if low <= written <= high else None
    else:
        expected = _INTEGER_NAMES[type_name]
        reject_value(name, written, f"Expected value to be {expected}, but it was {_kind(written)}")
    if number is None:
        reject_value(name, written, f"Not a number of type {type_name}")
    return number


_DECIMAL: Final = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?"
_HEXADECIMAL: Final = (
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?"
)


def _double(name: str, written: WrittenValue) -> float:
    """As `Double.parseDouble`."""
    if isinstance(written, str):
        number = _parse_double(trim(written))
        if number is None:
            reject_value(name, written, "Not a number of type DOUBLE")
        return number
    if isinstance(written, bool) or not isinstance(written, int | float):
        reject_value(name, written, f"Expected value to be a double, but it was {_kind(written)}")
    return float(written)


def _parse_double(text: str) -> float | None:
    # re compiles a pattern when it is first used: most starts read no double.
    if match := re.fullmatch(_DECIMAL, text):
        return float(match[1])
    if re.fullmatch(r"[+-]?(NaN|Infinity)", text):
        return float(text)
    if match := re.fullmatch(_HEXADECIMAL, text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    return None


def _list(name: str, written: WrittenValue) -> tuple[str, ...]:
    if isinstance(written, str):
        return split_list(written)
    if not isinstance(written, bool | int | float):
        words = tuple(trim(word) for word in written if isinstance(word, str))
        if len(words) == len(written):
            return words
    reject_value(name, written, "Expected a comma separated list.")


def _kind(written: object) -> str:
    """The type of a value of a TOML file."""
    match written:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a double"
        case _:
            return "a list"


def _shown(value: object) -> str:
    """A value as Java's string concatenation writes it: lists in brackets, no quotes."""
    match value:
        case bool() | float():
            return convert_to_string(value)
        case list() | tuple():
            return "[" + ", ".join(map(str, value)) + "]"
        case _:
            return str(value)


# Validators


class Range(Struct, frozen=True):
    """ConfigDef.Range: a number from `low` to `high`, or `other`."""

    low: float
    high: float | None = None
    other: int | None = None

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int | float) or value == self.other:
            return
        # `not (a <= b)` also refuses a NaN.
        too_low = not value >= self.low
        too_high = self.high is not None and not value <= self.high
        if self.other is not None and self.high is not None and (too_low or too_high):
            ends = f"between {_number(self.low)} and {_number(self.high)}"
            reject_value(name, value, f"Value must be {ends} or equal to {self.other}")
        if too_low:
            reject_value(name, value, f"Value must be at least {_number(self.low)}")
        if too_high and self.high is not None:
            reject_value(name, value, f"Value must be no more than {_number(self.high)}")

    def __str__(self) -> str:
        if self.high is None:
            return f"at least {_number(self.low)}"
        other = "" if self.other is None else f", or {self.other}"
        return f"{_number(self.low)} to {_number(self.high)}{other}"


class ValidString(Struct, frozen=True):
    """ConfigDef.ValidString: one of these words."""

    words: tuple[str, ...]

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value not in self.words:
            reject_value(name, value, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        return ", ".join(self.words)


class ValidStringOfAnyCase(Struct, frozen=True):
    """ConfigDef.CaseInsensitiveValidString: one of these words, in upper or lower case."""

    words: tuple[str, ...]

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if str(value).upper() not in self.words:
            valid = ", ".join(self.words)
            reject_value(name, value, f"String must be one of (case insensitive): {valid}")

    def __str__(self) -> str:
        return f"{', '.join(self.words)} (case insensitive)"


class ValidList(Struct, frozen=True):
    """ConfigDef.ValidList: words of these, none empty; any words if none are given here.

    A key with this validator has no duplicates: `ConfigKey.parse` removes them.
    """

    words: tuple[str, ...] = ()
    non_empty: bool = False

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        assert isinstance(value, tuple), "a list"
        if self.non_empty and not value:
            valid = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            message = f"Configuration '{name}' must not be empty. Valid values include: {valid}"
            raise ConfigException(message, f"Must not be empty. Valid values include: {valid}")
        for word in value:
            if not word:
                message = f"Configuration '{name}' values must not be empty."
                raise ConfigException(message, "Values must not be empty")
            if self.words:
                ValidString(self.words).ensure_valid(name, word)

    def __str__(self) -> str:
        return ", ".join(self.words)


class NonEmptyString(Struct, frozen=True):
    """ConfigDef.NonEmptyString."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value == "":
            reject_value(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "not empty"


def _number(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"
