"""Event hub: which groups changed, for the event streams of the console.

Called with each entry of the group history within the turn that decided it, so it only notes the
group's id. A stream has a set of changed groups, not a queue of events: a slow reader finds the
same group once, and the memory of a stream is bounded by `CHANGED_MAX`. The last changes of all
groups are kept for streams that reconnect.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

CHANGED_MAX: Final = 500
"""Groups that one stream is told by name at once; beyond it, only that there are more."""

KEPT_MAX: Final = 10_000
"""Changes kept for reconnects."""

_DIGITS_MAX: Final = 18
"""Of the number of a change, which a client sends back: Python converts no longer text at once."""


class Changes(NamedTuple):
    """Since a stream was last told. `seq`: the last change that these cover."""

    seq: int
    groups: tuple[str, ...]
    is_more: bool


class EventStream:
    """What one subscriber has to be told. `group_id`: the only group that it asked for."""

    def __init__(self, group_id: str | None, seq: int) -> None:
        self.group_id = group_id
        self.woken = asyncio.Event()
        self.is_closed = False
        self._seq = seq
        self._changed: dict[str, None] = {}
        self._is_more = False

    def changed(self, seq: int, group_id: str) -> None:
        self._seq = seq
        if self.group_id is not None and group_id != self.group_id:
            return
        if len(self._changed) < CHANGED_MAX:
            self._changed[group_id] = None
        elif group_id not in self._changed:
            self._is_more = True
        self.woken.set()

    def take(self) -> Changes:
        changes = Changes(self._seq, tuple(self._changed), self._is_more)
        self._changed, self._is_more = {}, False
        self.woken.clear()
        return changes

    def close(self) -> None:
        self.is_closed = True
        self.woken.set()


class EventHub:
    """All streams. `boot` tells the changes of this process from those of others."""

    def __init__(self, boot: str) -> None:
        self.boot = boot
        self.streams: set[EventStream] = set()
        self._seq = 0
        self._kept: deque[tuple[int, str]] = deque(maxlen=KEPT_MAX)

    def changed(self, group_id: str) -> None:
        """In a turn of the coordinator: some hundred nanoseconds for each stream."""
        self._seq += 1
        self._kept.append((self._seq, group_id))
        for stream in self.streams:
            stream.changed(self._seq, group_id)

    def event_id(self, seq: int) -> str:
        return f"{self.boot}-{seq}"

    def subscribe(self, group_id: str | None, last_event_id: str) -> tuple[EventStream, bool]:
        """A new stream, and whether it continues where the one before ended.

        If not, its reader has to read everything again.
        """
        stream = EventStream(group_id, self._seq)
        missed = self._missed(last_event_id)
        for seq, changed in missed or ():
            stream.changed(seq, changed)
        self.streams.add(stream)
        return stream, missed is not None

    def unsubscribe(self, stream: EventStream) -> None:
        self.streams.discard(stream)

    def close(self) -> None:
        for stream in self.streams:
            stream.close()

    def _missed(self, last_event_id: str) -> Iterable[tuple[int, str]] | None:
        """The changes after it; None if they are not known."""
        boot, _, text = last_event_id.rpartition("-")
        is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
        if boot != self.boot or not is_number:
            return None
        last = int(text)
        oldest = self._kept[0][0] if self._kept else self._seq + 1
        if last > self._seq or last + 1 < oldest:
            return None
        return [(seq, group_id) for seq, group_id in self._kept if seq > last]
