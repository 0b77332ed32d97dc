"""Lag API: the lag of all groups, worst first, or of one group with its partitions.

    GET /api/lag[?limit=N]       each group's sums, as of the last sample
    GET /api/lag?group=G         one group: every partition, read at this moment
    GET /api/lag?group=G&limit=N     only the N partitions with the most lag
    GET /api/lag/windows?group=G[&limit=N]     the samples of these N partitions, oldest first
docs/lag.md describes the fields. `rollcall lag` prints the answers.
"""

import asyncio
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from math import inf
from operator import itemgetter
from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from console.answers import answer_json, refusal, whole_number
from console.slices import Slices, smallest_in_slices
from coordinator.group_types import AnyGroupView
from coordinator.member_identity import MemberIdentity
from history.lag.model import (
    LAG_NOTE_TEXTS,
    LAG_SEVERITY,
    GroupLag,
    LagSum,
    PartitionLag,
)
from history.lag.store import GroupWindows
from protocol.names import GroupId, GroupState

GROUPS_DEFAULT: Final = 1_000
GROUPS_MAX: Final = 100_000
GROUPS_PER_SLICE: Final = 50
GROUP_PARTITIONS_MAX: Final = 1_000_000
"""Of one group: without a limit all of them are listed."""

WINDOWS_DEFAULT: Final = 50
WINDOWS_MAX: Final = 1_000


class LagApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/lag", self._show), web.get("/api/lag/windows", self._windows)]

    async def _show(self, request: web.Request) -> web.Response:
        group_id = request.query.get("group")
        default = GROUPS_DEFAULT if group_id is None else GROUP_PARTITIONS_MAX
        try:
            limit = whole_number(request, "limit", default, max(default, GROUPS_MAX))
        except ValueError as fault:
            return refusal(400, str(fault))
        if group_id is not None:
            return await self._show_group(GroupId(group_id), limit)
        return await self._show_all(limit)

    async def _show_group(self, group_id: GroupId, limit: int) -> web.Response:
        if (reason := self._daemon.health.reason) == "loading":
            return refusal(503, reason)
        lag = await self._daemon.lag.group_lag(group_id)
        if lag is None:
            return refusal(404, f"there is no group {group_id!r}")
        shown: list[dict[str, object]] = []
        slices = Slices(self._daemon.ticker.stalls)
        worst = await _worst(lag.partitions, limit, slices)
        for number, partition_lag in enumerate(worst, start=1):
            shown.append(_partition(partition_lag))
            if number % GROUPS_PER_SLICE == 0:
                await asyncio.sleep(0)
        group = self._daemon.coordinator.group(group_id)
        kind = None if group is None else group.protocol_type
        total = len(lag.partitions)
        content = {**_group(lag, shown), "protocol_type": kind, "partitions_total": total}
        return await answer_json(content, rows=len(shown))

    async def _windows(self, request: web.Request) -> web.Response:
        """Of a group that was not sampled yet: none."""
        group_id = request.query.get("group")
        if group_id is None:
            return refusal(400, "group=G is missing")
        try:
            limit = whole_number(request, "limit", WINDOWS_DEFAULT, WINDOWS_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        book = self._daemon.lag.book
        of_group = book.groups.get(group_id)
        windows = () if of_group is None else tuple(of_group.windows.items())
        slices = Slices(self._daemon.ticker.stalls)
        worst = await smallest_in_slices(
            windows, limit, lambda item: (-(item[1].lag or 0), *item[0]), slices
        )
        shown: list[dict[str, object]] = []
        for number, ((topic, partition), window) in enumerate(sorted(worst), start=1):
            ends = book.ends.get((topic, partition))
            shown.append(
                {
                    "topic": topic,
                    "partition": partition,
                    "commits": [list(commit) for commit in window.commits()],
                    "ends": [] if ends is None else [list(end) for end in ends.samples()],
                }
            )
            if number % GROUPS_PER_SLICE == 0:
                await asyncio.sleep(0)
        content: dict[str, object] = {
            "group": group_id,
            "interval_ms": book.limits.interval_ms,
            "partitions_total": len(windows),
            "windows": shown,
        }
        return await answer_json(content, rows=len(shown) * book.limits.window_commits)

    async def _show_all(self, limit: int) -> web.Response:
        sampler = self._daemon.lag
        book = sampler.book
        groups: list[tuple[Rank, dict[str, object]]] = []
        walk = (group for some in sampler.group_views() for group in some)
        for number, group in enumerate(walk, start=1):
            if group.state is not GroupState.DEAD:
                windows = book.groups.get(group.group_id)
                groups.append((_rank(group.group_id, windows), _sums(group, windows)))
            if number % GROUPS_PER_SLICE == 0:
                await asyncio.sleep(0)
        shown = [sums for _, sums in nsmallest(limit, groups, key=itemgetter(0))]
        content: dict[str, object] = {
            "at_ms": book.at_ms or None,
            "interval_ms": book.limits.interval_ms,
            "groups_total": len(groups),
            "partitions_without_window": book.left_out,
            "groups": shown,
        }
        return await answer_json(content, rows=len(shown))


Rank = tuple[int, float, int, str]


def _rank(group_id: str, windows: GroupWindows | None) -> Rank:
    """The worst first: by status, then by who waits for the oldest record, then by records. Those
    that never committed come last.

    Not by the seconds that are shown: each group was sampled at a moment of its own, so two that
    wait for one and the same record would stand in the order in which they were read.
    """
    oldest_ms = inf
    if windows is None:
        return 1, inf, 1, group_id
    if (seconds := windows.seconds_max) is not None:
        oldest_ms = windows.at_ms - round(seconds * 1000)
    lag = windows.lag
    return -LAG_SEVERITY[windows.status], oldest_ms, 1 if lag is None else -lag, group_id


def _sums(group: AnyGroupView, windows: GroupWindows | None) -> dict[str, object]:
    """Without windows: it never committed, or was not sampled yet."""
    return {
        "group": group.group_id,
        "state": group.state.value,
        "members": len(group.members),
        "verdict": None if windows is None else windows.status.value,
        "partitions": 0 if windows is None else len(windows.windows),
        "lag": None if windows is None else windows.lag,
        "lag_max": None if windows is None else windows.lag_max,
        "seconds_max": None if windows is None else windows.seconds_max,
        "protocol_type": group.protocol_type,
    }


def _group(lag: GroupLag, partitions: list[dict[str, object]]) -> dict[str, object]:
    total = lag.total
    return {
        "group": lag.group_id,
        "state": lag.state,
        "at_ms": lag.at_ms,
        "verdict": lag.status.value,
        "lag": total.lag,
        "lag_max": total.lag_max,
        "seconds_max": total.seconds_max,
        "catch_up_seconds": lag.catch_up_seconds,
        "outlook": lag.catch_up.value,
        "partitions_falling_behind": lag.falling_behind,
        "topics": [{"topic": topic, **_sum(total)} for topic, total in lag.by_topic().items()],
        "members": [
            {**_owner(owner), **_sum(total)}
            for owner, total in _by_owner(lag.by_member().items())
            if owner is not None
        ],
        "partitions": partitions,
    }


async def _worst(
    partitions: Sequence[PartitionLag], limit: int, slices: Slices
) -> Sequence[PartitionLag]:
    if len(partitions) <= limit:
        return partitions
    worst = await smallest_in_slices(
        partitions, limit, lambda each: (-(each.lag or 0), each.topic, each.partition), slices
    )
    return sorted(worst, key=lambda each: (each.topic, each.partition))


def _by_owner(
    sums: Iterable[tuple[MemberIdentity | None, LagSum]],
) -> list[tuple[MemberIdentity | None, LagSum]]:
    return sorted(sums, key=lambda pair: "" if pair[0] is None else pair[0].member_id)


def _sum(total: LagSum) -> dict[str, object]:
    return {
        "partitions": total.partitions,
        "lag": total.lag,
        "lag_max": total.lag_max,
        "seconds_max": total.seconds_max,
        "verdict": total.status.value,
    }


def _partition(partition_lag: PartitionLag) -> dict[str, object]:
    return {
        "topic": partition_lag.topic,
        "partition": partition_lag.partition,
        "committed_offset": partition_lag.committed_offset,
        "committed_at_ms": partition_lag.committed_at_ms,
        "log_start_offset": partition_lag.log_start_offset,
        "log_end_offset": partition_lag.log_end_offset,
        "lag": partition_lag.lag,
        "seconds": partition_lag.seconds,
        "seconds_exact": partition_lag.seconds_exact,
        "consumed_per_second": partition_lag.rates.consumed,
        "produced_per_second": partition_lag.rates.produced,
        "catch_up_seconds": partition_lag.catch_up_seconds,
        "outlook": partition_lag.catch_up.value,
        "verdict": partition_lag.status.value,
        "note": partition_lag.note.value or None,
        "note_words": LAG_NOTE_TEXTS[partition_lag.note] or None,
        "member": None if partition_lag.owner is None else _owner(partition_lag.owner),
        "other_members": [_owner(other) for other in partition_lag.other_owners],
    }


def _owner(owner: MemberIdentity) -> dict[str, object]:
    return {
        "member_id": owner.member_id,
        "group_instance_id": owner.group_instance_id,
        "client_id": owner.client_id,
        "client_host": owner.client_host,
    }
