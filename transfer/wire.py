"""Cluster client: reads offsets from a running cluster, and commits them to one.

For `--bootstrap`: ListGroups of every broker, OffsetFetch of each group from its coordinator, and
OffsetCommit without a member (generation -1), which a coordinator accepts for a group without
members. One blocking connection per broker, the newest version that both sides support; by name,
not by topic id. A request that fails while the broker loads or moves a partition is retried a few
times.
"""

import socket
import struct
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from config.listeners import BadAddress, parse_host_port
from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.java_text import split_list
from protocol.messages import Request, Response
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from protocol.names import ApiKey, ErrorCode, GroupId, TopicName
from protocol.primitives import Malformed
from transfer.contents import CLASSIC, SIMPLE, Contents, GroupContents
from transfer.errors import ClusterFault

_CLIENT_ID: Final = "rollcall-offsets"
_TIMEOUT_S: Final = 30.0
_ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.25
SHOWN_MAX: Final = 80
"""Characters of a wrong address, in a message of one line."""

FRAME_BYTES_MAX: Final = 256 << 20
PARTITIONS_PER_COMMIT: Final = 2_000
BY_NAME: Final = {ApiKey.OFFSET_FETCH: 9, ApiKey.OFFSET_COMMIT: 9}
"""Later versions name topics by their ids, which mean nothing elsewhere."""

_RETRIABLE: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
)
_SIZE: Final = struct.Struct(">i")

R = TypeVar("R", bound=Response)


class Refused(NamedTuple):
    """What a coordinator did not take or give."""

    group: str
    topic: str  # "" for the group as a whole
    partition: int
    error: str
    refuses: int = 1  # partitions


