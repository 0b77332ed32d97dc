"""Steady commits: what of a program that commits without being a member is told, and when?

Such programs (Flink, MirrorMaker, a simple consumer) commit each second, for weeks. Their first
commits are facts one by one, like every reset, step back and first commit of a partition; what
goes on forward after that is gathered, and is one fact for each `TOLD_EVERY_MS`, or for the time
until something else happens to the same partitions, or offsets of the group are reset or deleted:
then what was gathered is told first. So nobody else's move lies between its `old` and its `new`. It
is in memory only: a kill loses the count of at most that time, and hides no move.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from history.causes import OffsetsBy
from history.entries import OffsetChange, OffsetsMovedEntry, RequestClient

ALONE: Final = 3
"""So many commits in a row are facts of their own: a reset by hand is never gathered."""

PAUSE_MAX_MS: Final = 900_000
"""A longer one ends it. Flink's checkpoints are minutes apart, some ten."""

TOLD_EVERY_MS: Final = 600_000

PARTITIONS_MAX: Final = 100_000
"""That are gathered for all groups together, some 200 bytes each; beyond it the oldest are told."""

RUNS_MAX: Final = 10_000
"""Clients that are followed; the commits of those beyond it are told one by one."""

Place = tuple[str, int]


class Committer(NamedTuple):
    group_id: str
    client: RequestClient
    member_id: str


class _Run(Struct):
    """Forward commits of one client, one after the other."""

    last_ms: int
    seen: int = 1
    since_ms: int = 0  # when the first that is gathered was made
    commits: int = 0  # that are gathered
    moved: dict[Place, tuple[int, int]] = field(default_factory=dict)  # old, new


