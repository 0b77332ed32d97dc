"""What happened in the shell? Facts about sockets, loads and the daemon itself; observer.py words
them.

The coordinator and the data plane have events of their own. All of them are values that nobody
acts on: they become log lines and metrics, no more.
"""

import traceback
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from broker.partitions.load_progress import LoadReport
from history.verdicts.model import Trouble

PLACE_FRAMES_MAX: Final = 5


class PeerFault(StrEnum):
    """Why a connection was closed or refused by us; a label of a metric and a key of the log."""

    BAD_SIZE = "bad request size"
    MALFORMED = "malformed request"
    UNKNOWN_API = "unknown api key"
    UNKNOWN_VERSION = "unsupported api version"
    IDLE = "idle"
    NOT_READING = "answers are not read"
    TOO_MANY = "max.connections"
    TOO_MANY_PER_IP = "max.connections.per.ip"


class ConnectionDropped(Struct, frozen=True):
    """A connection that we closed, or did not take, and why."""

    fault: PeerFault
    peer: str
    detail: str
    suppressed: int = 0  # Faults of this kind by this host that got no line since the last one.


class RequestFailed(Struct, frozen=True):
    """A handler raised what it should not: our mistake, whatever the request was."""

    api_name: str
    api_version: int
    peer: str
    error: BaseException
    suppressed: int = 0  # Failures of this kind by this host that got no line since the last one.

    @property
    def place(self) -> str:
        return _place(self.error)


class PartFailed(Struct, frozen=True):
    """A timer, a callback or a background step raised what it should not."""

    part: str
    error: BaseException
    suppressed: int = 0  # As above, where a client can have a part in it.
    is_told: bool = True  # Else it is only counted.

    @property
    def place(self) -> str:
        return _place(self.error)


class GroupSkipped(Struct, frozen=True):
    """Work on one group raised what it should not; the others had theirs."""

    work: str
    group_id: str
    error: Exception

    @property
    def place(self) -> str:
        return _place(self.error)


class HistoryLost(Struct, frozen=True):
    """Facts of groups could not be kept, the first ones; the groups go on all the same."""

    reason: str


class LoopStalled(Struct, frozen=True):
    """The daemon heard nobody for a while; the clock of the core was held back by as much."""

    stalled_ms: int


class PartitionElected(Struct, frozen=True):
    partition: int
    epoch: int


class PartitionsElected(Struct, frozen=True):
    """Many at once, as at a start: one line says it."""

    partitions: int
    epoch_min: int
    epoch_max: int


class PartitionsLoaded(Struct, frozen=True):
    """All that were elected together are loaded, or have failed to."""

    partitions: int
    failed: int
    records: int
    load_ms: int


class PartitionRead(Struct, frozen=True):
    """The log of a partition was read to its end; what came of it the coordinator says."""

    partition: int
    epoch: int
    records: int
    size_bytes: int
    load_ms: int
    queued_ms: int


class LoadProgressed(Struct, frozen=True):
    """A load that takes its time says how far it is."""

    report: LoadReport


class SnapshotIgnored(Struct, frozen=True):
    """A snapshot could not be used: an older one is, or the log from its beginning."""

    partition: int
    path: str
    reason: str


class SnapshotTaken(Struct, frozen=True):
    """What the log says up to a position was written down beside it."""

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


class PartitionsResigned(Struct, frozen=True):
    """All at once, as at a stop."""

    partitions: int


class JournalFailed(Struct, frozen=True):
    """Nothing is written any more: until a restart, or only until a full disk has room."""

    reason: str
    is_full: bool


class JournalReopened(Struct, frozen=True):
    """A full disk has room again."""


class DaemonStep(Struct, frozen=True):
    """A step in the daemon's life, in words."""

    words: str
    facts: Mapping[str, object] = field(default_factory=dict)


class Warned(Struct, frozen=True):
    """Something that an operator should know and that stops nothing."""

    words: str
    facts: Mapping[str, object] = field(default_factory=dict)


class TroubleFound(Struct, frozen=True):
    """A verdict on a group that did not hold before; see history/verdicts/model.py."""

    trouble: Trouble


class TroubleCleared(Struct, frozen=True):
    """A verdict that does not hold any more."""

    trouble: Trouble
    lasted_ms: int


ShellEvent = (
    ConnectionDropped
    | RequestFailed
    | PartFailed
    | LoopStalled
    | HistoryLost
    | GroupSkipped
    | PartitionElected
    | PartitionsElected
    | PartitionsLoaded
    | PartitionRead
    | LoadProgressed
    | SnapshotIgnored
    | SnapshotTaken
    | SnapshotFailed
    | PartitionResigned
    | PartitionsResigned
    | JournalFailed
    | JournalReopened
    | DaemonStep
    | Warned
    | TroubleFound
    | TroubleCleared
)


def _place(error: BaseException) -> str:
    """Where it was raised, in short: the innermost frames, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-PLACE_FRAMES_MAX:]
    return " > ".join(
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames
    )