class BrokerConnection:
    """One broker."""

    def __init__(self, host: str, port: int) -> None:
        self._name = f"{host}:{port}"
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        try:
            self._socket = socket.create_connection((host, port), timeout=_TIMEOUT_S)
        except (OSError, UnicodeError, OverflowError) as fault:  # a host or port that is none
            reason = fault.strerror if isinstance(fault, OSError) else None
            raise ClusterFault(f"{self._name[:SHOWN_MAX]}: {reason or fault}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        offered = self._ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self._versions = {
            api.api_key: (api.min_version, api.max_version) for api in offered.api_keys
        }

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Request, answer: type[R]) -> R:
        """Raises ClusterFault."""
        return self._ask(request, answer, self.version_of(request))

    def version_of(self, request: Request) -> int:
        """The newest version that both sides speak."""
        api_key = request.API_KEY
        if api_key not in self._versions:
            raise ClusterFault(f"{self._name} does not serve {api_key.name}")
        low, high = self._versions[api_key]
        ours = request.VERSIONS
        version = min(high, ours[-1], BY_NAME.get(api_key, ours[-1]))
        if version < max(low, ours[0]):
            raise ClusterFault(f"{self._name} serves {api_key.name} v{low} to v{high} only")
        return version

    def _ask(self, request: Request, answer: type[R], version: int) -> R:
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, _CLIENT_ID)
        try:
            self._socket.sendall(encode_request(header, request))
            (size,) = _SIZE.unpack(self._receive(_SIZE.size))
            if not 4 <= size <= FRAME_BYTES_MAX:
                raise ClusterFault(f"{self._name} does not speak Kafka's protocol")
            frame = self._receive(size)
            heard, response = decode_response(request.API_KEY, version, frame, 0, size)
        except (OSError, Malformed) as fault:
            raise ClusterFault(f"{self._name}: {request.API_KEY.name}: {fault}") from None
        if heard.correlation_id != self._correlation_id or not isinstance(response, answer):
            raise ClusterFault(f"{self._name} answered a different request")
        return response

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ClusterFault(f"{self._name} closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class ClusterClient:
    """A running Rollcall or Kafka, by way of any of its brokers."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap` is HOST:PORT[,HOST:PORT...]. Raises ClusterFault."""
        self._open: dict[tuple[str, int], BrokerConnection] = {}
        self._pause = threading.Event()
        self._first = self._bootstrap(bootstrap)

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()

    def _bootstrap(self, bootstrap: str) -> BrokerConnection:
        failure = ClusterFault("no HOST:PORT was given")
        for address in split_list(bootstrap):
            try:
                host, port = parse_host_port(address)
            except BadAddress:
                raise ClusterFault(f"{address[:SHOWN_MAX]!r} is not HOST:PORT") from None
            try:
                return self._connection(host, port)
            except ClusterFault as fault:
                failure = fault
        raise failure

    def _connection(self, host: str, port: int) -> BrokerConnection:
        found = self._open.get((host, port))
        if found is None:
            found = self._open[host, port] = BrokerConnection(host, port)
        return found

    # --- questions -----------------------------------------------------------------------------

    def group_ids(self) -> list[tuple[GroupId, str]]:
        """(group, kind) of every group of every broker."""
        brokers = self._first.ask(MetadataRequest((), False), MetadataResponse).brokers  # noqa: FBT003
        found: dict[GroupId, str] = {}
        for broker in brokers:
            connection = self._connection(broker.host, broker.port)
            answer = connection.ask(ListGroupsRequest(), ListGroupsResponse)
            for _ in range(_ATTEMPTS):
                if answer.error_code not in _RETRIABLE:
                    break
                self._wait()
                answer = connection.ask(ListGroupsRequest(), ListGroupsResponse)
            if answer.error_code is not ErrorCode.NONE:
                raise ClusterFault(f"{broker.host}:{broker.port}: {answer.error_code.name}")
            found |= {group.group_id: _kind_of(group) for group in answer.groups}
        return sorted(found.items())

    def fetch(self, group_id: GroupId, into: Contents) -> list[Refused]:
        """All that a group committed."""
        error, group, refused = self._fetch_once(group_id)
        for _ in range(_ATTEMPTS):
            if error not in _RETRIABLE:
                break
            self._wait()
            error, group, refused = self._fetch_once(group_id)
        if error is not ErrorCode.NONE:
            return [Refused(group_id, "", -1, error.name)]
        if group.offsets:
            into.groups[group_id] = group
        return refused

    def _fetch_once(self, group_id: GroupId) -> tuple[ErrorCode, GroupContents, list[Refused]]:
        group, refused = GroupContents(group_id), list[Refused]()
        error, connection = self._coordinator(group_id)
        if connection is None:
            return error, group, refused
        asked = OffsetFetchRequest()
        if connection.version_of(asked) >= 8:
            asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id, topics=None)])
            (answer,) = connection.ask(asked, OffsetFetchResponse).groups
            error = answer.error_code
            for topic in answer.topics:
                _add(group, refused, topic.name, topic.partitions)
        else:
            single = connection.ask(
                OffsetFetchRequest(group_id=group_id, topics=None), OffsetFetchResponse
            )
            error = single.error_code
            for old in single.topics:
                _add(group, refused, old.name, old.partitions)
        return error, group, refused

    # --- commits -------------------------------------------------------------------------------

    def commit(self, group: GroupContents) -> list[Refused]:
        """Commit what this group has, outside of any generation; what was not taken."""
        refused: list[Refused] = []
        places = sorted(group.offsets)
        for start in range(0, len(places), PARTITIONS_PER_COMMIT):
            part = places[start : start + PARTITIONS_PER_COMMIT]
            for attempt in range(_ATTEMPTS):
                answers = self._commit_once(group, part)
                again = [answer for answer in answers if answer.error in _RETRIABLE_NAMES]
                refused += [answer for answer in answers if answer not in again]
                if not again or attempt == _ATTEMPTS - 1:
                    refused += again
                    break
                part = [(a.topic, a.partition) for a in again if a.topic] or part
                self._wait()
        return refused

    def _commit_once(
        self, group: GroupContents, places: Sequence[tuple[str, int]]
    ) -> list[Refused]:
        error, connection = self._coordinator(group.group_id)
        if connection is None:
            return [Refused(group.group_id, "", -1, error.name, len(places))]
        by_topic: dict[TopicName, list[OffsetCommitRequestPartition]] = {}
        for topic, partition in places:
            commit, _ = group.offsets[topic, partition]
            by_topic.setdefault(TopicName(topic), []).append(
                OffsetCommitRequestPartition(
                    partition, commit.committed_offset, commit.leader_epoch, commit.metadata
                )
            )
        request = OffsetCommitRequest(
            group_id=group.group_id,
            topics=[OffsetCommitRequestTopic(name, partitions=by_topic[name]) for name in by_topic],
        )
        answer = connection.ask(request, OffsetCommitResponse)
        return [
            Refused(group.group_id, topic.name, verdict.partition_index, verdict.error_code.name)
            for topic in answer.topics
            for verdict in topic.partitions
            if verdict.error_code is not ErrorCode.NONE
        ]

    def _coordinator(self, group_id: GroupId) -> tuple[ErrorCode, BrokerConnection | None]:
        asked = FindCoordinatorRequest()
        if self._first.version_of(asked) >= 4:
            asked = FindCoordinatorRequest(coordinator_keys=[group_id])
            (found,) = self._first.ask(asked, FindCoordinatorResponse).coordinators
            error, host, port = found.error_code, found.host, found.port
        else:
            asked = FindCoordinatorRequest(key=group_id)
            single = self._first.ask(asked, FindCoordinatorResponse)
            error, host, port = single.error_code, single.host, single.port
        if error is not ErrorCode.NONE:
            return error, None
        return error, self._connection(host, port)

    def _wait(self) -> None:
        self._pause.wait(_PAUSE_S)


def _kind_of(group: ListedGroup) -> str:
    """A classic group that no member ever joined is a simple one; old brokers tell no type."""
    kind = group.group_type.lower() or CLASSIC
    return SIMPLE if kind == CLASSIC and not group.protocol_type else kind


_RETRIABLE_NAMES: Final = frozenset(error.name for error in _RETRIABLE)


def _add(
    group: GroupContents,
    refused: list[Refused],
    topic: str,
    partitions: Sequence[OffsetFetchResponsePartition | OffsetFetchResponsePartitions],
) -> None:
    for answer in partitions:
        if answer.error_code is not ErrorCode.NONE:
            error = answer.error_code.name
            refused.append(Refused(group.group_id, topic, answer.partition_index, error))
        elif answer.committed_offset >= 0:
            group.put_offset(
                (topic, answer.partition_index),
                answer.committed_offset,
                answer.committed_leader_epoch,
                answer.metadata or "",
            )
