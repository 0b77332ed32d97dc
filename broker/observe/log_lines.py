"""What is a log line, and which events have one? The frame for the tables of words.

`group_lines.py` and `node_lines.py` enter a function for each type of event that is told; a type
that is in neither table is silent. The words are those that Kafka's operators grep for, the
facts stand beside them as keys.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from protocol.names import OFFSETS_TOPIC

E = TypeVar("E")
Facts = dict[str, object]


class Line(NamedTuple):
    level: str
    words: str
    facts: Facts


Tell = Callable[[object], Sequence[Line]]
Table = dict[type, Tell]


def told(table: Table, kind: type[E]) -> Callable[[Callable[[E], Iterable[Line]]], None]:
    """Enter a function into the table: it words all events of one type."""

    def enter(words_of: Callable[[E], Iterable[Line]]) -> None:
        def tell(event: object) -> Sequence[Line]:
            assert isinstance(event, kind)
            return tuple(words_of(event))

        table[kind] = tell

    return enter


def offsets_partition(partition: int) -> str:
    return f"{OFFSETS_TOPIC}-{partition}"


NAMED_MAX: Final = 20
"""Things that one line names; of a group of thousands the rest is a number."""


def named(names: Iterable[str]) -> list[str]:
    """The first names, and how many more there are."""
    all_names = [*names]
    more = len(all_names) - NAMED_MAX
    return all_names if more <= 0 else [*all_names[:NAMED_MAX], f"and {more} more"]
