"""Topics API: all topics a page at a time, or one topic with its partitions.

    GET /api/topics[?search=TEXT][&internal=false][&sort=[-]NAME][&page=N][&limit=N]
                    NAME of topic, partitions, records, bytes
    GET /api/topic?topic=T[&page=N][&limit=N]
docs/console.md describes the fields.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from aiohttp import web

from broker.daemon import Daemon
from console.answers import answer_json, refusal, whole_number
from console.slices import Slices
from protocol.names import TopicId, TopicName
from topics.partition import Partition

TOPICS_PER_PAGE: Final = 50
TOPICS_PER_PAGE_MAX: Final = 1_000
PARTITIONS_PER_PAGE: Final = 100
PARTITIONS_PER_PAGE_MAX: Final = 1_000
PAGE_MAX: Final = 1_000_000
PARTITIONS_AT_ONCE: Final = 100


class TopicRow(NamedTuple):
    """`records` counts offsets: of a compacted topic fewer records may be left."""

    topic: str
    is_internal: bool
    partitions: int
    offline: int
    records: int
    bytes: int

    def as_json(self) -> dict[str, object]:
        return self._asdict()


TOPIC_SORTS: Final[Mapping[str, Callable[[TopicRow], str | int]]] = {
    "topic": lambda row: row.topic,
    "partitions": lambda row: row.partitions,
    "records": lambda row: row.records,
    "bytes": lambda row: row.bytes,
}


class TopicsApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/topics", self._topics), web.get("/api/topic", self._topic)]

    async def _topics(self, request: web.Request) -> web.Response:
        sort = request.query.get("sort") or "topic"
        order = TOPIC_SORTS.get(sort.removeprefix("-"))
        if order is None:
            return refusal(400, f"sort must be one of {', '.join(TOPIC_SORTS)}, or -NAME")
        try:
            page = whole_number(request, "page", 1, PAGE_MAX)
            limit = whole_number(request, "limit", TOPICS_PER_PAGE, TOPICS_PER_PAGE_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        search = request.query.get("search", "").casefold()
        is_all = request.query.get("internal") != "false"
        rows = await self._rows()
        found = [
            row
            for row in rows
            if search in row.topic.casefold() and (is_all or not row.is_internal)
        ]
        found.sort(key=lambda row: row.topic)
        found.sort(key=order, reverse=sort.startswith("-"))
        pages = max(1, -(-len(found) // limit))
        page = min(page, pages)
        shown = [row.as_json() for row in found[(page - 1) * limit : page * limit]]
        content: dict[str, object] = {
            "at_ms": self._daemon.clock.now().wall_ms,
            "topics_total": len(rows),
            "partitions_total": sum(row.partitions for row in rows),
            "bytes_total": sum(row.bytes for row in rows),
            "matched": len(found),
            "sort": sort,
            "page": page,
            "pages": pages,
            "limit": limit,
            "topics": shown,
        }
        return await answer_json(content, rows=len(shown))

    async def _rows(self) -> list[TopicRow]:
        registry = self._daemon.data_plane.registry
        slices = Slices(self._daemon.ticker.stalls)
        rows: list[TopicRow] = []
        for name in registry.names():
            topic = registry.by_name(name)
            if topic is None:
                continue  # deleted meanwhile
            records = size = offline = 0
            for number, partition in enumerate(tuple(topic.partitions), start=1):
                log = None if partition.offline else partition.log
                if log is None:
                    offline += 1
                else:
                    records += log.high_watermark - log.log_start_offset
                    size += log.size_bytes
                if number % PARTITIONS_AT_ONCE == 0:
                    await slices.pause_if_due()
            rows.append(
                TopicRow(name, topic.is_internal, len(topic.partitions), offline, records, size)
            )
            await slices.pause_if_due()
        return rows

    async def _topic(self, request: web.Request) -> web.Response:
        name = request.query.get("topic")
        if name is None:
            return refusal(400, "topic=T is missing")
        try:
            page = whole_number(request, "page", 1, PAGE_MAX)
            limit = whole_number(request, "limit", PARTITIONS_PER_PAGE, PARTITIONS_PER_PAGE_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        topic = self._daemon.data_plane.registry.by_name(TopicName(name))
        if topic is None:
            return refusal(404, f"there is no topic {name!r}")
        pages = max(1, -(-len(topic.partitions) // limit))
        page = min(page, pages)
        first = (page - 1) * limit
        shown = [
            _partition(index, partition)
            for index, partition in enumerate(topic.partitions[first : first + limit], first)
        ]
        content: dict[str, object] = {
            "topic": topic.name,
            "topic_id": _as_kafka_prints(topic.topic_id),
            "is_internal": topic.is_internal,
            "configs": dict(topic.configs),
            "partitions_total": len(topic.partitions),
            "page": page,
            "pages": pages,
            "limit": limit,
            "partitions": shown,
        }
        return await answer_json(content, rows=len(shown))


def _as_kafka_prints(topic_id: TopicId) -> str:
    """Kafka's Uuid.toString."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _partition(index: int, partition: Partition) -> dict[str, object]:
    log = None if partition.offline else partition.log
    return {
        "partition": index,
        "offline": log is None,
        "log_start_offset": None if log is None else log.log_start_offset,
        "high_watermark": None if log is None else log.high_watermark,
        "log_end_offset": None if log is None else log.log_end_offset,
        "leader_epoch": None if log is None else log.leader_epoch,
        "bytes": None if log is None else log.size_bytes,
    }
