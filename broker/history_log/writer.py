"""History writer: appends history entries to `__group_history`, in the turn that decided them.

Implements the coordinator's `HistorySink`. The journal stores what a turn appends to
`__consumer_offsets` and its history entries in one flush (`begin`, `end`): after a crash both are
there or neither. Turns that store nothing else are recorded as well. Of these, members that join
and rebalances that end wait for the next pass of the event loop: those of a pass are appended
together, and the end of a rebalance after its last answer. A fault here is logged and leaves a gap
in the history; it never fails a turn.

The index in memory is the fold of the same entries (history/index.py). A start reads the tail of
the topic, so that a rebalance which the stop interrupted is known.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from broker.history_log.reader import ENTRIES_PER_SLICE, HistoryTail, read_tail
from broker.observe.events import HistoryLost, PartFailed, ShellEvent, Warned
from coordinator.classic.events import GroupStabilized, MemberSynced
from coordinator.events import Event
from coordinator.group_types import AnyGroupView
from history.encoding import encode
from history.entries import (
    HistoryEntry,
    MemberAddedEntry,
    RebalanceEndedEntry,
)
from history.entry_values import TopicPartitionCounts
from history.index import HistoryIndex
from history.recording.downtime import Downtime
from history.recording.offset_changes import split_entries
from history.recording.record_limits import RecordLimits
from history.recording.recorder import HistoryRecorder
from protocol.names import HISTORY_TOPIC, GroupId
from seams.java_hash import partition_of
from seams.now import Now
from storage.api import Corrupt, LogClosed, Record, TopicLog, TopicPartition
from storage.journal.journal import Journal
from storage.journal.journaled_log import JournaledLog

EVENTS_PER_BATCH: Final = 16
"""Limited lists keep an entry at some 50 KB: a batch stays below what a Fetch asks for."""

WAITING_PER_BATCH: Final = 100
BATCH_BYTES_MAX: Final = 1 << 18
"""Of entries in one batch, if there are several: clients choose how long a name is."""

GROUPS_PER_BATCH: Final = 500
"""Entries of loaded groups in one batch: each is small."""

TAIL_BYTES: Final = 1 << 20
"""Read of each partition at a start, for the rebalances that were running."""


Attach = Callable[[TopicLog], None]

TurnListener = Callable[[Sequence[Event], Now], None]

Views = Callable[[], Mapping[TopicPartition, TopicLog]]
"""The logs as their readers see them now; a reopened journal has new ones."""


CallSoon = Callable[[Callable[[], None]], object]
"""Calls a function in the next pass of the event loop."""


def _no_readers(_: TopicLog) -> None:
    return


class HistoryLog:
    """Used on the event loop only."""

    def __init__(
        self,
        journal: Journal,
        partitions: int,
        index: HistoryIndex,
        limits: RecordLimits,
        observe: Callable[[ShellEvent], None],
    ) -> None:
        self.index = index
        self.recorder = HistoryRecorder(index, limits)
        self.events_written = 0
        self.events_lost = 0
        self._journal = journal
        self._partitions = partitions
        self._observe = observe
        self._logs: dict[int, JournaledLog] = {}
        self._views: Views = dict
        self._attach: Attach = _no_readers
        self.call_soon: CallSoon | None = None  # set by build.py; without it nothing waits
        self._loaded: list[HistoryEntry] = []  # not appended yet
        self._waiting: list[HistoryEntry] = []  # likewise, of turns that store nothing else
        self._waiting_at_ms = 0  # the newest of them
        self._listeners: list[Callable[[HistoryEntry], None]] = []
        self._turn_listeners: list[TurnListener] = []
        self._warned_damage = False

    def subscribe(self, listener: Callable[[HistoryEntry], None]) -> None:
        """Call `listener` with every entry, within the turn: it must return soon."""
        self._listeners.append(listener)

    def subscribe_turns(self, listener: TurnListener) -> None:
        """Call `listener` with the events of each recorded turn, within it."""
        self._turn_listeners.append(listener)

    def partition_for(self, group_id: str) -> int:
        """As in the offsets topic: by Java's hash of the group id."""
        return partition_of(group_id, self._partitions)

    # ------------------------------------------------------------ HistorySink

    def begin(self) -> None:
        self._journal.begin_atomic()

    def end(self) -> None:
        self._journal.end_atomic()

    def record(self, group: AnyGroupView | None, happened: Sequence[Event], now: Now) -> None:
        try:
            entries = self.recorder.record(group, happened, now)
            if self._loaded:
                self._append_loaded(now)  # later entries follow it
            if self.call_soon is not None and _may_wait(entries, happened):
                self._append_soon(entries[0], self.call_soon, now)
            elif entries:
                self._append(entries, EVENTS_PER_BATCH, now)
            for listener in self._turn_listeners:
                listener(happened, now)
        except Exception as error:  # noqa: BLE001 - a fault here is no reason to refuse a client
            self._observe(PartFailed("group history", error))

    def loaded(self, group: AnyGroupView, now: Now) -> None:
        try:
            self._loaded += self.recorder.loaded(group, now)
            if len(self._loaded) >= GROUPS_PER_BATCH:
                self._append_loaded(now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    def record_entry(self, entry: HistoryEntry, now: Now) -> None:
        """Append an entry that no event of the coordinator brings: a verdict."""
        try:
            self._append([entry], 1, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    # ------------------------------------------------------------ lifecycle

    def flush_steady_commits(self, now: Now, *, all_of_them: bool = False) -> None:
        """Append the steady commits that are due; all of them at a stop."""
        try:
            steady = self.recorder.steady
            due = steady.all() if all_of_them else steady.due(now.wall_ms)
            self._append(split_entries(due, self.recorder.limits.offsets), EVENTS_PER_BATCH, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    def topics_changed(self, changes: Sequence[TopicPartitionCounts], now: Now) -> None:
        """The consumers of these topics will notice and rejoin."""
        self.recorder.topics_changed(changes, now)

    def open(self, views: Views, attach: Attach) -> None:
        """At a start, before any group is loaded: open the logs and read their tails.

        `attach` makes a log readable for clients.
        """
        self._views, self._attach = views, attach
        self._partitions = max(self._partitions, sum(key.topic == HISTORY_TOPIC for key in views()))
        self._restore_all(self._open_all(), self.index)

    def reopen(self) -> None:
        """The journal accepts writes again: only what it had stored has happened."""
        restored = self.index.without_stories()
        self._restore_all(self._reopen_logs(), restored)
        self._continue_with(restored)

    async def reopen_in_slices(self) -> None:
        """The same, reading in a thread. Entries of the meantime are appended, not indexed."""
        restored = self.index.without_stories()
        loop = asyncio.get_running_loop()
        for partition in self._reopen_logs():
            tail = await loop.run_in_executor(None, self._tail, partition)
            for _ in self._restore(tail, restored):
                await asyncio.sleep(0)
        self._continue_with(restored)

    def _reopen_logs(self) -> list[int]:
        self._logs.clear()
        self._loaded.clear()
        self._waiting.clear()
        return self._open_all()

    def _continue_with(self, restored: HistoryIndex) -> None:
        self.index.take_over(restored)
        self.recorder.clear()

    def _open_all(self) -> list[int]:
        """The partitions whose logs could be opened."""
        found = []
        for partition in range(self._partitions):
            try:
                self._log(partition)
            except (Corrupt, KeyError) as fault:
                self._lost(f"partition {partition}: {fault}")
            else:
                found.append(partition)
        return found

    def unreadable(self, damage: Exception) -> None:
        """Part of the topic is damaged: warn once. The rest is read, and entries are appended."""
        if not self._warned_damage:
            self._warned_damage = True
            reason = {"reason": str(damage)}
            self._observe(Warned("Some of the group history cannot be read", reason))

    def close_interrupted(self, is_known: Callable[[GroupId], bool], now: Now) -> None:
        """After a start: end the rebalances of groups that do not exist any more."""
        self.recorder.downtime = Downtime()
        try:
            self._append_loaded(now)
            self._append(self.recorder.close_interrupted(is_known, now), GROUPS_PER_BATCH, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    def views(self) -> list[TopicLog]:
        """The logs of all partitions. Raises Corrupt as `view` does."""
        return [self.view(partition) for partition in range(self._partitions)]

    def view(self, partition: int) -> TopicLog:
        """The log as its readers see it. Raises Corrupt if it could not be opened."""
        key = TopicPartition(HISTORY_TOPIC, partition)
        view = self._views().get(key)
        if view is None:
            raise Corrupt(f"{key.topic}-{key.partition}", 0, "the log could not be opened")
        return view

    def _tail(self, partition: int) -> HistoryTail | Exception:
        """In any thread: what the end of a partition has, or the fault."""
        try:
            return read_tail(self.view(partition), TAIL_BYTES)
        except Exception as error:  # noqa: BLE001 - reported by `_restore`
            return error

    def _restore_all(self, partitions: Sequence[int], index: HistoryIndex) -> None:
        for partition in partitions:
            for _ in self._restore(self._tail(partition), index):
                pass

    def _restore(self, tail: HistoryTail | Exception, index: HistoryIndex) -> Iterator[None]:
        """Add the tail of a partition to the index; others may run between two slices."""
        if isinstance(tail, OSError | Corrupt):
            self._lost(str(tail))
            return
        try:
            if isinstance(tail, Exception):
                raise tail  # noqa: TRY301 - reported like other faults below
            if tail.damage is not None:
                self.unreadable(tail.damage)
            for number, entry in enumerate(tail.entries, start=1):
                index.apply(entry)
                if number % ENTRIES_PER_SLICE == 0:
                    yield None
        except Exception as error:  # noqa: BLE001 - groups are served whatever the topic has
            self._observe(PartFailed("group history", error))

    # ------------------------------------------------------------ the log

    def _append_loaded(self, now: Now) -> None:
        entries, self._loaded = self._loaded, []
        self._append(entries, GROUPS_PER_BATCH, now)

    def _append_soon(self, entry: HistoryEntry, call_soon: CallSoon, now: Now) -> None:
        """In the next pass of the event loop, or before the next entry of another kind."""
        if not self._waiting:
            call_soon(self._append_waiting)
        self._waiting.append(entry)
        self._waiting_at_ms = now.wall_ms
        if len(self._waiting) >= WAITING_PER_BATCH:
            self._append_waiting()

    def _append_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            self._append_all(waiting, WAITING_PER_BATCH, self._waiting_at_ms)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    def _append(self, entries: Sequence[HistoryEntry], most: int, now: Now) -> None:
        if self._waiting:
            self._append_waiting()
        self._append_all(entries, most, now.wall_ms)

    def _append_all(self, entries: Sequence[HistoryEntry], most: int, at_ms: int) -> None:
        by_partition: dict[int, list[HistoryEntry]] = {}
        for entry in entries:
            by_partition.setdefault(self.partition_for(entry.group_id), []).append(entry)
        for partition, batch in by_partition.items():
            for records in _batches(batch, most):
                if self._append_to(partition, records, at_ms):
                    self.events_written += len(records)
                else:
                    self.events_lost += len(records)
        for entry in entries:
            self._notify(entry)

    def _notify(self, entry: HistoryEntry) -> None:
        """A listener that fails costs the others, and the entries after this one, nothing."""
        for listener in self._listeners:
            try:
                listener(entry)
            except Exception as error:  # noqa: BLE001 - as above
                self._observe(PartFailed("group history", error))

    def _append_to(self, partition: int, records: Sequence[Record], at_ms: int) -> bool:
        for _ in range(2):
            try:
                self._log(partition).append(records, at_ms)
            except LogClosed:
                # The journal has failed; or it has reopened and accepts writes through new logs.
                self._logs.pop(partition, None)
            except (Corrupt, KeyError) as fault:
                self._lost(str(fault))
                return False
            else:
                return True
        self._lost("the journal takes no writes")
        return False

    def _log(self, partition: int) -> JournaledLog:
        log = self._logs.get(partition)
        if log is None:
            key = TopicPartition(HISTORY_TOPIC, partition)
            log = self._logs[partition] = self._journal.log(key)
            self._attach(self.view(partition))
        return log

    def _lost(self, reason: str) -> None:
        if not self.events_lost:
            self._observe(HistoryLost(reason))


def _may_wait(entries: Sequence[HistoryEntry], happened: Sequence[Event]) -> bool:
    """A classic member joins, or a rebalance is over: turns that have no records."""
    if len(entries) != 1:
        return False
    entry = entries[0]
    if isinstance(entry, RebalanceEndedEntry):
        return isinstance(happened[-1], GroupStabilized | MemberSynced)
    return isinstance(entry, MemberAddedEntry) and not entry.group_type


def _batches(entries: Sequence[HistoryEntry], most: int) -> Iterator[list[Record]]:
    records: list[Record] = []
    size = 0
    for entry in entries:
        key, value = encode(entry)
        size += len(value)
        if records and (len(records) == most or size > BATCH_BYTES_MAX):
            yield records
            records, size = [], len(value)
        records.append(Record(key, value))
    if records:
        yield records
