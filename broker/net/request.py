"""Pending request: one request of a connection, from decoding until its answer is written.

The shell's `ReplyToken`. It stands in its connection's queue, which keeps the order of the answers.
The cores hold the same object and read only the three fields of `ReplyToken`.
"""

from typing import Final, Protocol

from broker.net.route import Route
from broker.net.sockets import Bound
from protocol.messages import Request
from seams.principal import Principal
from seams.reply_token import ReplyToken

NO_ANSWER: Final = b""
"""In place of an answer: nothing is sent, as for a Produce with acks=0."""

HANG_UP: Final = b"\xff"
"""In place of an answer: the connection is closed after the answers before it. No frame is this
short."""


class Requester(Protocol):
    """The connection that a request came from, as those see it who answer the request."""

    client_host: str
    closing: bool
    host: str
    listener: Bound
    lost: bool
    principal: Principal

    @property
    def peer(self) -> str: ...

    def mute(self) -> None: ...

    def unmute(self) -> None: ...

    def wait_for_slot(self) -> None: ...

    def hang_up(self) -> None: ...

    def write_through(self, token: "PendingRequest") -> bool:
        """Whether this answer is written, with the collected ones if it is one of them."""

    @property
    def api_versions(self) -> Route:
        """The route of ApiVersions in the versions that are served."""

    def answered(self, token: "PendingRequest", answer: bytes) -> None: ...


class RequestCost:
    """What a request has cost so far, while there are quotas. See throttling.py.

    `began_s`: since when its cost is not counted yet. `seconds`: of its handler, not checked yet.
    `is_limited`: its client has a quota of time, and so only one request at a time.
    """

    __slots__ = (
        "began_s",
        "is_in_handler",
        "is_limited",
        "is_time_checked",
        "seconds",
        "throttle_ms",
        "throttled_by",
    )

    def __init__(self, began_s: float, *, is_limited: bool) -> None:
        self.began_s = began_s
        self.is_limited = is_limited
        self.is_in_handler = True
        self.is_time_checked = False
        self.seconds = 0.0
        self.throttle_ms = 0
        self.throttled_by = ""


class PendingRequest(ReplyToken):
    """`answer` is None until there is one: a whole frame, NO_ANSWER or HANG_UP.

    `request` is set only where a route has `on_answer`: others need it no more once handled.
    """

    request: Request
    __slots__ = (
        "answer",
        "connection",
        "correlation_id",
        "cost",
        "is_counted",
        "request",
        "route",
        "size_bytes",
        "started_s",
    )

    def __init__(
        self,
        connection: Requester,
        route: Route,
        api_version: int,
        correlation_id: int,
        client_id: str,
        size_bytes: int,
        started_s: float,
    ) -> None:
        # Not through super(): one is made for each request.
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = connection.client_host
        self.principal = connection.principal
        self.connection = connection
        self.route = route
        self.correlation_id = correlation_id
        self.size_bytes = size_bytes
        self.started_s = started_s
        self.is_counted = False  # in RequestBytes.queued_bytes
        self.answer: bytes | None = None
        self.cost: RequestCost | None = None
