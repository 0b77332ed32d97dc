"""Node API: this node's journal, snapshots, cleaner, event loop; its logs; its purgatory.

    GET /api/node            numbers of the node, as /metrics has them
    GET /api/logs[?search=TEXT][&sort=[-]NAME][&page=N][&limit=N]
                             each partition's log; NAME of topic, segments, bytes, records
    GET /api/log?topic=T&partition=N[&limit=N]
                             the log of one partition with its newest segments
    GET /api/purgatory[?search=TEXT][&kind=KIND][&limit=N]
                             delayed operations, the first due first
docs/console.md describes the fields.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from aiohttp import web

from broker.daemon import Daemon
from console.answers import answer_json, number_asked, refusal, whole_number
from console.slices import Slices
from protocol.names import OFFSETS_TOPIC
from purgatory.op import DelayedOp
from rollcall import __version__
from storage.api import TopicLog, TopicPartition
from storage.batch.record_batch import NO_TIMESTAMP
from storage.log.partition_log import PartitionLog
from storage.log.segment import Segment

LOGS_PER_PAGE: Final = 50
LOGS_PER_PAGE_MAX: Final = 1_000
LAST_PAGE: Final = 1_000_000
SEGMENTS_DEFAULT: Final = 100
SEGMENTS_MAX: Final = 1_000
OPERATIONS_DEFAULT: Final = 100
OPERATIONS_MAX: Final = 1_000
OPERATIONS_AT_ONCE: Final = 1_000
"""Put in order at once: about half a millisecond."""

OPERATION_KEYS_MAX: Final = 5
"""Of one operation that are shown: a fetch may wait for thousands of partitions."""

SNAPSHOTS_SHOWN: Final = 10


class LogRow(NamedTuple):
    topic: str
    partition: int
    segments: int
    bytes: int
    log_start_offset: int
    high_watermark: int
    cleanup: str

    def as_json(self) -> dict[str, object]:
        return self._asdict()


LOG_SORTS: Final[Mapping[str, Callable[[LogRow], object]]] = {
    "topic": lambda row: (row.topic, row.partition),
    "segments": lambda row: row.segments,
    "bytes": lambda row: row.bytes,
    "records": lambda row: row.high_watermark - row.log_start_offset,
}


class Operation(NamedTuple):
    """One delayed operation; in the order of its deadline."""

    deadline_ms: int
    number: int
    kind: str
    keys: tuple[Hashable, ...]


class NodeApi:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._started_at_ms = daemon.clock.now().wall_ms

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/node", self._node),
            web.get("/api/logs", self._logs),
            web.get("/api/log", self._log),
            web.get("/api/purgatory", self._purgatory),
        ]

    async def _node(self, _request: web.Request) -> web.Response:
        daemon = self._daemon
        content: dict[str, object] = {
            "version": __version__,
            "at_ms": daemon.clock.now().wall_ms,
            "started_at_ms": self._started_at_ms,
            "cluster_id": daemon.data_plane.cluster_id,
            "node_id": daemon.config.node_id,
            "health": daemon.health.report(),
            "connections": len(daemon.server.connections),
            "journal": _journal(daemon),
            "snapshots": await self._snapshots(),
            "cleaner": _cleaner(daemon),
            "loop": _loop(daemon),
            "data": _data(daemon),
        }
        return await answer_json(content)

    async def _snapshots(self) -> dict[str, object]:
        """With the partitions of the offsets topic that have grown most since theirs."""
        daemon = self._daemon
        loop, counters = asyncio.get_running_loop(), daemon.observer.counters
        served = daemon.ownership.served
        try:
            sizes = await loop.run_in_executor(None, daemon.offsets_logs.load_sizes, served)
        except OSError:
            sizes = {}  # a file that was removed meanwhile
        grown = nsmallest(SNAPSHOTS_SHOWN, sizes.items(), key=lambda item: -item[1].log_bytes)
        return {
            "taken": counters.snapshots_taken,
            "failed": counters.snapshots_failed,
            "ignored": counters.snapshots_ignored,
            "seconds": counters.snapshots_ms / 1000,
            "bytes": counters.snapshot_bytes,
            "after_bytes": daemon.config.rollcall_snapshot_bytes,
            "topic": OFFSETS_TOPIC,
            "partitions": [
                {
                    "partition": partition,
                    "log_bytes_since": size.log_bytes,
                    "snapshot_bytes": size.snapshot_bytes,
                }
                for partition, size in grown
            ],
        }

    async def _logs(self, request: web.Request) -> web.Response:
        sort = request.query.get("sort") or "-bytes"
        order = LOG_SORTS.get(sort.removeprefix("-"))
        if order is None:
            return refusal(400, f"sort must be one of {', '.join(LOG_SORTS)}, or -NAME")
        try:
            page = whole_number(request, "page", 1, LAST_PAGE)
            limit = whole_number(request, "limit", LOGS_PER_PAGE, LOGS_PER_PAGE_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        search = request.query.get("search", "").casefold()
        slices = Slices(self._daemon.ticker.stalls)
        store = self._daemon.store
        rows: list[LogRow] = []
        total = size = segments = 0
        for key, view in tuple(store.partitions().items()):
            log = store.partition_log(key)
            if log is not None:
                row = _log_row(key, view, log)
                total, size, segments = total + 1, size + row.bytes, segments + row.segments
                if search in f"{key.topic}-{key.partition}".casefold():
                    rows.append(row)
            await slices.pause_if_due()
        rows.sort(key=lambda row: (row.topic, row.partition))
        rows.sort(key=order, reverse=sort.startswith("-"))  # type: ignore[arg-type]  # of one order
        pages = max(1, -(-len(rows) // limit))
        page = min(page, pages)
        shown = [row.as_json() for row in rows[(page - 1) * limit : page * limit]]
        content: dict[str, object] = {
            "logs_total": total,
            "segments_total": segments,
            "bytes_total": size,
            "matched": len(rows),
            "sort": sort,
            "page": page,
            "pages": pages,
            "limit": limit,
            "logs": shown,
        }
        return await answer_json(content, rows=len(shown))

    async def _log(self, request: web.Request) -> web.Response:
        topic = request.query.get("topic")
        try:
            partition = number_asked(request, "partition")
            limit = whole_number(request, "limit", SEGMENTS_DEFAULT, SEGMENTS_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        if topic is None or partition is None:
            return refusal(400, "topic=T and partition=N are needed")
        key = TopicPartition(topic, partition)
        view = self._daemon.store.partitions().get(key)
        log = self._daemon.store.partition_log(key)
        if view is None or log is None:
            return refusal(404, f"there is no log of {topic!r} {partition}")
        segments = tuple(log.segments)
        shown = [_segment_json(segment) for segment in segments[-limit:]]
        content: dict[str, object] = {
            **_log_row(key, view, log).as_json(),
            "log_end_offset": view.log_end_offset,
            "recovery_point": log.recovery_point,
            "segments_total": len(segments),
            "segments": shown,
        }
        return await answer_json(content, rows=len(shown))

    async def _purgatory(self, request: web.Request) -> web.Response:
        try:
            limit = whole_number(request, "limit", OPERATIONS_DEFAULT, OPERATIONS_MAX)
        except ValueError as fault:
            return refusal(400, str(fault))
        search = request.query.get("search", "").casefold()
        only = request.query.get("kind", "")
        slices = Slices(self._daemon.ticker.stalls)
        kinds: Counter[str] = Counter()
        first: list[Operation] = []
        more: list[Operation] = []
        matched = number = 0
        for ops in self._all_operations():
            for op in ops:
                number += 1
                kind = type(op).__name__
                kinds[kind] += 1
                if (not only or kind == only) and (not search or _names(op, search)):
                    matched += 1
                    keys = tuple(op.keys)[-OPERATION_KEYS_MAX:]
                    more.append(Operation(op.deadline_ms, number, kind, keys))
                if len(more) >= OPERATIONS_AT_ONCE:
                    first, more = nsmallest(limit, first + more), []
                await slices.pause_if_due()
        first = nsmallest(limit, first + more)
        now = self._daemon.clock.now()
        content: dict[str, object] = {
            "at_ms": now.wall_ms,
            "kinds": dict(sorted(kinds.items())),
            "operations_total": kinds.total(),
            "matched": matched,
            "operations": [
                {
                    "kind": each.kind,
                    "keys": [_words(key) for key in each.keys],
                    "due_in_ms": each.deadline_ms - now.mono_ms,
                }
                for each in first
            ],
        }
        return await answer_json(content, rows=len(first))

    def _all_operations(self) -> Iterator[Sequence[DelayedOp[object]]]:
        """Those of each partition of the offsets topic, then the delayed fetches."""
        for purgatory in tuple(self._daemon.coordinator.purgatories()):
            yield purgatory.operations()
        yield self._daemon.data_plane.fetch_operations()


def _words(key: Hashable) -> list[str] | str:
    """A slot or a partition has several words; else the key names a group or a request."""
    if isinstance(key, tuple):
        return [str(word) for word in key]
    return key if isinstance(key, str) else ""


def _names(op: DelayedOp[object], search: str) -> bool:
    return any(
        search in str(word).casefold()
        for key in op.keys
        for word in (key if isinstance(key, tuple) else (key,))
        if isinstance(word, str)
    )


def _log_row(key: TopicPartition, view: TopicLog, log: PartitionLog) -> LogRow:
    settings = log.settings
    cleanup = [
        *(["compact"] if settings.cleanup_compact else []),
        *(["delete"] if settings.cleanup_delete else []),
    ]
    return LogRow(
        key.topic,
        key.partition,
        len(log.segments),
        view.size_bytes,
        view.log_start_offset,
        view.high_watermark,
        ",".join(cleanup),
    )


def _segment_json(segment: Segment) -> dict[str, object]:
    has_time = segment.max_timestamp != NO_TIMESTAMP
    return {
        "base_offset": segment.base_offset,
        "next_offset": segment.next_offset,
        "bytes": segment.size,
        "max_timestamp_ms": segment.max_timestamp if has_time else None,
    }


def _journal(daemon: Daemon) -> dict[str, object]:
    journal, bridge = daemon.journal, daemon.bridge
    checkpointer = journal.checkpointer
    return {
        "queue_bytes": journal.queued_bytes,
        "queue_limit_bytes": daemon.config.rollcall_journal_queue_max_bytes,
        "stored_bytes": journal.stored_bytes,
        "flushes": bridge.flushes,
        "flush_seconds": bridge.flush_seconds.total,
        "flush_seconds_bounds": list(bridge.flush_seconds.bounds),
        "flush_seconds_counts": list(bridge.flush_seconds.counts),
        "flush_age_seconds": journal.flush_age_s,
        "checkpoints": checkpointer.checkpoints,
        "checkpoint_seconds": checkpointer.seconds,
        "checkpoint_wait_seconds": checkpointer.wait_seconds,
        "failures": daemon.observer.counters.journal_failures,
        "synced": daemon.config.rollcall_flush == "commit",
        "full": journal.is_full,
        "failed": daemon.health.journal_failed,
    }


def _cleaner(daemon: Daemon) -> dict[str, object]:
    stats = daemon.log_cleaner.stats
    since_ms = None
    if stats.last_run_ms is not None:
        since_ms = daemon.clock.now().mono_ms - stats.last_run_ms
    return {
        "runs": stats.runs,
        "aborted": stats.aborted,
        "read_bytes": stats.bytes_read,
        "written_bytes": stats.bytes_written,
        "seconds": stats.seconds,
        "last_pass_seconds": stats.last_pass_seconds,
        "since_last_run_ms": since_ms,
        "max_dirty_ratio": stats.max_dirty_ratio,
        "uncleanable_partitions": len(daemon.log_cleaner.uncleanable),
        "uncleanable_bytes": stats.uncleanable_bytes,
    }


def _loop(daemon: Daemon) -> dict[str, object]:
    ticker, counters = daemon.ticker, daemon.observer.counters
    return {
        "lag_seconds_max": ticker.lag_seconds_max,
        "stalls": counters.stalls,
        "stalled_ms": counters.stalled_ms,
        "long_turns": dict(ticker.stalls.long),
        "longest_turn_seconds": ticker.stalls.longest(),
        "internal_failures": counters.parts_failed,
    }


def _data(daemon: Daemon) -> dict[str, object]:
    counters = daemon.observer.counters
    return {
        "records_appended": counters.records_appended,
        "bytes_appended": counters.bytes_appended,
        "bytes_fetched": counters.bytes_fetched,
        "offsets_committed": counters.offsets_committed,
        "events_written": 0 if daemon.history is None else daemon.history.events_written,
    }
