"""Member metadata: decodes what Connect, Schema Registry and Streams exchange through a group.

For display only: the history reports what changed and which member got what. Only documented
formats are decoded; for anything else the functions return None. No decision depends on it.

Kafka's counterparts: `ConnectProtocol` and `IncrementalCooperativeConnectProtocol` (Version, Url,
ConfigOffset; Error, Leader, LeaderUrl, ConfigOffset, connectors with their tasks), `AssignmentInfo`
of Streams (version, active tasks, standby tasks). Schema Registry and Karapace write JSON.
"""

import json
import struct
from typing import Final, NamedTuple

CONNECT: Final = "connect"
SCHEMA_REGISTRY: Final = "sr"

CONNECTOR_ITSELF: Final = -1
"""The task number under which Connect lists the connector."""

_LENGTHS_MAX: Final = 100_000
"""Length of any list. Beyond it the bytes have another format."""

_TOPOLOGY_NAMES_SINCE: Final = 10
_STREAMS_VERSIONS: Final = range(1, 16)
_LATEST_SINCE: Final = 3


class UnknownFormat(Exception):
    """The bytes do not have the documented format."""


class ConnectWorker(NamedTuple):
    """The metadata of a Connect worker in JoinGroup."""

    url: str
    config_offset: int


class ConnectAssignment(NamedTuple):
    """The connectors and tasks of a Connect worker."""

    leader_url: str
    config_offset: int
    connectors: int
    tasks: int


class StreamsTasks(NamedTuple):
    """The tasks of a Streams client; warm-up tasks count as standby tasks."""

    active: int
    standby: int


def connect_worker(metadata: bytes) -> ConnectWorker | None:
    try:
        read = _Reader(metadata)
        read.int16()
        return ConnectWorker(read.string(), read.int64())
    except UnknownFormat:
        return None


def connect_assignment(assignment: bytes) -> ConnectAssignment | None:
    try:
        read = _Reader(assignment)
        read.int16()  # version
        read.int16()  # error
        read.string()  # the leader's member id
        url, offset = read.string(), read.int64()
        connectors = tasks = 0
        for _ in range(read.count()):
            read.string()
            for _ in range(read.count()):
                if read.int32() == CONNECTOR_ITSELF:
                    connectors += 1
                else:
                    tasks += 1
        return ConnectAssignment(url, offset, connectors, tasks)
    except UnknownFormat:
        return None


def registry_url(metadata: bytes) -> str | None:
    """The URL of a Schema Registry node."""
    return _url(_json(metadata))


def registry_master(assignment: bytes) -> str | None:
    """The node that accepts writes, by the leader's assignment; "" if there is none."""
    read = _json(assignment)
    if read is None or "master" not in read:
        return None
    return _url(read.get("master_identity")) or str(read["master"] or "")


def streams_tasks(user_data: bytes) -> StreamsTasks | None:
    """The tasks in the user data of a Streams client's assignment."""
    try:
        read = _Reader(user_data)
        version = read.int32()
        if version not in _STREAMS_VERSIONS:
            return None
        if version >= _LATEST_SINCE:
            read.int32()
        active = read.count()
        for _ in range(active):
            read.task(version)
        standby = read.count()
        for _ in range(standby):
            read.task(version)
            for _ in range(read.count()):
                read.string()
                read.int32()
        return StreamsTasks(active, standby)
    except UnknownFormat:
        return None


def _json(raw: bytes) -> dict[str, object] | None:
    try:
        read: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _url(node: object) -> str | None:
    if not isinstance(node, dict) or not isinstance(node.get("host"), str):
        return None
    return f"{node.get('scheme') or 'http'}://{node['host']}:{node.get('port')}"


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._raw):
            raise UnknownFormat
        part = self._raw[self._at : end]
        self._at = end
        return part

    def int16(self) -> int:
        number: int = struct.unpack(">h", self._take(2))[0]
        return number

    def int32(self) -> int:
        number: int = struct.unpack(">i", self._take(4))[0]
        return number

    def int64(self) -> int:
        number: int = struct.unpack(">q", self._take(8))[0]
        return number

    def count(self) -> int:
        """The length of a list; 0 of a null."""
        number = self.int32()
        if number < -1 or number > _LENGTHS_MAX:
            raise UnknownFormat
        return max(number, 0)

    def string(self) -> str:
        try:
            return self._take(self.int16()).decode()
        except UnicodeDecodeError:
            raise UnknownFormat from None

    def task(self, version: int) -> None:
        self._take(8)
        if version >= _TOPOLOGY_NAMES_SINCE:
            self._take(2 * self.count())
