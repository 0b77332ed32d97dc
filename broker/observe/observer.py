"""What do operators see of all that happens? Each event becomes log lines and counts, by table.

The cores say what happened and nothing else; group_lines.py and node_lines.py have the words,
`Counters` the numbers that only events tell (the rest is read from the parts at scrape time, see
metrics/). Lines go to stderr through structlog, for people or as one JSON object each; stdout
is left for the ready line.
"""

import logging
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TextIO

import structlog

from broker.observe import cleaner_lines as cleaner_words
from broker.observe import events as shell
from broker.observe import group_lines as group_words
from broker.observe import node_lines as node_words
from broker.observe import storage_lines as storage_words
from broker.observe.log_lines import Table
from broker.observe.stats import Histogram
from coordinator.classic import events as groups
from coordinator.offsets import events as offsets
from history.repeats import Repeats
from protocol.names import NO_GENERATION, GroupId
from protocol.printable import printable
from topics import events as topics

REBALANCE_BUCKETS_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 3.0, 6.0, 10.0, 30.0, 60.0, 300.0)
LOAD_BUCKETS_S: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
RUNNING_REBALANCES_MAX: Final = 100_000

FACT_CHARS_MAX: Final = 500
"""Of one fact in a line: twice the longest topic name, and more than any id that people choose."""


