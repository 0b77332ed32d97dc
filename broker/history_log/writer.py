"""Who writes `__group_history`? The chronicler: facts in the turn that decides them, in one flush.

Implements the coordinator's `HistorySink`. What a turn appends to `__consumer_offsets` and what is
told of it here go through the journal as one (`begin`, `end`): after a crash both are there or
neither is. Turns that store nothing of their own are told as well. A fault here is a line in the
log and a gap in the history; it never fails a turn.

The index in memory is the fold of the very same facts (history/index.py). At a start the last part
of the topic is read, so that a rebalance which the stop cut off is not forgotten.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from broker.history_log.reader import Window, windows
from broker.observe.events import HistoryLost, PartFailed, ShellEvent, Warned
from coordinator.classic.group_view import ClassicGroupView
from coordinator.events import Event
from coordinator.java_hash import partition_of
from history.encoding import encode
from history.entries import HistoryEntry, TopicPartitionCounts
from history.index import HistoryIndex
from history.recording.offset_changes import parted
from history.recording.recorder import FactLimits, Facts
from history.recording.running_rebalance import Away
from protocol.names import HISTORY_TOPIC, GroupId
from seams.now import Now
from storage.api import Corrupt, LogClosed, Record, TopicLog, TopicPartition
from storage.journal.journal import Journal
from storage.journal.journaled_log import JournaledLog

EVENTS_PER_BATCH: Final = 16
"""Cut lists keep an event at some 50 KB: a batch stays below what a Fetch asks for."""

GROUPS_PER_BATCH: Final = 500
"""Of those that a partition loaded: a fact of each is small."""

TAIL_BYTES: Final = 1 << 20
"""So much of each partition is read at a start, for the rebalances that were running."""


Attach = Callable[[TopicLog], None]

Views = Callable[[], Mapping[TopicPartition, TopicLog]]
"""The logs as their readers see them, by now: each journal shows them anew."""


def _to_nobody(_: TopicLog) -> None:
    return


class HistoryLog:
    """All of it runs on the event loop."""

    def __init__(
        self,
        journal: Journal,
        partitions: int,
        index: HistoryIndex,
        limits: FactLimits,
        observe: Callable[[ShellEvent], None],
    ) -> None:
        self.index = index
        self.facts = Facts(index, limits)
        self.events_written = 0
        self.events_lost = 0
        self._journal = journal
        self._partitions = partitions
        self._observe = observe
        self._logs: dict[int, JournaledLog] = {}
        self._views: Views = dict
        self._attach: Attach = _to_nobody
        self._loaded: list[HistoryEntry] = []  # not appended yet
        self._listeners: list[Callable[[HistoryEntry], None]] = []
        self._told_damage = False

    def subscribe(self, listener: Callable[[HistoryEntry], None]) -> None:
        """Be told of every fact, within the turn: return soon, and call nobody back."""
        self._listeners.append(listener)

    def partition_for(self, group_id: str) -> int:
        """As in the offsets topic: by Java's hash of the group id."""
        return partition_of(group_id, self._partitions)

    # ------------------------------------------------------------ told by the coordinator

    def begin(self) -> None:
        self._journal.begin_atomic()

    def end(self) -> None:
        self._journal.end_atomic()

    def record(self, group: ClassicGroupView | None, happened: Sequence[Event], now: Now) -> None:
        try:
            facts = self.facts.of(group, happened, now)
            if self._loaded:
                self._append_loaded(now)  # what comes after it, stands after it
            self._append(facts, EVENTS_PER_BATCH, now)
        except Exception as error:  # noqa: BLE001 - a fault here is no reason to refuse a client
            self._observe(PartFailed("group history", error))

    def loaded(self, group: ClassicGroupView, now: Now) -> None:
        try:
            self._loaded += self.facts.loaded(group, now)
            if len(self._loaded) >= GROUPS_PER_BATCH:
                self._append_loaded(now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    def record_entry(self, fact: HistoryEntry, now: Now) -> None:
        """What somebody found out about a group, rather than what happened to it."""
        try:
            self._append([fact], 1, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    # ------------------------------------------------------------ told by the daemon

    def flush_steady_commits(self, now: Now, *, all_of_them: bool = False) -> None:
        """Now and then, and all of it at a stop: steady commits whose time has come."""
        try:
            steady = self.facts.steady
            gathered = steady.all() if all_of_them else steady.due(now.wall_ms)
            self._append(parted(gathered, self.facts.limits.offsets), EVENTS_PER_BATCH, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._observe(PartFailed("group history", error))

    def topics_changed(self, changes: Sequence[TopicPartitionCounts], now: Now) -> None:
        """Consumers of these will notice, and rejoin."""
        self.facts.topics_changed(changes, now)

    def open(self, views: Views, attach: Attach) -> None:
        """At a start, before any group is loaded: the logs, and what their tails tell.

        `attach` shows a log to those who read it.
        """
        self._views, self._attach = views, attach
        self._partitions = max(self._partitions, sum(one.topic == HISTORY_TOPIC for one in views()))
        self._recall_all()

    def reopen(self) -> None:
        """The journal takes writes again: only what it had stored has happened."""
        self._begin_anew([self._tail(one) for one in self._opened_anew()])

    async def reopen_beside(self) -> None:
        """The same, but read in a thread. What is told meanwhile is appended, not remembered."""
        partitions = self._opened_anew()
        loop = asyncio.get_running_loop()
        tails = await loop.run_in_executor(None, lambda: [self._tail(one) for one in partitions])
        self._begin_anew(tails)

    def _opened_anew(self) -> list[int]:
        self._logs.clear()
        self._loaded.clear()
        return self._open_all()

    def _begin_anew(self, tails: "Sequence[list[Window] | Exception]") -> None:
        self.index.clear()
        self.facts.clear()
        for tail in tails:
            self._recall(tail)

    def _recall_all(self) -> None:
        for partition in self._open_all():
            self._recall(self._tail(partition))

    def _open_all(self) -> list[int]:
        """The partitions whose logs there are."""
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
        """Some of the topic is damaged: told once; the rest is read, and facts are appended."""
        if not self._told_damage:
            self._told_damage = True
            reason = {"reason": str(damage)}
            self._observe(Warned("Some of the group history cannot be read", reason))

    def settle(self, is_known: Callable[[GroupId], bool], now: Now) -> None:
        """After a start: whatever ran in a group that is not known any more is over."""
        self.facts.away = Away()
        try:
            self._append_loaded(now)
            self._append(self.facts.left_running(is_known, now), GROUPS_PER_BATCH, now)
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

    def _tail(self, partition: int) -> "list[Window] | Exception":
        """In any thread: what the end of a partition says, the last first; or what is wrong."""
        tail: list[Window] = []
        size = 0
        try:
            for window in windows(self.view(partition)):
                tail.append(window)
                size += window.size
                if window.damage is not None or size >= TAIL_BYTES:
                    break
        except Exception as error:  # noqa: BLE001 - told by `_recall`
            return error
        return tail

    def _recall(self, tail: "list[Window] | Exception") -> None:
        """Take in what a partition's end says."""
        if isinstance(tail, OSError | Corrupt):
            self._lost(str(tail))
            return
        try:
            if isinstance(tail, Exception):
                raise tail  # noqa: TRY301 - told as what else may be wrong below
            for window in reversed(tail):
                if window.damage is not None:
                    # What follows the damage is not known: a rebalance that runs by what stands
                    # before it may be over long since. What comes after all of the window counts.
                    self.unreadable(window.damage)
                    continue
                for _, event in window.events():
                    self.index.apply(event)
        except Exception as error:  # noqa: BLE001 - whatever lies there, groups are served
            self._observe(PartFailed("group history", error))

    # ------------------------------------------------------------ the log

    def _append_loaded(self, now: Now) -> None:
        facts, self._loaded = self._loaded, []
        self._append(facts, GROUPS_PER_BATCH, now)

    def _append(self, facts: Sequence[HistoryEntry], most: int, now: Now) -> None:
        by_partition: dict[int, list[HistoryEntry]] = {}
        for fact in facts:
            by_partition.setdefault(self.partition_for(fact.group_id), []).append(fact)
        for partition, some in by_partition.items():
            for at in range(0, len(some), most):
                part = some[at : at + most]
                records = [Record(*encode(fact)) for fact in part]
                if self._append_to(partition, records, now.wall_ms):
                    self.events_written += len(part)
                else:
                    self.events_lost += len(part)
        for fact in facts:
            for listener in self._listeners:
                listener(fact)

    def _append_to(self, partition: int, records: Sequence[Record], at_ms: int) -> bool:
        for _ in range(2):
            try:
                self._log(partition).append(records, at_ms)
            except LogClosed:
                # The journal has failed; or it did, and takes writes again, through new logs only.
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
