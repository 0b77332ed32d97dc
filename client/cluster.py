"""Cluster: a running Rollcall or Kafka, by way of any of its brokers.

It has one connection per broker, finds coordinators and leaders, and asks again for a few seconds
while a coordinator loads or moves.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from client.connection import SHOWN_MAX, BrokerConnection
from client.errors import ClusterFault, NotThere, RequestRefused
from client.properties import ClientProperties
from config.listeners import BadAddress, parse_host_port
from protocol.java_text import split_list
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from protocol.names import ErrorCode, GroupId, TopicName

ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.25

RETRIABLE: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)

Answer = TypeVar("Answer")


class Cluster:
    """Every method raises ClusterFault."""

    def __init__(self, bootstrap: str, properties: ClientProperties | None = None) -> None:
        """`bootstrap` is HOST:PORT[,HOST:PORT...]."""
        self._properties = properties or ClientProperties()
        self._open: dict[tuple[str, int], BrokerConnection] = {}
        self._pause = threading.Event()
        self.first = self._bootstrap(bootstrap)

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _bootstrap(self, bootstrap: str) -> BrokerConnection:
        failure = ClusterFault("no HOST:PORT was given")
        for address in split_list(bootstrap):
            try:
                host, port = parse_host_port(address)
            except BadAddress:
                raise ClusterFault(f"{address[:SHOWN_MAX]!r} is not HOST:PORT") from None
            try:
                return self.connection(host, port)
            except ClusterFault as fault:
                failure = fault
        raise failure

    def connection(self, host: str, port: int) -> BrokerConnection:
        found = self._open.get((host, port))
        if found is None:
            found = self._open[host, port] = BrokerConnection(host, port, self._properties)
        return found

    def brokers(self) -> list[BrokerConnection]:
        answer = self.first.ask(MetadataRequest((), False), MetadataResponse)  # noqa: FBT003
        return [self.connection(broker.host, broker.port) for broker in answer.brokers]

    def controller(self) -> BrokerConnection:
        """Who takes changes of topics. (A broker of KRaft passes them on.)"""
        answer = self.first.ask(MetadataRequest((), False), MetadataResponse)  # noqa: FBT003
        for broker in answer.brokers:
            if broker.node_id == answer.controller_id:
                return self.connection(broker.host, broker.port)
        return self.first

    def topics(self, names: Sequence[str] | None) -> MetadataResponse:
        """None: all of them. No topic is created by asking."""
        asked = None if names is None else [MetadataRequestTopic(name=TopicName(n)) for n in names]
        return self.first.ask(MetadataRequest(asked, False), MetadataResponse)  # noqa: FBT003

    def topic(self, name: str) -> MetadataResponseTopic:
        """Raises NotThere, RequestRefused."""
        found = self.topics([name]).topics[0]
        if found.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotThere(f"there is no topic {name!r}")
        if found.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            raise RequestRefused(f"topic {name!r}", found.error_code)
        return found

    def find_coordinator(self, group_id: GroupId) -> tuple[ErrorCode, BrokerConnection | None]:
        asked = FindCoordinatorRequest()
        if self.first.version_of(asked) >= 4:
            asked = FindCoordinatorRequest(coordinator_keys=[group_id])
            (found,) = self.first.ask(asked, FindCoordinatorResponse).coordinators
            error, host, port = found.error_code, found.host, found.port
        else:
            asked = FindCoordinatorRequest(key=group_id)
            single = self.first.ask(asked, FindCoordinatorResponse)
            error, host, port = single.error_code, single.host, single.port
        if error is not ErrorCode.NONE:
            return error, None
        return error, self.connection(host, port)

    def at_coordinator(
        self, group_id: GroupId, ask: Callable[[BrokerConnection], tuple[ErrorCode, Answer]]
    ) -> tuple[ErrorCode, Answer | None]:
        """What the group's coordinator says; asked again while it loads or moves."""
        error: ErrorCode = ErrorCode.NONE
        for attempt in range(ATTEMPTS):
            if attempt:
                self.wait()
            error, connection = self.find_coordinator(group_id)
            if connection is not None:
                error, answer = ask(connection)
                if error not in RETRIABLE:
                    return error, answer
            elif error not in RETRIABLE:
                break
        return error, None

    def wait(self) -> None:
        self._pause.wait(_PAUSE_S)