class Counters:
    """Numbers that grow with events; plain integers, read by metrics/."""

    def __init__(self) -> None:
        self.rebalances_begun: dict[str, int] = {}  # by cause
        self.rebalances_completed: dict[str, int] = {}
        self.rebalance_seconds = Histogram(REBALANCE_BUCKETS_S)
        self.join_wait_seconds = Histogram(REBALANCE_BUCKETS_S)
        self.assignments_refused = 0
        self.members_added = 0
        self.members_fenced = 0
        self.static_members_replaced = 0
        self.members_removed: dict[str, int] = {}
        self.lapses_forgiven = 0
        self.offsets_committed = 0
        self.offsets_committed_outside = 0  # by no member of the group
        self.offsets_deleted: dict[str, int] = {}
        self.groups_deleted: dict[str, int] = {}
        self.load_seconds = Histogram(LOAD_BUCKETS_S)
        self.load_seconds_max = 0.0
        self.records_loaded = 0
        self.snapshots_taken = 0
        self.snapshots_ms = 0
        self.snapshot_bytes = 0
        self.snapshots_failed = 0
        self.snapshots_ignored = 0
        self.records_appended = 0
        self.bytes_appended = 0
        self.bytes_fetched = 0
        self.parts_failed = 0
        self.journal_failures = 0
        self.stalls = 0
        self.stalled_ms = 0
        self._running: dict[GroupId, tuple[str, int]] = {}  # rebalances: cause, since

        # Told of joins that found no common protocol (verdict_watch.py).
        self.join_refused: Callable[[groups.JoinRefused], None] | None = None
        # Told of groups that are gone (verdict_watch.py).
        self.group_deleted: Callable[[str], None] | None = None
        # Told of each commit: who commits how often (commit_rates.py).
        self.meter: Callable[[offsets.OffsetsCommitted], None] | None = None

    def count(self, event: object) -> None:
        counting = _COUNTING.get(type(event))
        if counting is not None:
            counting(self, event)

    def _begun(self, event: object) -> None:
        assert isinstance(event, groups.RebalanceBegun)
        _increment(self.rebalances_begun, event.cause)
        if len(self._running) < RUNNING_REBALANCES_MAX:
            # One that is begun again goes on: its clients have waited since the first.
            self._running.setdefault(event.group_id, (event.cause, event.now_ms))

    def _completed(self, event: object) -> None:
        assert isinstance(event, groups.GroupStabilized)
        cause, since_ms = self._running.pop(event.group_id, ("unknown", event.now_ms))
        _increment(self.rebalances_completed, cause)
        self.rebalance_seconds.add((event.now_ms - since_ms) / 1000)

    def _ended(self, event: object) -> None:
        assert isinstance(event, groups.GroupEmptied)
        self._running.pop(event.group_id, None)

    def _closed(self, _event: object) -> None:
        # Its rebalances begin anew wherever it is loaded next. Which were its own is not known
        # here, and closing is rare: all are forgotten.
        self._running.clear()

    def _generation_begun(self, event: object) -> None:
        assert isinstance(event, groups.GenerationBegun)
        for join in event.joins:
            self.join_wait_seconds.add(join.waited_ms / 1000)

    def oldest_rebalance_ms(self, now_ms: int) -> int:
        """How long the longest of those that run has lasted; 0 without one."""
        for _, since_ms in self._running.values():  # in the order in which they began
            return now_ms - since_ms
        return 0

    def _refused(self, _event: object) -> None:
        self.assignments_refused += 1

    def _fenced(self, _event: object) -> None:
        self.members_fenced += 1

    def _replaced(self, _event: object) -> None:
        self.static_members_replaced += 1

    def _loaded(self, event: object) -> None:
        assert isinstance(event, shell.PartitionRead)
        seconds = event.load_ms / 1000
        self.load_seconds.add(seconds)
        self.load_seconds_max = max(self.load_seconds_max, seconds)
        self.records_loaded += event.records

    def _added(self, _event: object) -> None:
        self.members_added += 1

    def _removed(self, event: object) -> None:
        assert isinstance(event, groups.MembersRemoved)
        _increment(self.members_removed, event.cause, len(event.removed))

    def _forgiven(self, _event: object) -> None:
        self.lapses_forgiven += 1

    def _join_refused(self, event: object) -> None:
        assert isinstance(event, groups.JoinRefused)
        if self.join_refused is not None:
            self.join_refused(event)

    def _committed(self, event: object) -> None:
        assert isinstance(event, offsets.OffsetsCommitted)
        if self.meter is not None:
            self.meter(event)
        for _, partitions in event.offsets:
            self.offsets_committed += len(partitions)
            if event.generation_id == NO_GENERATION:
                self.offsets_committed_outside += len(partitions)

    def _deleted(self, event: object) -> None:
        assert isinstance(event, offsets.OffsetsDeleted)
        count = sum(len(partitions) for _, partitions in event.offsets)
        _increment(self.offsets_deleted, event.cause, count)

    def _group_deleted(self, event: object) -> None:
        assert isinstance(event, offsets.GroupDeleted)
        _increment(self.groups_deleted, event.cause)
        if self.group_deleted is not None:
            self.group_deleted(event.group_id)
        self._running.pop(event.group_id, None)
        count = sum(len(partitions) for _, partitions in event.offsets)
        _increment(self.offsets_deleted, event.cause, count)

    def _appended(self, event: object) -> None:
        assert isinstance(event, topics.RecordsAppended)
        self.records_appended += event.records
        self.bytes_appended += event.bytes

    def _fetched(self, event: object) -> None:
        assert isinstance(event, topics.RecordsFetched)
        self.bytes_fetched += event.bytes

    def _failed(self, _event: object) -> None:
        self.parts_failed += 1

    def _snapshot_taken(self, event: object) -> None:
        assert isinstance(event, shell.SnapshotTaken)
        self.snapshots_taken += 1
        self.snapshots_ms += event.took_ms
        self.snapshot_bytes += event.size_bytes

    def _snapshot_failed(self, _event: object) -> None:
        self.snapshots_failed += 1

    def _snapshot_ignored(self, _event: object) -> None:
        self.snapshots_ignored += 1

    def _journal_failed(self, _event: object) -> None:
        self.journal_failures += 1

    def _stalled(self, event: object) -> None:
        assert isinstance(event, shell.LoopStalled)
        self.stalls += 1
        self.stalled_ms += event.stalled_ms


def _increment(counts: dict[str, int], key: str, by: int = 1) -> None:
    counts[key] = counts.get(key, 0) + by