class SteadyCommits:
    def __init__(self) -> None:
        self._runs: dict[str, dict[Committer, _Run]] = {}  # by group
        self._count = 0  # of runs
        self._gatherers: dict[str, dict[Place, Committer]] = {}  # by group; one for a partition
        self.partitions = 0  # that are gathered

    def take(
        self, who: Committer, changes: Sequence[OffsetChange], at_ms: int
    ) -> list[OffsetsMovedEntry] | None:
        """A commit that moves something. None: it is to be told as it is.

        Else it is gathered, and the facts are those whose time has come.
        """
        run = self._runs.get(who.group_id, {}).get(who)
        if run is None or at_ms - run.last_ms > PAUSE_MAX_MS:
            return None
        if not all(map(_is_forward, changes)):
            return None
        run.seen += 1
        if run.seen <= ALONE:
            run.last_ms = at_ms
            return None
        told = self.before(who.group_id, changes, who)
        run.last_ms = at_ms
        self._gather(who, run, changes, at_ms)
        if at_ms - run.since_ms >= TOLD_EVERY_MS:
            told.append(self._told(who, run))
        return told

    def before(
        self, group_id: str, changes: Iterable[OffsetChange], by: Committer | None = None
    ) -> list[OffsetsMovedEntry]:
        """A fact about these partitions comes: what is gathered of them is told first.

        Not of `by`, who gathers on, unless a partition was moved by others since, as by members.
        """
        gatherers = self._gatherers.get(group_id, {})
        ended: dict[Committer, _Run] = {}
        for topic, partition, old, _ in changes if gatherers else ():
            who = gatherers.get((topic, partition))
            if who is not None and who not in ended:
                run = self._runs[group_id][who]
                if who != by or run.moved[topic, partition][1] != old:
                    ended[who] = run
        return [self._told(who, run) for who, run in ended.items()]

    def begin(self, who: Committer, at_ms: int) -> None:
        """A commit was told as it is: perhaps the first of many."""
        run = self._runs.get(who.group_id, {}).get(who)
        if run is not None and at_ms - run.last_ms > PAUSE_MAX_MS:
            run.seen, run.last_ms = 1, at_ms
        elif run is None and self._count < RUNS_MAX:
            self._runs.setdefault(who.group_id, {})[who] = _Run(at_ms)
            self._count += 1

    def end(self, group_id: str) -> list[OffsetsMovedEntry]:
        """Something else happens to the group's offsets: what was gathered is told before it."""
        of_group = self._runs.pop(group_id, {})
        self._count -= len(of_group)
        return [self._told(who, run) for who, run in of_group.items() if run.commits]

    def due(self, now_ms: int) -> list[OffsetsMovedEntry]:
        """Called now and then: what waited long enough, or is too much; who paused is forgotten."""
        found: list[OffsetsMovedEntry] = []
        for group_id, of_group in list(self._runs.items()):
            for who, run in list(of_group.items()):
                is_over = now_ms - run.last_ms > PAUSE_MAX_MS
                if run.commits and (is_over or now_ms - run.since_ms >= TOLD_EVERY_MS):
                    found.append(self._told(who, run))
                if is_over:
                    del of_group[who]
                    self._count -= 1
            if not of_group:
                del self._runs[group_id]
        return found

    def all(self) -> list[OffsetsMovedEntry]:
        """At a stop: everything that is gathered."""
        return [fact for group_id in list(self._runs) for fact in self.end(group_id)]

    def clear(self) -> None:
        self._runs.clear()
        self._gatherers.clear()
        self._count = self.partitions = 0

    def pending(self, group_id: str | None) -> list[OffsetsMovedEntry]:
        """What is gathered of a group, or of all, and not yet told, for who asks now."""
        if group_id is None:
            return [fact for one in self._runs for fact in self.pending(one)]
        of_group = self._runs.get(group_id, {})
        return [_fact(who, run) for who, run in of_group.items() if run.commits]

    def make_room(self) -> list[OffsetsMovedEntry]:
        """Beyond the limit: whose first gathered commit is oldest is told early."""
        found: list[OffsetsMovedEntry] = []
        if self.partitions <= PARTITIONS_MAX:
            return found
        runs = [
            (run.since_ms, who, run)
            for of_group in self._runs.values()
            for who, run in of_group.items()
            if run.commits
        ]
        for _, who, run in sorted(runs, key=lambda one: one[0]):
            if self.partitions <= PARTITIONS_MAX // 2:
                break
            found.append(self._told(who, run))
        return found

    def _gather(
        self, who: Committer, run: _Run, changes: Sequence[OffsetChange], at_ms: int
    ) -> None:
        gatherers = self._gatherers.setdefault(who.group_id, {})
        run.since_ms = run.since_ms or at_ms
        run.commits += 1
        for topic, partition, old, new in changes:
            assert old is not None
            assert new is not None
            place = (topic, partition)
            known = run.moved.get(place)
            if known is None:
                self.partitions += 1
                gatherers[place] = who
                known = (old, new)
            run.moved[place] = (known[0], new)

    def _told(self, who: Committer, run: _Run) -> OffsetsMovedEntry:
        fact = _fact(who, run)
        self.partitions -= len(run.moved)
        gatherers = self._gatherers[who.group_id]
        for place in run.moved:
            del gatherers[place]
        if not gatherers:
            del self._gatherers[who.group_id]
        run.moved, run.commits, run.since_ms = {}, 0, 0
        return fact


def _fact(who: Committer, run: _Run) -> OffsetsMovedEntry:
    changes = tuple(OffsetChange(*place, *moved) for place, moved in run.moved.items())
    return OffsetsMovedEntry(
        who.group_id,
        run.last_ms,
        OffsetsBy.COMMIT,
        changes,
        who.client,
        who.member_id,
        run.commits,
        run.since_ms,
    )


def _is_forward(change: OffsetChange) -> bool:
    return change.old is not None and change.new is not None and change.new > change.old


def without_moves(changes: Sequence[OffsetChange]) -> Iterator[OffsetChange]:
    """From n to n is no move."""
    return (one for one in changes if one.old != one.new)
