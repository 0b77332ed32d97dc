"""Timeline API: the lanes of a group's members and its rebalances, for a picture.

    GET /api/timeline?group=G[&since=MS][&limit=N]
                         from then on (default: an hour ago), of the last N entries of the history
Times are ms since 1970. docs/console.md describes the fields. Members without their principals.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from broker.history_log.reader import FOREVER_MS, TimeRange
from broker.history_log.view import HistoryView
from console.answers import answer_json, number_asked, refusal, whole_number
from console.group_members import (
    AWAY,
    GIVES_BACK,
    HAS_TO_REJOIN,
    HAS_TO_SYNC,
    OWNS,
    WAITS_FOR_ASSIGNMENT,
    WAITS_FOR_OTHERS,
    WAITS_FOR_PARTITIONS,
    member_rows,
)
from console.member_steps import MemberSteps
from console.slices import Slices
from coordinator.member_identity import MemberIdentity
from history.timeline import (
    Doing,
    Lane,
    RebalanceBand,
    Timeline,
    TimelineBuilder,
    lane_key,
    merged_with_steps,
    newest_spans,
)
from protocol.names import GroupId, GroupInstanceId, MemberId
from storage.api import Corrupt

TIMELINE_DEFAULT_MS: Final = 3_600_000
TIMELINE_ENTRIES: Final = 2_000
TIMELINE_ENTRIES_MAX: Final = 10_000
LANES_MAX: Final = 300
"""Those that are members now come first, then those that are gone the shortest."""

SPANS_MAX: Final = 10_000
"""Of all lanes together, the newest: more than a picture can show."""

_DOING: Final[Mapping[str, Doing]] = {
    OWNS: Doing.OWNED,
    WAITS_FOR_OTHERS: Doing.WAITED,
    HAS_TO_REJOIN: Doing.TO_REJOIN,
    WAITS_FOR_ASSIGNMENT: Doing.SYNCING,
    HAS_TO_SYNC: Doing.SYNCING,
    GIVES_BACK: Doing.REVOKING,
    WAITS_FOR_PARTITIONS: Doing.WAITED,
    AWAY: Doing.AWAY,
}


class TimelineApi:
    def __init__(self, daemon: Daemon, steps: MemberSteps) -> None:
        """`steps`: those of the history's turns; none without a history."""
        self._daemon = daemon
        self._steps = steps
        self._view: HistoryView | None = None
        if daemon.history is not None:
            self._view = HistoryView(daemon.history, daemon.coordinator, daemon.clock)

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/timeline", self._show)]

    async def _show(self, request: web.Request) -> web.Response:
        group_id = request.query.get("group")
        if group_id is None:
            return refusal(400, "group=G is missing")
        if self._view is None:
            return refusal(404, "no history is kept: rollcall.history.enable is false")
        if (reason := self._daemon.health.reason) == "loading":
            return refusal(503, reason)
        now = self._daemon.clock.now()
        try:
            since_ms = number_asked(request, "since")
            limit = whole_number(request, "limit", TIMELINE_ENTRIES, TIMELINE_ENTRIES_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        since_ms = (
            now.wall_ms - TIMELINE_DEFAULT_MS if since_ms is None else min(since_ms, now.wall_ms)
        )
        try:
            found = await self._view.events(
                group_id, limit + 1, (), TimeRange(since_ms, FOREVER_MS)
            )
        except (OSError, Corrupt, KeyError) as fault:
            return refusal(500, f"the history cannot be read: {fault}")
        if not found and not self._daemon.coordinator.knows(GroupId(group_id)):
            words = f"there is no group {group_id!r}, and the history has none in this time"
            return refusal(404, words)
        entries = [entry for _, entry in reversed(found[:limit])]
        entries.sort(key=lambda entry: entry.at_ms)  # stable; the wall clock may have gone back
        is_cut = len(found) > limit
        from_ms = entries[0].at_ms if is_cut else since_ms
        steps = [step for step in self._steps.of(group_id) if step.at_ms >= from_ms]
        members = await self._members(group_id)
        builder = TimelineBuilder(from_ms)
        slices = Slices(self._daemon.ticker.stalls)
        for happened in merged_with_steps(entries, steps):
            builder.take(happened)
            await slices.pause_if_due()
        timeline = builder.timeline(now.wall_ms, members)
        loop = asyncio.get_running_loop()
        drawn = await loop.run_in_executor(None, _drawn, timeline)
        content = {"group": group_id, **drawn}
        content["more"] = is_cut or drawn["from_ms"] != from_ms
        return await answer_json(content, rows=len(entries))

    async def _members(self, group_id: str) -> dict[str, tuple[MemberIdentity, Doing]]:
        group = self._daemon.coordinator.group(GroupId(group_id))
        if group is None:
            return {}
        slices = Slices(self._daemon.ticker.stalls)
        found: dict[str, tuple[MemberIdentity, Doing]] = {}
        for row in await member_rows(group, self._daemon.clock.now(), slices):
            instance = row.group_instance_id
            member = MemberIdentity(
                MemberId(row.member_id),
                None if instance is None else GroupInstanceId(instance),
                row.client_id,
                row.client_host,
            )
            found[lane_key(member)] = member, _DOING[row.doing]
        return found


def _drawn(timeline: Timeline) -> dict[str, object]:
    """In a thread: a group that rebalances all the time has very many spans."""
    lanes = sorted(timeline.lanes, key=_order)[:LANES_MAX]
    left_out = len(timeline.lanes) - len(lanes)
    from_ms = newest_spans(lanes, SPANS_MAX)
    return {
        "from_ms": timeline.from_ms if from_ms is None else from_ms,
        "to_ms": timeline.to_ms,
        "lanes_left_out": left_out,
        "lanes": [_lane(lane) for lane in lanes if lane.spans],
        "rebalances": [_band(band) for band in timeline.rebalances],
        "restarts_ms": list(timeline.restarts_ms),
    }


def _order(lane: Lane) -> tuple[int, int, str, str]:
    """Members by client id, then those that are gone, the latest first."""
    gone_ms = lane.gone_at_ms
    about = (lane.member.client_id, lane.key)
    return (0, 0, *about) if gone_ms is None else (1, -gone_ms, *about)


def _lane(lane: Lane) -> dict[str, object]:
    return {
        "key": lane.key,
        "member_id": lane.member.member_id,
        "group_instance_id": lane.member.group_instance_id,
        "client_id": lane.member.client_id,
        "client_host": lane.member.client_host,
        "gone_at_ms": lane.gone_at_ms,
        "spans": [[str(span.doing), span.from_ms, span.to_ms] for span in lane.spans],
        "marks": [[str(mark.mark), mark.at_ms, mark.note] for mark in lane.marks],
    }


def _band(band: RebalanceBand) -> dict[str, object]:
    return {
        "began_ms": band.began_ms,
        "ended_ms": band.ended_ms,
        "cause": str(band.cause),
        "end": str(band.end),
        "generation_before": band.generation_before,
        "generation_after": band.generation_after,
    }
