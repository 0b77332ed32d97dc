"""Load: writes records while a drill runs, and asks again and again for the committed offsets.

Both go to the server directly, not through the proxy: a cut concerns the members alone.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from client.wire import BrokenWire, ClientWire, connect_wire
from drills.broker_calls import CallRefused, RecordWriter, fetch_offsets, find_group_coordinator
from drills.events import OF_DRILL, EventLog, Kind

ROUND_S: Final = 0.05
"""Each round writes to every partition: more records, not more rounds, make a higher rate."""
PROBE_PAUSE_S: Final = 0.25
_RETRY_S: Final = 0.05
_PROBE_TIMEOUT_S: Final = 5.0


class _Worker:
    """A thread that works until it is stopped."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_PROBE_TIMEOUT_S * 2)

    def _run(self) -> None:
        raise NotImplementedError


class RecordLoad(_Worker):
    """`records_per_s` records, in turn to all partitions; what is not acknowledged is repeated."""

    def __init__(
        self, events: EventLog, address: str, topic: str, partitions: int, records_per_s: int
    ) -> None:
        super().__init__(events)
        self._writer = RecordWriter(address, topic)
        self._partitions = partitions
        self._batch = max(1, round(records_per_s * ROUND_S / partitions))
        self._pause_s = self._batch / records_per_s
        self._number = 0

    def _run(self) -> None:
        partition = 0
        next_s = time.monotonic()
        while not self._stopping.is_set():
            values = [f"record {self._number + n}".encode() for n in range(self._batch)]
            try:
                base = self._writer.write(partition, values)
            except (BrokenWire, CallRefused):
                self._stopping.wait(_RETRY_S)
                next_s = time.monotonic()
                continue
            offsets = [(partition, base + n) for n in range(self._batch)]
            self._events.note(OF_DRILL, Kind.WRITTEN, offsets=offsets)
            self._number += self._batch
            partition = (partition + 1) % self._partitions
            next_s += self._pause_s
            self._stopping.wait(max(0.0, next_s - time.monotonic()))
        self._writer.close()


class OffsetProbe(_Worker):
    """Reads the group's offsets as an operator's tool does."""

    def __init__(
        self, events: EventLog, address: str, group: str, topic: str, partitions: int
    ) -> None:
        super().__init__(events)
        self._address = address
        self._group = group
        self._topic = topic
        self._partitions = range(partitions)

    def _run(self) -> None:
        wire: ClientWire | None = None
        while not self._stopping.wait(PROBE_PAUSE_S):
            try:
                wire = wire or self._connect()
                self.probe(wire)
            except CallRefused:
                continue
            except BrokenWire:
                if wire is not None:
                    wire.close()
                wire = None
        if wire is not None:
            wire.close()

    def _connect(self) -> ClientWire:
        first = connect_wire(self._address, "rollcall-drill", _PROBE_TIMEOUT_S)
        try:
            coordinator = find_group_coordinator(first, self._group)
        finally:
            first.close()
        return connect_wire(coordinator, "rollcall-drill", _PROBE_TIMEOUT_S)

    def probe(self, wire: ClientWire) -> None:
        """Raises BrokenWire, CallRefused."""
        since_s = time.monotonic()
        found = fetch_offsets(wire, self._group, self._topic, self._partitions)
        self._events.note(OF_DRILL, Kind.PROBED, offsets=found.items(), since_s=since_s)

    def probe_last(self, is_over: Callable[[], bool]) -> bool:
        """Once more, when all members have ended; False if nobody answers."""
        while not is_over():
            try:
                wire = self._connect()
                try:
                    self.probe(wire)
                finally:
                    wire.close()
            except (BrokenWire, CallRefused):
                time.sleep(_RETRY_S)
            else:
                return True
        return False
