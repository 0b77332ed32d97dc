"""Who answers this request? ApiKey -> handler: the coordinator, the data plane, or this file.

Stands between broker/net/connection.py, which reads and writes, and the two cores, which decide.
Answers ApiVersions itself. `intercept` lets a test or a drill drop, delay or answer requests of
one kind on real sockets; without it the table holds the cores' own handlers and costs nothing.
Kafka's counterpart: `KafkaApis.handle`.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from broker.net.request import PendingRequest
from broker.observe.stats import RequestStats
from protocol.api_versions import answer_api_versions
from protocol.messages import REQUESTS, Request, Response
from protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from protocol.names import ApiKey, ErrorCode
from seams.now import Now
from seams.reply_token import ReplyToken

Handler = Callable[[Request, PendingRequest, Now], None]

Reply = Callable[[ReplyToken, Response | None], None]

UNSERVED_VERSION: Final = -1

# Kafka 4.3.1 with nothing newer than classic groups switched on: metadata.version 4.3-IV0 alone.
# What is not listed is at level 0, and that is the truth: no KIP-848 groups (group.version), no
# transactions of the second kind (transaction.version), no share or streams groups.
_METADATA_VERSION: Final = "metadata.version"
_METADATA_LEVELS: Final = (7, 30)
_SUPPORTED_FEATURES: Final = (SupportedFeatureKey(_METADATA_VERSION, *_METADATA_LEVELS),)
_FINALIZED_FEATURES: Final = (
    FinalizedFeatureKey(
        _METADATA_VERSION,
        max_version_level=_METADATA_LEVELS[1],
        min_version_level=_METADATA_LEVELS[1],
    ),
)

COORDINATOR_APIS: Final = frozenset(
    {
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_DELETE,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.DELETE_GROUPS,
    }
)

WAITS_FOR_PEOPLE: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.FETCH})
"""For minutes perhaps: nobody else may be held up by that (queued.max.request.bytes)."""

HOLDS_CONNECTION: Final = WAITS_FOR_PEOPLE | {
    # These are worked on in a thread, and what comes after them must find their work done.
    ApiKey.PRODUCE,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
}
"""While one of these is unanswered, what the client sent after it is not looked at.

Kafka holds back what follows any request (it mutes the channel), also behind a Produce with acks=0.
"""


class Core(Protocol):
    """The coordinator or the data plane, as the shell sees it."""

    def handle(self, request: Request, token: ReplyToken, now: Now) -> None: ...

    def disconnected(self, token: ReplyToken, now: Now) -> None: ...


class Drop(Struct, frozen=True):
    """The request gets no answer."""


class Delay(Struct, frozen=True):
    """The request is handled later."""

    delay_ms: int


class Respond(Struct, frozen=True):
    """The request gets this answer and never reaches its handler."""

    response: Response


Intercept = Drop | Delay | Respond | None
Interceptor = Callable[[Request, ReplyToken], Intercept]


class Route:
    """The way of one API: what handles it, who is told of a disconnect, what is counted."""

    __slots__ = ("api_key", "core", "handle", "holds", "stats", "version_stop", "waits")

    def __init__(
        self, api_key: ApiKey, handle: Handler, core: Core | None, stats: RequestStats | None = None
    ) -> None:
        self.api_key = api_key
        self.version_stop = REQUESTS[api_key].VERSIONS.stop
        self.handle = handle
        self.core = core
        self.holds = api_key in HOLDS_CONNECTION
        self.waits = api_key in WAITS_FOR_PEOPLE
        self.stats = stats or RequestStats(api_key, self.version_stop)


class Dispatcher:
    """The table of routes. `unserved_api_versions` is for those whose version we cannot read."""

    def __init__(self, coordinator: Core, data_plane: Core, reply: Reply) -> None:
        self._reply = reply
        self.routes: dict[ApiKey, Route] = {}
        for api_key in REQUESTS:
            core: Core | None = None
            handle: Handler = self._answer_api_versions
            if api_key is not ApiKey.API_VERSIONS:
                core = coordinator if api_key in COORDINATOR_APIS else data_plane
                handle = core.handle
            self.routes[api_key] = Route(api_key, handle, core)
        self.unserved_api_versions = Route(
            ApiKey.API_VERSIONS,
            self._refuse_api_versions,
            None,
            self.routes[ApiKey.API_VERSIONS].stats,
        )
        self._own = {api_key: route.handle for api_key, route in self.routes.items()}

    def intercept(self, api_key: ApiKey, interceptor: Interceptor | None) -> None:
        """Ask `interceptor` before each such request is handled; None ends it."""
        own = self._own[api_key]
        route = self.routes[api_key]
        route.handle = own if interceptor is None else self._intercepted(own, interceptor)

    def on_coordinator_request(self, look: Callable[[Request], None] | None) -> None:
        """Let `look` see each request for the coordinator before it is handled; None ends it."""
        for api_key in COORDINATOR_APIS & self.routes.keys():
            own = self._own[api_key]
            self.routes[api_key].handle = own if look is None else _looked_at(own, look)

    def _intercepted(self, own: Handler, interceptor: Interceptor) -> Handler:
        def handle(request: Request, token: PendingRequest, now: Now) -> None:
            match interceptor(request, token):
                case None:
                    own(request, token, now)
                case Drop():
                    pass
                case Delay(delay_ms):
                    later = Now(now.mono_ms + delay_ms, now.wall_ms + delay_ms)
                    loop = asyncio.get_running_loop()
                    loop.call_later(delay_ms / 1000, own, request, token, later)
                case Respond(response):
                    self._reply(token, response)

        return handle

    def _answer_api_versions(self, request: Request, token: PendingRequest, _now: Now) -> None:
        assert isinstance(request, ApiVersionsRequest)
        answer = answer_api_versions(token.api_version, request)
        if answer.error_code is ErrorCode.NONE:
            answer = _with_features(answer)
        self._reply(token, answer)

    def _refuse_api_versions(self, request: Request, token: PendingRequest, _now: Now) -> None:
        assert isinstance(request, ApiVersionsRequest)
        self._reply(token, answer_api_versions(UNSERVED_VERSION, request))


def _looked_at(own: Handler, look: Callable[[Request], None]) -> Handler:
    def handle(request: Request, token: PendingRequest, now: Now) -> None:
        look(request)
        own(request, token, now)

    return handle


def _with_features(answer: ApiVersionsResponse) -> ApiVersionsResponse:
    return replace(
        answer,
        supported_features=_SUPPORTED_FEATURES,
        finalized_features_epoch=0,
        finalized_features=_FINALIZED_FEATURES,
    )
