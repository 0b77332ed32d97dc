"""Answer budget: how many bytes the answer to one request may still grow by.

A request of a few bytes may name one large group two hundred thousand times, and Kafka answers each
mention. So that no request fills the memory, everything beyond the budget is answered with an
error. Sizes are approximately those on the wire, without the lengths.
"""

from typing import Final

ANSWER_BYTES_MAX: Final = 268_435_456
"""256 MiB. librdkafka reads no answer above 100 MB (receive.message.max.bytes), Kafka's format has
room for 2 GiB."""


class AnswerBudget:
    """The budget of one answer."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = ANSWER_BYTES_MAX

    def __bool__(self) -> bool:
        """Whether there is any left."""
        return self._left > 0

    def takes(self, size: int) -> bool:
        """Whether `size` more bytes fit. They are counted even if they do not."""
        self._left -= size
        return self._left >= 0
