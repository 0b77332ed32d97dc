"""Dispatch: every API that is served has exactly one handler, and an intercept is undone."""

from collections.abc import Mapping

import pytest

from broker.net.dispatch import Dispatcher
from protocol.messages import REQUESTS, Request, Response
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.names import ApiKey
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from tests.broker.shell import heartbeat

SERVED = REQUESTS.keys() - {ApiKey.API_VERSIONS}
NOW = Now(0, 0)


class Recorder:
    """A core that records what it is asked."""

    def __init__(self, api_keys: set[ApiKey]) -> None:
        self.handlers: Mapping[ApiKey, Handler] = dict.fromkeys(api_keys, self._handle)
        self.asked: list[Request] = []

    def _handle(self, request: Request, token: ReplyToken, now: Now) -> None:
        self.asked.append(request)

    def disconnected(self, token: ReplyToken, now: Now) -> None: ...


def dispatcher_of(*cores: Recorder) -> Dispatcher:
    return Dispatcher(lambda token, response: None, *cores)


def test_the_routes_are_in_the_order_of_the_api_keys() -> None:
    first, second = Recorder({ApiKey.HEARTBEAT}), Recorder(SERVED - {ApiKey.HEARTBEAT})

    routes = dispatcher_of(first, second).routes

    assert list(routes) == sorted(REQUESTS)
    assert routes[ApiKey.HEARTBEAT].handle is first.handlers[ApiKey.HEARTBEAT]
    assert routes[ApiKey.HEARTBEAT].disconnected == first.disconnected
    assert routes[ApiKey.PRODUCE].disconnected == second.disconnected
    assert routes[ApiKey.API_VERSIONS].disconnected is None


@pytest.mark.parametrize(
    ("coordinator", "data_plane", "words"),
    [
        (SERVED, {ApiKey.FETCH}, "two handlers for FETCH"),
        (SERVED, {ApiKey.API_VERSIONS}, "two handlers for API_VERSIONS"),
    ],
)
def test_no_api_has_two_handlers(
    coordinator: set[ApiKey], data_plane: set[ApiKey], words: str
) -> None:
    with pytest.raises(AssertionError, match=words):
        dispatcher_of(Recorder(coordinator), Recorder(data_plane))


def test_an_api_without_a_handler_has_no_route_and_is_not_advertised() -> None:
    answers: list[Response | None] = []
    dispatcher = Dispatcher(
        lambda token, response: answers.append(response), Recorder({ApiKey.FETCH, ApiKey.HEARTBEAT})
    )
    request = ApiVersionsRequest("a-client", "1")
    dispatcher.routes[ApiKey.API_VERSIONS].handle(
        request, ReplyToken(4, "a-client", "/127.0.0.1"), NOW
    )

    assert list(dispatcher.routes) == [ApiKey.FETCH, ApiKey.HEARTBEAT, ApiKey.API_VERSIONS]
    assert isinstance(answers[0], ApiVersionsResponse)
    assert [api.api_key for api in answers[0].api_keys] == list(dispatcher.routes)


def test_every_handler_has_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(REQUESTS, ApiKey.FETCH)

    with pytest.raises(AssertionError, match="no messages for FETCH"):
        dispatcher_of(Recorder({ApiKey.FETCH, ApiKey.HEARTBEAT}))


def test_a_listener_hears_of_the_coordinators_requests_until_it_is_taken_away() -> None:
    coordinator, data_plane = Recorder({ApiKey.HEARTBEAT}), Recorder(SERVED - {ApiKey.HEARTBEAT})
    dispatcher = dispatcher_of(coordinator, data_plane)
    heard: list[Request] = []

    def hear(request: Request, _token: ReplyToken, _handler: Handler) -> bool:
        heard.append(request)
        return False

    dispatcher.on_coordinator_request(hear)
    for api_key in (ApiKey.HEARTBEAT, ApiKey.METADATA):
        dispatcher.routes[api_key].handle(heartbeat(), ReplyToken(4, "a-client", "/127.0.0.1"), NOW)
    dispatcher.on_coordinator_request(None)
    dispatcher.routes[ApiKey.HEARTBEAT].handle(
        heartbeat(), ReplyToken(4, "a-client", "/127.0.0.1"), NOW
    )

    assert len(heard) == 1
    assert (len(coordinator.asked), len(data_plane.asked)) == (2, 1)
    assert dispatcher.routes[ApiKey.HEARTBEAT].handle is coordinator.handlers[ApiKey.HEARTBEAT]