_COUNTING: Final[dict[type, Callable[[Counters, object], None]]] = {
    groups.RebalanceBegun: Counters._begun,
    groups.GroupStabilized: Counters._completed,
    groups.GroupEmptied: Counters._ended,
    groups.PartitionClosed: Counters._closed,
    groups.GenerationBegun: Counters._generation_begun,
    groups.AssignmentRefused: Counters._refused,
    groups.JoinRefused: Counters._join_refused,
    groups.MemberFenced: Counters._fenced,
    groups.StaticMemberReplaced: Counters._replaced,
    groups.MemberAdded: Counters._added,
    groups.MembersRemoved: Counters._removed,
    groups.LapseForgiven: Counters._forgiven,
    offsets.OffsetsCommitted: Counters._committed,
    offsets.OffsetsDeleted: Counters._deleted,
    offsets.GroupDeleted: Counters._group_deleted,
    topics.RecordsAppended: Counters._appended,
    topics.RecordsFetched: Counters._fetched,
    shell.PartitionRead: Counters._loaded,
    shell.SnapshotTaken: Counters._snapshot_taken,
    shell.SnapshotFailed: Counters._snapshot_failed,
    shell.SnapshotIgnored: Counters._snapshot_ignored,
    shell.PartFailed: Counters._failed,
    shell.JournalFailed: Counters._journal_failed,
    shell.LoopStalled: Counters._stalled,
}


_WORDS: Final[Table] = {
    **group_words.TABLE,
    **node_words.TABLE,
    **cleaner_words.TABLE,
    **storage_words.TABLE,
}


class Observer:
    """Called with every event of every part; never raises, for a log line is worth no failure."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        self._log = log
        self._write = {
            level: getattr(log, level) for level in ("debug", "info", "warning", "error")
        }
        self.counters = Counters()
        self.lines_lost = 0
        self._repeats = Repeats()

    def __call__(self, event: object) -> None:
        self.counters.count(event)
        tell = _WORDS.get(type(event))
        if tell is None:
            return
        times = 1
        if isinstance(event, groups.NobodyRejoined):
            times = self._repeats.count(event.group_id, event.at_ms) or 0
            if not times:
                return
        try:
            for level, words, facts in tell(event):
                plain = {
                    key: fact.value if isinstance(fact, StrEnum) else fact
                    for key, fact in facts.items()
                }
                if times > 1:
                    plain["times"] = times
                self._write[level](words, **plain)
        except OSError:
            self.lines_lost += 1  # stderr is closed, or its disk is full


def _shorten(
    _log: object, _level: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A client may choose an id of 32 kB, and have it in many lines."""
    for key, fact in line.items():
        line[key] = _short(fact)
    return line


def _short(fact: object) -> object:
    if isinstance(fact, BaseException):
        fact = str(fact)
    if isinstance(fact, str) and len(fact) > FACT_CHARS_MAX:
        return f"{fact[:FACT_CHARS_MAX]}… ({len(fact)} characters)"
    if isinstance(fact, list | tuple):
        return [_short(item) for item in fact]
    return fact


def _escape(
    _log: object, _level: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """For people: what a client chose as its group's id does not reach the terminal raw."""
    for key, fact in line.items():
        if isinstance(fact, str):
            line[key] = printable(fact)
        elif isinstance(fact, BaseException):
            line[key] = printable(str(fact))
    return line


def open_log(style: str, level: str, stream: TextIO) -> structlog.typing.FilteringBoundLogger:
    """The log of this process: `style` is human or json, `level` the least that is written."""
    render: structlog.typing.Processor
    escaping: list[structlog.typing.Processor]
    if style == "json":
        render = structlog.processors.JSONRenderer(default=str)
        escaping = []
    else:
        render = structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), pad_event_to=0, sort_keys=False
        )
        escaping = [_escape]
    bound: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _shorten,
            *escaping,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        context_class=dict,
    ).bind()
    return bound


_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def log_to_stderr(style: str, level: str) -> Observer:
    return Observer(open_log(style, level, sys.stderr))
