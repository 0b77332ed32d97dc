"""Truncation: cuts the strings of a response that are too long for the wire.

A response may have to repeat a string that does not fit: invalid UTF-8 grows when it is read, and
an error message adds its own words to the client's. When a response could not be written, names and
error messages in it are cut off. Anything else that does not fit is a bug, and stays an error.
"""

from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from protocol.primitives import echoed

ECHOED_FIELDS: Final = frozenset(
    {
        "name",
        "topic",
        "topic_name",
        "resource_name",
        "group_id",
        "error_message",
        "entity_type",
        "entity_name",
        "user",
        "feature",
        "principal_type",
        "principal_name",
    }
)
"""Fields of responses that may hold a string of the client's, or a message with one in it."""

M = TypeVar("M", bound=Struct)


def truncated(message: M) -> M:
    """The message with its long strings truncated."""
    changed: dict[str, object] = {}
    for name in message.__struct_fields__:
        before: object = getattr(message, name)
        after: object = before
        if isinstance(before, str):
            after = echoed(before) if name in ECHOED_FIELDS else before
        elif isinstance(before, Struct):
            after = truncated(before)
        elif isinstance(before, list | tuple) and before and isinstance(before[0], Struct):
            # None stands for what was not committed, in CommittedPartitions.
            after = [None if element is None else truncated(element) for element in before]
        if after is not before:
            changed[name] = after
    return replace(message, **changed) if changed else message
