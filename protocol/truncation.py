"""Cut off: an answer that repeats a client's words as far as strings can hold them.

A frame cannot hold a string that is too long, and yet an answer may have to: what is no UTF-8 has
grown when it was read, and a message for people puts its own words around the client's. Only then,
after an answer could not be written, it is gone through: names and messages are cut off where they
do not fit. Everything else that does not fit is a mistake of ours, and stays one.
"""

from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from protocol.primitives import echoed

ECHOED_FIELDS: Final = frozenset({"name", "topic", "topic_name", "resource_name", "error_message"})
"""Of answers: what may be a client's own word, or a message that has one in it."""

M = TypeVar("M", bound=Struct)


def truncated(message: M) -> M:
    """The same, with such strings cut off."""
    changed: dict[str, object] = {}
    for name in message.__struct_fields__:
        before: object = getattr(message, name)
        after: object = before
        if isinstance(before, str):
            after = echoed(before) if name in ECHOED_FIELDS else before
        elif isinstance(before, Struct):
            after = truncated(before)
        elif isinstance(before, list | tuple) and before and isinstance(before[0], Struct):
            after = [truncated(one) for one in before]
        if after is not before:
            changed[name] = after
    return replace(message, **changed) if changed else message
