"""Drill events: what members, the daemon and the drill itself did, all on one clock.

`at_s` is CLOCK_MONOTONIC, which all processes of a machine share: a client stamps what it reports
when it happens, and the drill stamps what it does itself.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

OF_DAEMON: Final = "daemon"
OF_DRILL: Final = "drill"
PACE_S: Final = 0.05
"""How often a fact is asked that is computed from all events."""


class Kind(StrEnum):
    # Of a member, as its client reports them.
    ASSIGNED = "assigned"
    REVOKED = "revoked"
    READ = "read"
    COMMITTED = "committed"
    NOT_COMMITTED = "not committed"
    CLOSING = "closing"
    # Of a member or the daemon, as the drill does or sees it.
    STARTED = "started"
    READY = "ready"
    KILLED = "killed"
    ENDED = "ended"
    STALLED = "stalled"
    RESUMED = "resumed"
    CUT = "cut"
    HEALED = "healed"
    DISK_FAULT = "disk fault"
    DISK_SOUND = "disk sound"
    GENERATION = "generation"
    """A new generation of the classic protocol, or an epoch of the consumer protocol."""
    # Of the drill.
    WRITTEN = "written"
    PROBED = "probed"
    """The committed offsets, as the coordinator answered the drill, or a member."""
    FORMED = "formed"
    """The first members share the partitions and have read: from here on everything counts."""
    FAULT = "fault"


class DrillEvent(Struct, frozen=True):
    at_s: float
    source: str
    kind: Kind
    partitions: tuple[int, ...] = ()
    offsets: tuple[tuple[int, int], ...] = ()
    """(partition, offset) pairs: records read or written, offsets committed or probed."""
    number: int = 0
    since_s: float = 0.0
    """When a probe was asked."""
    text: str = ""


class EventLog:
    """Everything that happened so far, in the order of arrival; threads append."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[DrillEvent] = []

    def add(self, event: DrillEvent) -> None:
        with self._lock:
            self._events.append(event)

    def note(
        self,
        source: str,
        kind: Kind,
        *,
        text: str = "",
        offsets: Iterable[tuple[int, int]] = (),
        since_s: float = 0.0,
        number: int = 0,
    ) -> float:
        """Something that happens now; returns when."""
        at_s = time.monotonic()
        event = DrillEvent(
            at_s, source, kind, (), tuple(offsets), number=number, since_s=since_s, text=text
        )
        self.add(event)
        return at_s

    def all(self) -> list[DrillEvent]:
        with self._lock:
            return list(self._events)


def wait_for(fact: Callable[[], bool], timeout_s: float) -> bool:
    """Until the fact holds, which is asked every PACE_S; False after the time."""
    deadline = time.monotonic() + timeout_s
    while not fact():
        if time.monotonic() >= deadline:
            return False
        time.sleep(PACE_S)
    return True


def ordered_events(events: Iterable[DrillEvent]) -> Sequence[DrillEvent]:
    """By their time; events of one moment stay as they came."""
    return sorted(events, key=lambda event: event.at_s)
