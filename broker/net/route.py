"""Route: how the requests of one API are handled, and what is counted of them.

`dispatch.py` makes one for each api key that is served. A connection calls `handle` and reads
`holds` and `waits_for_members`; the server counts into `stats`.
"""

from collections.abc import Callable
from typing import Final

from broker.observe.stats import RequestStats
from protocol.messages import REQUESTS, Response
from protocol.names import ApiKey
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken

WAITS_FOR_MEMBERS: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.FETCH})
"""These wait for other clients, perhaps for minutes. Their bytes do not count against
queued.max.request.bytes, or members that wait for each other would block all other clients."""

HOLDS_CONNECTION: Final = WAITS_FOR_MEMBERS | {
    # A thread works on these, and the next request of the client must find that work done.
    ApiKey.PRODUCE,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DELETE_RECORDS,
}
"""While one of these is unanswered, the next request of its connection is not handled.

Kafka mutes the channel for every request, also for a Produce with acks=0.
"""

Disconnected = Callable[[ReplyToken, Now], None]

OnAnswer = Callable[[ReplyToken, Response], None]
"""Called with the token of each request of the API, and its answer."""


class Route:
    """One API: its handler, who is notified of a disconnect, its flags and counters."""

    __slots__ = (
        "api_key",
        "disconnected",
        "handle",
        "holds",
        "on_answer",
        "stats",
        "version_stop",
        "waits_for_members",
    )

    def __init__(
        self,
        api_key: ApiKey,
        handle: Handler,
        disconnected: Disconnected | None,
        stats: RequestStats | None = None,
    ) -> None:
        """`disconnected` is called when the client goes before its answer; None if it may not
        have to wait for one."""
        self.api_key = api_key
        self.version_stop = REQUESTS[api_key].VERSIONS.stop
        self.handle = handle
        self.disconnected = disconnected
        self.holds = api_key in HOLDS_CONNECTION
        self.on_answer: OnAnswer | None = None  # the audit, of administrative requests
        self.waits_for_members = api_key in WAITS_FOR_MEMBERS
        self.stats = stats or RequestStats(api_key, self.version_stop)
