"""Combined answer: one response from the parts of many partitions; the last part sends it.

For requests that name several groups, or none and mean all. A part waits for its own partition's
log like any other answer, and a partition whose log fails hands in refusals instead.
Kafka's counterpart: the `combineFutures` of `GroupCoordinatorService`.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from coordinator.pending_answers import Send
from protocol.messages import Response
from protocol.names import ErrorCode
from seams.reply_token import ReplyToken

T = TypeVar("T")


class CombinedAnswer(Generic[T]):
    """One request, and how many parts of its answer are still to come."""

    __slots__ = ("_build", "_error_code", "_found", "_missing", "_send", "_token")

    def __init__(
        self,
        token: ReplyToken,
        parts: int,
        build: Callable[[list[T], ErrorCode], Response],
        send: Send,
    ) -> None:
        """`build` gets all that was found, and NONE or the error that stands for the whole."""
        assert parts > 0, "an answer of no parts is sent by whoever asks"
        self._token = token
        self._missing = parts
        self._build = build
        self._send = send
        self._found: list[T] = []
        self._error_code = ErrorCode.NONE

    @property
    def is_sent(self) -> bool:
        return not self._missing

    def part(
        self, found: Sequence[T], refusals: Callable[[ErrorCode], Sequence[T]] | None
    ) -> "Part[T]":
        """`refusals` makes what stands in for `found`; None: a refusal is one for the whole."""
        return Part(self, found, refusals)

    def arrived(self, found: Sequence[T], error_code: ErrorCode = ErrorCode.NONE) -> None:
        self._found.extend(found)
        if error_code is not ErrorCode.NONE:
            self._error_code = error_code
        self._missing -= 1
        assert self._missing >= 0, "a part came twice"
        if not self._missing:
            self._send(self._token, self._build(self._found, self._error_code))


class Part(Generic[T]):
    """An `Answer` of pending_answers.py that goes into a whole."""

    __slots__ = ("_combined", "_found", "_refusals")

    def __init__(
        self,
        combined: CombinedAnswer[T],
        found: Sequence[T],
        refusals: Callable[[ErrorCode], Sequence[T]] | None,
    ) -> None:
        self._combined = combined
        self._found = found
        self._refusals = refusals

    def send(self) -> None:
        self._combined.arrived(self._found)

    def refuse(self, error_code: ErrorCode) -> None:
        if self._refusals is None:
            self._combined.arrived((), error_code)
        else:
            self._combined.arrived(self._refusals(error_code))
