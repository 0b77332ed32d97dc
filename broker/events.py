"""What happened in the shell? Facts about sockets, loads and the daemon itself; observe.py words
them.

The coordinator and the data plane have events of their own. All of them are values that nobody
acts on: they become log lines and metrics, no more.
"""

from dataclasses import dataclass
from enum import StrEnum


class PeerFault(StrEnum):
    """Why a connection was closed or refused by us; a label of a metric and a key of the log."""

    BAD_SIZE = "bad request size"
    TRUNCATED = "truncated request"
    MALFORMED = "malformed request"
    UNKNOWN_API = "unknown api key"
    UNKNOWN_VERSION = "unsupported api version"
    IDLE = "idle"
    NOT_READING = "answers are not read"
    TOO_MANY = "max.connections"
    TOO_MANY_PER_IP = "max.connections.per.ip"
    REQUEST_FAILED = "request failed here"


@dataclass(frozen=True, slots=True)
class ConnectionDropped:
    """A connection that we closed, or did not take, and why."""

    fault: PeerFault
    peer: str
    detail: str
    suppressed: int = 0  # Faults of this kind by this host that got no line since the last one.


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A handler raised what it should not: our mistake, whatever the request was."""

    api_name: str
    api_version: int
    peer: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class PartFailed:
    """A timer, a callback or a background step raised what it should not."""

    part: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class LoopStalled:
    """The daemon heard nobody for a while; the clock of the core was held back by as much."""

    stalled_ms: int


@dataclass(frozen=True, slots=True)
class PartitionElected:
    partition: int
    epoch: int


@dataclass(frozen=True, slots=True)
class PartitionLoaded:
    partition: int
    epoch: int
    records: int
    size_bytes: int
    groups: int
    load_ms: int
    queued_ms: int


@dataclass(frozen=True, slots=True)
class PartitionLoadFailed:
    partition: int
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class PartitionResigned:
    partition: int
    epoch: int


@dataclass(frozen=True, slots=True)
class JournalFailed:
    reason: str


@dataclass(frozen=True, slots=True)
class Daemon:
    """A step in the daemon's life, in words."""

    words: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that an operator should know and that stops nothing."""

    words: str


ShellEvent = (
    ConnectionDropped
    | RequestFailed
    | PartFailed
    | LoopStalled
    | PartitionElected
    | PartitionLoaded
    | PartitionLoadFailed
    | PartitionResigned
    | JournalFailed
    | Daemon
    | Warned
)
