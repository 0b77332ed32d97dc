"""Groups API: all groups a page at a time, or one group with its members and what they own.

    GET /api/groups[?search=TEXT][&state=S,...][&type=T,...][&status=S,...][&verdicts=true]
                   [&sort=[-]NAME,...][&page=N][&limit=N]
    GET /api/group?group=G[&page=N][&limit=N]      N members a page, by client id
docs/console.md describes the fields. Members are shown without their principals.
"""

from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from console.answers import answer_json, refusal, whole_number
from console.group_members import member_rows, partitions_json
from console.group_rows import SORT_DEFAULT, GroupList, GroupQuery, listed_words
from console.slices import Slices
from coordinator.group_types import AnyGroupView, as_classic, as_consumer, generation_of
from protocol.names import GroupId

GROUPS_PER_PAGE: Final = 50
GROUPS_PER_PAGE_MAX: Final = 1_000
MEMBERS_PER_PAGE: Final = 100
MEMBERS_PER_PAGE_MAX: Final = 1_000
PAGES_MAX: Final = 1_000_000


class GroupsApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.list = GroupList(daemon)

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/groups", self._groups), web.get("/api/group", self._group)]

    async def _groups(self, request: web.Request) -> web.Response:
        asked = request.query
        try:
            query = GroupQuery(
                search=asked.get("search", ""),
                states=frozenset(listed_words(asked.get("state", ""))),
                types=frozenset(listed_words(asked.get("type", ""))),
                statuses=frozenset(listed_words(asked.get("status", ""))),
                only_with_verdicts=asked.get("verdicts") == "true",
                sort=asked.get("sort") or SORT_DEFAULT,
                page=whole_number(request, "page", 1, PAGES_MAX),
                limit=whole_number(request, "limit", GROUPS_PER_PAGE, GROUPS_PER_PAGE_MAX),
            )
            page = await self.list.page(query)
        except ValueError as fault:
            return refusal(400, str(fault))
        book = self._daemon.lag.book
        content: dict[str, object] = {
            "at_ms": self._daemon.clock.now().wall_ms,
            "sampled_at_ms": book.at_ms or None,
            "interval_ms": book.limits.interval_ms,
            "ready": self._daemon.health.ready,
            "reason": self._daemon.health.reason,
            "groups_total": len(page.all.rows),
            "states": dict(page.all.states),
            "statuses": dict(page.all.statuses),
            "with_verdicts": page.all.with_verdicts,
            "matched": page.matched,
            "sort": query.sort,
            "page": page.page,
            "pages": page.pages,
            "limit": query.limit,
            "groups": [row.as_json() for row in page.rows],
        }
        return await answer_json(content, rows=len(page.rows))

    async def _group(self, request: web.Request) -> web.Response:
        group_id = request.query.get("group")
        if group_id is None:
            return refusal(400, "group=G is missing")
        if (reason := self._daemon.health.reason) == "loading":
            return refusal(503, reason)
        try:
            number = whole_number(request, "page", 1, PAGES_MAX)
            limit = whole_number(request, "limit", MEMBERS_PER_PAGE, MEMBERS_PER_PAGE_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        group = self._daemon.coordinator.group(GroupId(group_id))
        if group is None:
            return refusal(404, f"there is no group {group_id!r}")
        registry = self._daemon.data_plane.registry
        slices = Slices(self._daemon.ticker.stalls)
        members = await member_rows(group, self._daemon.clock.now(), slices)
        pages = max(1, -(-len(members) // limit))
        number = min(number, pages)
        shown = []
        for member in members[(number - 1) * limit : number * limit]:
            shown.append({**member.as_json(), **partitions_json(group, member, registry)})
            await slices.pause_if_due()
        content = {
            **_about(group),
            "at_ms": self._daemon.clock.now().wall_ms,
            "members_total": len(members),
            "page": number,
            "pages": pages,
            "limit": limit,
            "members": shown,
        }
        return await answer_json(content, rows=len(shown))


def _about(group: AnyGroupView) -> dict[str, object]:
    classic, consumers = as_classic(group), as_consumer(group)
    return {
        "group": group.group_id,
        "state": group.state.value,
        "type": group.group_type.value,
        "protocol_type": group.protocol_type,
        "protocol": None if classic is None else classic.protocol_name,
        "generation": generation_of(group),
        "assignment_epoch": None if consumers is None else consumers.assignment_epoch,
        "leader": None if classic is None else classic.leader_id or None,
        "topics_committed": len(group.offsets),
    }
