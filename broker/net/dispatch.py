"""Dispatch: api key -> handler, of the coordinator, of the data plane, or of this file.

The cores export their handlers by api key; the dispatcher merges them with its own for ApiVersions
into one table of routes, which connection.py reads. So a request is dispatched once. `intercept`
lets a test or a drill drop, delay or answer the requests of one API on real sockets; without it
the table has the cores' own handlers and costs nothing. Kafka's counterpart: `KafkaApis.handle`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from broker.net.request import PendingRequest
from broker.net.route import Disconnected, OnAnswer, Route
from protocol.api_versions import answer_api_versions, served_versions
from protocol.features import SERVED_FEATURES, TRANSACTION_VERSION_MAX, finalized_levels
from protocol.messages import REQUESTS, Request, Response
from protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from protocol.names import ApiKey, ErrorCode
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken

UNSERVED_VERSION: Final = -1

_ZERO_LEVELS_SINCE: Final = 4
"""Clients of older versions of ApiVersions refuse a feature with the level 0."""


class Core(Protocol):
    """The coordinator or the data plane, as the dispatcher sees it."""

    @property
    def handlers(self) -> Mapping[ApiKey, Handler]: ...

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

RequestListener = Callable[[Request, ReplyToken, Handler], bool]
"""Hears of a request before its handler; True if it calls the handler itself, later."""

Interceptor = Callable[[Request, ReplyToken], Intercept]


class Dispatcher:
    """The table of routes. `unserved_api_versions` answers a version of ApiVersions that is not
    served."""

    def __init__(
        self,
        reply: Callable[[ReplyToken, Response | None], None],
        coordinator: Core,
        *others: Core,
        transaction_version: int = TRANSACTION_VERSION_MAX,
    ) -> None:
        """An API is served if a core has a handler for it: at most one core, ApiVersions none.

        `transaction_version` is the finalized level of that feature.
        """
        self._finalized = _finalized_features(transaction_version)
        self._reply = reply
        self._handlers: dict[ApiKey, Handler] = {ApiKey.API_VERSIONS: self._answer_api_versions}
        disconnected: dict[ApiKey, Disconnected] = {}
        for core in (coordinator, *others):
            twice = self._handlers.keys() & core.handlers.keys()
            assert not twice, f"two handlers for {_names(twice)}"
            self._handlers.update(core.handlers)
            disconnected |= dict.fromkeys(core.handlers, core.disconnected)
        undeclared = self._handlers.keys() - REQUESTS.keys()
        assert not undeclared, f"no messages for {_names(undeclared)}"
        self.routes = {
            api_key: Route(api_key, self._handlers[api_key], disconnected.get(api_key))
            for api_key in sorted(self._handlers)
        }
        self._served_versions = served_versions(self.routes)
        self._coordinator_apis = coordinator.handlers.keys()
        self.unserved_api_versions = Route(
            ApiKey.API_VERSIONS,
            self._refuse_api_versions,
            None,
            self.routes[ApiKey.API_VERSIONS].stats,
        )

    def intercept(self, api_key: ApiKey, interceptor: Interceptor | None) -> None:
        """Ask `interceptor` before each such request is handled; None ends it."""
        handler = self._handlers[api_key]
        self.routes[api_key].handle = (
            handler if interceptor is None else self._intercepted(handler, interceptor)
        )

    def handler_of(self, api_key: ApiKey) -> Handler:
        """The core's own handler: no interceptor is asked."""
        return self._handlers[api_key]

    def follow_answers(self, api_key: ApiKey, on_answer: OnAnswer) -> None:
        """Call it with each such request and its answer; other APIs cost no more than before."""
        route = self.routes.get(api_key)
        if route is not None:
            route.on_answer = on_answer
            route.handle = self._handlers[api_key] = _keeping(self._handlers[api_key])

    def on_coordinator_request(self, listener: RequestListener | None) -> None:
        """Call `listener` before each request for the coordinator is handled; None ends it."""
        for api_key in self._coordinator_apis:
            handler = self._handlers[api_key]
            self.routes[api_key].handle = (
                handler if listener is None else _announced(handler, listener)
            )

    def _intercepted(self, handler: Handler, interceptor: Interceptor) -> Handler:
        def handle(request: Request, token: ReplyToken, now: Now) -> None:
            match interceptor(request, token):
                case None:
                    handler(request, token, now)
                case Drop():
                    pass
                case Delay(delay_ms):
                    later = Now(now.mono_ms + delay_ms, now.wall_ms + delay_ms)
                    loop = asyncio.get_running_loop()
                    loop.call_later(delay_ms / 1000, handler, request, token, later)
                case Respond(response):
                    if isinstance(token, PendingRequest):
                        token.request = request  # for `on_answer`
                    self._reply(token, response)

        return handle

    def _answer_api_versions(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, ApiVersionsRequest)
        answer = answer_api_versions(token.api_version, request, self._served_versions)
        if answer.error_code is ErrorCode.NONE:
            answer = _with_features(answer, token.api_version, self._finalized)
        self._reply(token, answer)

    def _refuse_api_versions(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, ApiVersionsRequest)
        answer = answer_api_versions(UNSERVED_VERSION, request, self._served_versions)
        self._reply(token, answer)


def _finalized_features(transaction_version: int) -> list[FinalizedFeatureKey]:
    """As in Kafka: one at level 0 is not listed."""
    return [
        FinalizedFeatureKey(name, max_version_level=level, min_version_level=level)
        for name, level in finalized_levels(transaction_version).items()
        if level
    ]


def _names(api_keys: Iterable[ApiKey]) -> str:
    return ", ".join(sorted(api_key.name for api_key in api_keys))


def _announced(handler: Handler, listener: RequestListener) -> Handler:
    def handle(request: Request, token: ReplyToken, now: Now) -> None:
        if not listener(request, token, handler):
            handler(request, token, now)

    return handle


def _keeping(handler: Handler) -> Handler:
    """The token keeps the request until it is answered."""

    def handle(request: Request, token: ReplyToken, now: Now) -> None:
        assert isinstance(token, PendingRequest)
        token.request = request
        handler(request, token, now)

    return handle


def _with_features(
    answer: ApiVersionsResponse, version: int, finalized: Sequence[FinalizedFeatureKey]
) -> ApiVersionsResponse:
    supported = [
        SupportedFeatureKey(*feature)
        for feature in SERVED_FEATURES
        if feature.min_version > 0 or version >= _ZERO_LEVELS_SINCE
    ]
    return replace(
        answer,
        supported_features=supported,
        finalized_features_epoch=0,
        finalized_features=finalized,
    )
