"""Topics of a test's daemon: creation by CreateTopics, without a connection of the test's own."""

import asyncio
from typing import Final

from broker.daemon import Daemon
from broker.net.request import PendingRequest
from broker.net.route import Route
from broker.net.sockets import Bound
from protocol.codec import decode_response
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.names import ApiKey, ErrorCode, TopicName
from seams.principal import ANONYMOUS, Principal
from testing.refusal import bad_value

_VERSION: Final = 7
_TIMEOUT_MS: Final = 30_000


class _OwnRequest:
    """The requester of the test's own request: it has no connection, and keeps the answer."""

    client_host = "/127.0.0.1"
    closing = False
    host = "127.0.0.1"
    lost = False
    peer = "the test"
    listener = Bound("TEST", (), "127.0.0.1", 0, "127.0.0.1", 0)

    def __init__(self, principal: Principal, api_versions: Route) -> None:
        self.principal = principal
        self.api_versions = api_versions
        self.frame = asyncio.get_running_loop().create_future()

    def mute(self) -> None:
        """It sends one request."""

    def unmute(self) -> None:
        """As above."""

    def wait_for_slot(self) -> None:
        """As above."""

    def hang_up(self) -> None:
        """There is nothing to close."""

    def write_through(self, _token: PendingRequest) -> bool:
        return False

    def answered(self, _token: PendingRequest, answer: bytes) -> None:
        if not self.frame.done():
            self.frame.set_result(answer)


async def create_topic(daemon: Daemon, name: str, partitions: int) -> None:
    """Returns when clients can use it. Raises ControlRefusal with Kafka's error and words."""
    supers = sorted(daemon.config.super_user_principals, key=str)
    requester = _OwnRequest(
        supers[0] if supers else ANONYMOUS, daemon.dispatcher.routes[ApiKey.API_VERSIONS]
    )
    route = daemon.dispatcher.routes[ApiKey.CREATE_TOPICS]
    token = PendingRequest(
        requester, route, _VERSION, 0, "rollcall-test", 0, daemon.server.stopwatch()
    )
    topic = CreatableTopic(TopicName(name), num_partitions=partitions, replication_factor=-1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
    daemon.dispatcher.handler_of(ApiKey.CREATE_TOPICS)(request, token, daemon.clock.now())
    frame = await requester.frame
    _, response = decode_response(ApiKey.CREATE_TOPICS, _VERSION, frame[4:], 0, len(frame) - 4)
    assert isinstance(response, CreateTopicsResponse)
    (result,) = response.topics
    if result.error_code is not ErrorCode.NONE:
        words = result.error_message or ""
        raise bad_value(f"topic {name}: {ErrorCode(result.error_code).name}: {words}".rstrip(": "))
