"""Pending answers: answers and commands that wait for a log position to be stored.

A shard hands in every answer; one whose position is stored goes out at once, the rest when
`release` learns that it is. Answers to the same position go out in the order they came. When the
log fails they turn into refusals, and so does one that has waited for `offsets.commit.timeout.ms`:
its commit may still be stored. The answers to a large group go out in slices, one in each tick;
one that is stored and waits for its tick is never refused.
A leader's assignments also wait here (`PendingCommands`):
stored in time they are handed out, else all who wait for them are refused. Waiting for people is
another matter, and the purgatory's.
Kafka's counterpart: the deferred events of `CoordinatorRuntime`, and their `OperationTimeout`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from coordinator.commands import StoredCommand
from coordinator.outcome import Reply
from coordinator.refusals import refused
from protocol.messages import Response
from protocol.names import ErrorCode
from seams.next_deadline import NextDeadline
from seams.reply_token import ReplyToken
from storage.api import Position

SENT_AT_ONCE: Final = 400
"""Answers of one slice: encoding one and handing it to its connection takes some 8 microseconds."""

Send = Callable[[ReplyToken, Response], None]


class Answer(Protocol):
    """Something that can go out, or be turned into a refusal, once."""

    def send(self) -> None: ...

    def refuse(self, error_code: ErrorCode) -> None: ...


class ClientAnswer:
    """The answer to one request."""

    __slots__ = ("_response", "_send", "_token")

    def __init__(self, token: ReplyToken, response: Response, send: Send) -> None:
        self._token = token
        self._response = response
        self._send = send

    def send(self) -> None:
        self._send(self._token, self._response)

    def refuse(self, error_code: ErrorCode) -> None:
        self._send(self._token, refused(self._response, error_code, self._token.api_version))


class TurnAnswers:
    """Answers of one turn, at most `SENT_AT_ONCE` of them: to the members of a large group."""

    __slots__ = ("_first", "_replies", "_send")

    def __init__(self, replies: Sequence[Reply], first: int, send: Send) -> None:
        """`replies` of the whole turn, of which this slice begins at `first`."""
        self._replies = replies
        self._first = first
        self._send = send

    def send(self) -> None:
        for reply in self._replies[self._first : self._first + SENT_AT_ONCE]:
            self._send(reply.token, reply.response)

    def refuse(self, error_code: ErrorCode) -> None:
        for reply in self._replies[self._first : self._first + SENT_AT_ONCE]:
            token = reply.token
            self._send(token, refused(reply.response, error_code, token.api_version))


class PendingAnswers:
    """Ordered by position, then by arrival. Bounded by the requests in flight."""

    __slots__ = ("_arrivals", "_heap", "_next_deadline", "_timeout_ms", "due_ms", "stored")

    def __init__(self, stored: Position, timeout_ms: int, next_deadline: NextDeadline) -> None:
        self.stored = stored
        self.due_ms: int | None = None  # no answer is overdue before; one deadline for them all
        self._timeout_ms = timeout_ms
        self._next_deadline = next_deadline
        self._heap: list[tuple[Position, int, Answer, int]] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, position: Position, answer: Answer, now_ms: int) -> None:
        if position <= self.stored:
            answer.send()
            return
        self._arrivals += 1
        heappush(self._heap, (position, self._arrivals, answer, now_ms))
        if self.due_ms is None:
            self._due_at(now_ms + self._timeout_ms)

    def _due_at(self, deadline_ms: int) -> None:
        self.due_ms = deadline_ms
        self._next_deadline.lower(deadline_ms)

    def refuse_overdue(self, now_ms: int) -> None:
        """As Kafka answers a write that timed out; most often there is none, and all are young."""
        if self.due_ms is None or now_ms < self.due_ms:
            return
        self.due_ms = None
        since_ms = now_ms - self._timeout_ms
        stored = self.stored
        overdue = sorted(e for e in self._heap if e[3] <= since_ms and e[0] > stored)
        self._heap = [e for e in self._heap if e[3] > since_ms or e[0] <= stored]
        heapify(self._heap)
        waiting_ms = [e[3] for e in self._heap if e[0] > stored]
        if waiting_ms:
            self._due_at(min(waiting_ms) + self._timeout_ms)
        for entry in overdue:
            entry[2].refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def release(self, stored: Position) -> None:
        """Everything before `stored` is on the disk now."""
        self.stored = max(self.stored, stored)
        self.send_slice()

    def add_slices(
        self, position: Position, replies: Sequence[Reply], send: Send, now_ms: int
    ) -> None:
        """Many answers of one turn, which are stored or not: each slice is one entry."""
        for first in range(0, len(replies), SENT_AT_ONCE):
            self._arrivals += 1
            answers = TurnAnswers(replies, first, send)
            heappush(self._heap, (position, self._arrivals, answers, now_ms))
        if self.due_ms is None:
            self._due_at(now_ms + self._timeout_ms)
        self.send_slice()

    @property
    def has_slice(self) -> bool:
        """Whether some could go out now."""
        return bool(self._heap) and self._heap[0][0] <= self.stored

    def send_slice(self) -> None:
        """Send what could go out, or the first of them."""
        for _ in range(SENT_AT_ONCE):
            if not self.has_slice:
                return
            answer = heappop(self._heap)[2]
            answer.send()
            if isinstance(answer, TurnAnswers):
                break
        if self.has_slice:
            self._next_deadline.lower(0)

    def refuse_all(self, error_code: ErrorCode) -> None:
        """What they depend on will never be stored by us; what is stored goes out."""
        heap, self._heap = self._heap, []
        while heap:
            position, _, answer, _ = heappop(heap)
            if position <= self.stored:
                answer.send()
            else:
                answer.refuse(error_code)


class PendingCommands:
    """The turns that follow the storing of a record; in the order of the log, and so of time."""

    __slots__ = ("_next_deadline", "_queue", "_timeout_ms")

    def __init__(self, timeout_ms: int, next_deadline: NextDeadline) -> None:
        self._timeout_ms = timeout_ms
        self._next_deadline = next_deadline
        self._queue: deque[tuple[Position, int, StoredCommand]] = deque()

    def add(self, position: Position, command: StoredCommand, now_ms: int) -> None:
        self._queue.append((position, now_ms + self._timeout_ms, command))
        self._next_deadline.lower(now_ms + self._timeout_ms)

    @property
    def due_ms(self) -> int | None:
        """Nothing is overdue before."""
        return self._queue[0][1] if self._queue else None

    def stored(self, position: Position) -> list[StoredCommand]:
        """Those that waited for this position, or one before."""
        ready = []
        while self._queue and self._queue[0][0] <= position:
            ready.append(self._queue.popleft()[2])
        return ready

    def overdue(self, now_ms: int) -> list[StoredCommand]:
        """Those that have waited too long; they will not come to pass, whatever is stored."""
        late = []
        while self._queue and self._queue[0][1] <= now_ms:
            late.append(self._queue.popleft()[2])
        return late

    def clear(self) -> None:
        self._queue.clear()
