"""Steady commits: aggregates the forward commits of clients that are not members.

Such clients (Flink, MirrorMaker, a simple consumer) commit each second, for weeks. Their first
commits are entries of their own, like every reset, step back and first commit of a partition. Later
forward commits are aggregated into one entry per `FLUSH_INTERVAL_MS`, or until something else
changes the same partitions, or offsets of the group are reset or deleted: then the aggregate is
flushed first. So no other change falls between its `old` and its `new`. It is in memory only: a
kill loses the count of at most that interval, and hides no change.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from history.causes import OffsetsBy
from history.entries import OffsetsMovedEntry
from history.entry_values import (
    OffsetChange,
    RequestClient,
)
from history.lag.model import PartitionKey

SEPARATE_COMMITS: Final = 3
"""Commits in a row with entries of their own: a manual reset is never aggregated."""

PAUSE_MAX_MS: Final = 900_000
"""A longer pause ends the run. Flink's checkpoints are minutes apart, some ten."""

FLUSH_INTERVAL_MS: Final = 600_000

STEADY_PARTITIONS_MAX: Final = 100_000
"""Aggregated for all groups together, some 200 bytes each; beyond it the oldest are flushed."""

RUNS_MAX: Final = 10_000
"""Clients with a run; commits of further clients are entries of their own."""


class Committer(NamedTuple):
    group_id: str
    client: RequestClient
    member_id: str


class _Run(Struct):
    """Forward commits of one client in a row."""

    last_ms: int
    seen: int = 1
    since_ms: int = 0  # when the first aggregated commit was made
    commits: int = 0  # that are aggregated
    moved: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)  # old, new


