"""Log lines: the form of a line, and the table from a type of event to its lines.

`group_lines.py`, `consumer_lines.py`, `node_lines.py`, `cleaner_lines.py` and `storage_lines.py`
enter a function for each type of event that is logged; a type in none of the tables is silent, and
tests/broker/observe/test_observer.py names those. Where Kafka logs the same, the message is
Kafka's whole sentence with its values in it (`log_sentence`): alerts and parsers for Kafka's log
match it (ADR 0051). Other messages have their values beside them, as fields.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar, cast

from protocol.names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicName

E = TypeVar("E")
LogFields = dict[str, object]


class Sentence(str):
    """A message with all its values in it. In the log for people at most a principal follows it."""

    __slots__ = ()


class LogLine(NamedTuple):
    level: str
    message: str
    fields: LogFields


VALUE_CHARS_MAX: Final = 500
"""Of one value in a line: twice the longest topic name, and more than any id that people choose."""


NO_CLIENT_REASON: Final = "not provided"
"""What Kafka writes for a client that gives none."""


def log_sentence(template: str, *values: object) -> Sentence:
    """A template as Kafka writes it, with its values as Java shows them; each is shortened."""
    return Sentence(template.format(*[shorten(_as_java(value)) for value in values]))


def shorten(text: str) -> str:
    """A client may choose an id of 32 kB, and have it in many lines."""
    if len(text) <= VALUE_CHARS_MAX:
        return text
    return f"{text[:VALUE_CHARS_MAX]}… ({len(text)} characters)"


def java_list(names: Iterable[str]) -> str:
    """As a Java collection shows them, the first ones."""
    return f"[{', '.join(map(shorten, first_names(names)))}]"


def _as_java(value: object) -> str:
    return "null" if value is None else str(value)


LineTable = dict[type, Callable[[object], Iterable[LogLine]]]
"""Each function takes the events of its own type alone."""


def log_lines_for(
    table: LineTable, event_type: type[E]
) -> Callable[[Callable[[E], Iterable[LogLine]]], None]:
    """Enter the decorated function into the table: it makes the lines of one type of event."""

    def enter(lines_of: Callable[[E], Iterable[LogLine]]) -> None:
        assert event_type not in table, f"{event_type.__name__} has its lines already"
        table[event_type] = cast("Callable[[object], Iterable[LogLine]]", lines_of)

    return enter


def principal_field(principal: str | None) -> LogFields:
    """No field for a client without authentication."""
    return {} if principal is None else {"principal": principal}


def offsets_partition(partition: int) -> str:
    return f"{OFFSETS_TOPIC}-{partition}"


def coordinator_of(topic: TopicName) -> str:
    """Which coordinator writes this topic, in Kafka's words."""
    return "txn coordinator" if topic == TRANSACTION_STATE_TOPIC else "group coordinator"


FIELD_NAMES_MAX: Final = 20
"""Names in one field of a line; of a group of thousands the rest is a number."""


def first_names(names: Iterable[str]) -> list[str]:
    """The first names as a list, and how many more there are."""
    all_names = [*names]
    more = len(all_names) - FIELD_NAMES_MAX
    return all_names if more <= 0 else [*all_names[:FIELD_NAMES_MAX], f"and {more} more"]
