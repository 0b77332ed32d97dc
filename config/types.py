"""Configuration key declarations: the functions with which `config/keys.py` declares each key.

Each returns what `KeyTable` takes apart: the class `Config` gets the defaults, and `DEFINITIONS`
the types, ranges and documentation. `protocol/config_def.py` reads and checks values by them.
Kafka's counterpart: `ConfigDef.define`.
"""

from typing import TypeVar, cast

from msgspec import Struct, StructMeta

from protocol.config_def import (
    ConfigKey,
    ConfigType,
    ConfigValue,
    Range,
    Validator,
    ValidList,
    ValidString,
    ValidStringOfAnyCase,
)


class BrokerKey(ConfigKey, frozen=True):
    """One key of the table: with the field of `Config` that holds it, and its default.

    None is the default where Kafka's is null: another key decides.
    """

    field: str
    default: ConfigValue | None

    @property
    def valid_values(self) -> str:
        """The range in a reader's words; empty where every value of the type is valid."""
        return "" if self.validator is None else str(self.validator)


class Definition(Struct, frozen=True):
    """What a declaration says of a key, besides its name and its default."""

    type: ConfigType
    documentation: str
    validator: Validator | None


class _Declared(Struct, frozen=True):
    default: object
    definition: Definition


class KeyTable(StructMeta):
    """Makes the class whose fields are keys: with their defaults, and DEFINITIONS by field.

    The keys of a base class come after its own.
    """

    def __new__(  # noqa: PYI034 - Self is not for metaclasses
        mcls, name: str, bases: tuple[type, ...], names: dict[str, object], *, frozen: bool
    ) -> "KeyTable":
        declared = {name: value for name, value in names.items() if isinstance(value, _Declared)}
        names |= {name: value.default for name, value in declared.items()}
        definitions = {name: value.definition for name, value in declared.items()}
        for base in bases:
            definitions |= getattr(base, "DEFINITIONS", {})
        names["DEFINITIONS"] = definitions
        return super().__new__(mcls, name, bases, names, frozen=frozen)


# Type checkers read what these return as the default.

D = TypeVar("D")


def _declared(
    default: D, config_type: ConfigType, documentation: str, validator: Validator | None = None
) -> D:
    return cast("D", _Declared(default, Definition(config_type, documentation, validator)))


def boolean(doc: str, *, default: bool) -> bool:
    return _declared(default, ConfigType.BOOLEAN, doc)


def integer(
    default: int,
    doc: str,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    other: int | None = None,
    long: bool = False,
) -> int:
    """`other` is a value outside the range that is valid too."""
    config_type = ConfigType.LONG if long else ConfigType.INT
    return _declared(default, config_type, doc, _range(at_least, at_most, other))


def short(default: int, doc: str, *, at_least: int | None = None) -> int:
    return _declared(default, ConfigType.SHORT, doc, _range(at_least))


def optional_integer(doc: str, *, at_least: int | None = None, long: bool = False) -> int | None:
    """A number whose default is Kafka's null: a coarser key decides."""
    config_type = ConfigType.LONG if long else ConfigType.INT
    return _declared(None, config_type, doc, _range(at_least))


def double(default: float, doc: str, *, at_least: float, at_most: float | None = None) -> float:
    return _declared(default, ConfigType.DOUBLE, doc, Range(at_least, at_most))


def string(default: str, doc: str) -> str:
    return _declared(default, ConfigType.STRING, doc)


def class_name(default: str, doc: str) -> str:
    """A Java class that Kafka would load; there are fixed ones that stand for own code."""
    return _declared(default, ConfigType.CLASS, doc)


def password(doc: str) -> str:
    """A secret: it is never shown, and empty without one."""
    return _declared("", ConfigType.PASSWORD, doc)


def valid_string(default: str, doc: str, *valid: str) -> str:
    return _declared(default, ConfigType.STRING, doc, ValidString(valid))


def valid_string_of_any_case(default: str, doc: str, *valid: str) -> str:
    return _declared(default, ConfigType.STRING, doc, ValidStringOfAnyCase(valid))


def valid_list(
    default: tuple[str, ...], doc: str, *valid: str, non_empty: bool = False
) -> tuple[str, ...]:
    """Words of `valid`; any words if none are given."""
    return _declared(default, ConfigType.LIST, doc, ValidList(valid, non_empty))


def _range(low: int | None, high: int | None = None, other: int | None = None) -> Range | None:
    return None if low is None else Range(low, high, other)