class SteadyCommits:
    def __init__(self) -> None:
        self._runs: dict[str, dict[Committer, _Run]] = {}  # by group
        self._count = 0  # of runs
        self._committers: dict[str, dict[PartitionKey, Committer]] = {}  # by group
        self.partitions = 0  # that are aggregated

    def add(
        self, committer: Committer, changes: Sequence[OffsetChange], at_ms: int
    ) -> list[OffsetsMovedEntry] | None:
        """Add a commit that changes an offset. None: it needs an entry of its own.

        Else it is aggregated, and the result are the entries that are due.
        """
        run = self._runs.get(committer.group_id, {}).get(committer)
        if run is None or at_ms - run.last_ms > PAUSE_MAX_MS:
            return None
        if not all(map(_is_forward, changes)):
            return None
        run.seen += 1
        if run.seen <= SEPARATE_COMMITS:
            run.last_ms = at_ms
            return None
        flushed = self.before(committer.group_id, changes, committer)
        run.last_ms = at_ms
        self._aggregate(committer, run, changes, at_ms)
        if at_ms - run.since_ms >= FLUSH_INTERVAL_MS:
            flushed.append(self._flush(committer, run))
        return flushed

    def before(
        self, group_id: str, changes: Iterable[OffsetChange], by: Committer | None = None
    ) -> list[OffsetsMovedEntry]:
        """Flush the aggregates of these partitions, because another entry about them follows.

        Not those of `by`, which continue, unless others changed a partition since.
        """
        committers = self._committers.get(group_id, {})
        ended: dict[Committer, _Run] = {}
        for topic, partition, old, _ in changes if committers else ():
            committer = committers.get((topic, partition))
            if committer is not None and committer not in ended:
                run = self._runs[group_id][committer]
                if committer != by or run.moved[topic, partition][1] != old:
                    ended[committer] = run
        return [self._flush(committer, run) for committer, run in ended.items()]

    def begin(self, committer: Committer, at_ms: int) -> None:
        """A commit got an entry of its own: it may begin a run."""
        run = self._runs.get(committer.group_id, {}).get(committer)
        if run is not None and at_ms - run.last_ms > PAUSE_MAX_MS:
            run.seen, run.last_ms = 1, at_ms
        elif run is None and self._count < RUNS_MAX:
            self._runs.setdefault(committer.group_id, {})[committer] = _Run(at_ms)
            self._count += 1

    def end(self, group_id: str) -> list[OffsetsMovedEntry]:
        """Flush the group's aggregates, because something else changes its offsets."""
        of_group = self._runs.pop(group_id, {})
        self._count -= len(of_group)
        return [self._flush(committer, run) for committer, run in of_group.items() if run.commits]

    def due(self, now_ms: int) -> list[OffsetsMovedEntry]:
        """Flush the aggregates that are due, and forget the clients that paused."""
        flushed: list[OffsetsMovedEntry] = []
        for group_id, of_group in list(self._runs.items()):
            for committer, run in list(of_group.items()):
                is_over = now_ms - run.last_ms > PAUSE_MAX_MS
                if run.commits and (is_over or now_ms - run.since_ms >= FLUSH_INTERVAL_MS):
                    flushed.append(self._flush(committer, run))
                if is_over:
                    del of_group[committer]
                    self._count -= 1
            if not of_group:
                del self._runs[group_id]
        return flushed

    def all(self) -> list[OffsetsMovedEntry]:
        """At a stop: flush all aggregates."""
        return [entry for group_id in list(self._runs) for entry in self.end(group_id)]

    def clear(self) -> None:
        self._runs.clear()
        self._committers.clear()
        self._count = self.partitions = 0

    def pending(self, group_id: str | None) -> list[OffsetsMovedEntry]:
        """The aggregates of a group, or of all, that are not flushed yet."""
        if group_id is None:
            return [entry for known in self._runs for entry in self.pending(known)]
        of_group = self._runs.get(group_id, {})
        return [_entry(committer, run) for committer, run in of_group.items() if run.commits]

    def make_room(self) -> list[OffsetsMovedEntry]:
        """Beyond the limit: flush the oldest aggregates early."""
        flushed: list[OffsetsMovedEntry] = []
        if self.partitions <= STEADY_PARTITIONS_MAX:
            return flushed
        runs = [
            (run.since_ms, committer, run)
            for of_group in self._runs.values()
            for committer, run in of_group.items()
            if run.commits
        ]
        for _, committer, run in sorted(runs, key=lambda aggregate: aggregate[0]):
            if self.partitions <= STEADY_PARTITIONS_MAX // 2:
                break
            flushed.append(self._flush(committer, run))
        return flushed

    def _aggregate(
        self, committer: Committer, run: _Run, changes: Sequence[OffsetChange], at_ms: int
    ) -> None:
        committers = self._committers.setdefault(committer.group_id, {})
        run.since_ms = run.since_ms or at_ms
        run.commits += 1
        for topic, partition, old, new in changes:
            assert old is not None
            assert new is not None
            key = (topic, partition)
            known = run.moved.get(key)
            if known is None:
                self.partitions += 1
                committers[key] = committer
                known = (old, new)
            run.moved[key] = (known[0], new)

    def _flush(self, committer: Committer, run: _Run) -> OffsetsMovedEntry:
        entry = _entry(committer, run)
        self.partitions -= len(run.moved)
        committers = self._committers[committer.group_id]
        for key in run.moved:
            del committers[key]
        if not committers:
            del self._committers[committer.group_id]
        run.moved, run.commits, run.since_ms = {}, 0, 0
        return entry


def _entry(committer: Committer, run: _Run) -> OffsetsMovedEntry:
    changes = tuple(OffsetChange(*key, *moved) for key, moved in run.moved.items())
    return OffsetsMovedEntry(
        committer.group_id,
        run.last_ms,
        OffsetsBy.COMMIT,
        changes,
        committer.client,
        committer.member_id,
        run.commits,
        run.since_ms,
    )


def _is_forward(change: OffsetChange) -> bool:
    return change.old is not None and change.new is not None and change.new > change.old


def changed_only(changes: Sequence[OffsetChange]) -> Iterator[OffsetChange]:
    """Without those that keep the offset."""
    return (change for change in changes if change.old != change.new)
