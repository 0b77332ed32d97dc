"""Group rows: the list of all groups, searched, sorted and paged on the server.

For /api/groups. A list is made of all groups in slices of the event loop and kept for a moment, so
that many browsers share it; each request filters and sorts it in slices too. Lag and status are
those of the last sample, as in /api/lag.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from typing import Final, NamedTuple

from broker.daemon import Daemon
from broker.lag.verdict_watch import VerdictWatch
from console.slices import Slices
from coordinator.group_types import AnyGroupView, generation_of
from history.lag.model import LAG_SEVERITY, LagStatus
from history.lag.store import GroupWindows
from protocol.names import GroupState

FRESH_S: Final = 1.0
"""How long a list is used for other requests too."""

BUSY_SHARE: Final = 0.1
"""Of the event loop's time, at most, for making lists: with very many groups a list is used for
longer."""

ORDERS_MAX: Final = 8
"""Kept of one list; each has a reference to each group."""

RUN_ROWS: Final = 256
"""Sorted at once: about 0.2 ms."""


class GroupRow(NamedTuple):
    """One group. None: not sampled yet, or it never committed."""

    group_id: str
    state: str
    group_type: str
    protocol_type: str | None
    members: int
    generation: int
    status: LagStatus | None
    partitions: int
    lag: int | None
    lag_max: int | None
    seconds_max: float | None
    verdicts: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "group": self.group_id,
            "state": self.state,
            "type": self.group_type,
            "protocol_type": self.protocol_type,
            "members": self.members,
            "generation": self.generation,
            "status": None if self.status is None else self.status.value,
            "partitions": self.partitions,
            "lag": self.lag,
            "lag_max": self.lag_max,
            "seconds_max": self.seconds_max,
            "verdicts": list(self.verdicts),
        }


class LagSums(NamedTuple):
    lag: int | None = None
    lag_max: int | None = None
    seconds_max: float | None = None


WINDOWS_AT_ONCE: Final = 200
"""Partitions of one group summed up at once: about 0.1 ms."""


async def lag_sums(windows: GroupWindows, slices: Slices) -> LagSums:
    """As `GroupWindows` has them, for groups of any size."""
    lags: list[int] = []
    seconds: list[float] = []
    for number, window in enumerate(tuple(windows.windows.values()), start=1):
        if window.lag is not None:
            lags.append(window.lag)
        if window.seconds is not None:
            seconds.append(window.seconds)
        if number % WINDOWS_AT_ONCE == 0:
            await slices.pause_if_due()
    return LagSums(sum(lags) if lags else None, max(lags, default=None), max(seconds, default=None))


def row_of(
    group: AnyGroupView, windows: GroupWindows | None, sums: LagSums, verdicts: tuple[str, ...]
) -> GroupRow:
    return GroupRow(
        group.group_id,
        group.state.value,
        group.group_type.value,
        group.protocol_type,
        len(group.members),
        generation_of(group),
        None if windows is None else windows.status,
        0 if windows is None else len(windows.windows),
        *sums,
        verdicts,
    )


NO_SUMS: Final = LagSums()


class GroupRows(NamedTuple):
    """All groups at about one moment."""

    rows: Sequence[GroupRow]
    states: Mapping[str, int]
    statuses: Mapping[str, int]
    with_verdicts: int
    made_at_s: float
    took_s: float
    ordered: dict[str, Sequence[GroupRow]]
    """By orders that were asked for, at most `ORDERS_MAX`."""

    def is_fresh(self, now_s: float) -> bool:
        return now_s - self.made_at_s < max(FRESH_S, self.took_s / BUSY_SHARE)


class GroupList:
    """Makes the rows; one list at a time, for all who wait for it."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._lock = asyncio.Lock()
        self._newest: GroupRows | None = None
        self.longest_slice_s = 0.0

    async def newest(self) -> GroupRows:
        async with self._lock:
            if self._newest is None or not self._newest.is_fresh(
                self._daemon.ticker.stalls.begin()
            ):
                self._newest = await self._make()
            return self._newest

    async def page(self, query: "GroupQuery") -> "GroupPage":
        """One search at a time, as one list."""
        rows = await self.newest()
        async with self._lock:
            slices = Slices(self._daemon.ticker.stalls)
            page = await find_page(rows, query, slices)
        self.longest_slice_s = max(self.longest_slice_s, slices.longest_s)
        return page

    async def _make(self) -> GroupRows:
        began_s = self._daemon.ticker.stalls.begin()
        sampler, watch = self._daemon.lag, self._daemon.verdicts
        slices = Slices(self._daemon.ticker.stalls)
        rows: list[GroupRow] = []
        windows = sampler.book.groups
        for some in sampler.group_views():
            for group in some:
                if group.state is not GroupState.DEAD:
                    of_group = windows.get(group.group_id)
                    sums = NO_SUMS if of_group is None else await lag_sums(of_group, slices)
                    kinds = _verdicts_on(watch, group.group_id)
                    rows.append(row_of(group, of_group, sums, kinds))
                await slices.pause_if_due()
        states: Counter[str] = Counter()
        statuses: Counter[str] = Counter()
        with_verdicts = 0
        for row in rows:
            states[row.state] += 1
            statuses["" if row.status is None else row.status.value] += 1
            with_verdicts += bool(row.verdicts)
            await slices.pause_if_due()
        self.longest_slice_s = max(self.longest_slice_s, slices.longest_s)
        ended_s = self._daemon.ticker.stalls.begin()
        return GroupRows(rows, states, statuses, with_verdicts, ended_s, ended_s - began_s, {})


