"""Answer room: how many bytes may one answer to a request about many things still take?

A request of a few bytes may name one large group two hundred thousand times, and Kafka answers each
naming. So that no request fills the memory, the answers to those that are beyond the room are
refusals. Sizes are counted about as they are on the wire, without the lengths.
"""

from typing import Final

ANSWER_BYTES_MAX: Final = 268_435_456
"""256 MiB. librdkafka reads no answer above 100 MB (receive.message.max.bytes), Kafka's format has
room for 2 GiB."""


class AnswerBudget:
    """Of one answer."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = ANSWER_BYTES_MAX

    def __bool__(self) -> bool:
        """Is there any left?"""
        return self._left > 0

    def takes(self, size: int) -> bool:
        """Whether so many bytes more fit; they count, even if they do not."""
        self._left -= size
        return self._left >= 0
