"""Verdicts API: the current verdicts, each with its evidence and remedy.

    GET /api/verdicts            all groups and producers, the longest standing first
    GET /api/verdicts?group=G    of one group
docs/verdicts.md describes the verdicts. `rollcall verdicts` prints the answers.
"""

from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from broker.lag.verdict_watch import ActiveVerdict
from console.answers import answer_json, refusal, whole_number
from protocol.names import GroupId

VERDICTS_DEFAULT: Final = 1_000
VERDICTS_MAX: Final = 100_000


class VerdictsApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/verdicts", self._show)]

    async def _show(self, request: web.Request) -> web.Response:
        group_id = request.query.get("group")
        if group_id is not None and not self._daemon.coordinator.knows(GroupId(group_id)):
            reason = self._daemon.health.reason
            if reason == "loading":
                return refusal(503, reason)
            return refusal(404, f"there is no group {group_id!r}")
        try:
            limit = whole_number(request, "limit", VERDICTS_DEFAULT, VERDICTS_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        standing = list(self._daemon.verdicts.active(group_id))
        if group_id is None:
            standing += self._daemon.transaction_watch.active()
            standing.sort(key=lambda active: active.since_ms)
        shown = [_verdict(active) for active in standing[:limit]]
        content: dict[str, object] = {
            "at_ms": self._daemon.lag.book.at_ms or None,
            "interval_ms": self._daemon.lag.book.limits.interval_ms,
            "verdicts_total": len(standing),
            "verdicts": shown,
        }
        return await answer_json(content, rows=len(shown))


def _verdict(active: ActiveVerdict) -> dict[str, object]:
    verdict = active.verdict
    return {
        "group": verdict.group_id or None,
        "verdict": verdict.kind.value,
        "subject": verdict.subject or None,
        "since_ms": active.since_ms,
        "summary": verdict.summary,
        "remedy": verdict.remedy,
        "evidence": dict(verdict.evidence),
    }