def _verdicts_on(watch: VerdictWatch, group_id: str) -> tuple[str, ...]:
    return tuple(active.verdict.kind.value for active in watch.active(group_id))


_Key = Callable[[GroupRow], str | float | None]


def _severity(row: GroupRow) -> int | None:
    return None if row.status is None else LAG_SEVERITY[row.status]


SORTS: Final[Mapping[str, _Key]] = {
    "group": lambda row: row.group_id,
    "state": lambda row: row.state,
    "type": lambda row: row.group_type,
    "members": lambda row: row.members,
    "generation": lambda row: row.generation,
    "partitions": lambda row: row.partitions,
    "lag": lambda row: row.lag,
    "seconds": lambda row: row.seconds_max,
    "status": _severity,
    "verdicts": lambda row: len(row.verdicts),
}
"""What a list can be sorted by; with a minus in front, the greatest first."""

SORT_DEFAULT: Final = "-status,-lag"


class GroupQuery(NamedTuple):
    """`search` is a part of the group's id, in any case; empty sets mean all."""

    search: str = ""
    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    only_with_verdicts: bool = False
    sort: str = SORT_DEFAULT
    page: int = 1
    limit: int = 50

    def matches(self, row: GroupRow) -> bool:
        return (
            (not self.states or row.state in self.states)
            and (not self.types or row.group_type in self.types)
            and (
                not self.statuses
                or ("" if row.status is None else row.status.value) in self.statuses
            )
            and (not self.only_with_verdicts or bool(row.verdicts))
            and (not self.search or self.search in row.group_id.casefold())
        )


class GroupPage(NamedTuple):
    """`page` is the one that is shown: the last one, if the query asked for a later one."""

    all: GroupRows
    matched: int
    page: int
    pages: int
    rows: Sequence[GroupRow]


async def find_page(rows: GroupRows, query: GroupQuery, slices: Slices) -> GroupPage:
    """Raises ValueError for an unknown order, with words for people."""
    ordered = rows.ordered.get(query.sort)
    if ordered is None:
        ordered = await sorted_rows(rows.rows, query.sort, slices)
        if len(rows.ordered) >= ORDERS_MAX:
            del rows.ordered[next(iter(rows.ordered))]
        rows.ordered[query.sort] = ordered
    search = query._replace(search=query.search.casefold())
    matching: list[GroupRow] = []
    for row in ordered:
        if search.matches(row):
            matching.append(row)
        await slices.pause_if_due()
    pages = max(1, -(-len(matching) // query.limit))
    page = min(query.page, pages)
    first = (page - 1) * query.limit
    return GroupPage(rows, len(matching), page, pages, matching[first : first + query.limit])


async def sorted_rows(rows: Sequence[GroupRow], sort: str, slices: Slices) -> Sequence[GroupRow]:
    """Runs are sorted, then merged: a sort of all rows would be one long turn."""
    key = sort_key(sort)
    runs: list[list[tuple[_SortKey, int]]] = []
    run: list[tuple[_SortKey, int]] = []
    for number, row in enumerate(rows):
        run.append((key(row), number))
        if len(run) == RUN_ROWS:
            run.sort()
            runs.append(run)
            run = []
        await slices.pause_if_due()
    run.sort()
    found: list[GroupRow] = []
    for _, number in merge(*runs, run):
        found.append(rows[number])
        await slices.pause_if_due()
    return found


_SortKey = tuple[bool | str | float, ...]
"""Of each order whether the value is unknown, and the value. A text is compared with texts only."""


def sort_key(sort: str) -> Callable[[GroupRow], _SortKey]:
    """Of words with commas between them; the group's id decides the rest. Unknown values last."""
    parts: list[tuple[_Key, bool]] = []
    for word in (*sort.split(","), "group"):
        name = word.removeprefix("-")
        if name not in SORTS:
            raise ValueError(f"sort must be of {', '.join(SORTS)}, each with or without a minus")
        parts.append((SORTS[name], word != name))
    if len(parts) > len(SORTS):
        raise ValueError("sort names too many orders")

    def key(row: GroupRow) -> _SortKey:
        found: list[bool | str | float] = []
        for value_of, is_descending in parts:
            value = value_of(row)
            found.append(value is None)
            if value is None:
                found.append(0)
            elif isinstance(value, str):
                found.append(_Descending(value) if is_descending else value)
            else:
                found.append(-value if is_descending else value)
        return tuple(found)

    return key


class _Descending(str):
    """A text that sorts the other way."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)

    def __gt__(self, other: str) -> bool:
        return str.__lt__(self, other)


def listed_words(text: str) -> Iterable[str]:
    return (word for word in text.split(",") if word)
