"""Decoded record: what is shown of a record; the result of every decoder."""

from typing import Final, NamedTuple

from logtools.kafka_json import Json

UNKNOWN_RECORD: Final = "Unknown"
"""A record of a type that nobody here knows, perhaps of a newer Kafka."""
CONTROL_RECORD: Final = "Control"
"""A record of a control batch, of any topic."""
PLAIN_RECORD: Final = "Record"
"""A record of a topic whose records have no form of their own."""


class ShownRecord(NamedTuple):
    """A record as JSON, and by what an operator may look for it.

    `problem` says what could not be understood; the bytes are then in `key` or `value`.
    """

    kind: str
    key: Json
    value: Json
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    problem: str | None = None
