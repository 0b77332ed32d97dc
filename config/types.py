"""What may one configuration value look like? Its type, its range and how its text is read.

`config/keys.py` declares each key in one line with the functions at the end of this file; the
rules for text are those of Kafka's ConfigDef.parseType, so that a value which Kafka takes is taken
here and one that it refuses is refused. Values come from a command line, an environment or a
properties file as text, and from TOML already typed.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeVar, cast

from msgspec import Struct, StructMeta
from msgspec.structs import replace

from protocol import java_text
from protocol.java_text import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, split_list, trim

Value = bool | int | float | str | tuple[str, ...] | None
"""A value as `Config` holds it; None where Kafka's default is null: another key decides."""

Written = bool | int | float | str | Sequence[object]
"""A value as a source wrote it: text, or what TOML made of it."""


class Kind(Enum):
    """Kafka's types; the words that its documentation and its errors use."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"


class BadValue(ValueError):
    """A value that its key does not take; the text completes "KEY = VALUE: "."""


class Rule(Struct, frozen=True):
    """The part of a key that its declaration gives: everything but its name and its default."""

    kind: Kind
    doc: str
    at_least: float | None = None
    at_most: float | None = None
    besides: int | None = None  # a value outside the range that is taken too
    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The range in a reader's words; empty where every value of the type is taken."""
        if self.choices:
            return ", ".join(self.choices)
        if self.at_least is None or self.at_least in (INT_MIN, LONG_MIN):
            return ""
        if self.at_most is None or self.at_most in (INT_MAX, LONG_MAX):
            return f"at least {_plain(self.at_least)}"
        besides = "" if self.besides is None else f", or {self.besides}"
        return f"{_plain(self.at_least)} to {_plain(self.at_most)}{besides}"

    def read(self, written: Written) -> Value:
        """The typed value, or BadValue with the reason."""
        value = _READERS[self.kind](written)
        self._check_range(value)
        return value

    def _check_range(self, value: Value) -> None:
        if self.choices and isinstance(value, tuple) and len(set(value)) < len(value):
            raise BadValue("must not name anything twice")
        for word in value if isinstance(value, tuple) else (value,):
            if self.choices and word not in self.choices:
                raise BadValue(f"must be one of {', '.join(self.choices)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value == self.besides:
            return
        # `not (a <= b)` also refuses a NaN.
        if self.at_least is not None and not value >= self.at_least:
            raise BadValue(f"must be at least {_plain(self.at_least)}")
        if self.at_most is not None and not value <= self.at_most:
            raise BadValue(f"must be at most {_plain(self.at_most)}")


class Key(Struct, frozen=True):
    """One key of the table: Kafka's name, the field of `Config` that holds it, and its rule."""

    name: str
    field: str
    default: Value
    rule: Rule


def as_text(value: Value) -> str:
    """A value as a properties file would write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return str(value).replace("e+", "E").replace("e", "E")  # as Java writes it
    return str(value)


# Reading, by type.


def _read_boolean(written: Written) -> bool:
    if isinstance(written, bool):
        return written
    text = trim(written).lower() if isinstance(written, str) else ""
    if text not in ("true", "false"):
        raise BadValue("must be true or false")
    return text == "true"


def _read_integer(written: Written) -> int:
    if isinstance(written, int) and not isinstance(written, bool):
        return written
    number = java_text.integer(written) if isinstance(written, str) else None
    if number is None:
        raise BadValue("must be a whole number")
    return number


def _read_double(written: Written) -> float:
    if isinstance(written, int | float) and not isinstance(written, bool):
        return float(written)
    number = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    if isinstance(written, str) and re.fullmatch(number, trim(written)):
        return float(trim(written))
    raise BadValue("must be a number")


def _read_string(written: Written) -> str:
    if isinstance(written, str):
        return trim(written)
    raise BadValue("must be text, in quotes")


def _read_list(written: Written) -> tuple[str, ...]:
    if isinstance(written, str):
        return split_list(written)
    if not isinstance(written, bool | int | float):
        words = tuple(trim(word) for word in written if isinstance(word, str))
        if len(words) == len(written):
            return words
    raise BadValue("must be a list of texts")


_READERS: dict[Kind, Callable[[Written], Value]] = {
    Kind.BOOLEAN: _read_boolean,
    Kind.INT: _read_integer,
    Kind.LONG: _read_integer,
    Kind.DOUBLE: _read_double,
    Kind.STRING: _read_string,
    Kind.LIST: _read_list,
}


def _plain(number: int | float) -> str:  # noqa: PYI041 - an int is written in full
    return str(number) if isinstance(number, int) else f"{number:g}"


# Declaring: `group_max_size: int = integer(2_147_483_647, "Members …", at_least=1)`.
# Each returns what `Table` takes apart; type checkers read it as the default.

D = TypeVar("D")


class _Declared(Struct, frozen=True):
    default: object
    rule: Rule


class Table(StructMeta):
    """Makes the class whose fields are keys: a Struct with their defaults, and RULES by field."""

    def __new__(  # noqa: PYI034 - Self is not for metaclasses
        mcls, name: str, bases: tuple[type, ...], names: dict[str, object], *, frozen: bool
    ) -> "Table":
        declared = {name: said for name, said in names.items() if isinstance(said, _Declared)}
        names |= {name: said.default for name, said in declared.items()}
        names["RULES"] = {name: said.rule for name, said in declared.items()}
        return super().__new__(mcls, name, bases, names, frozen=frozen)


def _declared(default: D, rule: Rule) -> D:
    return cast("D", _Declared(default, rule))


def boolean(doc: str, *, default: bool) -> bool:
    return _declared(default, Rule(Kind.BOOLEAN, doc))


def integer(
    default: int,
    doc: str,
    *,
    at_least: int = INT_MIN,
    at_most: int = INT_MAX,
    besides: int | None = None,
    long: bool = False,
) -> int:
    rule = replace(_number(doc, at_least, at_most, long=long), besides=besides)
    return _declared(default, rule)


def optional_integer(
    doc: str, *, at_least: int = INT_MIN, at_most: int = INT_MAX, long: bool = False
) -> int | None:
    """A number whose default is Kafka's null: a coarser key decides."""
    return _declared(None, _number(doc, at_least, at_most, long=long))


def real(default: float, doc: str, *, at_least: float, at_most: float | None = None) -> float:
    return _declared(default, Rule(Kind.DOUBLE, doc, at_least, at_most))


def text(default: str, doc: str) -> str:
    return _declared(default, Rule(Kind.STRING, doc))


def one_of(default: str, doc: str, *choices: str) -> str:
    return _declared(default, Rule(Kind.STRING, doc, choices=choices))


def words(default: tuple[str, ...], doc: str, *choices: str) -> tuple[str, ...]:
    return _declared(default, Rule(Kind.LIST, doc, choices=choices))


def _number(doc: str, at_least: int, at_most: int, *, long: bool) -> Rule:
    if long:
        low = LONG_MIN if at_least == INT_MIN else at_least
        return Rule(Kind.LONG, doc, low, LONG_MAX if at_most == INT_MAX else at_most)
    return Rule(Kind.INT, doc, at_least, at_most)
