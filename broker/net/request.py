"""Which request is this, whose is it, and has it been answered? The shell's own reply token.

A token sits in its connection's queue from the moment the request was read until its answer is
written; the core holds the same object and looks at nothing but the three fields of
`ReplyToken`.
"""

from typing import TYPE_CHECKING, Final

from seams.reply_token import ReplyToken

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.dispatch import Route

NO_ANSWER: Final = b""
"""In place of an answer: nothing is sent, as for a Produce with acks=0."""

HANG_UP: Final = b"\xff"
"""In place of an answer: the connection is closed when its turn comes. No frame is this short."""


class PendingRequest(ReplyToken):
    """`answer` is None until there is one: a whole frame, NO_ANSWER or HANG_UP."""

    __slots__ = (
        "answer",
        "connection",
        "correlation_id",
        "is_counted",
        "route",
        "size_bytes",
        "started_s",
    )

    def __init__(
        self,
        connection: "Connection",
        route: "Route",
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
        self.connection = connection
        self.route = route
        self.correlation_id = correlation_id
        self.size_bytes = size_bytes
        self.started_s = started_s
        self.is_counted = False  # in the server's queued_bytes
        self.answer: bytes | None = None
