"""Events of the shell: sockets, loads and the daemon itself. node_lines.py has their log lines.

The coordinator, the data plane and the storage have events of their own. All are values that no
part acts on: they become log lines and metrics, no more.
"""

import traceback
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from broker.partitions.load_progress import LoadReport
from history.verdicts.model import Verdict
from protocol.names import OFFSETS_TOPIC, TopicName

PLACE_FRAMES_MAX: Final = 5


class PeerFault(StrEnum):
    """Why we closed or refused a connection: a label of a metric and a field of the log."""

    BAD_SIZE = "bad request size"
    MALFORMED = "malformed request"
    UNKNOWN_API = "unknown api key"
    UNKNOWN_VERSION = "unsupported api version"
    IDLE = "idle"
    NOT_READING = "answers are not read"
    TOO_MANY = "max.connections"
    TOO_MANY_PER_IP = "max.connections.per.ip"
    TOO_MANY_OF_LISTENER = "max.connections of the listener"
    TOO_FAST = "max.connection.creation.rate"
    OVER_IP_QUOTA = "connection_creation_rate"
    TLS = "TLS handshake failed"
    AUTHENTICATION = "authentication failed"
    NOT_AUTHENTICATED = "request before authentication"
    TOO_SLOW = "authentication took too long"
    SESSION_EXPIRED = "session expired"


class ConnectionDropped(Struct, frozen=True):
    """A connection that we closed, or did not take, and why."""

    fault: PeerFault
    peer: str
    detail: str
    suppressed: int = 0  # Faults of this kind by this host that got no line since the last one.


class CertificateReloaded(Struct, frozen=True):
    """The certificate of a listener was changed; new connections get it."""

    listener: str


class CertificateRefused(Struct, frozen=True):
    """A changed certificate cannot be used: the one before it stays."""

    listener: str
    reason: str


class RequestFailed(Struct, frozen=True):
    """A handler raised an exception: a bug of ours, whatever the request was."""

    api_name: str
    api_version: int
    peer: str
    error: BaseException
    suppressed: int = 0  # Failures of this kind by this host that got no line since the last one.

    @property
    def place(self) -> str:
        return _place(self.error)


class PartFailed(Struct, frozen=True):
    """A timer, a callback or a background step raised an unexpected exception."""

    part: str
    error: BaseException
    suppressed: int = 0  # As above, where a client can cause it.
    is_logged: bool = True  # Else it is only counted.

    @property
    def place(self) -> str:
        return _place(self.error)


class GroupSkipped(Struct, frozen=True):
    """Work on one group raised an unexpected exception; that on the other groups was done."""

    work: str
    group_id: str
    error: Exception

    @property
    def place(self) -> str:
        return _place(self.error)


class HistoryLost(Struct, frozen=True):
    """Events of groups could not be recorded. Logged once for a gap; the groups are served."""

    reason: str


class LoopStalled(Struct, frozen=True):
    """The process did not run for a while; the clock of the cores was held back by as much."""

    stalled_ms: int


class PartitionElected(Struct, frozen=True):
    partition: int
    epoch: int
    topic: TopicName = OFFSETS_TOPIC


class PartitionsElected(Struct, frozen=True):
    """Many at once, as at a start: one line says it."""

    partitions: int
    epoch_min: int
    epoch_max: int
    topic: TopicName = OFFSETS_TOPIC


class PartitionsLoaded(Struct, frozen=True):
    """All that were elected together are loaded, or have failed to.

    `served_ms`: until requests about all groups were answered, of `load_ms` until every group was
    restored, whether a request asked for it or not.
    """

    partitions: int
    failed: int
    records: int
    load_ms: int
    served_ms: int
    topic: TopicName = OFFSETS_TOPIC


class PartitionRead(Struct, frozen=True):
    """The log of a partition was read to its end; the coordinator reports the groups in it."""

    partition: int
    epoch: int
    records: int
    size_bytes: int
    load_ms: int
    queued_ms: int
    topic: TopicName = OFFSETS_TOPIC


class PartitionNotLoaded(Struct, frozen=True):
    """The log of a partition could not be read: nobody serves it until it is loaded again."""

    partition: int
    epoch: int
    reason: str
    topic: TopicName = OFFSETS_TOPIC


class LoadProgressed(Struct, frozen=True):
    """The progress of a long load."""

    report: LoadReport
    topic: TopicName = OFFSETS_TOPIC


class SnapshotIgnored(Struct, frozen=True):
    """A snapshot could not be used: an older one is, or the log from its beginning."""

    partition: int
    path: str
    reason: str


class SnapshotTaken(Struct, frozen=True):
    """The state up to a position of the log was written to a snapshot beside it."""

    partition: int
    position: int
    groups: int
    records: int
    size_bytes: int
    took_ms: int


class SnapshotFailed(Struct, frozen=True):
    """No snapshot this time: the next start reads more of the log."""

    partition: int
    reason: str


class PartitionResigned(Struct, frozen=True):
    partition: int
    epoch: int
    topic: TopicName = OFFSETS_TOPIC


class PartitionsResigned(Struct, frozen=True):
    """All at once, as at a stop."""

    partitions: int
    topic: TopicName = OFFSETS_TOPIC


class JournalFailed(Struct, frozen=True):
    """Nothing is written any more: until a restart, or only until a full disk has room."""

    reason: str
    is_full: bool


class JournalReopened(Struct, frozen=True):
    """A full disk has room again."""


class MarkersWritten(Struct, frozen=True):
    """Partitions have taken the marker of a transaction."""

    markers: int


class DaemonStep(Struct, frozen=True):
    """A step of the daemon's start or stop."""

    message: str
    fields: Mapping[str, object] = field(default_factory=dict)


class Warned(Struct, frozen=True):
    """Something that an operator should know and that stops nothing."""

    message: str
    fields: Mapping[str, object] = field(default_factory=dict)


class VerdictFound(Struct, frozen=True):
    """A verdict on a group that did not hold before; see history/verdicts/model.py."""

    verdict: Verdict


class VerdictCleared(Struct, frozen=True):
    """A verdict that does not hold any more."""

    verdict: Verdict
    lasted_ms: int


ShellEvent = (
    ConnectionDropped
    | RequestFailed
    | PartFailed
    | LoopStalled
    | CertificateReloaded
    | CertificateRefused
    | HistoryLost
    | GroupSkipped
    | PartitionElected
    | PartitionsElected
    | PartitionsLoaded
    | PartitionRead
    | PartitionNotLoaded
    | LoadProgressed
    | SnapshotIgnored
    | SnapshotTaken
    | SnapshotFailed
    | PartitionResigned
    | PartitionsResigned
    | JournalFailed
    | MarkersWritten
    | JournalReopened
    | DaemonStep
    | Warned
    | VerdictFound
    | VerdictCleared
)


def _place(error: BaseException) -> str:
    """Where it was raised, in short: the innermost frames, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-PLACE_FRAMES_MAX:]
    return " > ".join(
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames
    )
