"""History API: why a group rebalanced, and all events of a group.

    GET /api/rebalances?group=G[&limit=N][&generation=N][&since=MS][&until=MS]
                                the rebalances, newest first, as `rollcall why --json` prints them;
                                the same as a story; and, of a group that waits, whom it waits for
    GET /api/history?group=G[&limit=N][&offsets=true][&since=MS][&until=MS]
                                its events, newest first, as they are kept in __group_history, each
                                with a text; only those that moved offsets
    GET /api/rebalances?all=true ...  /api/history?all=true ...    likewise of all groups
Times are ms since 1970. `more` says that the limit left something out.
docs/history.md describes the fields.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from broker.history_log.reader import ALWAYS, FOREVER_MS, TimeRange
from broker.history_log.view import HistoryView
from broker.lag.verdict_watch import ActiveVerdict
from console.answers import answer_json, number_asked, refusal, whole_number
from coordinator.group_types import as_consumer, generation_of
from history.encoding import as_plain
from history.entries import ENTRY_NAMES, GroupDeletedEntry, OffsetsMovedEntry
from history.text.entry_text import format_entry
from history.text.rebalance_json import rebalance_json
from history.text.rebalance_text import format_rebalance, format_wait
from history.verdicts.model import VerdictKind
from history.waiting import AwaitedMember, GroupWait
from protocol.names import GroupId
from seams.text import instant
from storage.api import Corrupt

REBALANCES_DEFAULT: Final = 20
REBALANCES_MAX: Final = 1_000
EVENTS_DEFAULT: Final = 100
EVENTS_MAX: Final = 10_000
EVENTS_PER_SLICE: Final = 200


class HistoryApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._view: HistoryView | None = None
        if daemon.history is not None:
            self._view = HistoryView(daemon.history, daemon.coordinator, daemon.clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/rebalances", self._rebalances),
            web.get("/api/history", self._history),
        ]

    async def _rebalances(self, request: web.Request) -> web.Response:
        view, group_id, refused = self._asked(request)
        if view is None or refused is not None:
            return refused or _disabled()
        try:
            limit = whole_number(request, "limit", REBALANCES_DEFAULT, REBALANCES_MAX)
            generation = number_asked(request, "generation")
            span = _span(request)
        except ValueError as fault:
            return refusal(400, str(fault))
        if group_id is None and generation is not None:
            return refusal(400, "generation=N needs group=G")
        try:
            if group_id is None:
                found = await view.rebalances_of_all(limit + 1, span)
            else:
                of_group = await view.rebalances(group_id, limit + 1, generation, span)
                found = [(group_id, rebalance) for rebalance in of_group]
                if not found and not await view.knows(group_id):
                    return self._unknown(group_id)
        except (OSError, Corrupt, KeyError) as fault:
            return refusal(500, f"the history cannot be read: {fault}")
        content: dict[str, object] = {
            "group": group_id,
            "more": len(found) > limit,
            "rebalances": [
                {"group": group, **rebalance_json(rebalance)} for group, rebalance in found[:limit]
            ],
            "stories": [format_rebalance(rebalance) for _, rebalance in found[:limit]],
        }
        if group_id is not None:
            content |= self._current_state(view, group_id, is_now=generation is None)
        return await answer_json(content, rows=len(found))

    def _current_state(
        self, view: HistoryView, group_id: str, *, is_now: bool
    ) -> dict[str, object]:
        """The group at this moment: whom it waits for, and what is wrong."""
        group = self._daemon.coordinator.group(GroupId(group_id))
        consumers = as_consumer(group)
        waiting = view.waiting(group_id) if is_now else None
        now_ms = self._daemon.clock.now().wall_ms
        return {
            "state": None if group is None else str(group.state),
            "generation": None if group is None else generation_of(group),
            "members": None if group is None else len(group.members),
            "protocol_type": None if group is None else group.protocol_type,
            "waiting": None if waiting is None else _waiting(waiting),
            "verdicts": [
                _verdict(active, waits=waiting is not None)
                for active in self._daemon.verdicts.active(group_id)
            ],
            "waiting_story": [] if waiting is None else format_wait(waiting, now_ms),
            "group_type": None if group is None else str(group.group_type),
            "assignment_epoch": None if consumers is None else consumers.assignment_epoch,
        }

    async def _history(self, request: web.Request) -> web.Response:
        view, group_id, refused = self._asked(request)
        if view is None or refused is not None:
            return refused or _disabled()
        try:
            limit = whole_number(request, "limit", EVENTS_DEFAULT, EVENTS_MAX)
            span = _span(request)
        except ValueError as fault:
            return refusal(400, str(fault))
        only_offsets = request.query.get("offsets") == "true"
        kinds = (OffsetsMovedEntry, GroupDeletedEntry) if only_offsets else ()
        try:
            found = await view.events(group_id, limit + 1, kinds, span)
            if group_id is not None and not found:
                is_filtered = bool(kinds) or span != ALWAYS
                if not (await view.knows(group_id) if is_filtered else self._knows(group_id)):
                    return self._unknown(group_id)
        except (OSError, Corrupt, KeyError) as fault:
            return refusal(500, f"the history cannot be read: {fault}")
        events: list[object] = []
        for number, (offset, event) in enumerate(found[:limit], start=1):
            plain = as_plain(event)
            assert isinstance(plain, dict)
            about = {"offset": offset, "type": ENTRY_NAMES[type(event)], "at": instant(event.at_ms)}
            events.append({**about, "text": format_entry(event), **plain})
            if number % EVENTS_PER_SLICE == 0:
                await asyncio.sleep(0)
        content = {"group": group_id, "more": len(found) > limit, "events": events}
        return await answer_json(content, rows=len(events))

    def _asked(
        self, request: web.Request
    ) -> tuple[HistoryView | None, str | None, web.Response | None]:
        """Where to ask, of which group (None: of all); or why not."""
        group_id = request.query.get("group")  # the empty one is a group, too
        is_all = request.query.get("all") == "true"
        if group_id is None and not is_all:
            return None, None, refusal(400, "group=G is missing, or all=true")
        if group_id is not None and is_all:
            return None, "", refusal(400, "give either group=G or all=true")
        if self._daemon.health.reason == "loading":
            return None, group_id, refusal(503, "loading")
        return self._view, group_id, None

    def _knows(self, group_id: str) -> bool:
        return self._daemon.coordinator.knows(GroupId(group_id))

    def _unknown(self, group_id: str) -> web.Response:
        return refusal(404, f"there is no group {group_id!r}, and the history has none")


def _span(request: web.Request) -> TimeRange:
    """Raises ValueError with words for people."""
    since_ms, until_ms = number_asked(request, "since"), number_asked(request, "until")
    span = TimeRange(since_ms or 0, FOREVER_MS if until_ms is None else until_ms)
    if span.since_ms > span.until_ms:
        raise ValueError("since must not be after until")
    return span


def _verdict(active: ActiveVerdict, *, waits: bool) -> str:
    """For whom a stuck group waits, and until when, the story beside it says as of now."""
    kind = active.verdict.kind
    if waits and kind is VerdictKind.STUCK_GROUP:
        return f"Verdict {kind.value} since {instant(active.since_ms)}."
    return f"Verdict {kind.value}: {active.verdict.summary}."


def _disabled() -> web.Response:
    return refusal(404, "no history is kept: rollcall.history.enable is false")


def _waiting(waiting: GroupWait) -> dict[str, object]:
    return {
        "for": str(waiting.waits_for),
        "since": instant(waiting.since_ms),
        "until": None if waiting.until_ms is None else instant(waiting.until_ms),
        "members": list(_awaited(waiting.members)),
        "joined": waiting.joined,
        "ids_handed_out": waiting.assigned_ids,
    }


def _awaited(members: Iterable[AwaitedMember]) -> Iterable[dict[str, object]]:
    for awaited in members:
        ends_at_ms = awaited.session_ends_at_ms
        yield {
            "member_id": awaited.member.member_id,
            "group_instance_id": awaited.member.group_instance_id,
            "client_id": awaited.member.client_id,
            "host": awaited.member.client_host,
            "principal": awaited.member.principal,
            "session_ends": None if ends_at_ms is None else instant(ends_at_ms),
        }
